// Norms of matrices. They have no C++ functions: to a literal like "fro" a number would be as good as a text.
#include "ops/linalg/matrices.h"

#include <algorithm>
#include <cmath>

namespace tenon::ops {
namespace {

// The two dimensions of a norm of matrices, wrapped.
std::pair<int64_t, int64_t> two_dims(const Tensor& self, const Ints& dim, const char* op_name) {
  TENON_CHECK(self.defined() && is_floating(self.dtype()), "[{}] expected floating point matrices, got {}", op_name,
              self.defined() ? self.description() : "an undefined tensor");
  TENON_CHECK(self.dim() >= 2 && dim.size() == 2, "[{}] expected matrices and two dimensions, got {} and [{}]", op_name,
              self.description(), fmt::join(dim, ", "));
  const int64_t a = wrap_dim(dim[0], self.dim(), op_name), b = wrap_dim(dim[1], self.dim(), op_name);
  TENON_CHECK(a != b, "[{}] expected two dimensions, got {} twice", op_name, a);
  return {a, b};
}

// Of the singular values: their sum (nuclear), the largest or the smallest.
enum class Spectral : uint8_t { Sum, Largest, Smallest };

Tensor spectral_norm(const Tensor& self, int64_t first, int64_t second, bool keepdim, Spectral kind) {
  Tensor values = linalg_svdvals(movedim(self, Ints{first, second}, Ints{-2, -1}));
  Tensor result = kind == Spectral::Sum       ? sum(values, -1)
                  : kind == Spectral::Largest ? amax(values, Ints{-1})
                                              : amin(values, Ints{-1});
  if (!keepdim) return result;
  return unsqueeze(unsqueeze(result, std::min(first, second)), std::max(first, second));
}

}  // namespace

Tensor matrix_norm(const Tensor& given, const Scalar& ord, const Ints& dim, bool keepdim, std::optional<Dtype> dtype) {
  const auto [first, second] = two_dims(given, dim, "linalg_matrix_norm");
  Tensor self = given.to(dtype.value_or(given.dtype()));
  const double order = ord.to_double(), size = std::fabs(order);
  TENON_CHECK(size == 1 || size == 2 || std::isinf(size),
              "[linalg_matrix_norm] order {} is not supported: expected 1, "
              "-1, 2, -2, inf or -inf",
              order);
  if (size == 2) return spectral_norm(self, first, second, keepdim, order > 0 ? Spectral::Largest : Spectral::Smallest);
  // Sums of columns for 1, of rows for inf.
  const int64_t along = size == 1 ? first : second, over = size == 1 ? second : first;
  Tensor sums = linalg_vector_norm(self, 1, OptionalInts(Ints{along}), true);
  Tensor result = order > 0 ? amax(sums, Ints{over}, true) : amin(sums, Ints{over}, true);
  return keepdim ? result : squeeze(squeeze(result, std::max(first, second)), std::min(first, second));
}

namespace {

Tensor named_norm(const Tensor& given, std::string_view ord, const Ints& dim, bool keepdim,
                  std::optional<Dtype> dtype) {
  const auto [first, second] = two_dims(given, dim, "linalg_matrix_norm");
  TENON_CHECK(ord == "fro" || ord == "nuc", "[linalg_matrix_norm] expected order 'fro' or 'nuc', got '{}'", ord);
  Tensor self = given.to(dtype.value_or(given.dtype()));
  if (ord == "fro") return linalg_vector_norm(self, 2, OptionalInts(Ints{first, second}), keepdim);
  return spectral_norm(self, first, second, keepdim, Spectral::Sum);
}

Tensor norm(const Tensor& self, const std::optional<Scalar>& ord, const OptionalInts& dim, bool keepdim,
            std::optional<Dtype> dtype) {
  TENON_CHECK(self.defined(), "[linalg_norm] expected a tensor, got an undefined one");
  if (!ord) return linalg_vector_norm(self, 2, dim, keepdim, dtype);
  const int64_t count = dim.has_value() ? static_cast<int64_t>(dim->size()) : self.dim();
  TENON_CHECK(count == 1 || count == 2, "[linalg_norm] expected one or two dimensions, got {} of {}", count,
              self.description());
  if (count == 1) return linalg_vector_norm(self, *ord, dim, keepdim, dtype);
  return matrix_norm(self, *ord, dim.has_value() ? *dim : Ints{0, 1}, keepdim, dtype);
}

}  // namespace

OPS(matrix_norms) {
  op("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) "
     "-> Tensor")
      .decompose(matrix_norm);
  op("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? "
     "dtype=None) -> Tensor")
      .decompose(named_norm);
  op("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
     "Tensor")
      .decompose(norm);
  op("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
     "Tensor")
      .decompose([](const Tensor& self, std::string_view ord, const OptionalInts& dim, bool keepdim,
                    std::optional<Dtype> dtype) {
        TENON_CHECK(self.defined(), "[linalg_norm] expected a tensor, got an undefined one");
        return named_norm(self, ord, dim.has_value() ? *dim : Ints{-2, -1}, keepdim, dtype);
      });
}

}  // namespace tenon::ops
