// The programs of docs/custom_operators.md, compiled and run. The last test compares the two texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include <tenon/library/custom_op.h>
#include <tenon/opcheck/suite.h>
#include <tenon/tenon.h>

using namespace tenon;
using autograd::AutogradContext;
using library::Inputs;
using library::Outputs;

namespace {

Tensor cube_kernel(const Tensor& x) {
  Tensor from = x.contiguous(), to = empty_like(from);
  for (int64_t i = 0; i < from.numel().plain(); ++i) {
    float v = from.data<float>()[i];
    to.data<float>()[i] = v * v * v;
  }
  return to;
}

auto make_cube() {
  auto cube = custom_op("tutorial::cube", cube_kernel, {.names = "x"});
  cube.register_fake([](const Tensor& x) { return empty_like(x.contiguous()); });
  cube.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) {
        Tensor x = ctx.saved_tensors()[0];
        return grad * x * x * 3;
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.save_for_backward({inputs["x"].tensor()}); });
  return cube;
}

TEST(Tutorial, one_function) {
  auto cube = make_cube();
  Tensor x = tensor({1.f, 2.f}).set_requires_grad();
  Tensor y = cube(x).sum();
  y.backward();
  EXPECT_EQ(y.item<double>(), 9);
  EXPECT_EQ(x.grad().sum().item<double>(), 3 + 12);
}

TEST(Tutorial, checked) {
  auto cube = make_cube();
  library::opcheck(cube, {randn({3}).set_requires_grad()});  // an OpCheckError says what is wrong
  library::opcheck(cube);                                    // with arguments made from the schema
}

class MySuite : public testing::Test {};
TEST_F(MySuite, small) { make_cube()(ones({2})); }
TEST_F(MySuite, odd) { EXPECT_THROW(make_cube()(tensor({1, 2})), Error); }

OPCHECK_DONT_GENERATE(MySuite, odd, "calls it with arguments that it refuses")
OPCHECK_SUITE(MySuite, "tutorial")

TEST(Tutorial, compiled) {
  auto cube = make_cube();
  auto f = compile([&](Tensor x) { return (cube(x + 1) * 2).sum(); }, {.fullgraph = true});
  EXPECT_EQ(f(tensor({0.f, 1.f})).item<double>(), 2 * (1 + 8));
}

TEST(Tutorial, mutation) {
  auto scale_ = custom_op("tutorial::scale_",
                          [](const Tensor& x, double by) {
                            for (int64_t i = 0; i < x.numel().plain(); ++i)
                              x.data<float>()[i] *= static_cast<float>(by);
                          },
                          {.mutates = {"x"}, .names = "x, by=2.0"});
  Tensor x = ones({3});
  scale_(x);
  scale_(x, 5);
  EXPECT_EQ(x.sum().item<double>(), 30);
}

}  // namespace

TENON_LIBRARY(tutorial_low, m) {
  m.def("affine(Tensor x, *, float scale=1.0, float shift=0.0) -> Tensor");
  m.def("twice", [](const Tensor& x) { return x + x; });
}

TENON_LIBRARY_IMPL(tutorial_low, CPU, m) {
  m.impl("affine", [](const Tensor& x, double scale, double shift) { return x * scale + shift; });
}

namespace {

TEST(Tutorial, libraries) {
  Tensor x = ones({2});
  Tensor y = dispatch::call_by_name("tutorial_low::affine", {x}, {{"shift", 3.0}})[0].tensor();
  EXPECT_EQ(y.sum().item<double>(), 8);
  EXPECT_THAT(dispatch::dispatch_table(dispatch::find_operator("tutorial_low::affine")),
              ::testing::HasSubstr("its own kernel"));
}

TEST(Tutorial, keeping_arguments) {
  dispatch::Library lib("tutorial_keep");
  lib.def("keep(Tensor x) -> ()");
  std::vector<dispatch::Value> kept;
  lib.impl("keep", [&](dispatch::Call& call) { kept.push_back(call.args[0].own()); }, "CPU");
  dispatch::call_by_name("tutorial_keep::keep", {ones({2})});
  EXPECT_EQ(kept[0].tensor().sum().item<double>(), 2);
}

struct Cube : autograd::Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    Tensor x = ctx->saved_tensors()[0];
    return {grads[0] * x * x * 3};
  }
};

TEST(Tutorial, function) {
  Tensor x = tensor({2.f}).set_requires_grad();
  Cube::apply(x).sum().backward();
  EXPECT_EQ(x.grad().item<double>(), 12);
  auto f = compile([](Tensor t) { return Cube::apply(t).sum(); }, {.fullgraph = true});
  Tensor again = tensor({2.f}).set_requires_grad();
  f(again).backward();
  EXPECT_EQ(again.grad().item<double>(), 12);
}

// The formatter breaks lines in the test where the page need not.
std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char letter) { return std::isspace(letter) != 0; });
  return text;
}

std::string read(const char* path) {
  std::ifstream file(std::string(TENON_SOURCE_DIR) + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Tutorial, shows_what_is_tested) {
  std::string document = read("/docs/custom_operators.md");
  std::string source = without_spaces(read("/tests/unit/library/tutorial_test.cpp"));
  size_t blocks = 0;
  for (size_t at = document.find("```cpp\n"); at != std::string::npos; at = document.find("```cpp\n", at)) {
    at += 7;
    size_t end = document.find("```", at);
    std::string block = without_spaces(document.substr(at, end - at));
    EXPECT_NE(source.find(block), std::string::npos) << "not in the test:\n" << block;
    at = end + 3;
    ++blocks;
  }
  EXPECT_GE(blocks, 6u);
}

}  // namespace
