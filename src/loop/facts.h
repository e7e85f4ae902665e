// What a loop teaches the kernel's pool about its index. The builder and the parser both call it, so that a parsed
// kernel simplifies as the one that was printed.
#pragma once

#include <tenon/sym/expr.h>

namespace tenon::loop {

void assume_loop(sym::ExprPool& pool, sym::Expr index, sym::Expr extent);

}  // namespace tenon::loop
