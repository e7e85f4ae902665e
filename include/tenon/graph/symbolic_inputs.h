// Inputs of a graph with symbolic sizes: makes their fakes, and later tells whether other tensors fit what was assumed of them.
//
// A dimension is static (its size is a constant) or dynamic (a symbol). Sizes 0 and 1 are always static; dynamic sizes that are
// equal share a symbol. Strides follow from the sizes where the tensor is dense in some order of its dimensions; a stride that does
// not is static, or a symbol of its own if the tensor has dynamic sizes.
#pragma once

#include <tenon/graph/graph.h>

#include <map>

namespace tenon::graph {

// What must hold for a graph to be used again, as far as sizes go.
class SizeGuards {
 public:
  // Values of the symbols for these inputs, or nothing if a size, a stride or a guard does not hold. Allocates only for many symbols.
  bool check(std::span<const Tensor> inputs, std::span<const int64_t> numbers, SmallVector<int64_t, 16>& symbols) const;
  // The first thing that does not hold, in words: "size of x at dim 0: expected 4, got 6".
  std::string explain(std::span<const Tensor> inputs, std::span<const int64_t> numbers) const;
  // One line each.
  std::vector<std::string> describe() const;

 private:
  friend class SymbolicInputs;
  struct Expectation {
    int32_t input;
    int32_t dim;
    bool stride;
    sym::Expr value;
  };
  Ref<sym::ShapeEnv> env_;
  std::vector<std::string> names_;
  std::vector<SymbolSource> sources_;
  std::vector<Expectation> expected_;   // not those that define a symbol
  std::vector<sym::Guard> guards_;
  sym::ExprProgram program_;            // expectations, then guards
};

class SymbolicInputs {
 public:
  explicit SymbolicInputs(Ref<sym::ShapeEnv> env) : env_(std::move(env)) {}

  // A fake of `real`, with a symbol for each dimension that `dynamic` names.
  Tensor add(const Tensor& real, std::span<const bool> dynamic, const std::string& name);
  // A symbol for a number.
  SymInt add_number(int64_t value, const std::string& name);

  const Ref<sym::ShapeEnv>& env() const { return env_; }
  std::vector<SymbolSource> sources() const;
  // Call once everything that may add guards has run.
  SizeGuards finish() const;

 private:
  SymInt symbol_for(int64_t size, int32_t input, int32_t dim, const std::string& name);
  void set_source(const SymInt& symbol, SymbolSource source);

  Ref<sym::ShapeEnv> env_;
  std::vector<std::string> names_;
  std::vector<SymbolSource> sources_;
  std::map<int64_t, SymInt> by_size_;
  std::vector<SizeGuards::Expectation> expected_;
  int32_t numbers_ = 0;
};

}  // namespace tenon::graph
