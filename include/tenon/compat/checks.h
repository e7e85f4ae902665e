// libtorch's checks: any words that can be printed, one behind the other.
#pragma once

#include <tenon/support/error.h>
#include <tenon/support/log.h>

#include <ostream>
#include <sstream>
#include <string>

namespace c10 {

using Error = tenon::Error;
using ValueError = tenon::ValueError;
using TypeError = tenon::TypeError;
using IndexError = tenon::IndexError;
using NotImplementedError = tenon::NotImplementedError;

template <typename... Words>
std::string str(const Words&... words) {
  std::ostringstream out;
  ((out << words), ...);
  return out.str();
}

namespace compat {
template <typename... Words>
std::string check_message(const char* condition, const Words&... words) {
  std::string text = str(words...);
  return text.empty() ? std::string("expected ") + condition + " to be true" : text;
}
inline void warn(const std::string& text) { tenon::warn_once(text, text); }

// A comparison that failed: takes more words by <<, and raises when the statement ends.
class FailedComparison {
 public:
  explicit FailedComparison(const char* text) { words_ << "Check failed: " << text; }
  FailedComparison(const FailedComparison&) = delete;
  ~FailedComparison() noexcept(false) { throw tenon::RuntimeError(words_.str()); }
  template <typename A, typename B>
  FailedComparison& values(const A& a, const B& b) {
    if constexpr (requires { words_ << a << b; }) words_ << " (" << a << " vs. " << b << "). ";
    return *this;
  }
  template <typename Word>
  FailedComparison& operator<<(const Word& word) {
    words_ << word;
    return *this;
  }

 private:
  std::ostringstream words_;
};
// Makes a statement of an expression that streams.
struct Discard {
  void operator&(const FailedComparison&) const {}
};
}  // namespace compat

}  // namespace c10

#define TENON_COMPAT_CHECK_(kind, condition, ...)                                               \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      throw ::tenon::kind(::c10::compat::check_message(#condition __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
#define TORCH_CHECK(condition, ...) TENON_COMPAT_CHECK_(RuntimeError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TENON_COMPAT_CHECK_(ValueError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) TENON_COMPAT_CHECK_(TypeError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) TENON_COMPAT_CHECK_(IndexError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  TENON_COMPAT_CHECK_(NotImplementedError, condition __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_WITH(kind, condition, ...) TENON_COMPAT_CHECK_(kind, condition __VA_OPT__(, ) __VA_ARGS__)
#define TENON_COMPAT_COMPARE_(a, sign, b) \
  ((a)sign(b)) ? static_cast<void>(0)     \
               : ::c10::compat::Discard() & ::c10::compat::FailedComparison(#a " " #sign " " #b).values(a, b)
#define TORCH_CHECK_EQ(a, b) TENON_COMPAT_COMPARE_(a, ==, b)
#define TORCH_CHECK_NE(a, b) TENON_COMPAT_COMPARE_(a, !=, b)
#define TORCH_CHECK_LT(a, b) TENON_COMPAT_COMPARE_(a, <, b)
#define TORCH_CHECK_LE(a, b) TENON_COMPAT_COMPARE_(a, <=, b)
#define TORCH_CHECK_GT(a, b) TENON_COMPAT_COMPARE_(a, >, b)
#define TORCH_CHECK_GE(a, b) TENON_COMPAT_COMPARE_(a, >=, b)
#define TORCH_INTERNAL_ASSERT(condition, ...)                                                            \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      throw ::tenon::InternalError(::c10::compat::check_message(#condition __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) \
  do {                                                   \
  } while (false && (condition))
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#endif
#define AT_ASSERT(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, __VA_ARGS__)
#define C10_THROW_ERROR(kind, text) throw ::tenon::kind(text)
#define TORCH_WARN(...) ::c10::compat::warn(::c10::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...) TORCH_WARN(__VA_ARGS__)
#define TORCH_WARN_DEPRECATION(...) TORCH_WARN(__VA_ARGS__)
#define TORCH_CHECK_ARG(condition, position, ...) \
  TORCH_CHECK(condition, "invalid argument ", position, ": ", ::c10::str(__VA_ARGS__))
// Profiles and counts of uses are libtorch's own.
#define RECORD_FUNCTION(...) \
  do {                       \
  } while (false)
#define C10_LOG_API_USAGE_ONCE(...) \
  do {                              \
  } while (false)

#define C10_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define C10_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_NOINLINE __attribute__((noinline))
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_HOST
#define C10_DEVICE
#define C10_HOST_DEVICE
#define C10_EXPORT
#define C10_API
#define TORCH_API
#define C10_RESTRICT __restrict
#define C10_CONCATENATE_(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_(a, b)
#define C10_ANONYMOUS_VARIABLE(text) C10_CONCATENATE(text, __LINE__)
