// Samples by number: tensors in memory, files that the user gives, and what is made of other datasets.
#pragma once

#include <tenon/core/tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace tenon::data {

// A sample, or a batch of them. The target may be undefined.
struct Example {
  Tensor data, target;
};

// Several threads may ask for samples at once.
//
//   struct Squares : data::Dataset {
//     size_t size() const override { return 100; }
//     data::Example get(size_t index) const override {
//       double number = static_cast<double>(index);
//       return {tensor({number}), tensor({number * number})};
//     }
//   };
//   data::Example third = Squares().get(3);
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual size_t size() const = 0;
  virtual Example get(size_t index) const = 0;
};
using DatasetRef = std::shared_ptr<const Dataset>;

// Along the first dimension of tensors.
//
//   auto all = std::make_shared<data::TensorDataset>(ones({10, 3}), zeros({10}, kInt64));
//   auto scaled = std::make_shared<data::Mapped>(all, [](data::Example each) {
//     each.data = each.data * 2;
//     return each;
//   });
//   auto first = std::make_shared<data::Subset>(scaled, std::vector<size_t>{0, 1, 2});
//   size_t samples = first->size();                                        // 3
//   std::vector<data::DatasetRef> parts = data::random_split(all, {8, 2}, /*seed=*/1);
//   auto both = std::make_shared<data::Concatenated>(parts);
class TensorDataset : public Dataset {
 public:
  explicit TensorDataset(Tensor data, Tensor target = {});
  size_t size() const override;
  Example get(size_t index) const override;

 private:
  Tensor data_, target_;
};

// Each sample through a function.
class Mapped : public Dataset {
 public:
  Mapped(DatasetRef source, std::function<Example(Example)> function)
      : source_(std::move(source)), function_(std::move(function)) {}
  size_t size() const override { return source_->size(); }
  Example get(size_t index) const override { return function_(source_->get(index)); }

 private:
  DatasetRef source_;
  std::function<Example(Example)> function_;
};

class Subset : public Dataset {
 public:
  Subset(DatasetRef source, std::vector<size_t> indices);
  size_t size() const override { return indices_.size(); }
  Example get(size_t index) const override { return source_->get(indices_.at(index)); }

 private:
  DatasetRef source_;
  std::vector<size_t> indices_;
};

class Concatenated : public Dataset {
 public:
  explicit Concatenated(std::vector<DatasetRef> parts);
  size_t size() const override;
  Example get(size_t index) const override;

 private:
  std::vector<DatasetRef> parts_;
};

// Parts of these sizes, which must be all samples together, drawn by the seed.
std::vector<DatasetRef> random_split(const DatasetRef& source, const std::vector<size_t>& sizes, uint64_t seed = 0);

// Handwritten digits, from the folder with the four files of the MNIST collection ("train-images-idx3-ubyte", …, not
// compressed): images float32 [1, 28, 28] from 0 to 1, labels int64.
//
//   auto look = [](const std::filesystem::path& folder) {
//     data::MNIST digits(folder, /*train=*/true);
//     data::CIFAR10 pictures(folder, /*train=*/false);
//     Tensor bytes = data::read_idx(folder / "t10k-labels-idx1-ubyte");
//     return digits.get(0).data.size(1) == pictures.get(0).data.size(0);
//   };
class MNIST : public TensorDataset {
 public:
  explicit MNIST(const std::filesystem::path& folder, bool train = true);
};

// Small pictures, from the folder with the binary files of CIFAR-10 ("data_batch_1.bin", …, "test_batch.bin"): images
// float32 [3, 32, 32] from 0 to 1, labels int64.
class CIFAR10 : public TensorDataset {
 public:
  explicit CIFAR10(const std::filesystem::path& folder, bool train = true);
};

// A file of the IDX format, as MNIST uses it: uint8 of any number of dimensions.
Tensor read_idx(const std::filesystem::path& path);

}  // namespace tenon::data
