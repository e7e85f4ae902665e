// Two kinds of errors.
//
// `Error` is the user's: something that was passed in cannot work. Its text has the form
// "[operator] what was expected, what was given", with shapes and dtypes. Its class says what kind of fault it is, with
// the names that Python has for them: `RuntimeError` (unless said otherwise), `ValueError`, `TypeError`, `IndexError`,
// `NotImplementedError`. Two more are RuntimeErrors that a program may want to tell apart: `OverflowError`, a size or
// position that 64 bits do not hold, and `MemoryError`, more memory than there is.
// `InternalError` is ours: a condition that the code relies on did not hold. Its text names the
// condition, the file and the line, and whatever the author of the check thought worth showing.
//
//   int axis = 1, rank = 2;
//   TENON_CHECK(x.defined(), "[neg] expected a tensor, got an undefined one");
//   TENON_CHECK_INDEX(axis < rank, "[select] expected a dimension below {}, got {}", rank, axis);
//   TENON_CHECK_VALUE(rank > 0, "[view] expected at least one dimension, got {}", rank);
//   TENON_CHECK_TYPE(x.is_floating_point(), "[exp] expected floating point numbers, got {}", x.description());
//   TENON_CHECK_IMPLEMENTED(x.device() == kCPU, "[exp] has no kernel for {}", x.device().str());
//   TENON_ASSERT(axis < rank, "axis {} of a kernel of rank {}", axis, rank);
//   try {
//     if (rank > 2) fail("[matrix] expected two dimensions, got {}", rank);  // a RuntimeError
//     if (rank > 3) fail<NotImplementedError>("[matrix] {} dimensions are not supported", rank);
//     if (rank > 4) throw RuntimeError("[matrix] expected fewer dimensions");
//     if (rank > 4) fail<TypeError>("[matrix] expected a tensor");
//     if (rank > 5) raise_named("IndexError: [matrix] expected another position");
//     if (rank > 1) fail<ValueError>("[vector] expected one dimension, got {}", rank);
//   } catch (const IndexError&) {             // one kind
//     throw;
//   } catch (const MemoryError&) {            // less may fit
//     throw MemoryError("[matrix] out of memory");
//   } catch (const OverflowError&) {          // no machine has that much
//     throw OverflowError("[matrix] expected a size that fits 64 bits");
//   } catch (const Error& error) {            // a fault of the user's
//     std::string text = std::string(name(error.kind())) + ": " + error.what();  // "ValueError: [vector] …"
//     if (error.kind() != ErrorKind::Value) raise(error.kind(), text + ", and more about it");
//   } catch (const InternalError& error) {    // a fault of ours
//     throw;
//   }
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tenon {

enum class ErrorKind : uint8_t { Runtime, Value, Type, Index, NotImplemented };
std::string_view name(ErrorKind kind);  // "ValueError"

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what) : std::runtime_error(what) {}
  virtual ErrorKind kind() const noexcept { return ErrorKind::Runtime; }
};

// Whatever is none of the others.
class RuntimeError : public Error {
 public:
  using Error::Error;
  static constexpr ErrorKind kKind = ErrorKind::Runtime;
};

// A size, stride, position or number of bytes that 64 bits do not hold.
class OverflowError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// More memory than there is.
class MemoryError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// An argument of the right type that cannot be.
class ValueError : public Error {
 public:
  using Error::Error;
  static constexpr ErrorKind kKind = ErrorKind::Value;
  ErrorKind kind() const noexcept override { return kKind; }
};

// An argument of the wrong type.
class TypeError : public Error {
 public:
  using Error::Error;
  static constexpr ErrorKind kKind = ErrorKind::Type;
  ErrorKind kind() const noexcept override { return kKind; }
};

// A dimension or a position that is not there.
class IndexError : public Error {
 public:
  using Error::Error;
  static constexpr ErrorKind kKind = ErrorKind::Index;
  ErrorKind kind() const noexcept override { return kKind; }
};

// Something that could be, but that nobody has written: no kernel, no fake implementation.
class NotImplementedError : public Error {
 public:
  using Error::Error;
  static constexpr ErrorKind kKind = ErrorKind::NotImplemented;
  ErrorKind kind() const noexcept override { return kKind; }
};

class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& what) : std::logic_error(what) {}
};

// Throws an error of that kind.
[[noreturn]] void raise(ErrorKind kind, const std::string& text);
// Throws what a text says that begins with the name of a kind ("IndexError: [gather] …"), else a RuntimeError. This is
// how kernels, which are text, say what a check of theirs raises.
[[noreturn]] void raise_named(std::string_view text);

// Checks are everywhere: what they format is handed over untyped, so that a check compiles to little and brings in
// little. The formats are checked when they are compiled all the same.
namespace support {

[[noreturn]] void fail(ErrorKind kind, fmt::string_view text, fmt::format_args arguments);
[[noreturn]] void fail_internal(const char* condition, const char* file, int line, fmt::string_view text,
                                fmt::format_args arguments);
template <typename... Args>
[[noreturn]] void internal(const char* condition, const char* file, int line, fmt::format_string<Args...> text,
                           const Args&... args) {
  fail_internal(condition, file, line, text, fmt::make_format_args(args...));
}

}  // namespace support

// Throws a formatted text, as the kind of error that is asked for.
template <typename Kind = RuntimeError, typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, const Args&... args) {
  support::fail(Kind::kKind, text, fmt::make_format_args(args...));
}

}  // namespace tenon

#define TENON_CHECK_KIND(kind, condition, ...)   \
  do {                                           \
    if (!(condition)) [[unlikely]]               \
      ::tenon::fail<::tenon::kind>(__VA_ARGS__); \
  } while (false)

#define TENON_CHECK(condition, ...) TENON_CHECK_KIND(RuntimeError, condition, __VA_ARGS__)
#define TENON_CHECK_VALUE(condition, ...) TENON_CHECK_KIND(ValueError, condition, __VA_ARGS__)
#define TENON_CHECK_TYPE(condition, ...) TENON_CHECK_KIND(TypeError, condition, __VA_ARGS__)
#define TENON_CHECK_INDEX(condition, ...) TENON_CHECK_KIND(IndexError, condition, __VA_ARGS__)
#define TENON_CHECK_IMPLEMENTED(condition, ...) TENON_CHECK_KIND(NotImplementedError, condition, __VA_ARGS__)

#define TENON_ASSERT(condition, ...)                                              \
  do {                                                                            \
    if (!(condition)) [[unlikely]]                                                \
      ::tenon::support::internal(#condition, __FILE__, __LINE__, "" __VA_ARGS__); \
  } while (false)
