// Scattering row by row gives what scattering element by element gives, however the tensors lie.
#include "unit/capture/testing.h"

#include <tenon/support/parallel.h>

namespace tenon {
namespace {

using testing::same_bits;

// By the definition, with numbers small enough to be exact.
Tensor scattered(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, bool add) {
  Tensor out = self.to(kFloat64).clone(), from = src.to(kFloat64);
  const int64_t rows = index.size(0).plain(), columns = index.size(1).plain();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at = index.select(0, i).select(0, j).to(kInt64).item<int64_t>();
      Tensor place = dim == 0 ? out.select(0, at).select(0, j) : out.select(0, i).select(0, at);
      const double value = from.select(0, i).select(0, j).item<double>();
      place.fill_(add ? place.item<double>() + value : value);
    }
  return out.to(self.dtype());
}

struct Threads {
  explicit Threads(int count) : before(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
  int before;
};

TEST(ScatterRows, as_elements_one_by_one) {
  for (Dtype dtype : {kFloat32, kFloat64, kBFloat16, kInt32})
    for (Dtype index_dtype : {kInt64, kInt32})
      for (int64_t columns : {1, 15, 33})
        for (int threads : {1, 2, 3}) {
          Threads as_many(threads);
          SCOPED_TRACE(::testing::Message() << name(dtype) << " " << columns << " columns, " << threads << " threads");
          Tensor self = (arange(Scalar(5 * columns), TensorOptions(kFloat32)) % 7).view({5, columns}).to(dtype);
          Tensor src = (arange(Scalar(9 * columns), TensorOptions(kFloat32)) % 5).view({9, columns}).to(dtype);
          Tensor rows = (arange(Scalar(9), TensorOptions(kInt64)) * 3 % 5).to(index_dtype);
          Tensor expanded = rows.view({9, 1}).expand({9, columns});
          Tensor each = (arange(Scalar(9 * columns), TensorOptions(kInt64)) * 7 % 5).view({9, columns}).to(index_dtype);
          for (const Tensor& index : {expanded, each}) {
            EXPECT_TRUE(same_bits(scatter_add(self, 0, index, src), scattered(self, 0, index, src, true)));
            EXPECT_TRUE(same_bits(scatter(self, 0, index, src), scattered(self, 0, index, src, false)));
          }
          // The other dimension, of tensors that lie the other way round.
          Tensor turned = self.t(), turned_src = src.t();
          EXPECT_TRUE(same_bits(scatter_add(turned, 1, each.t(), turned_src),
                                scattered(turned, 1, each.t(), turned_src, true)));
          EXPECT_TRUE(same_bits(scatter_add(turned.contiguous(), 1, each.t(), turned_src.contiguous()),
                                scattered(turned, 1, each.t(), turned_src, true)));
        }
}

TEST(ScatterRows, rows_of_larger_tensors) {
  // The middle dimension of three is picked from, and the index is shorter than the source.
  Tensor self = zeros({4, 6, 20}), src = arange(Scalar(4 * 8 * 20), TensorOptions(kFloat32)).view({4, 8, 20});
  Tensor index = (arange(Scalar(7), TensorOptions(kInt64)) * 5 % 6).view({1, 7, 1}).expand({4, 7, 20});
  Tensor got = scatter_add(self, 1, index, src);
  for (int64_t plane = 0; plane < 4; ++plane)
    EXPECT_TRUE(same_bits(got.select(0, plane),
                          scattered(self.select(0, plane), 0, index.select(0, plane), src.select(0, plane), true)));
  Tensor rows = index.select(0, 0).select(1, 0), from = src.select(0, 0).slice(0, 0, 7);
  EXPECT_TRUE(same_bits(index_put(zeros({6, 20}), {rows}, from, true), got.select(0, 0)));
}

TEST(ScatterRows, an_index_outside_is_an_error) {
  Tensor index = tensor({0, 5}).view({2, 1}).expand({2, 40});
  std::string error = testing::error_of([&] { scatter_add(zeros({5, 40}), 0, index, ones({2, 40})); });
  EXPECT_NE(error.find("index 5 is out of range for dimension 0 of size 5"), std::string::npos) << error;
}

}  // namespace
}  // namespace tenon
