#include <tenon/data/loader.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include "data/shuffle.h"
#include "support/out_of_memory.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

namespace tenon::data {

std::vector<size_t> SequentialSampler::order(int64_t) const {
  std::vector<size_t> all(size_);
  for (size_t at = 0; at < size_; ++at) all[at] = at;
  return all;
}

std::vector<size_t> RandomSampler::order(int64_t epoch) const {
  return permutation(size_, seed_, static_cast<uint64_t>(epoch));
}

WeightedSampler::WeightedSampler(std::vector<double> weights, size_t count, uint64_t seed)
    : sums_(std::move(weights)), count_(count), seed_(seed) {
  double total = 0;
  for (double& weight : sums_) {
    TENON_CHECK_VALUE(weight >= 0, "[WeightedSampler] expected weights of at least 0, got {}", weight);
    weight = total += weight;
  }
  TENON_CHECK_VALUE(total > 0, "[WeightedSampler] expected weights above 0");
}

std::vector<size_t> WeightedSampler::order(int64_t epoch) const {
  std::seed_seq seeds{static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32), static_cast<uint32_t>(epoch)};
  std::mt19937_64 random(seeds);
  std::vector<size_t> drawn(count_);
  for (size_t& index : drawn) {
    double place = static_cast<double>(random() >> 11) * 0x1p-53 * sums_.back();
    index = static_cast<size_t>(std::upper_bound(sums_.begin(), sums_.end(), place) - sums_.begin());
    index = std::min(index, sums_.size() - 1);
  }
  return drawn;
}

Example collate(const std::vector<Example>& samples) {
  TENON_CHECK_VALUE(!samples.empty(), "[collate] expected at least one sample");
  NoGrad off;
  std::vector<Tensor> data, targets;
  for (const Example& sample : samples) {
    data.push_back(sample.data);
    if (sample.target.defined()) targets.push_back(sample.target);
  }
  TENON_CHECK_VALUE(targets.empty() || targets.size() == data.size(),
                    "[collate] expected a target of all samples or of none, got {} of {}", targets.size(), data.size());
  return {stack(data), targets.empty() ? Tensor() : stack(targets)};
}

// The batches of one epoch, made by workers in any order and handed out by number.
class DataLoader::Epoch {
 public:
  Epoch(DatasetRef dataset, std::vector<std::vector<size_t>> batches, size_t workers, size_t ahead)
      : dataset_(std::move(dataset)),
        batches_(std::move(batches)),
        ahead_(std::max<size_t>(1, ahead)),
        ready_(batches_.size()) {
    workers_.reserve(workers);
    // Where there is no memory or no thread for more, those that there are do it all; without any, the loop does.
    try {
      for (size_t at = 0; at < workers; ++at) workers_.emplace_back([this] { work(); });
    } catch (...) {
    }
  }
  ~Epoch() {
    if (workers_are_gone()) {
      // They cannot be waited for, and what they were at is half done: it is left there.
      for (std::thread& worker : workers_) new (&worker) std::thread;
      new (&changed_) std::condition_variable;
      new (&ready_) decltype(ready_);
      return;
    }
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  std::optional<Example> next() {
    if (taken_ == batches_.size()) return std::nullopt;
    if (workers_.empty() || workers_are_gone()) return make(taken_++);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_[taken_].has_value(); });
    Ready result = std::move(*ready_[taken_]);
    ready_[taken_++].reset();
    lock.unlock();
    changed_.notify_all();
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.batch);
  }

 private:
  struct Ready {
    Example batch;
    std::exception_ptr error;
  };

  // In the child of a fork: threads do not come along, and one of them may have held the lock.
  bool workers_are_gone() const { return getpid() != process_; }

  Example make(size_t number) const {
    std::vector<Example> samples;
    for (size_t index : batches_[number]) samples.push_back(dataset_->get(index));
    return collate(samples);
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopped_ || started_ == batches_.size() || started_ < taken_ + ahead_; });
      if (stopped_ || started_ == batches_.size()) return;
      size_t number = started_++;
      lock.unlock();
      Ready result;
      try {
        result.batch = make(number);
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      ready_[number] = std::move(result);
      changed_.notify_all();
    }
  }

  DatasetRef dataset_;
  std::vector<std::vector<size_t>> batches_;
  size_t ahead_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t started_ = 0, taken_ = 0;  // by the workers, and by the loop
  bool stopped_ = false;
  std::vector<std::optional<Ready>> ready_;  // by number; made at the start, so that a worker needs no memory for them
  std::vector<std::thread> workers_;
};

DataLoader::DataLoader(DatasetRef dataset, const LoaderOptions& options, std::shared_ptr<const Sampler> sampler) try
    : dataset_(std::move(dataset)), options_(options), sampler_(std::move(sampler)) {
  TENON_CHECK_VALUE(dataset_ != nullptr, "[DataLoader] expected a dataset, got a null pointer");
  TENON_CHECK_VALUE(options.batch_size > 0, "[DataLoader] expected a batch_size above 0, got {}", options.batch_size);
  TENON_CHECK_VALUE(!sampler_ || !options.shuffle, "[DataLoader] a sampler has an order of its own: leave shuffle off");
  if (sampler_) return;
  if (options.shuffle)
    sampler_ = std::make_shared<RandomSampler>(dataset_->size(), options.seed);
  else
    sampler_ = std::make_shared<SequentialSampler>(dataset_->size());
} catch (...) {
  support::rethrow_named("DataLoader");
}

size_t DataLoader::size() const {
  size_t samples = sampler_->size(), full = samples / options_.batch_size;
  return full + (!options_.drop_last && samples % options_.batch_size != 0 ? 1 : 0);
}

DataLoader::Iterator DataLoader::begin() try {
  std::vector<size_t> order = sampler_->order(epoch_++);
  std::vector<std::vector<size_t>> batches(size());
  for (size_t number = 0; number < batches.size(); ++number) {
    size_t first = number * options_.batch_size, last = std::min(first + options_.batch_size, order.size());
    batches[number].assign(order.begin() + static_cast<std::ptrdiff_t>(first),
                           order.begin() + static_cast<std::ptrdiff_t>(last));
  }
  return Iterator(
      std::make_unique<Epoch>(dataset_, std::move(batches), options_.workers, options_.workers * options_.prefetch));
} catch (...) {
  support::rethrow_named("DataLoader");
}

DataLoader::Iterator::Iterator(std::unique_ptr<Epoch> epoch) : epoch_(std::move(epoch)), current_(epoch_->next()) {}
DataLoader::Iterator::Iterator(Iterator&&) noexcept = default;
DataLoader::Iterator& DataLoader::Iterator::operator=(Iterator&&) noexcept = default;
DataLoader::Iterator::~Iterator() = default;
DataLoader::Iterator& DataLoader::Iterator::operator++() try {
  current_ = epoch_->next();
  return *this;
} catch (...) {
  support::rethrow_named("DataLoader");
}

}  // namespace tenon::data
