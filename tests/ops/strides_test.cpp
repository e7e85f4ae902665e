// Strides of results for inputs that are not contiguous: those that PyTorch 2.13 gives.
#include <gtest/gtest.h>
#include <tenon/capture/compile.h>
#include <tenon/generated/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tenon::test {
namespace {

using Function = std::function<Tensor(const Tensor&)>;
using Indices = std::vector<std::optional<Tensor>>;

// All are [3, 4, 5].
struct Layout {
  const char* name;
  Tensor input;
};
std::vector<Layout> layouts() {
  return {{"permuted", randn({4, 5, 3}).permute({2, 0, 1})},
          {"transposed", randn({3, 5, 4}).transpose(1, 2)},
          {"sliced", randn({3, 8, 5}).slice(1, {}, {}, 2)},
          {"expanded", randn({1, 4, 5}).expand({3, 4, 5})}};
}

struct Row {
  const char* name;
  Function function;
  std::array<Ints, 4> expected;  // in the order of the layouts
};

std::array<Ints, 4> always(const Ints& strides) { return {strides, strides, strides, strides}; }
// The order of the input's dimensions in memory, without gaps.
std::array<Ints, 4> kept() { return {Ints{1, 15, 3}, Ints{20, 1, 4}, Ints{20, 5, 1}, Ints{20, 5, 1}}; }

Tensor zeros_like_input() { return zeros({3, 4, 5}); }
Tensor turned(Dtype dtype) { return zeros({5, 4, 3}, dtype).permute({2, 1, 0}); }
Tensor some_index() { return tensor({0, 2, 1}); }

std::vector<Row> rows() {
  const Ints plain = {20, 5, 1};
  return {
      {"softmax", [](const Tensor& x) { return softmax(x, 1); }, always(plain)},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }, always(plain)},
      {"sub", [](const Tensor& x) { return x - turned(kFloat32); }, {kept()[0], kept()[1], plain, {1, 15, 3}}},
      {"sub of another dtype", [](const Tensor& x) { return x - turned(kFloat64); }, kept()},
      {"lt of another dtype", [](const Tensor& x) { return x < turned(kFloat64); }, kept()},
      {"where, by a condition that is not converted",
       [](const Tensor& x) {
         Tensor condition = zeros({1, 4, 5}, kBool).expand({3, 4, 5});
         return where(condition, turned(kFloat32), x.to(kFloat64));
       },
       always({1, 15, 3})},
      {"flip", [](const Tensor& x) { return flip(x, {0, 2}); }, kept()},
      {"roll", [](const Tensor& x) { return roll(x, {1}, {1}); }, always(plain)},
      {"index_select", [](const Tensor& x) { return index_select(x, 1, some_index()); }, always({15, 5, 1})},
      {"index_put", [](const Tensor& x) { return index_put(x, Indices{some_index()}, zeros({})); }, kept()},
      {"index_add", [](const Tensor& x) { return index_add(x, 0, some_index(), zeros_like_input()); }, always(plain)},
      {"gather", [](const Tensor& x) { return gather(x, 1, zeros({3, 2, 5}, kInt64)); }, always({10, 5, 1})},
      {"scatter", [](const Tensor& x) { return scatter(x, 1, zeros({3, 2, 5}, kInt64), zeros({3, 2, 5})); },
       always(plain)},
      {"scatter_add", [](const Tensor& x) { return scatter_add(x, 1, zeros({3, 2, 5}, kInt64), zeros({3, 2, 5})); },
       always(plain)},
      {"sort", [](const Tensor& x) { return std::get<0>(sort(x, 1)); }, kept()},
      {"sort's indices", [](const Tensor& x) { return std::get<1>(sort(x, 1)); }, kept()},
      {"argsort", [](const Tensor& x) { return argsort(x, -1); }, kept()},
      {"topk", [](const Tensor& x) { return std::get<0>(topk(x, 2, 1)); }, always({10, 5, 1})},
      {"pad", [](const Tensor& x) { return pad(x, {1, 1}); }, always({28, 7, 1})},
      {"pad by nothing", [](const Tensor& x) { return pad(x, {0, 0}); }, kept()},
      {"cumsum", [](const Tensor& x) { return cumsum(x, 1); }, always(plain)},
      {"tril", [](const Tensor& x) { return tril(x); }, always(plain)},
      {"where", [](const Tensor& x) { return where(x > 0, x, zeros({})); }, kept()},
      {"cat", [](const Tensor& x) { return cat({x, x}, 1); }, always({40, 5, 1})},
      {"stack", [](const Tensor& x) { return stack({x, x}, 1); }, always({40, 20, 5, 1})},
      {"repeat", [](const Tensor& x) { return x.repeat({1, 2, 1}); }, always({40, 5, 1})},
      {"max over a dimension", [](const Tensor& x) { return std::get<0>(x.max(1)); }, always({5, 1})},
      {"sum", [](const Tensor& x) { return x.sum(1); }, always({5, 1})},
      {"mean", [](const Tensor& x) { return x.mean(0); }, always({5, 1})},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x, 1); }, always({5, 1})},
      {"var", [](const Tensor& x) { return x.var(1); }, always({5, 1})},
      {"argmax", [](const Tensor& x) { return x.argmax(1); }, always({5, 1})},
      {"sin", [](const Tensor& x) { return x.sin(); }, kept()},
      {"add", [](const Tensor& x) { return x + zeros_like_input(); }, kept()},
      {"add the other way round", [](const Tensor& x) { return zeros_like_input() + x; }, always(plain)},
      {"clamp", [](const Tensor& x) { return x.clamp(0, 1); }, kept()},
      {"lerp", [](const Tensor& x) { return lerp(x, zeros_like_input(), 0.5); }, kept()},
      {"zeros_like", [](const Tensor& x) { return zeros_like(x); }, kept()},
      {"rand_like", [](const Tensor& x) { return rand_like(x); }, kept()},
      {"clone", [](const Tensor& x) { return x.clone(); }, kept()},
      {"to", [](const Tensor& x) { return x.to(kFloat64); }, kept()},
      {"repeat_interleave", [](const Tensor& x) { return x.repeat_interleave(2, 1); }, always({40, 5, 1})},
      {"softplus", [](const Tensor& x) { return softplus(x); }, kept()},
      {"mse_loss", [](const Tensor& x) { return mse_loss(x, zeros_like_input(), 0); }, kept()},
      {"l1_loss", [](const Tensor& x) { return l1_loss(x, zeros_like_input(), 0); }, kept()},
      {"dropout", [](const Tensor& x) { return dropout(x, 0.5, true); }, kept()},
      {"prelu", [](const Tensor& x) { return prelu(x, ones({1})); }, kept()},
      {"gelu", [](const Tensor& x) { return gelu(x); }, kept()},
      {"glu",
       [](const Tensor& x) { return glu(x.slice(2, 0, 4), -1); },
       {Ints{1, 6, 3}, Ints{8, 1, 4}, Ints{8, 2, 1}, Ints{8, 2, 1}}},
  };
}

TEST(Strides, AreThoseOfPyTorch) {
  for (const Row& row : rows()) {
    std::vector<Layout> all = layouts();
    for (size_t at = 0; at < all.size(); ++at) {
      SCOPED_TRACE(fmt::format("{} of a tensor that is {}", row.name, all[at].name));
      Tensor eager = row.function(all[at].input);
      EXPECT_EQ(fmt::format("{}", eager.strides()), fmt::format("{}", row.expected[at])) << "eager";
      Tensor compiled = compile(row.function)(all[at].input);
      EXPECT_EQ(fmt::format("{}", compiled.strides()), fmt::format("{}", row.expected[at])) << "compiled";
    }
  }
}

}  // namespace
}  // namespace tenon::test
