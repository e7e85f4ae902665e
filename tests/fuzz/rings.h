// Memory that a program itself loses: a leaf whose gradient has a history holds itself, and `backward(create_graph)`
// says so in a warning. While a `Rings` lives, the leak checker does not count what such a program makes, eagerly or
// compiled.
#pragma once

#include "fuzz/program.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

#include <optional>
#endif

namespace tenon::fuzz {

class Rings {
 public:
  // Of a program that is not known yet.
  Rings() { allow(); }
  explicit Rings(const Program& program) {
    bool any = false;
    each_statement(program.statements,
                   [&](const Statement& statement) { any |= statement.kind == Kind::Backward && statement.n != 0; });
    if (any) allow();
  }

 private:
#ifdef __SANITIZE_ADDRESS__
  void allow() { uncounted_.emplace(); }
  std::optional<__lsan::ScopedDisabler> uncounted_;
#else
  void allow() {}
#endif
};

}  // namespace tenon::fuzz
