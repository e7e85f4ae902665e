#include <tenon/data/dataset.h>

#include <tenon/generated/ops.h>

#include "data/shuffle.h"

namespace tenon::data {

std::vector<size_t> permutation(size_t size, uint64_t seed, uint64_t stream) {
  std::vector<size_t> order(size);
  for (size_t at = 0; at < size; ++at) order[at] = at;
  std::seed_seq seeds{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(stream),
                      static_cast<uint32_t>(stream >> 32)};
  std::mt19937_64 random(seeds);
  for (size_t left = size; left > 1; --left) std::swap(order[left - 1], order[below(random, left)]);
  return order;
}

TensorDataset::TensorDataset(Tensor data, Tensor target) : data_(std::move(data)), target_(std::move(target)) {
  TENON_CHECK_VALUE(data_.defined() && data_.dim() > 0,
                    "[TensorDataset] expected a tensor with a first dimension, got {}",
                    data_.defined() ? data_.description() : "an undefined one");
  TENON_CHECK_VALUE(!target_.defined() || (target_.dim() > 0 && target_.sizes()[0] == data_.sizes()[0]),
                    "[TensorDataset] expected a target for each of {} samples, got {}", data_.sizes()[0],
                    target_.description());
}
size_t TensorDataset::size() const { return static_cast<size_t>(data_.sizes()[0]); }
Example TensorDataset::get(size_t index) const {
  auto at = static_cast<int64_t>(index);
  return {data_[at], target_.defined() ? target_[at] : Tensor()};
}

Subset::Subset(DatasetRef source, std::vector<size_t> indices)
    : source_(std::move(source)), indices_(std::move(indices)) {
  for (size_t index : indices_)
    TENON_CHECK_INDEX(index < source_->size(), "[Subset] expected numbers below {}, got {}", source_->size(), index);
}

Concatenated::Concatenated(std::vector<DatasetRef> parts) : parts_(std::move(parts)) {}
size_t Concatenated::size() const {
  size_t total = 0;
  for (const DatasetRef& part : parts_) total += part->size();
  return total;
}
Example Concatenated::get(size_t index) const {
  size_t at = index;
  for (const DatasetRef& part : parts_) {
    if (at < part->size()) return part->get(at);
    at -= part->size();
  }
  fail<IndexError>("[Concatenated] expected a number below {}, got {}", size(), index);
}

std::vector<DatasetRef> random_split(const DatasetRef& source, const std::vector<size_t>& sizes, uint64_t seed) {
  size_t total = 0;
  for (size_t size : sizes) total += size;
  TENON_CHECK_VALUE(total == source->size(), "[random_split] expected sizes of {} samples together, got {}",
                    source->size(), total);
  std::vector<size_t> order = permutation(total, seed, 0);
  std::vector<DatasetRef> parts;
  auto at = order.begin();
  for (size_t size : sizes) {
    auto end = at + static_cast<std::ptrdiff_t>(size);
    parts.push_back(std::make_shared<Subset>(source, std::vector<size_t>(at, end)));
    at = end;
  }
  return parts;
}

}  // namespace tenon::data
