#include <tenon/autograd/forward_ad.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/gradcheck.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/vmap.h>
#include <tenon/generated/ops.h>
#include <tenon/support/warnings.h>

#include <algorithm>
#include <cmath>

namespace tenon::autograd {
namespace {

using detail::Checked;
using detail::Tensors;

template <typename... Args>
[[noreturn]] void differs(fmt::format_string<Args...> text, const Args&... args) {
  throw GradcheckError(fmt::vformat(text, fmt::make_format_args(args...)));
}

bool is_differentiable(const Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() && tensor.requires_grad();
}

int64_t count_of(const Tensor& tensor) { return tensor.numel().plain(); }

// All numbers of a tensor, in order.
Tensor flat(const Tensor& tensor) {
  NoGrad off;
  return tensor.detach().to(kFloat64).reshape({-1});
}

// The inputs, one of them moved by `delta` (of its sizes): leaves of their own.
Tensors moved(const Tensors& inputs, size_t which, const Tensor& delta, double by) {
  Tensors made = inputs;
  NoGrad off;
  made[which] = inputs[which].detach() + (delta * by).to(inputs[which].dtype());
  made[which].set_requires_grad(inputs[which].requires_grad());
  return made;
}

void check_same_kind(const Tensors& now, const Tensors& then) {
  bool shapes = now.size() == then.size();
  for (size_t at = 0; shapes && at < now.size(); ++at) shapes = std::ranges::equal(now[at].sizes(), then[at].sizes());
  if (!shapes)
    differs("[gradcheck] Expected `func` to return outputs with the same shape when inputs are perturbed by eps");
  for (size_t at = 0; at < now.size(); ++at)
    if (now[at].dtype() != then[at].dtype())
      differs(
          "[gradcheck] Expected `func` to return outputs with the same dtype when inputs are perturbed by eps: output "
          "{} was {} and is {}",
          at, then[at].description(), now[at].description());
}

struct Check {
  const Checked& function;
  const Tensors& inputs;
  const GradcheckOptions& options;
  Tensors all, outputs;              // what the function gives; of that, what is differentiable
  std::vector<size_t> wanted, kept;  // inputs that require grad; places of `outputs` among `all`

  Check(const Checked& its_function, const Tensors& its_inputs, const GradcheckOptions& its_options)
      : function(its_function), inputs(its_inputs), options(its_options) {
    for (size_t at = 0; at < inputs.size(); ++at) {
      if (!is_differentiable(inputs[at])) continue;
      wanted.push_back(at);
      if (inputs[at].dtype() != kFloat64)
        warn(
            fmt::format("[gradcheck] Input #{} requires gradient and is not a double precision floating point tensor "
                        "but {}: differences of its results are rough",
                        at, inputs[at].description()));
    }
    TENON_CHECK_VALUE(!wanted.empty(),
                      "[gradcheck] expects at least one input tensor to require gradient, but none of the {} does",
                      inputs.size());
    all = call(inputs);
    for (size_t at = 0; at < all.size(); ++at)
      if (is_differentiable(all[at])) {
        outputs.push_back(all[at]);
        kept.push_back(at);
      }
  }

  Tensors call(const Tensors& with) const {
    EnableGrad on;
    return function(with);
  }

  // How fast every output changes along a direction of one input.
  Tensors slopes(size_t which, const Tensor& direction) const {
    Tensors above = call(moved(inputs, which, direction, options.eps));
    Tensors below = call(moved(inputs, which, direction, -options.eps));
    check_same_kind(above, all);
    check_same_kind(below, all);
    Tensors found;
    NoGrad off;
    for (size_t at = 0; at < all.size(); ++at)
      found.push_back(all[at].is_floating_point() ? (flat(above[at]) - flat(below[at])) / (2 * options.eps) : Tensor());
    return found;
  }

  Tensor unit(const Tensor& like, int64_t element) const {
    Tensor made = zeros({count_of(like)}, kFloat64);
    made[element] = 1;
    return made.reshape(like.sym_sizes());
  }

  // Of one output, given its gradient: the gradients of the wanted inputs, zeros where none came.
  std::vector<Tensor> backward_of(size_t output, const Tensor& gradient) const {
    Tensors leaves;
    for (size_t at : wanted) leaves.push_back(inputs[at]);
    Tensors found = grad(std::vector{outputs[output]}, leaves, std::vector{gradient.to(outputs[output].dtype())}, true,
                         grad_enabled(), true);
    for (size_t at = 0; at < found.size(); ++at) {
      if (!found[at].defined()) {
        found[at] = zeros(leaves[at].sym_sizes(), kFloat64);
        continue;
      }
      if (!std::ranges::equal(found[at].sizes(), leaves[at].sizes()))
        differs("[gradcheck] Analytical gradient has incorrect size: {} for {}", found[at].description(),
                leaves[at].description());
    }
    return found;
  }

  void check_reentrant(const Tensors& once, const Tensors& again) const {
    for (size_t at = 0; at < once.size(); ++at) {
      Tensor apart = (flat(once[at]) - flat(again[at])).abs();
      double most = count_of(apart) > 0 ? apart.max().item<double>() : 0;
      if (!(most <= options.nondet_tol))
        differs(
            "[gradcheck] Backward is not reentrant: with the same inputs and gradients it gave values that are {} "
            "apart "
            "for input {}, and the tolerance (nondet_tol) is {}",
            most, wanted[at], options.nondet_tol);
    }
  }

  void compare(const Tensor& numerical, const Tensor& analytical, size_t output, size_t input, const char* of) const {
    if (numerical.allclose(analytical, options.rtol, options.atol)) return;
    differs("[gradcheck] Jacobian mismatch for output {} with respect to input {}{},\nnumerical:{}\nanalytical:{}\n",
            output, input, of, numerical.str(), analytical.str());
  }

  // Without a graph nothing may depend on the inputs.
  void check_constant() const {
    for (size_t at = 0; at < all.size(); ++at) {
      if (!all[at].is_floating_point()) continue;
      for (size_t input : wanted) {
        Tensor direction = options.fast_mode ? rand(inputs[input].sym_sizes(), kFloat64) : Tensor();
        int64_t directions = options.fast_mode ? 1 : count_of(inputs[input]);
        for (int64_t element = 0; element < directions; ++element) {
          Tensor slope = slopes(input, direction.defined() ? direction : unit(inputs[input], element))[at];
          if (!slope.allclose(zeros_like(slope), options.rtol, options.atol))
            differs(
                "[gradcheck] Numerical gradient for function expected to be zero: output {} has no graph, and changes "
                "with input {}",
                at, input);
        }
      }
    }
  }

  void check_slowly() const {
    std::vector<std::vector<Tensor>> numerical(wanted.size());  // by input, by element: slopes of all outputs
    for (size_t which = 0; which < wanted.size(); ++which) {
      std::vector<Tensors> rows;
      for (int64_t element = 0; element < count_of(inputs[wanted[which]]); ++element)
        rows.push_back(slopes(wanted[which], unit(inputs[wanted[which]], element)));
      for (size_t at : kept) {
        Tensors column;
        for (const Tensors& row : rows) column.push_back(row[at]);
        numerical[which].push_back(column.empty() ? zeros({0, count_of(all[at])}, kFloat64) : stack(column));
      }
    }
    for (size_t output = 0; output < outputs.size(); ++output) {
      std::vector<Tensors> columns(wanted.size());
      for (int64_t element = 0; element < count_of(outputs[output]); ++element) {
        Tensor gradient = unit(outputs[output], element);
        Tensors once = backward_of(output, gradient), again = backward_of(output, gradient);
        check_reentrant(once, again);
        for (size_t which = 0; which < wanted.size(); ++which) columns[which].push_back(flat(once[which]));
      }
      for (size_t which = 0; which < wanted.size(); ++which) {
        if (columns[which].empty()) continue;
        compare(numerical[which][output], stack(columns[which], 1), kept[output], wanted[which], "");
      }
    }
  }

  // Of the matrix one number: its product with a random direction on either side.
  void check_fast() const {
    auto direction = [](const Tensor& like) {
      NoGrad off;
      Tensor made = rand(like.sym_sizes(), kFloat64) + 0.1;
      return made / (made * made).sum().sqrt();
    };
    std::vector<Tensor> from, slope;
    std::vector<Tensors> numerical;
    for (size_t input : wanted) {
      from.push_back(direction(inputs[input]));
      numerical.push_back(slopes(input, from.back()));
    }
    for (size_t output = 0; output < outputs.size(); ++output) {
      if (count_of(outputs[output]) == 0) continue;
      Tensor to = direction(outputs[output]);
      Tensors once = backward_of(output, to), again = backward_of(output, to);
      check_reentrant(once, again);
      for (size_t which = 0; which < wanted.size(); ++which)
        compare((flat(to) * numerical[which][kept[output]]).sum(), (flat(once[which]) * flat(from[which])).sum(),
                kept[output], wanted[which], " along a random direction (fast mode)");
    }
  }

  void check_forward() const;
  void check_forward_undefined() const;
  void check_forward_batched() const;
  void check_undefined() const;

 private:
  // The tangents of all outputs, zeros where there are none, given those of the inputs; undefined: none.
  Tensors tangents(const Tensors& of_inputs) const;
};

Tensors Check::tangents(const Tensors& of_inputs) const {
  forward_ad::DualLevel level;
  Tensors with, found;
  for (size_t at = 0; at < inputs.size(); ++at) {
    Tensor plain = inputs[at].defined() ? inputs[at].detach() : inputs[at];
    with.push_back(of_inputs[at].defined() ? forward_ad::make_dual(plain, of_inputs[at].to(plain.dtype())) : plain);
  }
  for (const Tensor& output : call(with)) {
    Tensor tangent = forward_ad::unpack_dual(output).tangent;
    found.push_back(tangent.defined() ? flat(tangent) : zeros({count_of(output)}, kFloat64));
  }
  return found;
}

void Check::check_forward() const {
  for (size_t input : wanted) {
    int64_t directions = options.fast_mode ? 1 : count_of(inputs[input]);
    for (int64_t element = 0; element < directions; ++element) {
      Tensor direction =
          options.fast_mode ? rand(inputs[input].sym_sizes(), kFloat64) + 0.1 : unit(inputs[input], element);
      Tensors of_inputs(inputs.size());
      of_inputs[input] = direction;
      Tensors analytical = tangents(of_inputs), numerical = slopes(input, direction);
      for (size_t at = 0; at < all.size(); ++at)
        if (numerical[at].defined() && !numerical[at].allclose(analytical[at], options.rtol, options.atol))
          differs(
              "[gradcheck] Jacobian computed with forward mode mismatch for output {} with respect to input {}, along "
              "{},\nnumerical:{}\nanalytical:{}\n",
              at, input, options.fast_mode ? std::string("a random direction") : fmt::format("element {}", element),
              numerical[at].str(), analytical[at].str());
    }
  }
}

// An input without a tangent counts as one whose tangent is zero.
void Check::check_forward_undefined() const {
  for (size_t input : wanted) {
    Tensors of_inputs(inputs.size());
    for (size_t at : wanted) of_inputs[at] = rand(inputs[at].sym_sizes(), kFloat64);
    of_inputs[input] = zeros(inputs[input].sym_sizes(), kFloat64);
    Tensors zero = tangents(of_inputs);
    if (wanted.size() == 1) continue;  // without any tangent there is nothing to compute
    of_inputs[input] = Tensor();
    Tensors none = tangents(of_inputs);
    for (size_t at = 0; at < all.size(); ++at)
      if (!zero[at].allclose(none[at], options.rtol, options.atol))
        differs(
            "[gradcheck] Expected tangents of output {} to be the same whether the tangent of input {} is zero or "
            "undefined",
            at, input);
  }
}

// A batch of tangents gives what its entries give one by one.
void Check::check_forward_batched() const {
  for (size_t input : wanted) {
    Tensors of_inputs(inputs.size()), batch;
    std::vector<Tensors> one_by_one;
    for (int entry = 0; entry < 2; ++entry) {
      batch.push_back(randn(inputs[input].sym_sizes(), kFloat64));
      of_inputs[input] = batch.back();
      one_by_one.push_back(tangents(of_inputs));
    }
    Tensors together;
    try {
      together = vmap(
          [&](const Tensor& direction) {
            of_inputs[input] = direction;
            return tangents(of_inputs);
          },
          {stack(batch)});
    } catch (const std::exception& error) {
      differs(
          "[gradcheck] While computing batched gradients, got: {}\nvmap runs the function's tangents for several "
          "directions at once; check_batched_forward_grad = false turns this check off",
          error.what());
    }
    for (size_t at = 0; at < all.size(); ++at) {
      Tensor expected = stack(Tensors{one_by_one[0][at], one_by_one[1][at]});
      if (!expected.allclose(together[at], options.rtol, options.atol))
        differs(
            "[gradcheck] For output {} and input {}: tangents of a batch differ from those of its entries one by "
            "one,\nbatched:{}\none by one:{}\n",
            at, input, together[at].str(), expected.str());
    }
  }
}

// Passes no gradient on.
struct UndefinedGrad : Function<UndefinedGrad> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.view_as(x); }
  static Tensors backward(AutogradContext*, const Tensors&) { return {Tensor()}; }
};

void Check::check_undefined() const {
  auto run = [&](const std::vector<bool>& undefined) {
    Tensors made = call(inputs), roots, gradients, leaves;
    for (size_t at : wanted) leaves.push_back(inputs[at]);
    EnableGrad on;
    size_t place = 0;
    for (const Tensor& output : made) {
      if (!is_differentiable(output)) continue;
      roots.push_back(undefined[place++] ? UndefinedGrad::apply(output) : output);
      gradients.push_back(zeros_like(output.detach()));
    }
    Tensors found;
    try {
      found = grad(roots, leaves, gradients, false, false, true);
    } catch (const std::exception& error) {
      warn(
          "[gradcheck] Backwards compatibility: New undefined gradient support checking feature is on; "
          "check_undefined_grad = false turns it off");
      differs(
          "[gradcheck] Expected backward function to handle undefined output grads, which mean zero, and it threw: "
          "{}",
          error.what());
    }
    for (const Tensor& gradient : found)
      if (gradient.defined() && count_of(gradient) > 0 && gradient.abs().max().item<double>() != 0)
        differs(
            "[gradcheck] Expected all input grads to be undefined or zero when all output grads are undefined or "
            "zero");
  };
  run(std::vector<bool>(outputs.size(), true));
  for (size_t at = 0; at < outputs.size() && outputs.size() > 1; ++at) {
    std::vector<bool> one(outputs.size(), false);
    one[at] = true;
    run(one);
  }
}

}  // namespace

bool detail::gradcheck(const Checked& function, const Tensors& inputs, const GradcheckOptions& options) {
  try {
    TENON_CHECK_VALUE(options.check_forward_ad || options.check_backward_ad,
                      "[gradcheck] Expected at least one of check_forward_ad or check_backward_ad to be true");
    TENON_CHECK_VALUE(options.check_forward_ad || !options.check_batched_forward_grad,
                      "[gradcheck] Setting check_batched_forward_grad=True requires check_forward_ad to be True");
    Check check(function, inputs, options);
    if (options.check_backward_ad && check.outputs.empty()) {
      check.check_constant();
    } else if (options.check_backward_ad) {
      options.fast_mode ? check.check_fast() : check.check_slowly();
      if (options.check_undefined_grad) check.check_undefined();
    }
    if (options.check_forward_ad) {
      check.check_forward();
      if (options.check_undefined_grad) check.check_forward_undefined();
      if (options.check_batched_forward_grad) check.check_forward_batched();
    }
    return true;
  } catch (const GradcheckError&) {
    if (options.raise_exception) throw;
    return false;
  }
}

bool detail::gradgradcheck(const Checked& function, const Tensors& inputs, const Tensors& grad_outputs,
                           const GradcheckOptions& options) {
  Tensors gradients = grad_outputs;
  if (gradients.empty()) {
    EnableGrad on;
    for (const Tensor& output : function(inputs))
      if (is_differentiable(output)) {
        NoGrad off;
        gradients.push_back(randn(output.sym_sizes(), TensorOptions(output.dtype(), output.device())));
        gradients.back().set_requires_grad();
      }
  }
  size_t count = inputs.size();
  Checked derivative = [&](const Tensors& with) {
    Tensors outputs, wanted, of(with.begin(), with.begin() + static_cast<ptrdiff_t>(count));
    Tensors along(with.begin() + static_cast<ptrdiff_t>(count), with.end());
    for (const Tensor& output : function(of))
      if (is_differentiable(output)) outputs.push_back(output);
    for (const Tensor& each : of)
      if (is_differentiable(each)) wanted.push_back(each);
    Tensors found = grad(outputs, wanted, along, false, true, true);
    std::erase_if(found, [](const Tensor& each) { return !each.defined(); });
    return found;
  };
  Tensors both = inputs;
  both.insert(both.end(), gradients.begin(), gradients.end());
  return gradcheck(derivative, both, options);
}

}  // namespace tenon::autograd
