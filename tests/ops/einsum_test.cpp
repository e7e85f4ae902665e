// einsum against loops over every index, for equations drawn at random; what it refuses; compiled and differentiated.
#include "error_of.h"

#include <tenon/autograd/gradcheck.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

// Every index runs over its size, as the definition says.
Tensor by_definition(const std::vector<std::string>& inputs, const std::string& output,
                     const std::vector<Tensor>& tensors, std::map<char, int64_t> sizes) {
  std::string letters;
  for (const auto& [letter, size] : sizes) letters += letter;
  SymInts shape;
  for (char letter : output) shape.push_back(sizes[letter]);
  Tensor result = zeros(shape, kFloat64);
  std::map<char, int64_t> at;
  for (char letter : letters) at[letter] = 0;
  auto offset = [&](const std::string& labels) {
    int64_t place = 0;
    for (char letter : labels) place = place * sizes[letter] + at[letter];
    return place;
  };
  for (;;) {
    double product = 1;
    for (size_t which = 0; which < tensors.size(); ++which)
      product *= tensors[which].contiguous().data<double>()[offset(inputs[which])];
    result.data<double>()[offset(output)] += product;
    size_t moved = 0;
    while (moved < letters.size() && ++at[letters[moved]] == sizes[letters[moved]]) at[letters[moved++]] = 0;
    if (moved == letters.size()) return result;
  }
}

TEST(Einsum, is_the_sum_of_products_that_it_says) {
  std::mt19937_64 random(20261116);
  auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  for (int round = 0; round < 120; ++round) {
    std::map<char, int64_t> sizes;
    std::vector<std::string> inputs;
    std::vector<Tensor> tensors;
    for (size_t operand = 1 + below(3); operand > 0; --operand) {
      std::string labels;
      SymInts shape;
      for (size_t rank = below(4); rank > 0; --rank) {
        char letter = "abcXYz"[below(6)];  // some come twice at one operand
        labels += letter;
        if (!sizes.contains(letter)) sizes[letter] = static_cast<int64_t>(1 + below(3));
        shape.push_back(sizes[letter]);
      }
      inputs.push_back(labels);
      tensors.push_back(randn(shape, kFloat64));
    }
    std::string output, equation;
    for (const auto& [letter, size] : sizes)
      if (below(2)) output.insert(output.begin() + static_cast<ptrdiff_t>(below(output.size() + 1)), letter);
    for (const std::string& labels : inputs)
      equation += (equation.empty() && &labels == &inputs[0] ? "" : ",") + labels;
    equation += " -> " + output;
    Tensor expected = by_definition(inputs, output, tensors, sizes);
    EXPECT_TRUE(einsum(equation, tensors).allclose(expected, 1e-12, 1e-12)) << equation;
  }
}

TEST(Einsum, an_ellipsis_stands_for_the_rest) {
  Tensor a = randn({2, 3, 4}), b = randn({3, 4}), c = randn({4});
  EXPECT_TRUE(einsum("i...,...->i", {a, b}).allclose((a * b).sum(Ints{1, 2})));  // what the result lacks is summed
  EXPECT_TRUE(einsum("...j,j", {a, c}).allclose(matmul(a, c)));
  EXPECT_TRUE(einsum("...,...", {a, c}).allclose(a * c));
  EXPECT_TRUE(einsum("ij,ij->ij", {randn({1, 4}) * 0 + 2, b}).allclose(b * 2));  // a size of 1 goes with any
  EXPECT_TRUE(einsum("ij,ij->", {ones({1, 4}), b}).allclose(b.sum()));
}

TEST(Einsum, what_it_refuses_is_named) {
  Tensor a = ones({2, 3});
  EXPECT_THAT(error_of([&] { einsum("ij,jk", {a}); }), HasSubstr("is for 2 operands, got 1"));
  EXPECT_THAT(error_of([&] { einsum("ijk", {a}); }), HasSubstr("operand 0 of 'ijk' has 3 subscripts"));
  EXPECT_THAT(error_of([&] { einsum("ij->ijk", {a}); }), HasSubstr("'k' of the result"));
  EXPECT_THAT(error_of([&] { einsum("ij->ii", {a}); }), HasSubstr("stands twice in the result"));
  EXPECT_THAT(error_of([&] { einsum("ij,ij", {a, ones({3, 2})}); }), HasSubstr("sizes 2 and 3"));
  EXPECT_THAT(error_of([&] { einsum("ii", {a}); }), HasSubstr("is repeated for sizes 2 and 3"));
  EXPECT_THAT(error_of([&] { einsum("i1", {a}); }), HasSubstr("expected letters"));
}

TEST(Einsum, compiled_and_differentiated) {
  auto attention = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    return einsum("bhqk,bkhd->bqhd", {einsum("bqhd,bkhd->bhqk", {q, k}).softmax(-1), v});
  };
  auto compiled = compile(attention);
  for (int64_t length : {3, 5, 8}) {
    Tensor q = randn({2, length, 2, 4}), k = randn({2, length + 1, 2, 4}), v = randn({2, length + 1, 2, 4});
    EXPECT_TRUE(compiled(q, k, v).allclose(attention(q, k, v), 1e-4, 1e-5));
  }
  EXPECT_LE(compiled.compile_count(), 2);
  std::vector<Tensor> leaves;
  for (int64_t length : {2, 3, 3}) leaves.push_back(randn({1, length, 2, 2}, kFloat64).set_requires_grad());
  EXPECT_TRUE(autograd::gradcheck(attention, leaves));
  EXPECT_TRUE(autograd::gradgradcheck(attention, leaves, {.fast_mode = true}));
}

}  // namespace
}  // namespace tenon
