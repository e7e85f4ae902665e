#include <tenon/trainer/evaluate.h>

#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::trainer::detail {

void Mean::add(const Tensor& value, const Tensor& samples) {
  TENON_CHECK(value.defined() && bool(value.numel() == 1),
              "[evaluate] expected a measure of one number for a batch, got {}; end it with .mean()",
              value.defined() ? value.description() : "an undefined tensor");
  TENON_CHECK(samples.defined() && samples.dim() > 0, "[evaluate] expected batches with a first dimension, got {}",
              samples.defined() ? samples.description() : "an undefined tensor");
  const int64_t count = samples.sizes()[0];
  sum_ += value.item<double>() * static_cast<double>(count);
  samples_ += count;
}

double Mean::result() const {
  TENON_CHECK_VALUE(samples_ > 0, "[evaluate] expected at least one sample, got none");
  return sum_ / static_cast<double>(samples_);
}

Tensor share_of_right(const Tensor& scores, const Tensor& target, int64_t dim) {
  Tensor chosen = argmax(scores, dim);
  TENON_CHECK(target.defined() && std::ranges::equal(chosen.sizes(), target.sizes()),
              "[accuracy] expected a target for each of the scores {}, with classes along {}, got {}",
              scores.description(), dim, target.defined() ? target.description() : "an undefined tensor");
  return mean(eq(chosen, target).to(kFloat64));
}

}  // namespace tenon::trainer::detail
