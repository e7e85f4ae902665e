// A refusal with its reason. Passes return `Decision` where others return `bool`, so that "not fused",
// "recompiled" and "ran eagerly" always come with a sentence for the person who asks.
//
//   Decision can_fuse(const Node& a, const Node& b) {
//     if (a.domain != b.domain) return Decision::forbid("domains {} and {} differ", a.domain, b.domain);
//     return Decision::allow();
//   }
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace tenon {

class [[nodiscard]] Decision {
 public:
  static Decision allow() { return Decision(); }

  template <typename... Args>
  static Decision forbid(fmt::format_string<Args...> why, Args&&... args) {
    Decision decision;
    decision.allowed_ = false;
    decision.why_ = fmt::format(why, std::forward<Args>(args)...);
    return decision;
  }

  explicit operator bool() const { return allowed_; }
  // Empty when allowed.
  const std::string& why() const { return why_; }

 private:
  bool allowed_ = true;
  std::string why_;
};

}  // namespace tenon
