// Inputs of a graph with symbolic sizes: makes their fakes, and later tells whether other tensors fit what was assumed
// of them.
//
// A dimension is static (its size is a constant) or dynamic (a symbol). Sizes 0 and 1 are always static; dynamic sizes
// that are equal share a symbol. Strides follow from the sizes where the tensor is dense in some order of its
// dimensions; a stride that does not is static, or a symbol of its own if the tensor has dynamic sizes.
#pragma once

#include <tenon/graph/graph.h>

#include <map>

namespace tenon::graph {

// What must hold for a graph to be used again, as far as sizes go.
//
// A capture may go on after some of it was compiled: guards then come in slices, each about what was met since the one
// before, and each appends the values of its symbols to those that are known already.
class SizeGuards {
 public:
  // Appends the values of the slice's symbols; false if a size, a stride or a guard does not hold. Allocates only for
  // many symbols. Without `all`, those that were set apart are not looked at.
  bool check(std::span<const Tensor> inputs, std::span<const int64_t> numbers, SmallVector<int64_t, 16>& symbols,
             bool all = true) const;
  // By input: its sizes are constants, and a caller may know them by other means.
  void set_apart(const std::vector<bool>& inputs);
  // What does not hold, in words: "size of x at dim 0: expected 4, got 6". `symbols`: known before the slice.
  struct Failure {
    std::string text;
    CallSite site = {};  // the line that asked, which is not looked up yet
  };
  std::vector<Failure> failures(std::span<const Tensor> inputs, std::span<const int64_t> numbers,
                                std::vector<int64_t> symbols = {}) const;
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
  struct Fixed {
    int32_t input;
    int32_t dim;
    bool stride;
    int64_t value;
  };
  int64_t value_of(const SymbolSource& source, std::span<const Tensor> inputs, std::span<const int64_t> numbers) const;

  Ref<sym::ShapeEnv> env_;
  std::vector<std::string> names_;
  size_t first_symbol_ = 0;
  std::vector<SymbolSource> sources_;  // of the slice's symbols
  std::vector<Fixed> fixed_;           // sizes and strides that are constants
  size_t apart_ = 0;                   // how many of them, at the end, were set apart
  std::vector<Expectation> expected_;  // the others that do not define a symbol
  std::vector<sym::Guard> guards_;
  sym::ExprProgram program_;  // expectations, then guards
};

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
