// A step of an optimizer over many parameters as one launch.
//
// An optimizer says once what a step does to an element: its rule, a template over numbers and tensors (rule.h).
// `apply` puts the rule on the list of the step that is running, which does the whole list as one launch at its end.
// Where the tensors are not plain numbers in one order (another layout, half precision, fakes), the same rule is run at
// once by operators; the bits are the same. Memory that is on the list already is done first.
//
//   struct Rule {
//     static constexpr size_t kRemembers = 1;  // tensors beside the parameter and its gradient
//     double momentum, lr;
//     template <typename X>
//     void operator()(X& parameter, const X& gradient, X* remembered) const {
//       remembered[0] = remembered[0] * number<X>(momentum) + gradient;
//       parameter = add(parameter, remembered[0], number<X>(-lr));
//     }
//   };
#pragma once

#include "optim/rule.h"

#include <array>
#include <functional>
#include <set>
#include <span>
#include <vector>

namespace tenon::optim {

// The list of the step that runs on this thread, as long as it lives.
class FusedStep {
 public:
  FusedStep();
  ~FusedStep();
  FusedStep(const FusedStep&) = delete;
  // Null outside of a step.
  static FusedStep* current();

  // Whether the tensors can be on the list: plain numbers of one floating type of 4 or 8 bytes, laid out alike, each in
  // memory of its own. The first is the parameter, then the gradient, then what is remembered.
  bool takes(std::span<const Tensor> tensors) const;
  // Does what is on the list now, if that touches memory of these tensors.
  void make_way_for(std::span<const Tensor> tensors);
  // `run` does the elements from `begin` to `end`.
  void add(std::vector<Tensor> tensors, std::function<void(int64_t begin, int64_t end)> run);
  void launch();

 private:
  struct Part {
    std::vector<Tensor> tensors;
    std::function<void(int64_t begin, int64_t end)> run;
    int64_t first_block;
  };
  FusedStep* before_;
  std::vector<Part> parts_;
  std::set<const void*> read_, written_;  // storages
  int64_t blocks_ = 0;
};

namespace detail {

template <typename T, size_t kRemembers>
struct Arrays {
  T* parameter;
  const T* gradient;
  std::array<T*, kRemembers> remembered;
};

// The same source for every instruction set; none of them contracts, so that all give the same bits.
template <typename T, typename Rule>
[[gnu::always_inline]] inline void run_elements(const Rule& given, const Arrays<T, Rule::kRemembers>& arrays,
                                                int64_t begin, int64_t end) {
  constexpr size_t kRemembers = Rule::kRemembers;
  static_assert(kRemembers <= 3);
  const Rule rule = given;  // a copy, that no write to the arrays can change
  T* __restrict parameter = arrays.parameter;
  const T* __restrict gradient = arrays.gradient;
  T* __restrict first = nullptr, * __restrict second = nullptr, * __restrict third = nullptr;
  if constexpr (kRemembers > 0) first = arrays.remembered[0];
  if constexpr (kRemembers > 1) second = arrays.remembered[1];
  if constexpr (kRemembers > 2) third = arrays.remembered[2];
  for (int64_t at = begin; at < end; ++at) {
    T value = parameter[at], remembered[kRemembers + 1] = {};
    if constexpr (kRemembers > 0) remembered[0] = first[at];
    if constexpr (kRemembers > 1) remembered[1] = second[at];
    if constexpr (kRemembers > 2) remembered[2] = third[at];
    rule(value, gradient[at], remembered);
    parameter[at] = value;
    if constexpr (kRemembers > 0) first[at] = remembered[0];
    if constexpr (kRemembers > 1) second[at] = remembered[1];
    if constexpr (kRemembers > 2) third[at] = remembered[2];
  }
}

template <typename T, typename Rule>
void run_anywhere(const Rule& rule, const Arrays<T, Rule::kRemembers>& arrays, int64_t begin, int64_t end) {
  run_elements<T>(rule, arrays, begin, end);
}
#ifdef __x86_64__
template <typename T, typename Rule>
[[gnu::target("avx2")]] void run_avx2(const Rule& rule, const Arrays<T, Rule::kRemembers>& arrays, int64_t begin,
                                      int64_t end) {
  run_elements<T>(rule, arrays, begin, end);
}
#endif

template <typename T, typename Rule>
std::function<void(int64_t, int64_t)> runner(const Rule& rule, std::span<const Tensor> tensors) {
  Arrays<T, Rule::kRemembers> arrays{tensors[0].data<T>(), tensors[1].data<T>(), {}};
  for (size_t which = 0; which < Rule::kRemembers; ++which) arrays.remembered[which] = tensors[2 + which].data<T>();
  auto run = &run_anywhere<T, Rule>;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) run = &run_avx2<T, Rule>;
#endif
  return [=](int64_t begin, int64_t end) { run(rule, arrays, begin, end); };
}

}  // namespace detail

// Does to the parameter, and to what is remembered of it, what the rule says: now, or with the others of the step. What
// is remembered must have the parameter's sizes.
template <typename Rule>
void apply(const Rule& rule, const Tensor& parameter, const Tensor& gradient,
           const std::array<Tensor*, Rule::kRemembers>& remembered) {
  std::vector<Tensor> tensors = {parameter, gradient};
  for (Tensor* each : remembered) tensors.push_back(*each);
  if (FusedStep* step = FusedStep::current()) {
    step->make_way_for(tensors);
    if (step->takes(tensors)) {
      auto run =
          parameter.dtype() == kFloat32 ? detail::runner<float>(rule, tensors) : detail::runner<double>(rule, tensors);
      return step->add(std::move(tensors), std::move(run));
    }
  }
  Tensor value = parameter;
  std::array<Tensor, Rule::kRemembers + 1> updated;
  for (size_t which = 0; which < Rule::kRemembers; ++which) updated[which] = *remembered[which];
  rule(value, gradient, updated.data());
  parameter.copy_(value);
  // A copy of what is the gradient itself: that belongs to the parameter and will be added to.
  for (size_t which = 0; which < Rule::kRemembers; ++which)
    *remembered[which] = updated[which].is_same_storage(gradient) ? updated[which].clone() : updated[which];
}

}  // namespace tenon::optim
