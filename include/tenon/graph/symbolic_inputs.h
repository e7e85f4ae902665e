// Inputs of a graph with symbolic sizes: makes their fakes, and later tells whether other tensors fit what was assumed
// of them.
//
// A dimension is static (its size is a constant) or dynamic (a symbol). Sizes 0 and 1 are always static; dynamic sizes
// that are equal share a symbol. Strides follow from the sizes where the tensor is dense in some order of its
// dimensions; a stride that does not is static, or a symbol of its own if the tensor has dynamic sizes.
#pragma once

#include <tenon/core/size_guards.h>
#include <tenon/graph/graph.h>

#include <map>

namespace tenon::graph {

using core::SizeGuards;

// What is to become of one dimension of an input.
struct DimPolicy {
  enum class Kind : uint8_t {
    Static,
    Dynamic,   // a symbol, unless it is 0 or 1
    Unbacked,  // a symbol of which nothing is assumed, not even that it is not 0 or 1; no question about it can be
               // answered
  } kind = Kind::Static;
  sym::Range range{};           // promised by the user
  bool dynamic_stride = false;  // a stride that does not follow from the sizes is a symbol
  bool alone = false;           // shares no symbol with a dimension that happens to be as large
};

// Which symbols an input's sizes and strides became. Which sizes are equal, and which strides follow from them, is seen
// from the values at capture; a capture that repeats an earlier one with other values must choose as that one did.
struct InputLayout {
  static constexpr int32_t kConstant = -1, kOwnSymbol = -2;
  std::vector<int32_t> sizes;    // by dimension: the symbol, or kConstant
  std::vector<size_t> order;     // dimensions from the smallest stride outwards
  std::vector<int32_t> strides;  // by dimension: which of the strides explained before it, or kConstant, or kOwnSymbol
  std::vector<int64_t> seen;     // by dimension: its stride; that of a dimension of one element is not guarded

  bool known() const { return sizes.size() == order.size() && !order.empty(); }
};

class SymbolicInputs {
 public:
  explicit SymbolicInputs(Ref<sym::ShapeEnv> env) : env_(std::move(env)) {}

  // A fake of `real`, with a symbol for each dimension that `dynamic` names.
  Tensor add(const Tensor& real, std::span<const bool> dynamic, const std::string& name);
  // `layout`: followed if it is known, written if not.
  Tensor add(const Tensor& real, std::span<const DimPolicy> dims, const std::string& name,
             InputLayout* layout = nullptr);
  // From now on an input of the graph begins at that element of its storage. Fakes of inputs begin theirs.
  void fix_offset(int32_t input, int64_t offset);
  // A symbol for a number.
  SymInt add_number(int64_t value, const std::string& name);
  SymFloat add_real(double value, const std::string& name);
  SymBool add_bool(bool value, const std::string& name);

  const Ref<sym::ShapeEnv>& env() const { return env_; }
  std::vector<SymbolSource> sources() const;
  struct Progress {
    size_t symbols = 0, expected = 0, guards = 0;
  };
  Progress progress() const;
  // What was met since `from`. Call once everything that may add guards has run.
  SizeGuards finish(const Progress& from) const;
  SizeGuards finish() const { return finish(Progress{}); }

 private:
  // `known`: the symbol that it was before, or InputLayout::kConstant for any.
  SymInt symbol_for(int64_t size, const DimPolicy& policy, int32_t input, int32_t dim, const std::string& name,
                    int32_t known);
  void set_source(sym::Expr symbol, SymbolSource source);

  Ref<sym::ShapeEnv> env_;
  std::vector<std::string> names_;
  std::vector<SymbolSource> sources_;
  std::map<int64_t, SymInt> by_size_;
  std::vector<SizeGuards::Expectation> expected_;
  int32_t numbers_ = 0;
};

}  // namespace tenon::graph
