// What is compiled when it is first needed, once for each set of answers that compiling it asks for.
//
// By then the guards of the capture are fixed. So whatever is asked of the sizes becomes a condition of what is made: a
// call uses the first whose conditions hold for it, or makes another with its own sizes for hints.
#pragma once

#include "support/at_fork.h"
#include "support/undivided.h"

#include <tenon/graph/graph.h>
#include <tenon/support/log.h>

#include <memory>
#include <mutex>
#include <set>

namespace tenon::aot {

template <typename Made>
class Variants {
 public:
  using Ref = std::shared_ptr<Made>;

  // `make(copy)` compiles in a copy of the environment. `otherwise()`: past the limit. `again`: the graph has run
  // before, so that what it binds is known.
  template <typename Make, typename Otherwise>
  Ref find(const sym::EnvSnapshot& known, const graph::Graph& graph, bool again, std::span<const int64_t> symbols,
           Make&& make, Otherwise&& otherwise) {
    if (Ref there = look(symbols)) return there;
    support::Undivided made_whole;
    std::lock_guard one_at_a_time(making_);
    if (Ref there = look(symbols)) return there;
    if (variants_.size() >= kMost) {
      if (!past_limit_)
        TENON_LOG(Recompiles,
                  "interpreted from now on: a part that is compiled when it is needed was compiled {} times", kMost);
      past_limit_ = true;
      return otherwise();
    }
    sym::EnvCopy copy(known, symbols, graph::bound_symbols(graph, again));
    specialise_small(graph, copy);
    Variant made{{}, 0, make(copy)};
    std::vector<sym::Expr> conditions = copy.conditions();
    made.count = conditions.size();
    made.conditions = sym::ExprProgram(conditions);
    std::lock_guard lock(mutex_);
    variants_.push_back(std::move(made));
    return variants_.back().made;
  }

  // Those that there are by now.
  std::vector<Ref> all() const {
    std::lock_guard lock(mutex_);
    std::vector<Ref> made;
    for (const Variant& variant : variants_) made.push_back(variant.made);
    return made;
  }

  static constexpr size_t kMost = 8;

 private:
  struct Variant {
    sym::ExprProgram conditions;
    size_t count;
    Ref made;
  };

  // Sizes 0 and 1 are specialised, as those of inputs are at capture; there, one from data could not be.
  static void specialise_small(const graph::Graph& graph, const sym::EnvCopy& copy) {
    std::set<int32_t> used;
    auto use = [&](int32_t id) { used.insert(id); };
    for (const graph::ValueInfo& value : graph.values) graph::each_symbol(value.meta, use);
    sym::ShapeEnv& env = *copy.env();
    for (int32_t id : used) {
      sym::Expr symbol = env.pool().symbol(id);
      if (!env.is_from_data(id) || !env.is_backed(id) || symbol.is_real() || env.pool().range(symbol).min < 0) continue;
      (void)env.decide(sym::eq(symbol, env.pool().constant(0)));
      (void)env.decide(sym::eq(symbol, env.pool().constant(1)));
    }
  }

  static bool holds(const Variant& variant, std::span<const int64_t> symbols) {
    SmallVector<int64_t, 8> answers(variant.count);
    if (!variant.conditions.try_run(symbols, {answers.data(), answers.size()})) return false;
    for (int64_t answer : answers)
      if (answer == 0) return false;
    return true;
  }

  Ref look(std::span<const int64_t> symbols) {
    std::lock_guard lock(mutex_);
    for (const Variant& variant : variants_)
      if (holds(variant, symbols)) return variant.made;
    return nullptr;
  }

  mutable support::ForkSafe<std::mutex> mutex_;  // of the list
  std::mutex making_;                            // one at a time, inside of `Undivided`
  std::vector<Variant> variants_;
  bool past_limit_ = false;
};

}  // namespace tenon::aot
