// The text of an error, for tests that look at it.
#pragma once

#include <tenon/support/error.h>

#include <regex>
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

// A text without the lines of the program that it names (" at model_test.cpp:31", "asked at …"), which change whenever
// the test does.
inline std::string without_lines(const std::string& text) {
  static const std::regex place(R"((\n  asked)? at [\w.]+:\d+)");
  return std::regex_replace(text, place, "");
}

}  // namespace tenon::testing
