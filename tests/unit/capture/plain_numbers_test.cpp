// Plain numbers of sizes, strides and offsets in a captured function: each pins what it reads, at that line.
#include "backends.h"
#include "testing.h"

#include <gmock/gmock.h>

#include <source_location>

namespace tenon {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::kBackends;
using testing::same_bits;

std::string line(uint32_t number) { return "plain_numbers_test.cpp:" + std::to_string(number); }

// What reads a number of a tensor of two dimensions, and the line where it does.
struct Reader {
  const char* name;
  uint32_t at;
  double (*read)(const Tensor& x);
};

#define READER(name, ...)                                          \
  Reader {                                                         \
    #name, __LINE__, [](const Tensor& x) -> double { __VA_ARGS__ } \
  }

const Reader kReaders[] = {
    READER(implicit, int64_t rows = x.size(0); return static_cast<double>(rows);),
    READER(cast, return static_cast<double>(int64_t(x.size(0)));),
    READER(sizes, return static_cast<double>(x.sizes()[0]);),
    READER(all_sizes, double sum = 0; for (int64_t size : x.sizes()) sum = sum * 10 + static_cast<double>(size);
           return sum;),
    READER(strides, return static_cast<double>(x.t().contiguous().strides()[0]);),
    READER(offset, return static_cast<double>(x.select(0, x.size(0) - 1).storage_offset());),
    READER(numel, return static_cast<double>(x.numel().plain());),
    READER(loop, double sum = 0; for (int64_t i = 0; i < int64_t(x.size(0)); ++i) sum += 1; return sum;),
};

TEST(PlainNumbers, pin_what_they_read_on_every_backend) {
  for (const Reader& reader : kReaders)
    for (const char* backend : kBackends) {
      auto body = [&reader](Tensor x) { return x * reader.read(x) + 1; };
      auto f = compile(body, {.backend = backend});
      int64_t compiled = 0;
      std::set<int64_t> seen;
      for (int64_t rows : {3, 5, 3, 7, 5, 2, 7}) {
        Tensor x = randn({rows, 4});
        EXPECT_TRUE(same_bits(f(x), body(x))) << reader.name << " on " << backend << " with " << rows << " rows";
        if (seen.insert(rows).second) ++compiled;
        EXPECT_LE(f.compile_count(), compiled) << reader.name << " on " << backend << " with " << rows << " rows";
      }
      // At the first call sizes are fixed anyway. The later ones say who fixed them.
      std::string told = f.explain().str();
      EXPECT_THAT(told, HasSubstr("a plain number taken at " + line(reader.at))) << reader.name << " on " << backend;
    }
}

TEST(PlainNumbers, the_reason_to_compile_again_names_the_line) {
  uint32_t at = std::source_location::current().line() + 2;
  auto f = compile([](Tensor x) {
    int64_t rows = x.size(0);
    return x + static_cast<double>(rows);
  });
  for (int64_t rows : {3, 5, 7}) f(ones({rows}));
  ASSERT_EQ(f.compile_count(), 3);
  EXPECT_THAT(f.explain().str(), HasSubstr("a plain number taken at " + line(at)));
}

TEST(PlainNumbers, only_what_is_read_is_pinned) {
  auto f = compile([](Tensor x) { return x * static_cast<double>(x.sizes()[0]) + x.size(1); });
  auto g = compile([](Tensor x) { return x * static_cast<double>(int64_t(x.size(0))); });
  for (int64_t columns : {4, 6, 8, 10}) {
    Tensor x = randn({3, columns});
    EXPECT_TRUE(same_bits(f(x), x * 3.0 + columns)) << columns;
    EXPECT_TRUE(same_bits(g(x), x * 3.0)) << columns;
  }
  EXPECT_EQ(g.compile_count(), 2) << "the first, and one for any number of columns";
}

// A size that depends on data: the function is cut where it is asked, or cannot be one graph.
TEST(PlainNumbers, a_size_from_data_ends_the_segment) {
  auto body = [](Tensor x) {
    Tensor found = x.nonzero().squeeze(1);
    int64_t count = found.size(0);
    return x * static_cast<double>(count) + static_cast<double>(found.sizes()[0]);
  };
  for (const char* backend : kBackends) {
    auto f = compile(body, {.backend = backend});
    for (int repeat = 0; repeat < 2; ++repeat)
      for (const Tensor& x : {tensor({1., 0., 2., 3.}), tensor({0., 0., 2., 0.}), tensor({0., 0., 0., 0.})})
        EXPECT_TRUE(same_bits(f(x), body(x))) << backend;
    auto whole = compile(body, {.fullgraph = true, .backend = backend, .capture_dynamic_output_shape_ops = true});
    EXPECT_THAT(error_of<DataDependentError>([&] { whole(tensor({1., 0., 2.})); }),
                HasSubstr("expected a number that is known at capture"));
  }
}

// So does how many pieces there are. Of no elements there are as many as were asked for (83003598 of the fuzzer).
TEST(PlainNumbers, pieces_of_a_size_from_data_are_counted) {
  auto chunks = [](Tensor x) {
    std::vector<Tensor> pieces = x.nonzero().squeeze(1).chunk(2);
    return pieces.back() * 10 + static_cast<int64_t>(pieces.size());
  };
  auto parts = [](Tensor x) {
    std::vector<Tensor> pieces = x.nonzero().squeeze(1).split(SymInt(2));
    return pieces.back() * 10 + static_cast<int64_t>(pieces.size());
  };
  for (const char* backend : kBackends)
    for (Tensor (*body)(Tensor) : {+chunks, +parts}) {
      auto f = compile(body, {.backend = backend});
      for (int repeat = 0; repeat < 2; ++repeat)
        for (const Tensor& x : {tensor({1., 0., 2., 3.}), tensor({0., 0., 2., 0.}), tensor({0., 0., 0., 0.}),
                                tensor({1., 0., 2., 0.}), tensor({1., 2., 3., 4., 5., 6.})})
          EXPECT_TRUE(same_bits(f(x), body(x))) << backend << " " << x;
    }
}

TEST(PlainNumbers, a_fixed_size_contradicts_a_mark) {
  auto f = compile([](Tensor x) { return x * static_cast<double>(x.sizes()[0]); });
  Tensor x = randn({6, 2});
  mark_dynamic(x, 0);
  EXPECT_THAT(error_of([&] { f(x); }), HasSubstr("was marked dynamic, but the function fixes it to 6"));
}

}  // namespace
}  // namespace tenon
