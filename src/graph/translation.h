// A graph's numbers, said in another environment: each of its symbols is an expression there, or a plain number.
#pragma once

#include <tenon/graph/graph.h>

#include <unordered_map>

namespace tenon::graph {

class Translation {
 public:
  // `numbers`: what stands for the symbols, by id. Without a symbolic one among them, everything becomes plain.
  explicit Translation(std::span<const dispatch::Value> numbers);
  Translation(Ref<sym::ShapeEnv> env, std::unordered_map<int32_t, sym::Expr> symbols)
      : env_(std::move(env)), symbols_(std::move(symbols)) {}

  // Null if all numbers are plain.
  const Ref<sym::ShapeEnv>& env() const { return env_; }

  sym::Expr operator()(sym::Expr expr) const { return env_->pool().import(expr, symbols_); }
  SymInt operator()(const SymInt& number) const;
  SymInts operator()(const SymInts& numbers) const;
  dispatch::Value operator()(const dispatch::Value& value) const;
  // A fake with translated sizes, strides and offset.
  Tensor operator()(const Tensor& meta) const;

 private:
  Ref<sym::ShapeEnv> env_;
  std::vector<int64_t> bits_;  // by symbol, of those that are plain
  std::unordered_map<int32_t, sym::Expr> symbols_;
};

// The constants of nodes and outputs, translated; values keep their metadata: to be run on fakes of the other
// environment.
Graph with_numbers(const Graph& graph, const Translation& translate);
// All of it, metadata too: a graph of the other environment. Symbols have no sources yet.
Graph moved(const Graph& graph, const Translation& translate);
// Without the values that nothing refers to.
Graph compacted(const Graph& graph);

}  // namespace tenon::graph
