// `while_loop(condition, body, carry)`: a loop that goes on as long as data says so, as one operator.
//
//   // Newton's method for the square root of 2, to a tolerance.
//   auto is_far = [](Tensor x) { return (x * x - 2).abs() > 1e-6; };
//   auto step = [](Tensor x) { return (x + 2 / x) * 0.5; };
//   Tensor root = while_loop(is_far, step, tensor(1.0));          // 1.41421
//   // What is carried may be a vector, a pair or a tuple of tensors.
//   auto [count, power] = while_loop([](std::pair<Tensor, Tensor> now) { return now.second < 100; },
//                                    [](std::pair<Tensor, Tensor> now) {
//                                      return std::pair(now.first + 1, now.second * 2);
//                                    },
//                                    std::pair(tensor(0), tensor(1)));  // 7, 128
//
// Eagerly it is the loop that one would write: `while (condition(carry).item<bool>()) carry = body(carry)`. In a
// compiled function it is one step of the graph, whatever the number of steps: condition and body are captured and
// compiled once. It can be differentiated, to any order: forward then keeps what each step back needs, so its memory
// grows with the number of steps. Under NoGrad it does not.
//
// What is carried keeps its dtype, its sizes and the order of its memory: a step that gives it in another order is
// copied into that one. There may be no steps. The results have memory of their own.
//
// What cannot be captured (values read, writes to tensors from outside, random numbers) is run step by step between two
// graphs, with a line in the log (TENON_LOGS=breaks) that says why; so is a loop whose gradients are wanted and which
// stands inside of another loop or a branch. With `fullgraph` that is an Error.
#pragma once

#include <tenon/control/structure.h>
#include <tenon/support/function_ref.h>

#include <optional>
#include <utility>
#include <vector>

namespace tenon {

namespace control::detail {

using WhileCondition = FunctionRef<Tensor(std::span<const Tensor> carry)>;
using WhileBody = FunctionRef<std::vector<Tensor>(std::span<const Tensor> carry)>;
std::vector<Tensor> while_loop(std::vector<Tensor> carry, WhileCondition condition, WhileBody body);
// An Error if a step changes the number, the sizes or the dtype of what is carried.
void check_while_carry(std::span<const Tensor> before, std::span<const Tensor> after);

// How a capture makes one operator of it; nothing if it has to be run step by step. Set by the room that captures.
using WhileCapturer = std::optional<std::vector<Tensor>> (*)(std::span<const Tensor> carry, WhileCondition condition,
                                                             WhileBody body);
void set_while_capturer(WhileCapturer capturer);

}  // namespace control::detail

template <typename Condition, typename Body, typename Carry>
Carry while_loop(Condition&& condition, Body&& body, const Carry& carry) {
  static_assert(control::detail::Structure<Carry>,
                "a while_loop carries a tensor, or a vector, a pair or a tuple of tensors");
  static_assert(std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Condition&, const Carry&>>, Tensor>,
                "the condition of a while_loop gives a tensor of one bool");
  static_assert(std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Body&, const Carry&>>, Carry>,
                "the body of a while_loop gives a carry of the same type as the one that it takes");
  std::vector<Tensor> flat;
  control::detail::flatten(carry, flat);
  auto goes_on = [&](std::span<const Tensor> now) -> Tensor { return condition(control::detail::rebuild(carry, now)); };
  auto step = [&](std::span<const Tensor> now) {
    std::vector<Tensor> made;
    control::detail::flatten(body(control::detail::rebuild(carry, now)), made);
    return made;
  };
  const std::vector<Tensor> last = control::detail::while_loop(std::move(flat), goes_on, step);
  std::span<const Tensor> left = last;
  return control::detail::rebuild(carry, left);
}

}  // namespace tenon
