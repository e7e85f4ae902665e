// Losses, as functions and as modules. `Reduction` says how the losses of the samples become one.
//
//   Tensor a = smooth_l1_loss(x, y, {}, 0.5), b = huber_loss(x, y), c = kl_div(x, y, Reduction::Sum);
//   Tensor p = sigmoid(x), d = binary_cross_entropy(p, y), e = binary_cross_entropy_with_logits(x, y);
//   Tensor f = poisson_nll_loss(x, y), g = gaussian_nll_loss(x, y, ones({2, 3})), h = soft_margin_loss(x, y);
//   Tensor i = hinge_embedding_loss(x, y), j = margin_ranking_loss(x, y, y), k = triplet_margin_loss(x, y, y);
//   Tensor l = cosine_embedding_loss(x, y, ones({2})), m = multilabel_soft_margin_loss(x, y);
//   Tensor n = multi_margin_loss(x, zeros({2}, kInt64)), o = cosine_similarity(x, y, 1), q = pairwise_distance(x, y);
#pragma once

#include <tenon/nn/functional.h>
#include <tenon/nn/module.h>

namespace tenon {

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean,
                      double beta = 1);
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean, double delta = 1);
// Of logarithms of probabilities against probabilities, or against logarithms too.
Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean,
              bool log_target = false);
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight = {},
                            Reduction reduction = Reduction::Mean);
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const std::optional<Tensor>& weight = {},
                                        const std::optional<Tensor>& pos_weight = {},
                                        Reduction reduction = Reduction::Mean);
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true, bool full = false,
                        double eps = 1e-8, Reduction reduction = Reduction::Mean);
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full = false,
                         double eps = 1e-6, Reduction reduction = Reduction::Mean);
// Targets are 1 or -1.
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                            Reduction reduction = Reduction::Mean);
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                           Reduction reduction = Reduction::Mean);
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::Mean);
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1,
                           double p = 2, double eps = 1e-6, bool swap = false, Reduction reduction = Reduction::Mean);
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const std::optional<Tensor>& weight = {},
                                   Reduction reduction = Reduction::Mean);
// Of scores [N, C] against class numbers [N].
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, double p = 1, double margin = 1,
                         Reduction reduction = Reduction::Mean);
Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim = 1, double eps = 1e-8);
// Of vectors in the last dimension.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6, bool keepdim = false);

}  // namespace tenon

namespace tenon::nn {

// A loss of an input and a target.
class LossLayer : public Module {
 public:
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 protected:
  using Function = std::function<Tensor(const Tensor& input, const Tensor& target)>;
  LossLayer(std::string kind, Function function);

 private:
  Function function_;
};

//   Tensor a = nn::L1Loss(Reduction::Sum)(x, y), b = nn::MSELoss()(x, y), c = nn::SmoothL1Loss()(x, y);
//   Tensor d = nn::HuberLoss(Reduction::Mean, 2.0)(x, y), e = nn::KLDivLoss()(x, y), f = nn::BCELoss()(y, y);
//   Tensor g = nn::BCEWithLogitsLoss()(x, y), classes = zeros({2}, kInt64), h = nn::CrossEntropyLoss()(x, classes);
//   Tensor i = nn::NLLLoss()(x, classes), j = nn::PoissonNLLLoss()(x, y), k = nn::SoftMarginLoss()(x, y);
//   Tensor l = nn::HingeEmbeddingLoss()(x, y), m = nn::MultiLabelSoftMarginLoss()(x, y);
//   Tensor n = nn::MultiMarginLoss()(x, classes);
class L1Loss : public LossLayer {
 public:
  explicit L1Loss(Reduction reduction = Reduction::Mean);
};
class MSELoss : public LossLayer {
 public:
  explicit MSELoss(Reduction reduction = Reduction::Mean);
};
class SmoothL1Loss : public LossLayer {
 public:
  explicit SmoothL1Loss(Reduction reduction = Reduction::Mean, double beta = 1);
};
class HuberLoss : public LossLayer {
 public:
  explicit HuberLoss(Reduction reduction = Reduction::Mean, double delta = 1);
};
class KLDivLoss : public LossLayer {
 public:
  explicit KLDivLoss(Reduction reduction = Reduction::Mean, bool log_target = false);
};
class BCELoss : public LossLayer {
 public:
  explicit BCELoss(const std::optional<Tensor>& weight = {}, Reduction reduction = Reduction::Mean);
};
class BCEWithLogitsLoss : public LossLayer {
 public:
  explicit BCEWithLogitsLoss(const std::optional<Tensor>& weight = {}, Reduction reduction = Reduction::Mean,
                             const std::optional<Tensor>& pos_weight = {});
};
class CrossEntropyLoss : public LossLayer {
 public:
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {});
};
class NLLLoss : public LossLayer {
 public:
  explicit NLLLoss(const std::optional<Tensor>& weight = {}, Reduction reduction = Reduction::Mean,
                   int64_t ignore_index = -100);
};
class PoissonNLLLoss : public LossLayer {
 public:
  explicit PoissonNLLLoss(bool log_input = true, bool full = false, double eps = 1e-8,
                          Reduction reduction = Reduction::Mean);
};
class SoftMarginLoss : public LossLayer {
 public:
  explicit SoftMarginLoss(Reduction reduction = Reduction::Mean);
};
class HingeEmbeddingLoss : public LossLayer {
 public:
  explicit HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::Mean);
};
class MultiLabelSoftMarginLoss : public LossLayer {
 public:
  explicit MultiLabelSoftMarginLoss(const std::optional<Tensor>& weight = {}, Reduction reduction = Reduction::Mean);
};
class MultiMarginLoss : public LossLayer {
 public:
  explicit MultiMarginLoss(double p = 1, double margin = 1, Reduction reduction = Reduction::Mean);
};

// Of three tensors.
//
//   Tensor a = nn::GaussianNLLLoss()(x, y, ones({2, 3})), b = nn::MarginRankingLoss(0.5)(x, y, y);
//   Tensor c = nn::CosineEmbeddingLoss()(x, y, ones({2})), d = nn::TripletMarginLoss()(x, y, y);
class TripleLoss : public Module {
 public:
  Tensor operator()(const Tensor& first, const Tensor& second, const Tensor& third) const;

 protected:
  using Function = std::function<Tensor(const Tensor& first, const Tensor& second, const Tensor& third)>;
  TripleLoss(std::string kind, Function function);

 private:
  Function function_;
};
class GaussianNLLLoss : public TripleLoss {
 public:
  explicit GaussianNLLLoss(bool full = false, double eps = 1e-6, Reduction reduction = Reduction::Mean);
};
class MarginRankingLoss : public TripleLoss {
 public:
  explicit MarginRankingLoss(double margin = 0, Reduction reduction = Reduction::Mean);
};
class CosineEmbeddingLoss : public TripleLoss {
 public:
  explicit CosineEmbeddingLoss(double margin = 0, Reduction reduction = Reduction::Mean);
};
class TripletMarginLoss : public TripleLoss {
 public:
  explicit TripletMarginLoss(double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                             Reduction reduction = Reduction::Mean);
};

//   Tensor near = nn::CosineSimilarity(1)(x, y), far = nn::PairwiseDistance()(x, y);
class CosineSimilarity : public LossLayer {
 public:
  explicit CosineSimilarity(int64_t dim = 1, double eps = 1e-8);
};
class PairwiseDistance : public LossLayer {
 public:
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false);
};

}  // namespace tenon::nn
