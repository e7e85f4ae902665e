// Losses by ATen's names: an expression for each element, and how these become one.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <cmath>
#include <numbers>

namespace tenon::ops {
namespace {

using OptionalTensor = std::optional<Tensor>;
enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

void check_reduction(int64_t reduction, const char* op_name) {
  TENON_CHECK_VALUE(reduction >= kNone && reduction <= kSum,
                    "[{}] expected a reduction of 0 (none), 1 (mean) or 2 (sum), got {}", op_name, reduction);
}

// Each loss, their mean or their sum, in the dtype that the inputs have together.
Tensor reduced(const Tensor& each, int64_t reduction, Dtype dtype) {
  if (reduction == kNone) return each.to(dtype);
  return (reduction == kMean ? mean(each) : sum(each)).to(dtype);
}

// What losses are computed of: two tensors of floating point numbers, halves as float32.
struct Pair {
  Tensor self, target;
  Dtype dtype;
  Pair(const Tensor& a, const Tensor& b, int64_t reduction, const char* op_name) {
    TENON_CHECK(a.defined() && b.defined(), "[{}] expected a tensor, got an undefined one", op_name);
    check_reduction(reduction, op_name);
    dtype = promote(a.dtype(), b.dtype());
    TENON_CHECK_IMPLEMENTED(is_floating(dtype), "[{}] expected floating point tensors, got {} and {}", op_name,
                            a.description(), b.description());
    self = a.to(compute_dtype(dtype));
    target = b.to(compute_dtype(dtype));
  }
};

void check_same_sizes(const Tensor& a, const Tensor& b, const char* op_name) {
  bool same = a.dim() == b.dim();
  for (int64_t dim = 0; same && dim < a.dim(); ++dim) same = same_size(a.size(dim), b.size(dim));
  TENON_CHECK_VALUE(same, "[{}] expected a target of the sizes of {}, got {}", op_name, a.description(),
                    b.description());
}

Tensor huber(const Tensor& a, const Tensor& b, int64_t reduction, double delta) {
  const Pair p(a, b, reduction, "huber_loss");
  TENON_CHECK(delta > 0, "[huber_loss] expected a delta above 0, got {}", delta);
  Tensor apart = abs(p.self - p.target);
  return reduced(where(apart < delta, apart * apart * 0.5, (apart - 0.5 * delta) * delta), reduction, p.dtype);
}

Tensor smooth_l1(const Tensor& a, const Tensor& b, int64_t reduction, double beta) {
  const Pair p(a, b, reduction, "smooth_l1_loss");
  TENON_CHECK(beta >= 0, "[smooth_l1_loss] expected a beta of at least 0, got {}", beta);
  Tensor apart = abs(p.self - p.target);
  if (beta == 0) return reduced(apart, reduction, p.dtype);
  return reduced(where(apart < beta, apart * apart * (0.5 / beta), apart - 0.5 * beta), reduction, p.dtype);
}

Tensor soft_margin(const Tensor& a, const Tensor& b, int64_t reduction) {
  const Pair p(a, b, reduction, "soft_margin_loss");
  return reduced(log1p(exp(-p.target * p.self)), reduction, p.dtype);
}

Tensor binary(const Tensor& a, const Tensor& b, const OptionalTensor& weight, int64_t reduction) {
  const Pair p(a, b, reduction, "binary_cross_entropy");
  check_same_sizes(a, b, "binary_cross_entropy");
  // Logarithms are held above -100, so that a wrong certainty costs something finite.
  Tensor loss = -(p.target * clamp_min(log(p.self), -100) + (1 - p.target) * clamp_min(log1p(-p.self), -100));
  if (weight) loss = loss * weight->to(loss.dtype());
  return reduced(loss, reduction, a.dtype());
}

Tensor binary_of_logits(const Tensor& a, const Tensor& b, const OptionalTensor& weight, const OptionalTensor& positive,
                        int64_t reduction) {
  const Pair p(a, b, reduction, "binary_cross_entropy_with_logits");
  check_same_sizes(a, b, "binary_cross_entropy_with_logits");
  Tensor log_sure = log_sigmoid(p.self), loss;
  if (positive)
    loss = (1 - p.target) * p.self - ((positive->to(p.self.dtype()) - 1) * p.target + 1) * log_sure;
  else
    loss = (1 - p.target) * p.self - log_sure;
  if (weight) loss = loss * weight->to(loss.dtype());
  return reduced(loss, reduction, p.dtype);
}

Tensor divergence(const Tensor& a, const Tensor& b, int64_t reduction, bool log_target) {
  const Pair p(a, b, reduction, "kl_div");
  Tensor loss = log_target ? exp(p.target) * (p.target - p.self) : xlogy(p.target, p.target) - p.target * p.self;
  return reduced(loss, reduction, p.dtype);
}

Tensor poisson(const Tensor& a, const Tensor& b, bool log_input, bool full_loss, double eps, int64_t reduction) {
  const Pair p(a, b, reduction, "poisson_nll_loss");
  Tensor loss = log_input ? exp(p.self) - p.target * p.self : p.self - p.target * log(p.self + eps);
  if (full_loss) {
    // Stirling's approximation of the logarithm of the factorial.
    Tensor stirling = p.target * log(p.target) - p.target + log(p.target * (2 * std::numbers::pi)) * 0.5;
    loss = loss + where(p.target > 1, stirling, zeros_like(stirling));
  }
  return reduced(loss, reduction, p.dtype);
}

// The length of what lies between two vectors along `dim`.
Tensor cosine(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  const Pair p(a, b, kNone, "cosine_similarity");
  // As long as they are once both are stretched, also along `dim`.
  const SymInts shapes[] = {p.self.sym_sizes(), p.target.sym_sizes()};
  const SymInts sizes = broadcast(shapes, "cosine_similarity");
  Tensor x = expand(p.self, sizes), y = expand(p.target, sizes);
  Tensor first = linalg_vector_norm(x, 2, OptionalInts(Ints{dim}), true),
         second = linalg_vector_norm(y, 2, OptionalInts(Ints{dim}), true);
  return sum((x / clamp_min(first, eps)) * (y / clamp_min(second, eps)), OptionalInts(Ints{dim})).to(p.dtype);
}

Tensor distance(const Tensor& a, const Tensor& b, double order, double eps, bool keepdim) {
  const Pair p(a, b, kNone, "pairwise_distance");
  return linalg_vector_norm(p.self - p.target + eps, order, OptionalInts(Ints{-1}), keepdim).to(p.dtype);
}

// [N, C] scores and a class of each.
Tensor multi_margin(const Tensor& given, const Tensor& classes, const Scalar& p, const Scalar& margin,
                    const OptionalTensor& weight, int64_t reduction) {
  check_reduction(reduction, "multi_margin_loss");
  TENON_CHECK(given.defined() && classes.defined() && is_floating(given.dtype()) && given.dim() <= 2 &&
                  classes.dtype() == kInt64 && classes.dim() <= 1,
              "[multi_margin_loss] expected scores [N, C] or [C] and classes of int64, got {} and {}",
              given.defined() ? given.description() : "an undefined tensor",
              classes.defined() ? classes.description() : "an undefined tensor");
  const int64_t power = p.to_double() == 1 ? 1 : 2;
  TENON_CHECK(p.to_double() == 1 || p.to_double() == 2, "[multi_margin_loss] expected p to be 1 or 2, got {}",
              p.to_double());
  Tensor self = given.to(compute_dtype(given.dtype())), target = reshape(classes, {-1});
  if (self.dim() < 2) self = reshape(self, SymInts{1, self.numel()});
  TENON_CHECK(same_size(self.size(0), target.size(0)),
              "[multi_margin_loss] expected a class for each row of {}, got {}", given.description(),
              classes.description());
  Tensor own = gather(self, 1, unsqueeze(target, 1));
  Tensor beyond = clamp_min(margin.to_double() - own + self, 0);
  if (power == 2) beyond = beyond * beyond;
  if (weight) beyond = beyond * unsqueeze(index_select(weight->to(beyond.dtype()), 0, target), 1);
  Tensor numbers = arange(Scalar(self.size(1)), TensorOptions(kInt64, self.device()));
  Tensor others = where(numbers == unsqueeze(target, 1), zeros_like(beyond), beyond);
  Tensor loss = sum(others, 1) / Scalar(self.size(1));
  if (reduction == kNone && classes.dim() == 0) loss = reshape(loss, {});
  return reduced(loss, reduction, given.dtype());
}

// Targets are class numbers up to the first negative one.
std::tuple<Tensor, Tensor> multilabel_margin(const Tensor& given, const Tensor& labels, int64_t reduction) {
  check_reduction(reduction, "multilabel_margin_loss");
  TENON_CHECK(
      given.defined() && labels.defined() && is_floating(given.dtype()) && given.dim() <= 2 && labels.dtype() == kInt64,
      "[multilabel_margin_loss] expected scores [N, C] or [C] and labels of int64, got {} and {}",
      given.defined() ? given.description() : "an undefined tensor",
      labels.defined() ? labels.description() : "an undefined tensor");
  check_same_sizes(given, labels, "multilabel_margin_loss");
  Tensor self = given.to(compute_dtype(given.dtype())), target = labels;
  if (self.dim() < 2) {
    self = reshape(self, SymInts{1, self.numel()});
    target = reshape(target, SymInts{1, target.numel()});
  }
  Tensor counts = cumsum(target < 0, 1) == 0, safe = clamp_min(target, 0);
  // [N, targets, C]: which class each target is, and which classes are targets.
  Tensor numbers = arange(Scalar(self.size(1)), TensorOptions(kInt64, self.device()));
  Tensor hits = logical_and(unsqueeze(safe, 2) == numbers, unsqueeze(counts, 2));
  Tensor is_target = any(hits, OptionalInts(Ints{1}));
  Tensor margins = clamp_min(1 - unsqueeze(gather(self, 1, safe), 2) + unsqueeze(self, 1), 0);
  Tensor apart = logical_and(unsqueeze(counts, 2), unsqueeze(logical_not(is_target), 1));
  Tensor loss = sum(where(apart, margins, zeros_like(margins)), Ints{1, 2}) / Scalar(self.size(1));
  if (reduction == kNone && given.dim() < 2) loss = reshape(loss, {});
  return {reduced(loss, reduction, given.dtype()), reshape(is_target, given.sym_sizes()).to(given.dtype())};
}

// [N, C, H, W] scores and [N, H, W] classes, and the sum of the weights that count.
std::tuple<Tensor, Tensor> plane_losses(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                        int64_t reduction, const SymInt& ignored) {
  check_reduction(reduction, "nll_loss2d_forward");
  TENON_CHECK(self.defined() && target.defined() && self.dim() == 4 && target.dim() == 3 && is_floating(self.dtype()) &&
                  target.dtype() == kInt64,
              "[nll_loss2d_forward] expected scores [N, C, H, W] and classes [N, H, W] of int64, got {} and {}",
              self.defined() ? self.description() : "an undefined tensor",
              target.defined() ? target.description() : "an undefined tensor");
  const Dtype wide = compute_dtype(self.dtype());
  Tensor counts = target != Scalar(ignored), zero = zeros(SymInts{}, TensorOptions(wide, self.device()));
  Tensor safe = where(counts, target, zeros_like(target));
  Tensor weights =
      weight ? reshape(index_select(weight->to(wide), 0, reshape(safe, {-1})), target.sym_sizes()) : ones_like(zero);
  Tensor share = where(counts, weights, zero);
  Tensor loss = -squeeze(gather(self.to(wide), 1, unsqueeze(safe, 1)), 1) * share;
  loss = where(counts, loss, zero);
  if (reduction == kNone) return {loss.to(self.dtype()), zero.to(self.dtype())};
  Tensor total = sum(share);
  return {(reduction == kMean ? sum(loss) / total : sum(loss)).to(self.dtype()), total.to(self.dtype())};
}

}  // namespace

OPS(losses) {
  op("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor").decompose(huber);
  op("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor").decompose(smooth_l1);
  op("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor").decompose(soft_margin);
  op("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor")
      .decompose(binary);
  op("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
     "reduction=1) -> Tensor")
      .decompose(binary_of_logits);
  op("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor").decompose(divergence);
  op("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor")
      .decompose(poisson);
  op("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor").decompose(cosine);
  op("pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=1e-06, bool keepdim=False) -> Tensor")
      .decompose(distance);
  op("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor")
      .decompose([](const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
        check_reduction(reduction, "cosine_embedding_loss");
        TENON_CHECK(target.defined() && a.defined() && a.dim() == target.dim() + 1,
                    "[cosine_embedding_loss] expected a target for each pair of rows");
        Tensor near = cosine(a, b, target.dim(), 0x1p-40);
        Tensor loss = where(target == 1, 1 - near, where(target == -1, clamp_min(near - margin, 0), zeros_like(near)));
        return reduced(loss, reduction, near.dtype());
      });
  op("hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor")
      .decompose([](const Tensor& a, const Tensor& b, double margin, int64_t reduction) {
        const Pair p(a, b, reduction, "hinge_embedding_loss");
        Tensor zero = zeros_like(p.self);
        Tensor loss = where(p.target != 1, clamp_min(margin - p.self, 0), zero) + where(p.target != -1, p.self, zero);
        return reduced(loss, reduction, p.dtype);
      });
  op("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor")
      .decompose([](const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
        const Pair p(a, b, reduction, "margin_ranking_loss");
        TENON_CHECK(target.defined(), "[margin_ranking_loss] expected a tensor, got an undefined one");
        return reduced(clamp_min(-target * (p.self - p.target) + margin, 0), reduction, p.dtype);
      });
  op("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float "
     "eps=1e-06, bool swap=False, int reduction=1) -> Tensor")
      .decompose([](const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double order,
                    double eps, bool swap, int64_t reduction) {
        check_reduction(reduction, "triplet_margin_loss");
        Tensor near = distance(anchor, positive, order, eps, false),
               far = distance(anchor, negative, order, eps, false);
        if (swap) far = minimum(far, distance(positive, negative, order, eps, false));
        return reduced(clamp_min(near - far + margin, 0), reduction, near.dtype());
      });
  op("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
     "reduction=1) -> Tensor")
      .decompose(multi_margin);
  op("multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)")
      .decompose(multilabel_margin);
  op("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& target, int64_t reduction) {
        return std::get<0>(multilabel_margin(self, target, reduction));
      });
  op("nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
     "output, Tensor total_weight)")
      .decompose(plane_losses);
  // Classes are dimension 1, behind which there may be any number of others.
  op("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
     "Tensor")
      .decompose([](const Tensor& self, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
                    const SymInt& ignored) {
        TENON_CHECK(self.defined() && target.defined() && self.dim() >= 1 && target.dim() == self.dim() - 1,
                    "[nll_loss_nd] expected a class for each row of scores");
        if (self.dim() <= 2) return nll_loss(self, target, weight, reduction, ignored);
        const SymInt classes = self.size(1), samples = target.numel();
        Tensor rows = reshape(movedim(self, 1, -1), SymInts{samples, classes});
        Tensor loss = nll_loss(rows, reshape(target, SymInts{samples}), weight, reduction, ignored);
        return reduction == kNone ? reshape(loss, target.sym_sizes()) : loss;
      });
}

}  // namespace tenon::ops
