// Extensions that are written for libtorch (the files beside this one name nothing of Tenon's): eagerly, compiled with
// sizes that change, and checked.
#include <tenon/dispatch/registration.h>
#include <tenon/opcheck/opcheck.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "error_of.h"
#include "values_of.h"

namespace tenon {
namespace {

using dispatch::call_by_name;
using dispatch::Value;
using testing::error_of;
using ::testing::HasSubstr;
using testing::values;

Tensor leaf(const Ints& sizes) { return randn(SymInts(sizes.span())).set_requires_grad(); }

void expect_close(const Tensor& got, const Tensor& expected, double within = 1e-5) {
  ASSERT_EQ(got.description(), expected.description());
  std::vector<double> a = values(got), b = values(expected);
  for (size_t at = 0; at < a.size(); ++at) EXPECT_NEAR(a[at], b[at], within) << at;
}

TEST(Extensions, name_nothing_of_ours) {
  for (const char* name : {"elementwise", "lstm_cell", "boxes", "graph", "sampling"}) {
    std::ifstream file(fmt::format("{}/tests/unit/compat/{}_extension.cpp", TENON_SOURCE_DIR, name));
    std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find("tenon"), std::string::npos) << name;
  }
}

Tensor swish(const Tensor& x, double beta = 1.0) {
  return call_by_name("ext_elementwise::swish", {Value(x), Value(beta)})[0].take_tensor();
}

TEST(Extensions, elementwise) {
  Tensor x = leaf({3, 4}), same = x.detach().clone().set_requires_grad();
  Tensor expected = same * (same * 1.5).sigmoid();
  expect_close(swish(x, 1.5), expected.detach());
  swish(x, 1.5).sum().backward();
  expected.sum().backward();
  expect_close(x.grad(), same.grad());
  expect_close(swish(x.detach().to(kFloat16)).to(kFloat32), (x * x.sigmoid()).detach(), 1e-2);
  EXPECT_THAT(error_of<NotImplementedError>([&] { swish(ones({2}).to(kInt64)); }),
              HasSubstr("\"swish_forward\" not implemented for 'Long'"));
  EXPECT_TRUE(library::opcheck("ext_elementwise::swish", {leaf({3, 4}), Value(0.5)}).ok());
  EXPECT_TRUE(library::opcheck("ext_elementwise::swish").ok());
  auto f = compile([](Tensor t) { return swish(t * 2).sum(); }, {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t rows : {3, 5, 8}) {
    Tensor a = leaf({rows, 4}), b = a.detach().clone().set_requires_grad();
    f(a).backward();
    swish(b * 2).sum().backward();
    expect_close(a.grad(), b.grad());
  }
  EXPECT_EQ(f.compile_count(), 1);
}

TEST(Extensions, lstm_cell) {
  auto run = [](std::vector<Tensor> in) {
    std::vector<Value> args;
    for (const Tensor& each : in) args.emplace_back(each);
    dispatch::Results results = call_by_name("ext_lstm::cell", args);
    return std::vector<Tensor>(results[0].tensors().begin(), results[0].tensors().end());
  };
  auto reference = [](std::vector<Tensor> in) {
    std::vector<Tensor> gates = addmm(in[2], cat(std::vector<Tensor>{in[3], in[0]}, 1), in[1].t()).chunk(4, 1);
    Tensor cell = gates[1].sigmoid() * in[4] + gates[3].tanh() * gates[0].sigmoid();
    return std::vector<Tensor>{cell.tanh() * gates[2].sigmoid(), cell};
  };
  auto inputs = [](int64_t batch) {
    return std::vector<Tensor>{leaf({batch, 3}), leaf({8, 5}), leaf({1, 8}), leaf({batch, 2}), leaf({batch, 2})};
  };
  auto check = [&](auto function, int64_t batch) {
    std::vector<Tensor> a = inputs(batch), b;
    for (const Tensor& each : a) b.push_back(each.detach().clone().set_requires_grad());
    std::vector<Tensor> got = function(a), expected = reference(b);
    (got[0].sum() + (got[1] * 2).sum()).backward();
    (expected[0].sum() + (expected[1] * 2).sum()).backward();
    for (size_t at = 0; at < a.size(); ++at) expect_close(a[at].grad(), b[at].grad());
  };
  check(run, 4);
  auto compiled =
      compile([run](std::vector<Tensor> in) { return run(in); }, {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t batch : {4, 6, 9}) check(compiled, batch);
  EXPECT_EQ(compiled.compile_count(), 1);
  std::vector<Tensor> in = inputs(4);
  std::vector<Value> args;
  for (const Tensor& each : in) args.emplace_back(each);
  EXPECT_TRUE(library::opcheck("ext_lstm::cell", args, {}, {.gradcheck = true}).ok());
}

TEST(Extensions, boxes) {
  Tensor boxes = tensor({0.0, 0.0, 2.0, 2.0, 0.1, 0.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0}).view({3, 4});
  Tensor scores = tensor({0.5, 0.9, 0.1});
  Tensor kept = call_by_name("ext_boxes::nms", {Value(boxes), Value(scores), Value(0.5)})[0].tensor();
  EXPECT_EQ(values(kept), (std::vector<double>{1, 2}));
  EXPECT_THAT(error_of<ValueError>(
                  [&] { call_by_name("ext_boxes::nms", {Value(ones({2, 3})), Value(ones({2})), Value(0.5)}); }),
              HasSubstr("boxes should have 4 columns, got 3"));
  EXPECT_THAT(error_of<RuntimeError>([&] { call_by_name("ext_boxes::nms", {Value(boxes), Value(boxes), Value(0.5)}); }),
              HasSubstr("Expected 1-dimensional tensor, but got 2-dimensional tensor for argument #2 'scores'"));
  Tensor map = randn({2, 3, 4, 4}), rois = tensor({0.0, 0.0, 0.0, 4.0, 4.0, 1.0, 0.0, 0.0, 2.0, 2.0}).view({2, 5});
  std::vector<Value> args = {Value(map), Value(rois), Value(1), Value(1)};
  Tensor means = call_by_name("ext_boxes::box_average", args)[0].tensor();
  expect_close(means[0].view({3}), map[0].mean(Ints{1, 2}));
  EXPECT_TRUE(library::opcheck("ext_boxes::box_average", args).ok());
  auto f = compile([](Tensor a, Tensor b) {
    return call_by_name("ext_boxes::box_average", {Value(a * 1), Value(b), Value(2), Value(2)})[0].take_tensor();
  });
  expect_close(f(map, rois),
               call_by_name("ext_boxes::box_average", {Value(map), Value(rois), Value(2), Value(2)})[0].tensor());
}

TEST(Extensions, segments_and_neighbours) {
  Tensor src = tensor({1.0, 5.0, 3.0, 2.0, 4.0, 0.0}).view({3, 2}).set_requires_grad(), index = tensor({0, 2, 0});
  dispatch::Results results = call_by_name("ext_graph::segment_max", {Value(src), Value(index), Value(3)});
  EXPECT_EQ(values(results[0].tensor()), (std::vector<double>{4, 5, 0, 0, 3, 2}));
  EXPECT_EQ(values(results[1].tensor()), (std::vector<double>{2, 0, 3, 3, 1, 1}));
  results[0].tensor().sum().backward();
  EXPECT_EQ(values(src.grad()), (std::vector<double>{0, 1, 1, 1, 1, 0}));
  EXPECT_TRUE(library::opcheck("ext_graph::segment_max", {src, Value(index), Value(3)}).ok());
  EXPECT_THAT(
      error_of<IndexError>([&] { call_by_name("ext_graph::segment_max", {Value(src), Value(index), Value(1)}); }),
      HasSubstr("segment 2 of 1"));
  Tensor points = tensor({0.0, 0.0, 1.0, 1.0, 5.0, 5.0}).view({3, 2}), queries = tensor({0.9, 0.9}).view({1, 2});
  std::vector<Value> args = {Value(points), Value(queries), Value(2)};
  EXPECT_EQ(values(call_by_name("ext_graph::nearest", args)[0].tensor()), (std::vector<double>{1, 0}));
  EXPECT_TRUE(library::opcheck("ext_graph::nearest", args).ok());
}

TEST(Extensions, sampling) {
  Tensor line = leaf({5}), places = tensor({0.5, 3.25, 2.6}).set_requires_grad();
  auto sample = [](const Tensor& a, const Tensor& b) {
    return call_by_name("ext_sampling::sample", {Value(a), Value(b)})[0].take_tensor();
  };
  std::vector<double> x = values(line);
  std::vector<double> got = values(sample(line, places));
  EXPECT_NEAR(got[0], (x[0] + x[1]) / 2, 1e-6);
  EXPECT_NEAR(got[1], x[3] * 0.75 + x[4] * 0.25, 1e-6);
  EXPECT_TRUE(library::opcheck("ext_sampling::sample", {line, places}, {}, {.gradcheck = true}).ok());
  auto f = compile([sample](Tensor a, Tensor b) { return sample(a * 2, b).sum(); },
                   {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t size : {5, 7}) {
    Tensor a = leaf({size}), b = a.detach().clone().set_requires_grad();
    f(a, places.detach()).backward();
    sample(b * 2, places.detach()).sum().backward();
    expect_close(a.grad(), b.grad());
  }
}

TEST(Extensions, an_optimizers_step) {
  Tensor weight = ones({3}), buffer = ones({3}), grad = full({3}, 2.0);
  int64_t version = weight.version();
  std::vector<Value> args = {Value(weight), Value(buffer), Value(grad), Value(0.1), Value(0.5)};
  call_by_name("ext_sampling::momentum_step", args);
  EXPECT_EQ(values(buffer), std::vector<double>(3, 2.5));
  expect_close(weight, full({3}, 0.75));
  EXPECT_GT(weight.version(), version);
  EXPECT_TRUE(library::opcheck("ext_sampling::momentum_step", args).ok());
  auto step = compile([](Tensor w, Tensor b, Tensor g) {
    call_by_name("ext_sampling::momentum_step", {Value(w), Value(b), Value(g), Value(0.1), Value(0.5)});
  });
  step(weight, buffer, grad);
  EXPECT_EQ(values(buffer), std::vector<double>(3, 3.25));
}

// Kernels with libtorch's types: references that are written, lists, numbers, what may be missing.
TEST(Extensions, types_of_kernels) {
  Tensor x = ones({2}), y = ones({3});
  std::vector<Tensor> list = {x, y};
  const int64_t dims[] = {0, 1, 2};
  dispatch::Results both =
      call_by_name("tenon_probes::both", {Value(list), Value(std::span<const int64_t>(dims)), Value(), Value("mode")});
  EXPECT_EQ(values(both[0].tensor()), values(x));
  EXPECT_EQ(both[1].integer(), 3);
  dispatch::Results changed = call_by_name("tenon_probes::change", {Value(x), Value(3)});
  EXPECT_EQ(values(x), (std::vector<double>{3, 3}));
  EXPECT_TRUE(changed[0].tensor().is(x));
  EXPECT_EQ(dispatch::find_operator("tenon_probes::keep").schema().str(), "tenon_probes::keep(Tensor arg0) -> Tensor");
  EXPECT_TRUE(dispatch::has_tag(dispatch::find_operator("tenon_probes::keep2"), dispatch::Tag::pt2_compliant_tag));
  EXPECT_EQ(values(call_by_name("tenon_probes::more", {Value(x)})[0].tensor()), values(x));
}

}  // namespace
}  // namespace tenon
