// Eager calls keep what they compiled, for the life of the process.
#pragma once

namespace tenon::eager {

// Forgets kernels and plans, so that the next calls compile again: for tests that change the vector width.
void forget_kernels();

}  // namespace tenon::eager
