// A target needs a source; the ones that this is for hold the precompiled headers of the tests.
