// What must hold of the sizes and strides of tensors for something that was compiled for them to be used again, and the
// values that they give to its symbols.
#pragma once

#include <tenon/core/tensor_fwd.h>
#include <tenon/support/small_vector.h>
#include <tenon/sym/shape_env.h>

namespace tenon::core {

// Where the value of a symbol is found.
struct SymbolSource {
  // AnySize: 0 and 1 as well. None: of unbacked symbols, which a node binds.
  enum class Kind : uint8_t { None, Size, AnySize, Stride, Number } kind = Kind::None;
  int32_t input = -1;  // position among the inputs (tensors), or among the numbers
  int32_t dim = -1;
};

// A capture may go on after some of it was compiled: guards then come in slices, each about what was met since the one
// before, and each appends the values of its symbols to those that are known already.
class SizeGuards {
 public:
  // What a size or a stride of an input must be.
  struct Expectation {
    static constexpr int32_t kOffset = -1;  // in place of a dimension: where the input begins in its storage
    int32_t input = -1;
    int32_t dim = -1;
    bool stride = false;
    sym::Expr value = {};  // a constant, or of the symbols
  };
  struct Parts {
    Ref<sym::ShapeEnv> env = {};
    std::vector<std::string> names = {};  // of the inputs
    size_t first_symbol = 0;
    std::vector<SymbolSource> sources = {};  // of the slice's symbols
    std::vector<Expectation> expected = {};  // of what defines no symbol
    std::vector<sym::Guard> guards = {};
  };

  SizeGuards() = default;
  explicit SizeGuards(Parts parts);
  const Parts& parts() const { return parts_; }

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
  struct Fixed {
    int32_t input;
    int32_t dim;
    bool stride;
    int64_t value;
  };

  Parts parts_;
  std::vector<Fixed> fixed_;           // sizes and strides that are constants
  size_t apart_ = 0;                   // how many of them, at the end, were set apart
  std::vector<Expectation> computed_;  // the others
  sym::ExprProgram program_;           // those, then the guards
};

}  // namespace tenon::core
