#include <tenon/data/loader.h>
#include <tenon/data/progress.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using namespace data;
using Numbers = std::vector<double>;

std::shared_ptr<TensorDataset> numbers(int64_t count) {
  return std::make_shared<TensorDataset>(arange(count).view({count, 1}).to(kFloat32), arange(count));
}

std::vector<Numbers> epoch(DataLoader& loader) {
  std::vector<Numbers> batches;
  for (const Example& batch : loader) {
    EXPECT_EQ(values(batch.data), values(batch.target));
    batches.push_back(values(batch.target));
  }
  return batches;
}

TEST(DataLoader, BatchesInOrder) {
  DataLoader loader(numbers(5), {.batch_size = 2});
  EXPECT_EQ(epoch(loader), (std::vector<Numbers>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(loader.size(), 3u);
  DataLoader whole(numbers(5), {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(epoch(whole), (std::vector<Numbers>{{0, 1}, {2, 3}}));
  EXPECT_EQ(whole.size(), 2u);
}

TEST(DataLoader, TheOrderDependsOnSeedAndEpochAlone) {
  std::vector<std::vector<std::vector<Numbers>>> seen;
  for (size_t workers : {0, 1, 3}) {
    DataLoader loader(numbers(37), {.batch_size = 4, .shuffle = true, .seed = 5, .workers = workers});
    seen.push_back({epoch(loader), epoch(loader)});
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0][0], seen[0][1]);
  std::set<double> all;
  for (const Numbers& batch : seen[0][0]) all.insert(batch.begin(), batch.end());
  EXPECT_EQ(all.size(), 37u);
  DataLoader again(numbers(37), {.batch_size = 4, .shuffle = true, .seed = 5});
  again.set_epoch(1);
  EXPECT_EQ(epoch(again), seen[0][1]);
  // The same on every machine.
  EXPECT_EQ(RandomSampler(6, 1).order(0), (std::vector<size_t>{0, 3, 5, 1, 2, 4}));
}

// Threads do not come along: the child makes by itself what they would have made.
TEST(DataLoader, GoesOnInTheChildOfAFork) {
  DataLoader loader(numbers(40), {.batch_size = 2, .workers = 2, .prefetch = 2});
  std::vector<double> seen;
  pid_t child = -1;
  for (const Example& batch : loader) {
    for (double each : values(batch.target)) seen.push_back(each);
    if (seen.size() == 10) child = fork();
  }
  const bool right = seen.size() == 40 && std::is_sorted(seen.begin(), seen.end());
  if (child == 0) _exit(right ? 0 : 1);
  ASSERT_GT(child, 0);
  EXPECT_TRUE(right);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  EXPECT_EQ(status, 0);
}

struct Slow : Dataset {
  mutable std::atomic<int> asked{0};
  size_t size() const override { return 100; }
  Example get(size_t index) const override {
    ++asked;
    TENON_CHECK_VALUE(index != 13, "sample 13 is broken");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {tensor({static_cast<double>(index)}), Tensor()};
  }
};

TEST(DataLoader, WorkersStayWithinTheirLead) {
  auto slow = std::make_shared<Slow>();
  DataLoader loader(slow, {.batch_size = 1, .workers = 2, .prefetch = 2});
  {
    auto at = loader.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_LE(slow->asked, 5);  // one in hand, four ahead
    EXPECT_EQ(values((*at).data), Numbers{0});
    EXPECT_FALSE((*at).target.defined());
  }  // leaving early ends the workers
  int count = 0;
  EXPECT_EQ(error_of<ValueError>([&] {
              for ([[maybe_unused]] const Example& batch : loader) ++count;
            }),
            "sample 13 is broken");
  EXPECT_EQ(count, 13);  // those before it came
}

TEST(DataLoader, SamplersAndErrors) {
  DataLoader weighted(numbers(3), {.batch_size = 50}, std::make_shared<WeightedSampler>(Numbers{0, 1, 3}, 400, 3));
  int first = 0, second = 0;
  for (const Numbers& batch : epoch(weighted))
    for (double each : batch) (each == 1 ? first : second) += 1;
  EXPECT_EQ(first + second, 400);
  EXPECT_NEAR(first, 100, 30);
  EXPECT_EQ(error_of<ValueError>([] { DataLoader bad(numbers(3), {.batch_size = 0}); }),
            "[DataLoader] expected a batch_size above 0, got 0");
  EXPECT_EQ(error_of<ValueError>([] { TensorDataset bad(ones({3}), ones({2})); }),
            "[TensorDataset] expected a target for each of 3 samples, got float32[2]");
}

TEST(Datasets, PartsAndMaps) {
  std::vector<DatasetRef> parts = random_split(numbers(10), {7, 3}, 2);
  Concatenated both(parts);
  std::set<double> all;
  for (size_t at = 0; at < both.size(); ++at) all.insert(both.get(at).target.item<double>());
  EXPECT_EQ(all.size(), 10u);
  Mapped twice(numbers(3), [](Example each) {
    each.data = each.data * 2;
    return each;
  });
  EXPECT_EQ(values(twice.get(2).data), Numbers{4});
  EXPECT_EQ(error_of<ValueError>([] { random_split(numbers(3), {1, 1}); }),
            "[random_split] expected sizes of 3 samples together, got 2");
}

TEST(Progress, ShowsHowFarItIs) {
  ProgressBar bar("training", 10);
  EXPECT_EQ(bar.text(3, 1.5), "training  3/10 [======>             ] 2.0/s");
  EXPECT_EQ(bar.text(10, 2), "training 10/10 [====================] 5.0/s");
  int sum = 0;
  for (int each : progress(std::vector<int>{1, 2, 3}, "sum")) sum += each;
  EXPECT_EQ(sum, 6);
  DataLoader loader(numbers(5), {.batch_size = 2});
  for (const Example& batch : progress(loader)) sum += static_cast<int>(batch.data.sizes()[0]);
  EXPECT_EQ(sum, 11);
}

}  // namespace
}  // namespace tenon::testing
