// How good a model is, on batches that it was not trained with.
//
//   nn::Sequential model(nn::Linear(3, 8), nn::Dropout(0.5), nn::Linear(8, 4));
//   data::DataLoader batches(std::make_shared<data::TensorDataset>(rand({50, 3}), arange(50) % 4), {.batch_size = 20});
//   double right = trainer::accuracy(model, batches);                           // a share, from 0 to 1
//   double loss = trainer::evaluate(model, batches, [&](const Tensor& input, const Tensor& target) {
//     return cross_entropy(model(input), target);
//   });
//
// The model evaluates meanwhile (nn/evaluating.h): dropout rests, running statistics stay as they are, there is no
// history; afterwards each of its parts is in the mode that it was in.
#pragma once

#include <tenon/nn/evaluating.h>

namespace tenon::trainer {

namespace detail {

// The mean over samples, of means over batches.
class Mean {
 public:
  void add(const Tensor& value, const Tensor& samples);
  double result() const;

 private:
  double sum_ = 0;
  int64_t samples_ = 0;
};

// Whether the highest score along `dim` is the target's, for each target: their mean.
Tensor share_of_right(const Tensor& scores, const Tensor& target, int64_t dim);

}  // namespace detail

// The mean over all samples of a function of a batch that gives the mean over the batch.
template <typename Batches, typename F>
double evaluate(const nn::Module& model, Batches&& batches, const F& measure) {
  nn::Evaluating scope(model);
  detail::Mean mean;
  for (const auto& batch : batches) mean.add(measure(batch.data, batch.target), batch.data);
  return mean.result();
}

// The share of targets with the highest score; classes are the dimension `dim` of what the model gives, 1 as
// cross_entropy has it, -1 for scores [batch, length, vocabulary].
template <typename M, typename Batches>
double accuracy(const M& model, Batches&& batches, int64_t dim = 1) {
  return evaluate(model, batches, [&](const Tensor& input, const Tensor& target) {
    return detail::share_of_right(model(input), target, dim);
  });
}

}  // namespace tenon::trainer
