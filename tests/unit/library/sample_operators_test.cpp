// What holds of every operator that is complete: its fake describes its results, its gradient is right, and a compiled
// function computes the same in one graph, for sizes that it has not seen too.
#include "sample_operators.h"

#include "unit/autograd/helpers.h"

#include <tenon/dispatch/registration.h>
#include <tenon/fake/fake.h>

#include <gmock/gmock.h>

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;
using Call = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct Sample {
  const char* name;
  Call call;
  std::vector<Tensor> inputs, others;  // arguments, and others of the same ranks
};

Tensor numbers(const SymInts& sizes, int64_t seed) {
  int64_t count = 1;
  for (const SymInt& size : sizes) count *= size.plain();
  std::vector<double> list;
  for (int64_t at = 0; at < count; ++at)
    list.push_back(static_cast<double>((at * 7 + seed) % 11) / 4 - 1.125 + 0.01 * static_cast<double>(at));
  return real(list, sizes);
}

std::vector<Sample> samples() {
  auto cube = sample_cube();
  auto mul = sample_mul();
  auto sort = sample_sort();
  auto cat = sample_cat();
  auto split = sample_split_copy();
  auto view_copy = sample_view_copy();
  std::vector<Sample> list;
  list.push_back({"cube",
                  [=](const std::vector<Tensor>& in) {
                    auto [x, slope] = cube(in[0]);
                    return std::vector<Tensor>{x, slope};
                  },
                  {numbers({2, 3}, 0)},
                  {numbers({4, 3}, 1)}});
  list.push_back({"mul",
                  [=](const std::vector<Tensor>& in) { return std::vector<Tensor>{mul(in[0], in[1])}; },
                  {numbers({2, 3}, 0), numbers({2, 3}, 5)},
                  {numbers({3, 5}, 0), numbers({3, 5}, 5)}});
  list.push_back({"sort",
                  [=](const std::vector<Tensor>& in) { return std::vector<Tensor>{std::get<0>(sort(in[0], 1))}; },
                  {numbers({2, 4, 3}, 3)},
                  {numbers({3, 5, 2}, 4)}});
  list.push_back({"cat",
                  [=](const std::vector<Tensor>& in) {
                    return std::vector<Tensor>{cat(std::vector<Tensor>{in[0], in[1], in[0]}, 1)};
                  },
                  {numbers({2, 3}, 0), numbers({2, 4}, 1)},
                  {numbers({3, 2}, 0), numbers({3, 5}, 1)}});
  list.push_back({"split_copy",
                  [=](const std::vector<Tensor>& in) { return split(in[0], SymInts{1, 3}, 1); },
                  {numbers({2, 5}, 0)},
                  {numbers({2, 6}, 1)}});
  list.push_back({"view_copy",
                  [=](const std::vector<Tensor>& in) {
                    return std::vector<Tensor>{view_copy(in[0], SymInts{in[0].size(1), in[0].size(0)})};
                  },
                  {numbers({2, 3}, 0)},
                  {numbers({4, 5}, 1)}});
  return list;
}

TEST(SampleOperators, compute_what_built_in_operators_do) {
  Tensor x = numbers({2, 3}, 0), y = numbers({2, 3}, 5);
  auto [cubes, slopes] = sample_cube()(x);
  expect_near(cubes, values(x * x * x));
  expect_near(slopes, values(x * x * 3));
  expect_near(sample_mul()(x, y), values(x * y));
  expect_near(sample_cat()(std::vector<Tensor>{x, y}, 0), values(cat({x, y}, 0)));
  auto [sorted, index, inverse] = sample_sort()(x, 1);
  expect_near(sorted, values(gather(x, 1, index)));
  expect_near(x, values(gather(sorted, 1, inverse)));
  std::vector<double> row = values(sorted.select(0, 1));
  EXPECT_TRUE(std::is_sorted(row.begin(), row.end()));
  std::vector<Tensor> pieces = sample_split_copy()(x, SymInts{1}, 1);
  ASSERT_EQ(pieces.size(), 2u);
  expect_near(pieces[1], values(slice(x, 1, 1, 3)));
}

TEST(SampleOperators, fakes_describe_results) {
  for (const Sample& sample : samples()) {
    std::vector<Tensor> results = sample.call(sample.inputs), fakes;
    {
      std::vector<Tensor> inputs;
      for (const Tensor& input : sample.inputs) inputs.push_back(fake::like(input));
      fakes = sample.call(inputs);
    }
    ASSERT_EQ(results.size(), fakes.size()) << sample.name;
    for (size_t at = 0; at < results.size(); ++at) {
      EXPECT_TRUE(fakes[at].is_fake()) << sample.name;
      EXPECT_EQ(results[at].description(), fakes[at].description()) << sample.name;
      EXPECT_EQ(str(results[at].sym_strides()), str(fakes[at].sym_strides())) << sample.name;
    }
  }
}

// The sum of all results, each with another weight.
Tensor together(const std::vector<Tensor>& results) {
  Tensor sum = results[0].sum() * 0;
  double weight = 1;
  for (const Tensor& result : results) sum = sum + (result * result).sum() * (weight += 0.5);
  return sum;
}

TEST(SampleOperators, gradients_are_right) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    check_gradients([&](const std::vector<Tensor>& in) { return together(sample.call(in)); }, sample.inputs);
  }
}

TEST(SampleOperators, compile_in_one_graph) {
  for (const Sample& sample : samples())
    for (const char* backend : {"eager", "aot_eager", "inductor"}) {
      SCOPED_TRACE(std::string(sample.name) + " " + backend);
      auto body = [&](std::vector<Tensor> in) {
        for (Tensor& each : in) each = each + 1;
        return together(sample.call(in));
      };
      auto compiled = compile(body, {.fullgraph = true, .dynamic = Dynamic::On, .backend = backend});
      for (const auto& inputs : {sample.inputs, sample.others}) {
        std::vector<Tensor> expected, got;
        for (const Tensor& input : inputs) {
          expected.push_back(leaf(values(input), input.sym_sizes()));
          got.push_back(leaf(values(input), input.sym_sizes()));
        }
        Tensor loss = body(expected), compiled_loss = compiled(got);
        expect_near(compiled_loss, values(loss), 1e-9);
        loss.backward();
        compiled_loss.backward();
        for (size_t at = 0; at < inputs.size(); ++at) expect_near(got[at].grad(), values(expected[at].grad()), 1e-9);
      }
      EXPECT_EQ(compiled.compile_count(), 1);
    }
}

TEST(SampleOperators, sizes_from_data_break_the_graph_or_are_symbols) {
  auto nonzero = sample_nonzero();
  auto nms = sample_nms();
  Tensor x = tensor({0.f, 3.f, 0.f, 4.f});
  EXPECT_EQ(values(nonzero(x)), (std::vector<double>{1, 3}));
  EXPECT_EQ(nonzero(x * 0).description(), "int64[0, 1]");
  // Two boxes that overlap and one apart.
  Tensor boxes = tensor({0.f, 0.f, 2.f, 2.f, 0.f, 0.f, 2.f, 1.9f, 5.f, 5.f, 6.f, 6.f}).view({3, 4});
  EXPECT_EQ(values(nms(boxes, tensor({0.5f, 0.9f, 0.7f}), 0.1)), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(nms(boxes, tensor({0.5f, 0.9f, 0.7f}), 0.99)), (std::vector<double>{1, 2, 0}));
}

}  // namespace
}  // namespace tenon::testing
