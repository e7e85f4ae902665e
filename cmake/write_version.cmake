# cmake -DFILES=… -DVERSION=… -DOUT=… -P write_version.cmake: writes version.h if its text changes.
set(digests "")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} digest)
  string(APPEND digests ${digest})
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 16 digest)
set(text "// Written by cmake/write_version.cmake.
#pragma once

#define TENON_VERSION \"${VERSION}\"
// Of the sources of loop and codegen: changes when the machine code of a kernel may.
#define TENON_CODEGEN_DIGEST \"${digest}\"
")
file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
