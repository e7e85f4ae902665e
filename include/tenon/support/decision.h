// A refusal with its reason. Passes return `Decision` where others return `bool`, so that "not fused",
// "recompiled" and "ran eagerly" always come with a sentence for the person who asks.
//
//   Decision can_fuse(const Node& a, const Node& b) {
//     if (a.domain != b.domain) return Decision::forbid("domains {} and {} differ", a.domain, b.domain);
//     return Decision::allow();
//   }
#pragma once

#include <fmt/core.h>

#include <string>

namespace tenon {

class [[nodiscard]] Decision {
 public:
  static Decision allow() { return Decision(); }

  template <typename... Args>
  static Decision forbid(fmt::format_string<Args...> why, const Args&... args) {
    return refused(why, fmt::make_format_args(args...));
  }

  explicit operator bool() const { return allowed_; }
  // Empty when allowed.
  const std::string& why() const { return why_; }

 private:
  static Decision refused(fmt::string_view why, fmt::format_args arguments);

  bool allowed_ = true;
  std::string why_;
};

}  // namespace tenon
