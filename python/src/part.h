// `Part`: some calls of a program, compiled.
//
// What the scheduler assumed of the symbols is checked at every call; where it does not hold, the same calls are
// compiled once more with the values at hand, up to `kMostVariants` times.
#pragma once

#include "program.h"

#include <tenon/runtime/plan.h>

#include <memory>
#include <mutex>

namespace tenon::python {

class Part {
 public:
  static constexpr size_t kMostVariants = 8;

  // `calls`: positions in the program; `inputs`, `outputs`: values. Compiles for the symbols' hints.
  Part(std::shared_ptr<const Program> program, std::vector<size_t> calls, std::vector<int32_t> inputs,
       std::vector<int32_t> outputs);

  // Symbols that the inputs do not show: their values are to be passed, in this order.
  const std::vector<int32_t>& numbers() const { return numbers_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  size_t variant_count() const;

  // In whose memory a result lies.
  struct Home {
    int32_t input = -1;  // an input's
    int32_t first = -1;  // or that of the first result in it, where there are several, or where it begins before them
  };
  struct Outcome {
    std::vector<Tensor> results;
    const std::vector<Home>* homes = nullptr;  // by result; null: each is alone in memory of its own
  };
  // `numbers`: of a real the bits. Inputs whose strides are others than the program says are replaced by copies.
  Outcome run(std::span<Tensor> inputs, std::span<const int64_t> numbers);
  // Which of `numbers()` are reals.
  bool is_real(size_t number) const;

  // The graph, and what was made of it.
  std::string str() const;

 private:
  struct Variant {
    std::string text;
    Ref<sym::ShapeEnv> env;
    sym::ExprProgram guards;
    std::shared_ptr<const runtime::Plan> plan;
    std::vector<Home> homes;  // empty: each result is alone in memory of its own
    bool fits(std::span<const int64_t> symbols) const;
  };
  // Where a symbol's value is found.
  struct Source {
    enum class Kind : uint8_t { None, Size, Stride, Passed } kind = Kind::None;
    int32_t input = 0, dim = 0;
  };
  // A size or stride of an input that must be as the program says.
  struct Expected {
    int32_t input, dim;
    bool stride;
  };
  void find_sources();
  void find_expectations();
  std::shared_ptr<const Variant> compile(std::span<const int64_t> hints) const;
  std::shared_ptr<const Variant> variant_for(std::span<const int64_t> symbols);
  void check_inputs(std::span<Tensor> inputs, std::span<const int64_t> symbols) const;

  std::shared_ptr<const Program> program_;
  std::vector<size_t> calls_;
  std::vector<int32_t> inputs_, outputs_;
  std::vector<Source> sources_;  // by symbol
  std::vector<int32_t> numbers_;
  std::vector<Expected> expected_;
  Ref<sym::ShapeEnv> env_;  // of the expressions of `expected_program_`
  sym::ExprProgram expected_program_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Variant>> variants_;  // the one that fitted last is first
};

}  // namespace tenon::python
