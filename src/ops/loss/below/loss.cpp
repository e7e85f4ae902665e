// Softmax, losses and dropout as graphs below autograd have them: forward with what backward needs, backward by itself.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <limits>

namespace tenon::ops {
namespace {

constexpr int64_t kNone = 0, kMean = 1;

Tensor wide(const Tensor& tensor) { return tensor.to(compute_dtype(tensor.dtype())); }

std::optional<Dtype> widened(const Tensor& self, bool half_to_float, std::string_view op_name) {
  TENON_CHECK(!half_to_float || self.dtype() == kFloat16, "[{}] half_to_float is for float16, got {}", op_name,
              self.description());
  return half_to_float ? std::optional(kFloat32) : std::nullopt;
}

// [N, C] of either; a single sample is one of one.
struct Samples {
  Tensor scores, target;
  bool single;
  Samples(const Tensor& self, const Tensor& classes, std::string_view op_name) : single(self.dim() == 1) {
    TENON_CHECK(self.dim() == 1 || self.dim() == 2, "[{}] expected scores [N, C] or [C], got {}", op_name,
                self.description());
    TENON_CHECK(classes.dtype() == kInt64 && classes.dim() == self.dim() - 1,
                "[{}] expected a class of int64 for each of the samples, got {}", op_name, classes.description());
    scores = single ? unsqueeze(self, 0) : self;
    target = single ? unsqueeze(classes, 0) : classes;
  }
};

// One number for each sample: the weight of its class, and nothing for those that do not count.
Tensor sample_weights(const Samples& s, const std::optional<Tensor>& weight, const SymInt& ignored) {
  Tensor counts = s.target != Scalar(ignored);
  Tensor zero = zeros(SymInts{}, TensorOptions(s.scores.dtype(), s.scores.device()));
  if (!weight) return where(counts, ones_like(zero), zero);
  Tensor classes = where(counts, s.target, zeros_like(s.target));
  return where(counts, index_select(*weight, 0, classes), zero);
}

Tensor nll_gradient(const Tensor& grad, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                    int64_t reduction, const SymInt& ignore_index, const Tensor& total_weight) {
  Samples s(self, target, "nll_loss_backward");
  Tensor share = sample_weights(s, weight, ignore_index) * grad;
  if (reduction == kMean) share = share / total_weight;
  Tensor classes = arange(Scalar(s.scores.size(1)), TensorOptions(kInt64, self.device()));
  Tensor hit = classes == unsqueeze(s.target, 1);
  Tensor result = where(hit, unsqueeze(-share, 1), zeros(SymInts{}, TensorOptions(self.dtype(), self.device())));
  return s.single ? squeeze(result, 0) : result;
}

}  // namespace

OPS(loss_parts) {
  op("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, bool half_to_float) {
        return softmax(self, dim, widened(self, half_to_float, "_softmax"));
      });
  op("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, bool half_to_float) {
        return log_softmax(self, dim, widened(self, half_to_float, "_log_softmax"));
      });
  // Of a line of minus infinities, where nothing may be chosen, nothing is.
  op("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, std::optional<Dtype> dtype) {
        Tensor nothing = all(self == Scalar(-std::numeric_limits<double>::infinity()), dim, true);
        // Of such a row no gradient is wanted either, and that of softmax would be NaN.
        Tensor result = softmax(masked_fill(self, nothing, 0), dim, dtype);
        return where(nothing, zeros(SymInts{}, TensorOptions(result.dtype(), result.device())), result);
      });
  op("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& mask, double scale) {
        Tensor real = is_floating(grad.dtype()) ? grad : grad.to(kFloat32);
        return (wide(real) * (mask.to(compute_dtype(real.dtype())) * scale)).to(real.dtype());
      });
  op("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& output, int64_t dim, Dtype input) {
        Tensor y = wide(output), part = wide(grad) * y;
        return contiguous((part - y * sum(part, dim, true)).to(input));
      });
  op("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& output, int64_t dim, Dtype input) {
        Tensor g = wide(grad);
        return contiguous((g - exp(wide(output)) * sum(g, dim, true)).to(input));
      });
  op("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
      .decompose([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
        Tensor apart = (wide(self) - wide(target)) * wide(grad) * 2.0;
        if (reduction == kMean) apart = apart / Scalar(self.numel());
        return apart.to(self.dtype());
      });
  // The sum of the weights is what a mean divides by; without a reduction it is 0, but, as in PyTorch, of one sample
  // alone.
  op("nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
     "output, Tensor total_weight)")
      .decompose([](const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                    const SymInt& ignore_index) {
        Samples s(self, target, "nll_loss_forward");
        Tensor total = zeros(SymInts{}, TensorOptions(self.dtype(), self.device()));
        if (reduction != kNone || self.dim() == 1) total = sum(sample_weights(s, weight, ignore_index));
        return std::tuple(nll_loss(self, target, weight, reduction, ignore_index), total);
      })
      .grad("self", saves("target", "weight", "total_weight"),
            [](Grad& g) {
              Tensor like = zeros(g.sizes("self"), TensorOptions(g.dtype("self"), g.grad().device()));
              std::optional<Tensor> weight;
              if (g.has("weight")) weight = g.saved("weight");
              return nll_gradient(g.grad(), like, g.saved("target"), weight, g.argument("reduction").integer(),
                                  g.argument("ignore_index").sym_int(), g.saved("total_weight"));
            })
      .not_differentiable("total_weight");
  op("nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
     "ignore_index, Tensor total_weight) -> Tensor")
      .decompose(nll_gradient);
}

}  // namespace tenon::ops
