// Inputs with symbolic sizes: what the guards let through must be what the fakes say.
#include <tenon/graph/symbolic_inputs.h>
#include <tenon/tenon.h>

#include <fmt/format.h>

#include <gtest/gtest.h>

#include <random>

namespace tenon {
namespace {

Tensor laid_out(const Ints& sizes, const Ints& strides) {
  SymInts sym_sizes, sym_strides;
  for (int64_t size : sizes) sym_sizes.push_back(size);
  for (int64_t stride : strides) sym_strides.push_back(stride);
  static const Tensor memory = zeros({4096});
  return core::make_view(memory, sym_sizes, sym_strides, 0);
}

// Small numbers, so that sizes and strides are often equal by accident.
Tensor random_layout(std::mt19937& random, size_t rank) {
  auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); };
  Ints sizes, strides;
  for (size_t dim = 0; dim < rank; ++dim) sizes.push_back(below(4));
  bool dense = below(2) == 0;
  strides.resize(rank);
  int64_t step = 1 + below(2);
  for (size_t dim = rank; dim-- > 0;) {
    strides[dim] = dense ? step : below(6);
    step *= std::max<int64_t>(1, sizes[dim]);
  }
  return laid_out(sizes, strides);
}

int64_t value_of(const SymInt& number, std::span<const int64_t> symbols) {
  return number.is_symbolic() ? sym::evaluate(number.expr(), symbols) : number.plain();
}

TEST(SymbolicInputs, guards_let_through_what_the_fakes_say) {
  std::mt19937 random(7);
  int passed = 0;
  for (int round = 0; round < 20000; ++round) {
    size_t rank = 1 + random() % 3;
    std::vector<Tensor> built = {random_layout(random, rank), random_layout(random, rank)};
    std::vector<Tensor> others = {random_layout(random, rank), random_layout(random, rank)};
    graph::SymbolicInputs inputs(make_ref<sym::ShapeEnv>());
    bool dynamic[] = {true, true, true};
    std::vector<Tensor> fakes;
    for (const Tensor& each : built) fakes.push_back(inputs.add(each, {dynamic, rank}, "x"));
    graph::SizeGuards guards = inputs.finish();
    for (bool same : {true, false}) {
      const std::vector<Tensor>& given = same ? built : others;
      SmallVector<int64_t, 16> symbols;
      bool fits = guards.check(given, {}, symbols);
      EXPECT_EQ(fits, guards.failures(given, {}).empty());
      EXPECT_TRUE(fits || !same);
      if (!fits) continue;
      ++passed;
      for (size_t at = 0; at < given.size(); ++at)
        for (size_t dim = 0; dim < rank; ++dim) {
          int64_t size = given[at].sizes()[dim];
          EXPECT_EQ(value_of(fakes[at].sym_sizes()[dim], symbols.span()), size);
          if (size == 1) continue;
          EXPECT_EQ(value_of(fakes[at].sym_strides()[dim], symbols.span()), given[at].strides()[dim])
              << "built for strides [" << fmt::format("{}", fmt::join(built[at].strides(), ", ")) << "] of sizes ["
              << fmt::format("{}", fmt::join(built[at].sizes(), ", ")) << "], given ["
              << fmt::format("{}", fmt::join(given[at].strides(), ", ")) << "]";
          if (HasFailure()) return;
        }
    }
  }
  EXPECT_GT(passed, 20200) << "too few accidents to tell anything";
}

TEST(SymbolicInputs, a_layout_is_followed_on_other_sizes) {
  auto fakes_of = [](const Tensor& x, const Tensor& y, graph::InputLayout(&layouts)[2]) {
    graph::SymbolicInputs inputs(make_ref<sym::ShapeEnv>());
    graph::DimPolicy dynamic;
    dynamic.kind = graph::DimPolicy::Kind::Dynamic;
    std::vector<graph::DimPolicy> dims(2, dynamic);
    Tensor a = inputs.add(x, dims, "x", &layouts[0]), b = inputs.add(y, dims, "y", &layouts[1]);
    return str(a.sym_sizes()) + str(a.sym_strides()) + str(b.sym_sizes()) + str(b.sym_strides());
  };
  graph::InputLayout layouts[2], fresh[2];
  std::string first = fakes_of(zeros({3, 5}), zeros({7, 4}), layouts);
  EXPECT_EQ(fakes_of(zeros({6, 6}), zeros({6, 6}), layouts), first) << "equal by accident";
  EXPECT_NE(fakes_of(zeros({6, 6}), zeros({6, 6}), fresh), first)
      << "seen for the first time, equal sizes share a symbol";
}

}  // namespace
}  // namespace tenon
