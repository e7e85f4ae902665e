// Small programs that together use most of the library, for a machine without memory.
//
// Left out, because a bad_alloc may come out of them as it is: functions that return a list of tensors (`split`), whose
// list is made for the caller after the operator has run, and constructors of modules other than Linear and ReLU.
#pragma once

#include <tenon/tenon.h>

#include <functional>
#include <vector>

namespace tenon::low_memory {

struct Program {
  const char* name;
  // Makes what the program uses, and gives what is run again and again: each run computes the same number.
  std::function<std::function<double()>()> make;
};

const std::vector<Program>& programs();

}  // namespace tenon::low_memory
