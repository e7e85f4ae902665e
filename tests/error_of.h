// The text of an error, for tests that look at it.
#pragma once

#include <tenon/support/error.h>

#include <string>

namespace tenon::testing {

// What the Error says that `run` throws; "no error" if it throws none.
template <typename Kind = Error, typename F>
std::string error_of(F&& run) {
  try {
    run();
  } catch (const Kind& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tenon::testing
