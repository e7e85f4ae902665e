// ATen's steps of optimizers over lists of parameters: all of a list are one launch, as a step of our optimizers is.
// They have no rows, because they have no results.
#include <tenon/autograd/grad_mode.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/registration.h>
#include <tenon/generated/ops.h>

#include "optim/shared_rules.h"

namespace tenon::optim {
namespace {

using List = std::vector<Tensor>;
using OptionalTensor = std::optional<Tensor>;

double number_in(const Tensor& tensor, const char* what, const char* op_name) {
  TENON_CHECK(tensor.defined() && tensor.numel().plain() == 1, "[{}] expected one number as {}, got {}", op_name, what,
              tensor.defined() ? tensor.description() : "an undefined tensor");
  return tensor.item<double>();
}

void check_as_many(const List& parameters, const List& others, const char* what, const char* op_name) {
  TENON_CHECK(others.size() == parameters.size(), "[{}] expected {} for each of {} parameters, got {}", op_name, what,
              parameters.size(), others.size());
  for (size_t at = 0; at < others.size(); ++at)
    TENON_CHECK(parameters[at].defined() && others[at].defined() &&
                    std::ranges::equal(parameters[at].sizes(), others[at].sizes()),
                "[{}] expected {} of the sizes of their parameters, got {} for {}", op_name, what,
                others[at].defined() ? others[at].description() : "an undefined tensor",
                parameters[at].defined() ? parameters[at].description() : "an undefined one");
}

// Applies the rule, so that what is remembered is written where it lies.
template <typename Rule>
void apply_in_place(const Rule& rule, const Tensor& parameter, const Tensor& gradient,
                    const std::array<Tensor, Rule::kRemembers>& remembered) {
  std::array<Tensor, Rule::kRemembers> given = remembered;
  std::array<Tensor*, Rule::kRemembers> pointers;
  for (size_t at = 0; at < given.size(); ++at) pointers[at] = &given[at];
  apply(rule, parameter, gradient, pointers);
  for (size_t at = 0; at < given.size(); ++at)
    if (!given[at].is(remembered[at])) remembered[at].copy_(given[at]);
}

// One launch of what `update` says of each parameter. Nothing happens where scaled gradients were found to be infinite.
template <typename Update>
void step(const List& parameters, const List& gradients, const OptionalTensor& scale, const OptionalTensor& found_inf,
          const char* op_name, Update update) {
  check_as_many(parameters, gradients, "a gradient", op_name);
  if (found_inf && number_in(*found_inf, "found_inf", op_name) != 0) return;
  autograd::SetGradMode off(false);
  if (scale) {
    const double by = number_in(*scale, "grad_scale", op_name);
    for (const Tensor& gradient : gradients) gradient.div_(by);
  }
  FusedStep fused;
  for (size_t at = 0; at < parameters.size(); ++at) update(at);
  fused.launch();
}

struct AdamNumbers {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;
};

void adam(const AdamNumbers& n, const List& parameters, const List& gradients, const List& means, const List& squares,
          const List& largest, const List& steps, const OptionalTensor& scale, const OptionalTensor& found_inf,
          const char* op_name) {
  check_as_many(parameters, means, "a mean", op_name);
  check_as_many(parameters, squares, "a mean square", op_name);
  if (n.amsgrad) check_as_many(parameters, largest, "a largest mean square", op_name);
  TENON_CHECK(steps.size() == parameters.size(), "[{}] expected a step for each of {} parameters, got {}", op_name,
              parameters.size(), steps.size());
  const Direction direction = {n.maximize, n.decoupled ? 0 : n.weight_decay,
                               n.decoupled ? 1 - n.lr * n.weight_decay : 1};
  step(parameters, gradients, scale, found_inf, op_name, [&](size_t at) {
    const auto count = static_cast<int64_t>(number_in(steps[at], "a step", op_name));
    const double root = std::sqrt(correction(n.beta2, count)), size = n.lr / correction(n.beta1, count);
    if (n.amsgrad)
      apply_in_place(AdamRule<true>{direction, {n.beta1, n.beta2}, root, n.eps, size}, parameters[at], gradients[at],
                     {means[at], squares[at], largest[at]});
    else
      apply_in_place(AdamRule<false>{direction, {n.beta1, n.beta2}, root, n.eps, size}, parameters[at], gradients[at],
                     {means[at], squares[at]});
  });
}

// `lr` as a number, or as a tensor of one.
double rate(double lr, const char*) { return lr; }
double rate(const Tensor& lr, const char* op_name) { return number_in(lr, "lr", op_name); }

template <typename Rate, bool decoupled>
void fused_adam(const List& parameters, const List& gradients, const List& means, const List& squares,
                const List& largest, const List& steps, Rate lr, double beta1, double beta2, double weight_decay,
                double eps, bool amsgrad, bool maximize, const OptionalTensor& scale, const OptionalTensor& found_inf) {
  const char* op_name = decoupled ? "_fused_adamw_" : "_fused_adam_";
  adam({rate(lr, op_name), beta1, beta2, weight_decay, eps, amsgrad, maximize, decoupled}, parameters, gradients, means,
       squares, largest, steps, scale, found_inf, op_name);
}

template <typename Rate>
void fused_sgd(const List& parameters, const List& gradients, const List& momenta, double weight_decay, double momentum,
               Rate given_lr, double dampening, bool nesterov, bool maximize, bool first, const OptionalTensor& scale,
               const OptionalTensor& found_inf) {
  const double lr = rate(given_lr, "_fused_sgd_");
  if (momentum != 0) check_as_many(parameters, momenta, "a momentum", "_fused_sgd_");
  const Direction direction = {maximize, weight_decay, 1};
  step(parameters, gradients, scale, found_inf, "_fused_sgd_", [&](size_t at) {
    if (momentum == 0)
      apply_in_place(SGDRule<false>{direction, 0, 0, lr, false, first}, parameters[at], gradients[at], {});
    else
      apply_in_place(SGDRule<true>{direction, momentum, dampening, lr, nesterov, first}, parameters[at], gradients[at],
                     {momenta[at]});
  });
}

template <typename Rate>
void fused_adagrad(const List& parameters, const List& gradients, const List& sums, const List& steps, Rate given_lr,
                   double lr_decay, double weight_decay, double eps, bool maximize, const OptionalTensor& scale,
                   const OptionalTensor& found_inf) {
  const double lr = rate(given_lr, "_fused_adagrad_");
  check_as_many(parameters, sums, "a sum", "_fused_adagrad_");
  TENON_CHECK(steps.size() == parameters.size(), "[_fused_adagrad_] expected a step for each of {} parameters, got {}",
              parameters.size(), steps.size());
  step(parameters, gradients, scale, found_inf, "_fused_adagrad_", [&](size_t at) {
    const double now = lr / (1 + (number_in(steps[at], "a step", "_fused_adagrad_") - 1) * lr_decay);
    apply_in_place(AdagradRule{{maximize, weight_decay, 1}, eps, now}, parameters[at], gradients[at], {sums[at]});
  });
}

template <typename... Arguments>
void define(const std::string& schema, void (*kernel)(Arguments...)) {
  dispatch::Operator& op = dispatch::define(schema::parse(schema));
  dispatch::add_tags(op, {dispatch::Tag::pt2_compliant_tag});
  dispatch::register_kernel(op, DispatchKey::CPU, dispatch::boxed(kernel));
  for (DispatchKey key : {DispatchKey::Meta, DispatchKey::Fake})
    dispatch::register_kernel(op, key, dispatch::boxed([](Arguments...) {}));
}

[[maybe_unused]] const bool registered = [] {
  const std::string scaled = ", Tensor? grad_scale=None, Tensor? found_inf=None) -> ()";
  for (const bool of_tensor : {false, true}) {
    const std::string form = of_tensor ? ".tensor_lr" : "", lr = of_tensor ? "Tensor lr" : "float lr";
    for (const bool decoupled : {false, true}) {
      const std::string schema =
          std::string("aten::") + (decoupled ? "_fused_adamw_" : "_fused_adam_") + form +
          "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] "
          "max_exp_avg_sqs, Tensor[] state_steps, *, " +
          lr + ", float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize" + scaled;
      if (of_tensor)
        define(schema, decoupled ? fused_adam<const Tensor&, true> : fused_adam<const Tensor&, false>);
      else
        define(schema, decoupled ? fused_adam<double, true> : fused_adam<double, false>);
    }
    const std::string sgd = "aten::_fused_sgd_" + form +
                            "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float "
                            "weight_decay, float momentum, " +
                            lr + ", float dampening, bool nesterov, bool maximize, bool is_first_step" + scaled;
    // (PyTorch's form with a number says that it writes the steps, which it does not.)
    const std::string adagrad = "aten::_fused_adagrad_" + form +
                                "(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, " +
                                (of_tensor ? "Tensor[]" : "Tensor(d!)[]") + " state_steps, *, " + lr +
                                ", float lr_decay, float weight_decay, float eps, bool maximize" + scaled;
    if (of_tensor) {
      define(sgd, fused_sgd<const Tensor&>);
      define(adagrad, fused_adagrad<const Tensor&>);
    } else {
      define(sgd, fused_sgd<double>);
      define(adagrad, fused_adagrad<double>);
    }
  }
  return true;
}();

}  // namespace
}  // namespace tenon::optim
