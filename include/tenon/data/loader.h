// Batches of a dataset, in the order of a sampler, prepared by threads ahead of their use.
//
//   auto all = std::make_shared<data::TensorDataset>(ones({10, 3}), zeros({10}, kInt64));
//   data::LoaderOptions options{.batch_size = 4, .shuffle = true, .seed = 7, .workers = 2};
//   data::DataLoader loader(all, options);
//   for (int epoch = 0; epoch < 2; ++epoch)          // another order in each
//     for (const data::Example& batch : loader) {
//       SymInt samples = batch.data.size(0);         // 4, 4, 2
//     }
//   size_t batches = loader.size();                  // 3
//   auto weights = std::make_shared<data::WeightedSampler>(std::vector<double>(10, 1.0), 20);
//   data::DataLoader by_weight(all, {.batch_size = 4}, weights);
//
// Which samples come when is decided before any thread starts: it depends on the seed and the epoch, and not on how
// many threads there are.
#pragma once

#include <tenon/data/dataset.h>

#include <cstddef>
#include <optional>

namespace tenon::data {

// The order of samples in an epoch.
//
//   std::vector<size_t> turned = data::RandomSampler(5, /*seed=*/1).order(/*epoch=*/0);
//   std::vector<size_t> plain = data::SequentialSampler(5).order(0);
//   std::shared_ptr<data::Sampler> any = std::make_shared<data::SequentialSampler>(5);
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual std::vector<size_t> order(int64_t epoch) const = 0;
  virtual size_t size() const = 0;
};

class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  std::vector<size_t> order(int64_t epoch) const override;
  size_t size() const override { return size_; }

 private:
  size_t size_;
};

// Every sample once, in an order of its own for each epoch.
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(size_t size, uint64_t seed = 0) : size_(size), seed_(seed) {}
  std::vector<size_t> order(int64_t epoch) const override;
  size_t size() const override { return size_; }

 private:
  size_t size_;
  uint64_t seed_;
};

// As many as asked for, each drawn by its weight, with repetition.
class WeightedSampler : public Sampler {
 public:
  WeightedSampler(std::vector<double> weights, size_t count, uint64_t seed = 0);
  std::vector<size_t> order(int64_t epoch) const override;
  size_t size() const override { return count_; }

 private:
  std::vector<double> sums_;  // of the weights up to each
  size_t count_;
  uint64_t seed_;
};

struct LoaderOptions {
  size_t batch_size = 1;
  bool shuffle = false;  // by a RandomSampler
  uint64_t seed = 0;
  bool drop_last = false;  // a batch that is not full
  size_t workers = 0;      // threads; 0: the batch is made when it is asked for
  size_t prefetch = 2;     // batches ahead, for each worker
};

class DataLoader {
 public:
  // Without a sampler: in order, or shuffled.
  DataLoader(DatasetRef dataset, const LoaderOptions& options = {}, std::shared_ptr<const Sampler> sampler = nullptr);

  class Epoch;
  // A walk through the batches of one epoch. It cannot be copied: batches come once.
  class Iterator {
   public:
    using value_type = Example;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(std::unique_ptr<Epoch> epoch);
    Iterator(Iterator&&) noexcept;
    Iterator& operator=(Iterator&&) noexcept;
    ~Iterator();
    const Example& operator*() const { return *current_; }
    const Example* operator->() const { return &*current_; }
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return !current_; }

   private:
    std::unique_ptr<Epoch> epoch_;
    std::optional<Example> current_;
  };

  // Begins an epoch.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }
  // Batches of an epoch.
  size_t size() const;
  // The next epoch's number.
  int64_t epoch() const { return epoch_; }
  void set_epoch(int64_t epoch) { epoch_ = epoch; }

 private:
  DatasetRef dataset_;
  LoaderOptions options_;
  std::shared_ptr<const Sampler> sampler_;
  int64_t epoch_ = 0;
};

// Samples as one batch: tensors stacked along a new first dimension.
//
//   data::Example batch = data::collate({{ones({3}), tensor(1)}, {zeros({3}), tensor(2)}});  // [2, 3] and [2]
//   data::DataLoader loader(std::make_shared<data::TensorDataset>(ones({4, 3})));
//   loader.set_epoch(loader.epoch() + 1);
Example collate(const std::vector<Example>& samples);

}  // namespace tenon::data
