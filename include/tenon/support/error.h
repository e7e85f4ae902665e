// Two kinds of errors.
//
// `Error` is the user's: something that was passed in cannot work. Its text has the form
// "[operator] what was expected, what was given", with shapes and dtypes.
// `InternalError` is ours: a condition that the code relies on did not hold. Its text names the
// condition, the file and the line, and whatever the author of the check thought worth showing.
//
//   int axis = 1, rank = 2;
//   TENON_CHECK(x.defined(), "[neg] expected a tensor, got an undefined one");
//   TENON_ASSERT(axis < rank, "axis {} of a kernel of rank {}", axis, rank);
//   try {
//     if (rank > 1) fail("[vector] expected one dimension, got {}", rank);
//   } catch (const Error& error) {            // a fault of the user's
//     std::string text = error.what();
//   } catch (const InternalError& error) {    // a fault of ours
//     throw;
//   }
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tenon {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what) : std::runtime_error(what) {}
};

class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& what) : std::logic_error(what) {}
};

namespace support {

[[noreturn]] void throw_internal(const char* condition, const char* file, int line, const std::string& detail);

}  // namespace support

// Throws an `Error` with a formatted text.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace tenon

#define TENON_CHECK(condition, ...) \
  do {                              \
    if (!(condition)) [[unlikely]]  \
      ::tenon::fail(__VA_ARGS__);   \
  } while (false)

#define TENON_ASSERT(condition, ...)                                                                   \
  do {                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                     \
      ::tenon::support::throw_internal(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
