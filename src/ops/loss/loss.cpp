// Softmax and what is trained with it: functions of other operators, fused where they are used.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

void check_reduction(int64_t reduction, std::string_view op_name) {
  TENON_CHECK_VALUE(reduction >= kNone && reduction <= kSum,
                    "[{}] expected a reduction of 0 (none), 1 (mean) or 2 (sum), got {}", op_name, reduction);
}

bool equal(const SymInt& a, const SymInt& b) { return same_size(a, b); }

Tensor zero_like(const Tensor& tensor) { return zeros(SymInts{}, TensorOptions(tensor.dtype(), tensor.device())); }

Tensor kept(const Tensor& mask, const Tensor& tensor) { return where(mask, tensor, zero_like(tensor)); }

// The dtype of a softmax, and its input in the dtype that it is computed in.
Dtype softmax_dtype(const Tensor& self, std::optional<Dtype> dtype, std::string_view op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  Dtype result = dtype.value_or(self.dtype());
  TENON_CHECK_IMPLEMENTED(is_floating(result), "[{}] expected a floating point dtype, got {}: pass dtype=float32",
                          op_name, name(result));
  return result;
}

// Minus the largest element along `dim`, so that no exponential overflows. An empty dimension has none.
Tensor shifted(const Tensor& x, int64_t dim) {
  if (x.dim() > 0 && decide_or(x.size(dim) == 0, false)) return x;
  return x - amax(x, dim, true);
}

Tensor softmax_grad(Grad& g) {
  int64_t dim = g.argument("dim").integer();
  Dtype wide = compute_dtype(g.grad().dtype());
  Tensor y = g.saved("result").to(wide), grad = g.grad().to(wide);
  return (y * (grad - sum(grad * y, dim, true))).to(g.dtype("self"));
}

Tensor log_softmax_grad(Grad& g) {
  int64_t dim = g.argument("dim").integer();
  Dtype wide = compute_dtype(g.grad().dtype());
  Tensor grad = g.grad().to(wide);
  return (grad - exp(g.saved("result").to(wide)) * sum(grad, dim, true)).to(g.dtype("self"));
}

// Targets of one batch against classes; one sample without a batch is a batch of one.
struct Targets {
  Tensor mask;  // which count
  Tensor safe;  // the targets, with ignored ones pointing at the first class
};

Targets read_targets(const Tensor& target, const SymInt& ignore_index) {
  Tensor mask = target != Scalar(ignore_index);
  return {mask, kept(mask, target)};
}

// What a mean divides by: the weights of the targets that count, or their number.
Tensor total_weight(const Targets& targets, const std::optional<Tensor>& weight, Dtype wide) {
  if (weight) return sum(kept(targets.mask, gather(weight->to(wide), 0, targets.safe)));
  return sum(targets.mask.to(wide));
}

void check_nll(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight) {
  TENON_CHECK(self.defined() && target.defined(), "[nll_loss] expected a tensor, got an undefined one");
  TENON_CHECK(self.dim() == 1 || self.dim() == 2,
              "[nll_loss] expected log-probabilities of one or two dimensions, got {}", self.description());
  TENON_CHECK_IMPLEMENTED(is_floating(self.dtype()), "[nll_loss] expected floating point log-probabilities, got {}",
                          self.description());
  TENON_CHECK(target.dtype() == kInt64 || target.dtype() == kInt32,
              "[nll_loss] expected targets of int64 or int32, got {}", target.description());
  bool fits = target.dim() == self.dim() - 1 && (target.dim() == 0 || equal(target.size(0), self.size(0)));
  TENON_CHECK_VALUE(fits, "[nll_loss] expected a target for each row of {}, got {}", self.description(),
                    target.description());
  TENON_CHECK(!weight || (weight->dim() == 1 && equal(weight->size(0), self.size(-1))),
              "[nll_loss] expected a weight for each of {} classes, got {}", self.size(-1).str(),
              weight->description());
}

Tensor nll(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
           const SymInt& ignore_index) {
  check_nll(self, target, weight);
  check_reduction(reduction, "nll_loss");
  if (self.dim() == 1) {
    Tensor loss = nll(unsqueeze(self, 0), unsqueeze(target, 0), weight, reduction, ignore_index);
    return reduction == kNone ? squeeze(loss, 0) : loss;
  }
  Dtype wide = compute_dtype(self.dtype());
  Targets targets = read_targets(target, ignore_index);
  Tensor loss = -squeeze(gather(self.to(wide), 1, unsqueeze(targets.safe, 1)), 1);
  if (weight) loss = loss * gather(weight->to(wide), 0, targets.safe);
  loss = kept(targets.mask, loss);
  if (reduction != kNone) loss = sum(loss);
  if (reduction == kMean) loss = loss / total_weight(targets, weight, wide);
  return loss.to(self.dtype());
}

// The gradient at the target's class and zero elsewhere, by comparing class numbers: it fuses, a scatter would not.
Tensor nll_grad(Grad& g) {
  SymInts sizes = g.sizes("self");
  Dtype wide = compute_dtype(g.dtype("self"));
  int64_t reduction = g.argument("reduction").integer();
  Tensor target = g.saved("target"), grad = -g.grad().to(wide);
  std::optional<Tensor> weight;
  if (g.has("weight")) weight = g.saved("weight").to(wide);
  if (sizes.size() == 1) {
    target = unsqueeze(target, 0);
    if (reduction == kNone) grad = unsqueeze(grad, 0);
  }
  Targets targets = read_targets(target, g.argument("ignore_index").sym_int());
  if (reduction == kMean) grad = grad / total_weight(targets, weight, wide);
  if (reduction == kNone) grad = unsqueeze(grad, 1);
  if (weight) grad = grad * unsqueeze(*weight, 0);
  Tensor classes = arange(Scalar(sizes.back()), TensorOptions(target.dtype(), target.device()));
  Tensor hit = logical_and(unsqueeze(target, 1) == unsqueeze(classes, 0), unsqueeze(targets.mask, 1));
  Tensor result = kept(hit, grad).to(g.dtype("self"));
  return sizes.size() == 1 ? squeeze(result, 0) : result;
}

Tensor reduced(const Tensor& loss, int64_t reduction, const SymInt& count) {
  if (reduction == kNone) return loss;
  Tensor total = sum(loss);
  return reduction == kSum ? total : total / Scalar(count);
}

// Against a distribution over the classes, in the last dimension of both.
Tensor soft_cross_entropy(const Tensor& logs, const Tensor& target, const std::optional<Tensor>& weight,
                          int64_t reduction, double label_smoothing) {
  Tensor wanted = target;
  if (label_smoothing > 0) {
    Tensor share =
        full(SymInts{}, label_smoothing, TensorOptions(target.dtype(), target.device())) / Scalar(target.size(-1));
    wanted = target * (1 - label_smoothing) + share;
  }
  Tensor loss = -logs * wanted;
  if (weight) loss = loss * *weight;
  SymInt samples = 1;
  for (int64_t dim = 0; dim + 1 < logs.dim(); ++dim) samples *= logs.size(dim);
  return reduced(sum(loss, -1), reduction, samples);
}

// Against class numbers: rows of logarithms and one number for each.
Tensor hard_cross_entropy(const Tensor& logs, const Tensor& target, const std::optional<Tensor>& weight,
                          int64_t reduction, const SymInt& ignore_index, double label_smoothing) {
  Tensor loss = nll_loss(logs, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return loss;
  Targets targets = read_targets(target, ignore_index);
  Tensor smooth = kept(targets.mask, sum(weight ? -logs * *weight : -logs, 1));
  if (reduction != kNone) smooth = sum(smooth);
  if (reduction == kMean) smooth = smooth / total_weight(targets, weight, logs.dtype());
  return loss * (1 - label_smoothing) + smooth * label_smoothing / Scalar(logs.size(1));
}

Tensor cross_entropy(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                     const SymInt& ignore_index, double label_smoothing) {
  TENON_CHECK(self.defined() && target.defined(), "[cross_entropy_loss] expected a tensor, got an undefined one");
  TENON_CHECK(self.dim() > 0, "[cross_entropy_loss] expected logits of at least one dimension, got {}",
              self.description());
  TENON_CHECK(label_smoothing >= 0 && label_smoothing <= 1,
              "[cross_entropy_loss] expected a label smoothing from 0 to 1, got {}", label_smoothing);
  check_reduction(reduction, "cross_entropy_loss");
  const int64_t class_dim = self.dim() == 1 ? 0 : 1;
  const bool soft = is_floating(target.dtype()) && target.dim() == self.dim();
  TENON_CHECK(soft || !is_floating(target.dtype()),
              "[cross_entropy_loss] expected class numbers or probabilities for {}, got {}", self.description(),
              target.description());
  TENON_CHECK(soft || target.dim() == self.dim() - 1,
              "[cross_entropy_loss] expected a target for each sample of {}, got {}", self.description(),
              target.description());
  if (soft)
    for (int64_t dim = 0; dim < self.dim(); ++dim)
      TENON_CHECK(equal(self.size(dim), target.size(dim)),
                  "[cross_entropy_loss] expected probabilities of the shape of {}, got {}", self.description(),
                  target.description());
  // Halves are computed in float32 and rounded once.
  Dtype wide = compute_dtype(self.dtype());
  std::optional<Tensor> weights;
  if (weight) weights = weight->to(wide);
  Tensor logs = log_softmax(self, class_dim, wide);
  Ints classes_last;
  for (int64_t dim = 0; dim < self.dim(); ++dim)
    if (dim != class_dim) classes_last.push_back(dim);
  classes_last.push_back(class_dim);
  auto with_classes_last = [&](const Tensor& tensor) {
    return tensor.dim() <= 2 ? tensor : permute(tensor, classes_last);
  };
  if (soft)
    return soft_cross_entropy(with_classes_last(logs), with_classes_last(target.to(wide)), weights, reduction,
                              label_smoothing)
        .to(self.dtype());

  const SymInts shape = target.sym_sizes();
  Tensor rows = logs, numbers = target;
  if (self.dim() != 2) {
    SymInt samples = 1;
    for (int64_t dim = 0; dim < self.dim(); ++dim)
      if (dim != class_dim) samples *= self.size(dim);
    rows = reshape(with_classes_last(logs), SymInts{samples, self.size(class_dim)});
    numbers = reshape(target, SymInts{samples});
  }
  Tensor loss = hard_cross_entropy(rows, numbers, weights, reduction, ignore_index, label_smoothing);
  if (reduction == kNone && self.dim() != 2) loss = reshape(loss, shape);
  return loss.to(self.dtype());
}

}  // namespace

OPS(loss) {
  op("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, std::optional<Dtype> dtype) {
        Dtype result = softmax_dtype(self, dtype, "softmax");
        Tensor power = exp(shifted(self.to(compute_dtype(result)), wrap_dim(dim, self.dim(), "softmax")));
        return contiguous((power / sum(power, dim, true)).to(result));
      })
      .grad("self", saves("result"), softmax_grad);
  op("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, std::optional<Dtype> dtype) {
        Dtype result = softmax_dtype(self, dtype, "log_softmax");
        Tensor x = shifted(self.to(compute_dtype(result)), wrap_dim(dim, self.dim(), "log_softmax"));
        return contiguous((x - log(sum(exp(x), dim, true))).to(result));
      })
      .grad("self", saves("result"), log_softmax_grad);
  op("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor")
      .decompose(nll)
      .grad("self", saves("target", "weight"), nll_grad);
  op("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
     "float label_smoothing=0.0) -> Tensor")
      .decompose(cross_entropy);
  op("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& target, int64_t reduction) {
        TENON_CHECK(self.defined() && target.defined(), "[mse_loss] expected a tensor, got an undefined one");
        check_reduction(reduction, "mse_loss");
        Dtype result = promote(self.dtype(), target.dtype());
        TENON_CHECK_IMPLEMENTED(is_floating(result), "[mse_loss] expected floating point tensors, got {} and {}",
                                self.description(), target.description());
        Tensor difference = self.to(compute_dtype(result)) - target.to(compute_dtype(result));
        Tensor loss = difference * difference;
        return reduced(loss, reduction, loss.numel()).to(result);
      });
  op("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& target, int64_t reduction) {
        TENON_CHECK(self.defined() && target.defined(), "[l1_loss] expected a tensor, got an undefined one");
        TENON_CHECK(reduction >= 0 && reduction <= 2,
                    "[l1_loss] expected a reduction of 0 (none), 1 (mean) or 2 (sum), got {}", reduction);
        Dtype result = promote(self.dtype(), target.dtype());
        TENON_CHECK(is_floating(result), "[l1_loss] expected floating point tensors, got {} and {}", self.description(),
                    target.description());
        Dtype wide = compute_dtype(result);
        Tensor loss = abs(self.to(wide) - target.to(wide));
        if (reduction == 1) loss = mean(loss);
        if (reduction == 2) loss = sum(loss);
        return loss.to(result);
      });
}

}  // namespace tenon::ops
