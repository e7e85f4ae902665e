// Which results of a compiled function have a gradient, and what it needs: as in eager.
#include "../capture/testing.h"

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using testing::same_bits;

using Pair = std::pair<Tensor, Tensor>;

TEST(Histories, a_value_that_only_an_undifferentiated_result_needs_may_be_changed) {
  // The square keeps the product for backward; a product is not computed again.
  auto f = compile([](Tensor x) {
    Tensor product = mm(x, x);
    return std::tuple(product, product * product, x * 3);
  });
  Tensor x = eye(2).set_requires_grad();
  auto [product, square, triple] = f(x);
  {
    autograd::NoGrad off;
    product.fill_(0);
  }
  triple.sum().backward({}, /*retain_graph=*/true);
  EXPECT_TRUE(same_bits(x.grad(), full({2, 2}, 3.0)));
  std::string error = error_of([&] { square.sum().backward(); });
  EXPECT_NE(error.find("modified by an inplace operation"), std::string::npos) << error;
}

TEST(Histories, backward_reads_what_a_tensor_held_then) {
  // Eager refuses: the result that sqrt kept is overwritten. A graph without mutation has it still.
  auto function = [](Tensor x) {
    Tensor root = sqrt(x);
    return root.mul_(root);
  };
  Tensor x = tensor({4.0, 9.0}).set_requires_grad();
  EXPECT_NE(error_of([&] { function(x).sum().backward(); }), "no error");
  auto f = compile(function);
  f(x).sum().backward();
  EXPECT_LT(difference(x.grad(), ones({2})), 1e-6);
}

TEST(Histories, an_input_that_is_written_to_keeps_its_strides_for_backward) {
  auto function = [](Tensor x) {
    Tensor cut = x.detach();
    cut.add_(x);
    return log(abs(cut));
  };
  auto run = [](auto&& f) {
    Tensor x = tensor({1.0, 2.0, 4.0, 8.0, 16.0, 32.0}).slice(0, 0, 6, 2).detach().set_requires_grad();
    f(x).sum().backward();
    return x.grad();
  };
  auto f = compile(function);
  EXPECT_LT(difference(run(f), run(function)), 1e-6);
}

TEST(Histories, writing_to_a_detached_input_gives_the_view_a_history) {
  auto function = [](Tensor x, Tensor y) {
    Tensor cut = x.detach();
    cut.mul_(y);
    return cut;
  };
  auto run = [](auto&& f) {
    Tensor x = tensor({2.0, 3.0}).set_requires_grad(), y = tensor({5.0, 7.0}).set_requires_grad();
    Tensor result = f(x, y);
    EXPECT_TRUE(result.requires_grad());
    EXPECT_TRUE(result.is_same_storage(x)) << "it is still a view";
    EXPECT_TRUE(x.is_leaf() && same_bits(x.detach(), tensor({10.0, 21.0})));
    result.sum().backward();
    EXPECT_FALSE(x.grad().defined());
    return y.grad();
  };
  auto f = compile(function);
  EXPECT_TRUE(same_bits(run(function), tensor({2.0, 3.0})));
  EXPECT_TRUE(same_bits(run(f), tensor({2.0, 3.0})));
}

TEST(Histories, so_does_writing_to_a_part_of_one) {
  auto function = [](Tensor x, Tensor y) {
    Tensor cut = x.detach(), part = cut.select(0, 1);
    part.add_(y);
    return Pair(cut, part);
  };
  auto run = [](auto&& f) {
    Tensor x = zeros({2, 2}).set_requires_grad(), y = tensor({5.0, 7.0}).set_requires_grad();
    auto [cut, part] = f(x, y);
    (cut.sum() + part.sum() * 10).backward();
    return y.grad();
  };
  auto f = compile(function);
  EXPECT_TRUE(same_bits(run(function), full({2}, 11.0)));
  EXPECT_TRUE(same_bits(run(f), full({2}, 11.0)));
}

}  // namespace
}  // namespace tenon
