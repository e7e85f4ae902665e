#include <tenon/kernels/ctc.h>
#include <tenon/support/parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/elements.h"

namespace tenon::kernels {
namespace {

template <typename Real>
constexpr Real kNever = -std::numeric_limits<Real>::infinity();

// log(exp(a) + exp(b) + exp(c))
template <typename Real>
Real log_sum(Real a, Real b, Real c = kNever<Real>) {
  const Real most = std::max({a, b, c});
  if (most == kNever<Real>) return most;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// One entry: its classes with a blank before, between and behind them, and what each step says of a class.
template <typename Real>
struct Entry {
  int64_t steps, states, classes, step, class_step;
  const Real* log_probs;
  std::vector<int64_t> sequence;  // of the states

  Entry(const Ctc& of, int64_t n, int64_t first_target) {
    const TensorBase &p = of.log_probs, &t = of.targets;
    const auto at = static_cast<size_t>(n);
    classes = p.sizes()[2];
    steps = of.input_lengths[at];
    states = 2 * of.target_lengths[at] + 1;
    step = p.strides()[0];
    class_step = p.strides()[2];
    log_probs = p.data<Real>() + n * p.strides()[1];
    const bool in_rows = t.dim() == 2;
    const int64_t begin = in_rows ? n * t.strides()[0] : first_target * t.strides()[0];
    const int64_t between = in_rows ? t.strides()[1] : t.strides()[0];
    sequence.assign(static_cast<size_t>(states), of.blank);
    for (int64_t each = 0; each < of.target_lengths[at]; ++each) {
      const int64_t where = begin + each * between;
      const int64_t target = t.dtype() == kInt32 ? t.data<int32_t>()[where] : t.data<int64_t>()[where];
      TENON_CHECK_INDEX(target >= 0 && target < classes, "[ctc_loss] target {} is out of range for {} classes", target,
                        classes);
      sequence[static_cast<size_t>(2 * each + 1)] = target;
    }
  }
  int64_t of_state(int64_t state) const { return sequence[static_cast<size_t>(state)]; }
  Real at(int64_t time, int64_t state) const { return log_probs[time * step + of_state(state) * class_step]; }
  // Whether the blank between a state and the one after the next may be left out.
  bool skips(int64_t state) const { return state + 2 < states && of_state(state) != of_state(state + 2); }
};

// Where the classes of each entry begin, if all lie one behind the other.
std::vector<int64_t> first_targets(const Ctc& of) {
  std::vector<int64_t> first = {0};
  for (int64_t length : of.target_lengths) first.push_back(first.back() + length);
  return first;
}

template <typename F>
void with_real(Dtype dtype, F&& body) {
  if (dtype == kFloat64)
    body(double{});
  else
    body(float{});
}

}  // namespace

void ctc_loss(const Ctc& of, const TensorBase& loss, const TensorBase& log_alpha) {
  const std::vector<int64_t> first = first_targets(of);
  const int64_t batch = of.log_probs.sizes()[1], room = log_alpha.sizes()[1], width = log_alpha.sizes()[2];
  with_real(loss.dtype(), [&]<typename Real>(Real) {
    parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const Entry<Real> entry(of, n, first[static_cast<size_t>(n)]);
        Real* alpha = log_alpha.data<Real>() + n * room * width;
        std::fill(alpha, alpha + room * width, kNever<Real>);
        Real& result = loss.data<Real>()[n];
        if (entry.steps == 0) {
          result = entry.states == 1 ? Real{0} : -kNever<Real>;
          continue;
        }
        alpha[0] = entry.at(0, 0);
        if (entry.states > 1) alpha[1] = entry.at(0, 1);
        for (int64_t time = 1; time < entry.steps; ++time) {
          const Real* before = alpha + (time - 1) * width;
          for (int64_t state = 0; state < entry.states; ++state)
            alpha[time * width + state] =
                entry.at(time, state) + log_sum(before[state], state > 0 ? before[state - 1] : kNever<Real>,
                                                state > 1 && entry.skips(state - 2) ? before[state - 2] : kNever<Real>);
        }
        const Real* last = alpha + (entry.steps - 1) * width + entry.states - 1;
        result = -(entry.states > 1 ? log_sum(last[0], last[-1]) : last[0]);
      }
    });
  });
}

void ctc_loss_backward(const Ctc& of, const TensorBase& grad, const TensorBase& loss, const TensorBase& log_alpha,
                       bool zero_infinity, const TensorBase& out) {
  const std::vector<int64_t> first = first_targets(of);
  const int64_t batch = of.log_probs.sizes()[1], room = log_alpha.sizes()[1], width = log_alpha.sizes()[2];
  const int64_t classes = of.log_probs.sizes()[2], times = of.log_probs.sizes()[0];
  with_real(loss.dtype(), [&]<typename Real>(Real) {
    parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<Real> beta, later, paths(static_cast<size_t>(classes));
      for (int64_t n = begin; n < end; ++n) {
        const Entry<Real> entry(of, n, first[static_cast<size_t>(n)]);
        const Real result = loss.data<Real>()[n * loss.strides()[0]], by = grad.data<Real>()[n * grad.strides()[0]];
        Real* to = out.data<Real>() + n * classes;
        for (int64_t time = 0; time < times; ++time)
          std::fill(to + time * batch * classes, to + time * batch * classes + classes, Real{0});
        if (zero_infinity && result == -kNever<Real>) continue;
        const Real* alpha = log_alpha.data<Real>() + n * room * width;
        later.assign(static_cast<size_t>(entry.states), kNever<Real>);
        for (int64_t time = entry.steps - 1; time >= 0; --time) {
          beta.assign(later.size(), kNever<Real>);
          std::fill(paths.begin(), paths.end(), kNever<Real>);
          for (int64_t state = 0; state < entry.states; ++state) {
            const auto at = static_cast<size_t>(state);
            Real rest = log_sum(later[at], state + 1 < entry.states ? later[at + 1] : kNever<Real>,
                                entry.skips(state) ? later[at + 2] : kNever<Real>);
            // The last step is in one of the last two states.
            if (time == entry.steps - 1) rest = state + 2 >= entry.states ? Real{0} : kNever<Real>;
            beta[at] = rest + entry.at(time, state);
            Real& path = paths[static_cast<size_t>(entry.of_state(state))];
            path = log_sum(path, alpha[time * width + state] + beta[at]);
          }
          for (int64_t one = 0; one < classes; ++one) {
            const Real said = entry.log_probs[time * entry.step + one * entry.class_step];
            to[time * batch * classes + one] =
                (std::exp(said) - std::exp(paths[static_cast<size_t>(one)] + result - said)) * by;
          }
          later.swap(beta);
        }
      }
    });
  });
}

}  // namespace tenon::kernels
