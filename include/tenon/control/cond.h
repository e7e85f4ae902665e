// `cond(predicate, then, otherwise, operands...)`: a branch on the value of a tensor, without a graph break.
//
//   Tensor x = ones({3});
//   auto half = [](Tensor a) { return a * 0.5; };
//   auto twice = [](Tensor a) { return a * 2; };
//   Tensor y = cond(x.sum() > 2, half, twice, x);                 // 0.5 0.5 0.5
//   // Branches may use what is around them, be given anything, and give vectors, pairs and tuples of tensors.
//   auto [a, b] = cond((x > 0).any(), [&] { return std::pair(x, x + 1); }, [&] { return std::pair(-x, x - 1); });
//
// Eagerly it is an `if`: one branch runs. In a compiled function both branches are captured, and are one step of the
// graph; a run reads the predicate and runs one of them. So is the way back, to any order: of a branch that was not
// taken, gradients are zeros. A plain bool, or a number that is known when a function is captured, chooses then.
//
// In a compiled function results must be alike: as many tensors, of the same dtypes, sizes and strides. Where they
// are not, or where a branch cannot be a graph (it reads values, writes to tensors from outside, draws random numbers),
// the predicate is read and the graph ends there, with a line in the log (TENON_LOGS=breaks) that says why; with
// `fullgraph` that is the Error. A result requires grad where it does by either branch.
//
// Each result has memory of its own: an operand that is given back is copied.
#pragma once

#include <tenon/control/structure.h>
#include <tenon/support/function_ref.h>
#include <tenon/sym/sym_int.h>

#include <concepts>
#include <optional>
#include <utility>
#include <vector>

namespace tenon {

namespace control {

// What a branch is taken by: a tensor of one bool, or what is known without data.
//
//   control::Predicate by_value = ones({3}).sum() > 2, by_size = ones({3}).size(0) > 2, known = true;
class Predicate {
 public:
  Predicate(const Tensor& tensor) : tensor_(tensor), is_tensor_(true) {}
  Predicate(const SymBool& number) : number_(number) {}
  template <std::same_as<bool> T>
  Predicate(T known) : number_(known) {}

  bool is_tensor() const { return is_tensor_; }
  const Tensor& tensor() const { return tensor_; }
  const SymBool& number() const { return number_; }

 private:
  Tensor tensor_;
  SymBool number_ = false;
  bool is_tensor_ = false;
};

namespace detail {

// What a branch gives: its tensors, and how many stand in each part of the structure.
struct BranchResult {
  std::vector<Tensor> tensors;
  std::vector<size_t> counts;
};
using Branch = FunctionRef<BranchResult()>;
std::vector<Tensor> cond(const Predicate& predicate, std::span<const Tensor> operands, Branch then, Branch otherwise);

// A value of one element of dtype bool; an Error that says whose it is, if it is not.
void check_predicate(const Tensor& predicate, const char* what);
// How a capture makes one operator of it; nothing if the predicate has to be read. Set by the room that captures.
using CondCapturer = std::optional<std::vector<Tensor>> (*)(const Tensor& predicate, Branch then, Branch otherwise);
void set_cond_capturer(CondCapturer capturer);

}  // namespace detail
}  // namespace control

template <typename Then, typename Otherwise, typename... Operands>
auto cond(const control::Predicate& predicate, Then&& then, Otherwise&& otherwise, const Operands&... operands) {
  static_assert(std::is_invocable_v<Then&, const Operands&...> && std::is_invocable_v<Otherwise&, const Operands&...>,
                "the branches of a cond take the operands that it is given");
  using Result = std::remove_cvref_t<std::invoke_result_t<Then&, const Operands&...>>;
  static_assert(std::is_same_v<Result, std::remove_cvref_t<std::invoke_result_t<Otherwise&, const Operands&...>>>,
                "the branches of a cond give results of the same type");
  static_assert(control::detail::Structure<Result>,
                "a branch of a cond gives a tensor, or a vector, a pair or a tuple of tensors");
  std::vector<Tensor> given;
  auto note = [&]<typename T>(const T& operand) {
    if constexpr (control::detail::Structure<T>) control::detail::flatten(operand, given);
  };
  (note(operands), ...);
  std::optional<Result> form;
  auto run = [&](auto& branch) {
    form = branch(operands...);
    control::detail::BranchResult made;
    control::detail::flatten(*form, made.tensors);
    control::detail::measure(*form, made.counts);
    return made;
  };
  std::vector<Tensor> results =
      control::detail::cond(predicate, given, [&] { return run(then); }, [&] { return run(otherwise); });
  std::span<const Tensor> left = results;
  return control::detail::rebuild(*form, left);
}

}  // namespace tenon
