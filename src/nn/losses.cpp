#include <tenon/generated/ops.h>
#include <tenon/nn/losses.h>

#include <cmath>
#include <numbers>

namespace tenon {
namespace {

Tensor reduced(const Tensor& loss, Reduction reduction) {
  return reduction == Reduction::None ? loss : reduction == Reduction::Sum ? sum(loss) : mean(loss);
}

void check_pair(const Tensor& input, const Tensor& target, const char* name) {
  TENON_CHECK(input.defined() && target.defined(), "[{}] expected a tensor, got an undefined one", name);
  TENON_CHECK(input.is_floating_point(), "[{}] expected floating point numbers, got {}", name, input.description());
}

Tensor below(const Tensor& tensor, double least) { return clamp_min(tensor, least); }

}  // namespace

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  check_pair(input, target, "smooth_l1_loss");
  TENON_CHECK_VALUE(beta >= 0, "[smooth_l1_loss] expected beta to be at least 0, got {}", beta);
  Tensor distance = abs(input - target);
  if (beta == 0) return reduced(distance, reduction);
  return reduced(where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta), reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  check_pair(input, target, "huber_loss");
  TENON_CHECK_VALUE(delta > 0, "[huber_loss] expected delta to be above 0, got {}", delta);
  Tensor distance = abs(input - target);
  return reduced(where(distance < delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta), reduction);
}

Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction, bool log_target) {
  check_pair(input, target, "kl_div");
  if (log_target) return reduced(exp(target) * (target - input), reduction);
  // 0 log 0 is 0.
  Tensor own = where(target > 0, target * log(where(target > 0, target, ones_like(target))), zeros_like(target));
  return reduced(own - target * input, reduction);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight,
                            Reduction reduction) {
  check_pair(input, target, "binary_cross_entropy");
  // Logarithms of at least -100, as in PyTorch: a certain mistake costs much, but not infinitely much.
  Tensor loss = -(target * below(log(input), -100) + (1 - target) * below(log1p(neg(input)), -100));
  return reduced(weight ? loss * *weight : loss, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight,
                                        const std::optional<Tensor>& pos_weight, Reduction reduction) {
  check_pair(input, target, "binary_cross_entropy_with_logits");
  Tensor loss;
  if (pos_weight)
    loss = (1 - target) * input - ((*pos_weight - 1) * target + 1) * log_sigmoid(input);
  else
    loss = (1 - target) * input - log_sigmoid(input);
  return reduced(weight ? loss * *weight : loss, reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        Reduction reduction) {
  check_pair(input, target, "poisson_nll_loss");
  Tensor loss = log_input ? exp(input) - target * input : input - target * log(input + eps);
  if (full) {
    // Stirling's approximation of log(target!).
    Tensor safe = where(target > 1, target, ones_like(target));
    Tensor approximation = safe * log(safe) - safe + log(safe * (2 * std::numbers::pi)) * 0.5;
    loss = loss + where(target > 1, approximation, zeros_like(target));
  }
  return reduced(loss, reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full, double eps,
                         Reduction reduction) {
  check_pair(input, target, "gaussian_nll_loss");
  Tensor variance = var;
  if (var.dim() == input.dim() - 1) variance = unsqueeze(var, -1);
  // The bound is no part of the function: no gradient flows through it.
  Tensor bounded = variance + (clamp_min(variance, eps) - variance).detach();
  Tensor apart = input - target, loss = (log(bounded) + apart * apart / bounded) * 0.5;
  if (full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(loss, reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  check_pair(input, target, "soft_margin_loss");
  return reduced(log1p(exp(neg(target) * input)), reduction);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, Reduction reduction) {
  check_pair(input, target, "hinge_embedding_loss");
  Tensor zero = zeros_like(input);
  return reduced(where(target != 1, below(margin - input, 0), zero) + where(target != -1, input, zero), reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           Reduction reduction) {
  check_pair(input1, target, "margin_ranking_loss");
  return reduced(below(neg(target) * (input1 - input2) + margin, 0), reduction);
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  check_pair(a, b, "cosine_similarity");
  Tensor left = clamp_min(linalg_vector_norm(a, 2, dim, true), eps),
         right = clamp_min(linalg_vector_norm(b, 2, dim, true), eps);
  return sum((a / left) * (b / right), dim);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             Reduction reduction) {
  check_pair(input1, input2, "cosine_embedding_loss");
  constexpr double kEpsilon = 1e-12;
  int64_t dim = input1.dim() - 1;
  Tensor inner = sum(input1 * input2, dim);
  Tensor lengths = sqrt((sum(input1 * input1, dim) + kEpsilon) * (sum(input2 * input2, dim) + kEpsilon));
  Tensor cosine = inner / lengths, zero = zeros_like(cosine);
  return reduced(where(target == 1, 1 - cosine, zero) + where(target == -1, below(cosine - margin, 0), zero),
                 reduction);
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  check_pair(a, b, "pairwise_distance");
  return linalg_vector_norm(a - b + eps, p, Ints{-1}, keepdim);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, Reduction reduction) {
  check_pair(anchor, positive, "triplet_margin_loss");
  Tensor near = pairwise_distance(anchor, positive, p, eps), far = pairwise_distance(anchor, negative, p, eps);
  if (swap) far = minimum(far, pairwise_distance(positive, negative, p, eps));
  return reduced(below(near - far + margin, 0), reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight,
                                   Reduction reduction) {
  check_pair(input, target, "multilabel_soft_margin_loss");
  Tensor loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(neg(input)));
  if (weight) loss = loss * *weight;
  return reduced(mean(loss, -1), reduction);
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, double p, double margin, Reduction reduction) {
  check_pair(input, target, "multi_margin_loss");
  TENON_CHECK(input.dim() == 2 && target.dim() == 1,
              "[multi_margin_loss] expected scores [N, C] and classes [N], got {} "
              "and {}",
              input.description(), target.description());
  Tensor classes = unsqueeze(target, 1), own = gather(input, 1, classes);
  Tensor excess = below(margin - own + input, 0);
  if (p == 2) excess = excess * excess;
  // Not against the class itself.
  Tensor others = scatter(excess, 1, classes, 0);
  return reduced(mean(others, 1), reduction);
}

}  // namespace tenon

namespace tenon::nn {

LossLayer::LossLayer(std::string kind, Function function) : function_(std::move(function)) {
  describe(std::move(kind));
}
Tensor LossLayer::operator()(const Tensor& input, const Tensor& target) const { return run(input, target, function_); }

TripleLoss::TripleLoss(std::string kind, Function function) : function_(std::move(function)) {
  describe(std::move(kind));
}
Tensor TripleLoss::operator()(const Tensor& first, const Tensor& second, const Tensor& third) const {
  return run(first, second, third, function_);
}

#define PAIR(...) [=](const Tensor& x, const Tensor& y) { return __VA_ARGS__; }
#define TRIPLE(...) [=](const Tensor& x, const Tensor& y, const Tensor& z) { return __VA_ARGS__; }

L1Loss::L1Loss(Reduction r) : LossLayer("L1Loss", PAIR(l1_loss(x, y, static_cast<int64_t>(r)))) {}
MSELoss::MSELoss(Reduction r) : LossLayer("MSELoss", PAIR(mse_loss(x, y, static_cast<int64_t>(r)))) {}
SmoothL1Loss::SmoothL1Loss(Reduction r, double beta) : LossLayer("SmoothL1Loss", PAIR(smooth_l1_loss(x, y, r, beta))) {}
HuberLoss::HuberLoss(Reduction r, double delta) : LossLayer("HuberLoss", PAIR(huber_loss(x, y, r, delta))) {}
KLDivLoss::KLDivLoss(Reduction r, bool log_target) : LossLayer("KLDivLoss", PAIR(kl_div(x, y, r, log_target))) {}
BCELoss::BCELoss(const std::optional<Tensor>& weight, Reduction r)
    : LossLayer("BCELoss", PAIR(binary_cross_entropy(x, y, weight, r))) {}
BCEWithLogitsLoss::BCEWithLogitsLoss(const std::optional<Tensor>& weight, Reduction r,
                                     const std::optional<Tensor>& pos_weight)
    : LossLayer("BCEWithLogitsLoss", PAIR(binary_cross_entropy_with_logits(x, y, weight, pos_weight, r))) {}
CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyOptions& options)
    : LossLayer("CrossEntropyLoss", PAIR(cross_entropy(x, y, options))) {}
NLLLoss::NLLLoss(const std::optional<Tensor>& weight, Reduction r, int64_t ignore_index)
    : LossLayer("NLLLoss", PAIR(nll_loss(x, y, weight, static_cast<int64_t>(r), ignore_index))) {}
PoissonNLLLoss::PoissonNLLLoss(bool log_input, bool full, double eps, Reduction r)
    : LossLayer("PoissonNLLLoss", PAIR(poisson_nll_loss(x, y, log_input, full, eps, r))) {}
SoftMarginLoss::SoftMarginLoss(Reduction r) : LossLayer("SoftMarginLoss", PAIR(soft_margin_loss(x, y, r))) {}
HingeEmbeddingLoss::HingeEmbeddingLoss(double margin, Reduction r)
    : LossLayer("HingeEmbeddingLoss", PAIR(hinge_embedding_loss(x, y, margin, r))) {}
MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(const std::optional<Tensor>& weight, Reduction r)
    : LossLayer("MultiLabelSoftMarginLoss", PAIR(multilabel_soft_margin_loss(x, y, weight, r))) {}
MultiMarginLoss::MultiMarginLoss(double p, double margin, Reduction r)
    : LossLayer("MultiMarginLoss", PAIR(multi_margin_loss(x, y, p, margin, r))) {}
GaussianNLLLoss::GaussianNLLLoss(bool full, double eps, Reduction r)
    : TripleLoss("GaussianNLLLoss", TRIPLE(gaussian_nll_loss(x, y, z, full, eps, r))) {}
MarginRankingLoss::MarginRankingLoss(double margin, Reduction r)
    : TripleLoss("MarginRankingLoss", TRIPLE(margin_ranking_loss(x, y, z, margin, r))) {}
CosineEmbeddingLoss::CosineEmbeddingLoss(double margin, Reduction r)
    : TripleLoss("CosineEmbeddingLoss", TRIPLE(cosine_embedding_loss(x, y, z, margin, r))) {}
TripletMarginLoss::TripletMarginLoss(double margin, double p, double eps, bool swap, Reduction r)
    : TripleLoss("TripletMarginLoss", TRIPLE(triplet_margin_loss(x, y, z, margin, p, eps, swap, r))) {}
CosineSimilarity::CosineSimilarity(int64_t dim, double eps)
    : LossLayer("CosineSimilarity", PAIR(cosine_similarity(x, y, dim, eps))) {}
PairwiseDistance::PairwiseDistance(double p, double eps, bool keepdim)
    : LossLayer("PairwiseDistance", PAIR(pairwise_distance(x, y, p, eps, keepdim))) {}

#undef PAIR
#undef TRIPLE

}  // namespace tenon::nn
