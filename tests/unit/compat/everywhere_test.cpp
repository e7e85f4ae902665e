// The extensions beside this file, each in every way that an operator is used: eagerly against values computed here,
// compiled once for sizes that change, with backward walks captured, and by `opcheck`.
#include <tenon/compiled_autograd/enable.h>
#include <tenon/dispatch/registration.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/library/define.h>
#include <tenon/opcheck/opcheck.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "values_of.h"

namespace tenon {
namespace {

using dispatch::call_by_name;
using dispatch::Value;
using testing::values;

using Tensors = std::vector<Tensor>;
using Operation = std::function<Tensors(const Tensors&)>;

Tensor leaf(const Ints& sizes) { return randn(SymInts(sizes.span())).set_requires_grad(); }

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what, double within = 1e-5) {
  ASSERT_EQ(got.description(), expected.description()) << what;
  std::vector<double> a = values(got), b = values(expected);
  for (size_t at = 0; at < a.size(); ++at) EXPECT_NEAR(a[at], b[at], within) << what << " at " << at;
}

Tensors copies(const Tensors& list) {
  Tensors made;
  for (const Tensor& each : list) {
    made.push_back(each.detach().clone());
    if (each.requires_grad()) made.back().set_requires_grad();
  }
  return made;
}

Tensor loss_of(const Tensors& results) {
  Tensor loss = zeros({});
  for (const Tensor& each : results)
    if (each.requires_grad()) loss = loss + (each * each).sum();
  return loss;
}

void expect_same_gradients(const Tensors& got, const Tensors& expected, const std::string& what) {
  for (size_t at = 0; at < got.size(); ++at)
    if (expected[at].requires_grad()) expect_close(got[at].grad(), expected[at].grad(), what);
}

// `inputs(size)` are the arguments for one of several sizes.
void check_everywhere(const Operation& op, const std::function<Tensors(int64_t)>& inputs) {
  auto compiled = compile([&](Tensors in) { return op(in); },
                          {.fullgraph = true, .dynamic = Dynamic::On, .capture_dynamic_output_shape_ops = true});
  for (int64_t size : {6, 8, 11}) {
    Tensors eager = inputs(size), graph = copies(eager), walked = copies(eager);
    bool differentiable =
        std::any_of(eager.begin(), eager.end(), [](const Tensor& each) { return each.requires_grad(); });
    Tensors expected = op(eager), got = compiled(graph);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t at = 0; at < got.size(); ++at) expect_close(got[at].detach(), expected[at].detach(), "compiled");
    if (!differentiable) continue;
    loss_of(expected).backward();
    loss_of(got).backward();
    expect_same_gradients(graph, eager, "compiled");
    {
      compiled_autograd::Enable on;
      loss_of(op(walked)).backward();
    }
    expect_same_gradients(walked, eager, "walks captured");
    Tensors both = copies(eager);
    {
      compiled_autograd::Enable on;
      loss_of(compiled(both)).backward();
    }
    expect_same_gradients(both, eager, "compiled, walks captured");
  }
  EXPECT_EQ(compiled.compile_count(), 1);
}

Operation operation(std::string name, std::vector<Value> numbers = {}) {
  for (Value& each : numbers) each = each.own();
  return [=](const Tensors& in) {
    std::vector<Value> args(in.begin(), in.end());
    args.insert(args.end(), numbers.begin(), numbers.end());
    Tensors results;
    for (Value& each : call_by_name(name, args))
      if (each.is_tensor())
        results.push_back(each.take_tensor());
      else
        results.insert(results.end(), each.tensors().begin(), each.tensors().end());
    return results;
  };
}

void check_operator(const std::string& name, const Tensors& in, std::vector<Value> numbers = {},
                    bool gradients = true) {
  std::vector<Value> args(in.begin(), in.end());
  args.insert(args.end(), numbers.begin(), numbers.end());
  library::opcheck(name, args, {}, {.gradcheck = gradients});
}

TEST(ExtensionsEverywhere, elementwise) {
  auto inputs = [](int64_t size) { return Tensors{leaf({size, 3})}; };
  check_everywhere(operation("ext_elementwise::swish", {Value(1.5)}), inputs);
  check_operator("ext_elementwise::swish", inputs(4), {Value(1.5)});
}

TEST(ExtensionsEverywhere, lstm_cell) {
  auto inputs = [](int64_t batch) {
    return Tensors{leaf({batch, 3}), leaf({8, 5}), leaf({1, 8}), leaf({batch, 2}), leaf({batch, 2})};
  };
  check_everywhere(operation("ext_lstm::cell"), inputs);
  check_operator("ext_lstm::cell", inputs(4));
}

// Boxes of which each second one lies on the one before it.
Tensors some_boxes(int64_t count) {
  std::vector<double> corners, scores;
  for (int64_t at = 0; at < count; ++at) {
    double x = static_cast<double>(at / 2 * 10), moved = at % 2 == 0 ? 0 : 0.2;
    corners.insert(corners.end(), {x + moved, 0, x + 4, 4});
    scores.push_back(1.0 / static_cast<double>(at + 1));
  }
  return {tensor(corners, kFloat32).view({count, 4}), tensor(scores, kFloat32)};
}

TEST(ExtensionsEverywhere, nms) {
  // How many are kept, the data alone tells.
  library::register_fake("ext_boxes::nms", [](const Tensor&, const Tensor&, double) {
    return empty({fake::new_dynamic_size(0)}, TensorOptions(kInt64));
  });
  auto nms = operation("ext_boxes::nms", {Value(0.5)});
  EXPECT_EQ(values(nms(some_boxes(5))[0]), (std::vector<double>{0, 2, 4}));
  check_everywhere(nms, some_boxes);
  // The number that is kept goes on into other operators.
  auto kept = [nms](const Tensors& in) { return Tensors{in[0].index_select(0, nms(in)[0]) * 2}; };
  check_everywhere(kept, some_boxes);
  check_operator("ext_boxes::nms", some_boxes(4), {Value(0.5)}, false);
}

// The mean over 2 x 2 samples of each cell, of an image that is linear in both directions, is its value in the middle.
TEST(ExtensionsEverywhere, roi_align) {
  auto inputs = [](int64_t size) {
    return Tensors{
        leaf({2, 3, size, size + 2}),
        tensor({{0.0f, 0.5f, 0.25f, 3.0f, 2.5f}, {1.0f, 1.0f, 0.0f, 2.75f, 3.5f}, {0.0f, 0.0f, 0.0f, 9.0f, 9.0f}})};
  };
  std::vector<Value> numbers = {Value(0.75), Value(2), Value(3), Value(2)};
  auto align = operation("ext_roi::roi_align", numbers);
  Tensor rows = arange(8).to(kFloat32).view({1, 1, 8, 1}), columns = arange(8).to(kFloat32).view({1, 1, 1, 8});
  Tensor plane = (rows * 2 + columns * 3).contiguous();
  Tensor region = tensor({{0.0f, 0.0f, 0.0f, 8.0f, 8.0f}});  // 6 x 6 after the scale: cells of 3 x 2
  std::vector<double> expected;
  for (double y : {1.5, 4.5})
    for (double x : {1.0, 3.0, 5.0}) expected.push_back(2 * y + 3 * x);
  EXPECT_EQ(values(align({plane, region})[0]), expected);
  check_everywhere(align, inputs);
  check_operator("ext_roi::roi_align", inputs(4), numbers);
}

TEST(ExtensionsEverywhere, segment_max) {
  auto inputs = [](int64_t size) { return Tensors{leaf({size, 2}), arange(size).remainder(3)}; };
  check_everywhere(operation("ext_graph::segment_max", {Value(3)}), inputs);
  check_operator("ext_graph::segment_max", inputs(5), {Value(3)});
}

TEST(ExtensionsEverywhere, scatter_max) {
  auto inputs = [](int64_t size) {
    return Tensors{leaf({size, 3}), (arange(size * 3) * 7).remainder(4).view({size, 3})};
  };
  auto scatter = operation("ext_scatter::scatter_max", {Value(0), Value(5)});
  Tensor src = tensor({{1.0, -5.0}, {4.0, -3.0}, {2.0, -4.0}}), index = tensor({{0, 1}, {2, 1}, {0, 0}});
  Tensors both = operation("ext_scatter::scatter_max", {Value(0), Value(3)})({src, index});
  EXPECT_EQ(values(both[0]), (std::vector<double>{2, -4, 0, -3, 4, 0}));
  EXPECT_EQ(values(both[1]), (std::vector<double>{2, 2, 3, 1, 1, 3}));
  // Types whose lowest number the extension asks for.
  for (Dtype dtype : {kFloat16, kBFloat16, kInt32})
    EXPECT_EQ(values(operation("ext_scatter::scatter_max", {Value(0), Value(3)})({src.to(dtype), index})[0]),
              values(both[0]));
  check_everywhere(scatter, inputs);
  check_operator("ext_scatter::scatter_max", inputs(5), {Value(0), Value(5)});
}

TEST(ExtensionsEverywhere, nearest) {
  auto inputs = [](int64_t size) { return Tensors{randn({size, 2}), randn({size + 1, 2})}; };
  check_everywhere(operation("ext_graph::nearest", {Value(2)}), inputs);
  check_operator("ext_graph::nearest", inputs(5), {Value(2)}, false);
}

TEST(ExtensionsEverywhere, bilinear) {
  auto inputs = [](int64_t size) {
    Tensor points = (rand({size + 2, 2}) * (size - 1.5) + 0.1).detach().set_requires_grad();
    return Tensors{leaf({size, size, 19}), points};
  };
  auto sample = operation("ext_bilinear::sample");
  // Between four pixels, and beyond the last.
  Tensor image = tensor({{{1.0}, {2.0}}, {{3.0}, {8.0}}}).to(kFloat32);
  EXPECT_EQ(values(sample({image, tensor({{0.5f, 0.5f}, {0.0f, 0.25f}, {1.0f, 1.0f}})})[0]),
            (std::vector<double>{3.5, 1.25, 8}));
  check_everywhere(sample, inputs);
  check_operator("ext_bilinear::sample", inputs(4));
}

TEST(ExtensionsEverywhere, line) {
  auto inputs = [](int64_t size) { return Tensors{leaf({size}), (rand({size}) * (size - 2)).set_requires_grad()}; };
  check_everywhere(operation("ext_sampling::sample"), inputs);
  check_operator("ext_sampling::sample", inputs(5));
}

TEST(ExtensionsEverywhere, an_optimizers_step) {
  auto step = compile(
      [](Tensor w, Tensor b, Tensor g) {
        call_by_name("ext_sampling::momentum_step", {Value(w), Value(b), Value(g), Value(0.1), Value(0.5)});
        return w * 1;
      },
      {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t size : {6, 8, 11}) {
    Tensor weight = randn({size, 2}), buffer = randn({size, 2}), grad = randn({size, 2});
    Tensor moved = buffer * 0.5 + grad, stepped = weight - moved * 0.1;
    Tensor result = step(weight, buffer, grad);
    expect_close(weight, stepped, "weight", 1e-6);
    expect_close(buffer, moved, "buffer", 1e-6);
    expect_close(result, stepped, "result", 1e-6);
  }
  EXPECT_EQ(step.compile_count(), 1);
  check_operator("ext_sampling::momentum_step", {randn({3}), randn({3}), randn({3})}, {Value(0.1), Value(0.5)}, false);
}

}  // namespace
}  // namespace tenon
