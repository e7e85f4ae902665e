// `scan(fn, carry, xs)`: a loop over the first dimension of `xs` as one operator.
//
//   // fn(carry, x) gives the next carry and what is kept of this step: here both are running sums.
//   auto sums = [](Tensor sum, Tensor row) {
//     Tensor next = sum + row;
//     return std::pair(next, next);
//   };
//   auto [last, all] = scan(sums, zeros({3}), ones({5, 3}));      // [3], and [5, 3]
//
// Eagerly it is the loop that one would write. In a compiled function it is one step of the graph: the body is captured
// and compiled once, however many steps there are, and so is the loop back, to any order. A body that cannot be a graph
// (it reads values, writes to tensors from outside, draws random numbers) is written out step by step, with a line in
// the log (TENON_LOGS=breaks) that says why.
//
// Carry, x and what is kept may each be a tensor, a vector of tensors, or a pair or tuple of these. A carry keeps its
// sizes and dtype from step to step. There may be no steps: then the carry is what it was, and nothing is kept.
#pragma once

#include <tenon/control/structure.h>
#include <tenon/support/function_ref.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace tenon {

//   auto last_first = [](Tensor sum, Tensor row) { return std::pair(sum + row, sum); };
//   ScanOptions backwards{.reverse = true};
//   scan(last_first, zeros({3}), ones({5, 3}), backwards);
//   // Without xs, the number of steps has to be said.
//   auto doubled = [](Tensor value, std::tuple<>) { return std::pair(value * 2, std::tuple<>()); };
//   scan(doubled, ones({3}), std::tuple<>(), {.steps = 4});
struct ScanOptions {
  bool reverse = false;              // from the last x to the first; what is kept lies where its x does
  std::optional<SymInt> steps = {};  // without: as many as the xs have
};

namespace control::detail {

// One step: the next carry, then what is kept.
using ScanBody = FunctionRef<std::vector<Tensor>(std::span<const Tensor> carry, std::span<const Tensor> x)>;
struct ScanLoop {
  std::vector<Tensor> carry, xs;
  SymInt steps;
  bool reverse = false;
};
// The last carry, then what was kept, of all steps along a new first dimension.
std::vector<Tensor> scan(const ScanLoop& loop, ScanBody body);
// A loop as it is given, checked: its number of steps is known.
ScanLoop make_loop(std::vector<Tensor> carry, std::vector<Tensor> xs, const ScanOptions& options);

// Step by step, through the operators: what `scan` is when nothing is captured.
std::vector<Tensor> scan_by_steps(const ScanLoop& loop, ScanBody body);
// An Error if a step changes the number, the sizes or the dtype of what is carried.
void check_carry(std::span<const Tensor> before, std::span<const Tensor> after);
// How a capture makes one operator of it; nothing if the loop has to be written out. Set by the room that captures.
using ScanCapturer = std::optional<std::vector<Tensor>> (*)(const ScanLoop& loop, ScanBody body);
void set_scan_capturer(ScanCapturer capturer);

}  // namespace control::detail

template <typename F, typename Carry, typename Xs>
auto scan(F&& fn, const Carry& carry, const Xs& xs, const ScanOptions& options = {}) {
  using Step = std::invoke_result_t<F&, const Carry&, const Xs&>;
  static_assert(std::tuple_size_v<Step> == 2,
                "the function of a scan returns a pair: the next carry, and what is kept of the step");
  static_assert(std::is_same_v<std::remove_cvref_t<std::tuple_element_t<0, Step>>, Carry>,
                "the function of a scan gives a carry of the same type as the one that it takes");
  using Kept = std::remove_cvref_t<std::tuple_element_t<1, Step>>;
  std::vector<Tensor> flat_carry, flat_xs;
  control::detail::flatten(carry, flat_carry);
  control::detail::flatten(xs, flat_xs);
  std::optional<Kept> form;
  auto body = [&](std::span<const Tensor> carry_now, std::span<const Tensor> x_now) {
    Carry before = control::detail::rebuild(carry, carry_now);
    Step step = fn(before, control::detail::rebuild(xs, x_now));
    std::vector<Tensor> flat;
    control::detail::flatten(std::get<0>(step), flat);
    control::detail::flatten(std::get<1>(step), flat);
    form = std::get<1>(step);
    return flat;
  };
  std::vector<Tensor> results =
      control::detail::scan(control::detail::make_loop(std::move(flat_carry), std::move(flat_xs), options), body);
  std::span<const Tensor> left = results;
  Carry last = control::detail::rebuild(carry, left);
  return std::pair<Carry, Kept>(std::move(last), control::detail::rebuild(*form, left));
}

}  // namespace tenon
