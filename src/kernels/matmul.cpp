#include <tenon/kernels/matmul.h>
#include <tenon/support/counters.h>
#include <tenon/support/parallel.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/matmul_primitive.h"
#include "support/out_of_memory.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

// A batch of matrices in memory.
struct Matrices {
  void* data = nullptr;
  int64_t batch = 1, rows = 0, columns = 0;
  int64_t batch_stride = 0, row_stride = 0, column_stride = 0;
  TensorBase owner;  // of a copy

  explicit Matrices(const TensorBase& tensor) : data(tensor.raw_data()) {
    std::span<const int64_t> sizes = tensor.sizes(), strides = tensor.strides();
    size_t rank = sizes.size();
    if (rank == 3) {
      batch = sizes[0];
      batch_stride = strides[0];
    }
    rows = sizes[rank - 2];
    columns = sizes[rank - 1];
    row_stride = strides[rank - 2];
    column_stride = strides[rank - 1];
    normalise();
  }

  // Strides that nobody walks are made those of a dense matrix.
  void normalise() {
    if (columns == 1 && row_stride != 1) column_stride = 1;
    if (rows == 1 && column_stride == 1) row_stride = columns;
    if (rows == 1 && column_stride != 1) row_stride = 1;
    if (columns == 1 && row_stride == 1) column_stride = std::max<int64_t>(rows, 1);
    if (batch == 1) batch_stride = 0;
  }
  bool row_major() const { return column_stride == 1 && row_stride >= std::max<int64_t>(columns, 1); }
  bool column_major() const { return row_stride == 1 && column_stride >= std::max<int64_t>(rows, 1); }
  bool direct() const { return row_major() || column_major(); }

  Matrices transposed() const {
    Matrices other = *this;
    std::swap(other.rows, other.columns);
    std::swap(other.row_stride, other.column_stride);
    return other;
  }
};

template <typename T>
void copy_matrices(const Matrices& from, const Matrices& to) {
  parallel_for(to.batch * to.rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(to.columns, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) {
                   int64_t each = line / to.rows, row = line % to.rows;
                   const T* source =
                       static_cast<const T*>(from.data) + each * from.batch_stride + row * from.row_stride;
                   T* target = static_cast<T*>(to.data) + each * to.batch_stride + row * to.row_stride;
                   for (int64_t column = 0; column < to.columns; ++column)
                     target[column * to.column_stride] = source[column * from.column_stride];
                 }
               });
}

// Float32 as integers: a copy must not change the payload of a NaN.
void copy(const Matrices& from, const Matrices& to, Dtype dtype) {
  if (size_of(dtype) == 4)
    copy_matrices<uint32_t>(from, to);
  else
    copy_matrices<uint16_t>(from, to);
}

Matrices dense(const Matrices& like, Dtype dtype) {
  Ints sizes{like.batch, like.rows, like.columns};
  TensorBase memory = core::allocate_base(sizes, core::contiguous_strides(sizes.span()), dtype, kCPU);
  Matrices result(memory);
  result.owner = memory;
  return result;
}

Matrices dense_copy(const Matrices& from, Dtype dtype) {
  Matrices result = dense(from, dtype);
  copy(from, result, dtype);
  return result;
}

// The bias under the result's shape: dimensions of one element are repeated by a stride of 0.
Matrices broadcast_bias(const TensorBase& bias, const Matrices& out) {
  std::span<const int64_t> sizes = bias.sizes(), strides = bias.strides();
  const int64_t wanted[3] = {out.batch, out.rows, out.columns};
  int64_t found[3] = {0, 0, 0};
  TENON_ASSERT(sizes.size() <= 3, "a bias {} of a product", bias.description());
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    size_t at = 3 - sizes.size() + dim;
    TENON_ASSERT(sizes[dim] == 1 || sizes[dim] == wanted[at], "a bias {} for [{}]", bias.description(),
                 fmt::join(wanted, ", "));
    if (sizes[dim] != 1) found[at] = strides[dim];
  }
  Matrices result = out;
  result.data = bias.raw_data();
  result.batch_stride = found[0];
  result.row_stride = found[1];
  result.column_stride = found[2];
  return result;
}

// Along the dimension that lies dense, if one does. The loop is to be one of vectors: `change` without branches.
template <typename T, typename Change>
void each_element(const Matrices& out, Change change) {
  if (out.column_stride != 1 && out.row_stride == 1) return each_element<T>(out.transposed(), change);
  parallel_for(out.batch * out.rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(out.columns, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t line = begin; line < end; ++line) {
                   T* row = static_cast<T*>(out.data) + line / out.rows * out.batch_stride +
                            line % out.rows * out.row_stride;
                   if (out.column_stride == 1)
                     for (int64_t column = 0; column < out.columns; ++column) row[column] = change(row[column]);
                   else
                     for (int64_t column = 0; column < out.columns; ++column)
                       row[column * out.column_stride] = change(row[column * out.column_stride]);
                 }
               });
}

void scale(const Matrices& out, double factor, Dtype dtype) {
  auto by = static_cast<float>(factor);
  if (dtype == kFloat32)
    each_element<float>(out, [by](float x) { return x * by; });
  else
    each_element<BFloat16>(out, [by](BFloat16 x) { return to_bfloat16(to_float(x) * by); });
}

void zero(const Matrices& out, Dtype dtype) {
  if (size_of(dtype) == 4)
    each_element<uint32_t>(out, [](uint32_t) { return 0u; });
  else
    each_element<uint16_t>(out, [](uint16_t) { return uint16_t{0}; });
}

// Our own pass: oneDNN's ReLU turns NaNs into zeros.
void relu(const Matrices& out, Dtype dtype) {
  if (dtype == kFloat32)
    each_element<float>(out, [](float x) { return x <= 0 ? 0 : x; });
  else
    each_element<uint16_t>(out, [](uint16_t x) { return x >= 0x8000 && x <= 0xFF80 ? uint16_t{0} : x; });
}

MatmulOperand operand(const Matrices& m) {
  return {m.batch_stride == 0 ? 1 : m.batch, m.batch_stride, m.row_stride, m.column_stride};
}

// A product by oneDNN into a row-major `out`. False where oneDNN has but its slow reference for these layouts.
bool multiply(const Matrices& a, const Matrices& b, const Matrices& out, const void* row_bias, double alpha,
              double sum_scale, Dtype dtype) {
  // Multiplications and additions below which waking another thread costs more than it gives.
  constexpr int64_t kSharedWork = 1 << 19;
  support::ThreadLease lease(out.batch * out.rows * out.columns * a.columns < kSharedWork);
  MatmulKey key;
  key.dtype = dtype;
  key.threads = lease.threads();
  key.batch = out.batch;
  key.m = out.rows;
  key.k = a.columns;
  key.n = out.columns;
  key.a = operand(a);
  key.b = operand(b);
  key.out = operand(out);
  key.bias = row_bias != nullptr;
  key.alpha = static_cast<float>(alpha);
  key.sum_scale = static_cast<float>(sum_scale);
  // Packing pays where every element of `b` is read by many blocks of rows.
  key.pack_b = key.batch == 1 && key.m >= 256 && key.k * key.n >= 32768;
  MatmulPrimitive& primitive = matmul_primitive(key);
  if (primitive.is_reference()) return false;
  primitive.run(a.data, b.data, row_bias, out.data);
  return true;
}

// A contiguous row of as many elements as the result has columns, if that is what the bias is.
std::optional<TensorBase> row_of(const TensorBase& bias, const Matrices& out) {
  std::span<const int64_t> sizes = bias.sizes();
  if (sizes.empty() || sizes.back() != out.columns) return std::nullopt;
  for (size_t dim = 0; dim + 1 < sizes.size(); ++dim)
    if (sizes[dim] != 1) return std::nullopt;
  if (bias.strides().back() == 1 || out.columns == 1) return bias;
  TensorBase row = core::allocate_base(Ints{1, out.columns}, Ints{out.columns, 1}, bias.dtype(), kCPU);
  Matrices one_row(row);
  copy(broadcast_bias(bias, one_row), one_row, bias.dtype());
  return row;
}

}  // namespace

void matmul(const TensorBase& a, const TensorBase& b, const TensorBase& out, const MatmulEpilogue& epilogue) try {
  static Counter& calls = counter("library_calls");
  const Dtype dtype = out.dtype();
  TENON_ASSERT(matmul_supports(dtype) && a.dtype() == dtype && b.dtype() == dtype, "a product of {} and {} into {}",
               a.description(), b.description(), out.description());
  TENON_ASSERT(a.dim() == out.dim() && b.dim() == out.dim() && (out.dim() == 2 || out.dim() == 3),
               "a product of {} and {} into {}", a.description(), b.description(), out.description());
  Matrices left(a), right(b), result(out);
  TENON_ASSERT(left.columns == right.rows && left.rows == result.rows && right.columns == result.columns &&
                   left.batch == result.batch && right.batch == result.batch,
               "a product of {} and {} into {}", a.description(), b.description(), out.description());
  const TensorBase* bias = epilogue.beta != 0 ? epilogue.bias : nullptr;
  TENON_ASSERT(!bias || bias->dtype() == dtype, "a bias {} for {}", bias->description(), out.description());
  if (result.batch == 0 || result.rows == 0 || result.columns == 0) return;

  if (left.columns == 0) {
    if (bias) {
      copy(broadcast_bias(*bias, result), result, dtype);
      if (epilogue.beta != 1) scale(result, epilogue.beta, dtype);
    } else {
      zero(result, dtype);
    }
    if (epilogue.relu) relu(result, dtype);
    return;
  }

  calls.add();
  Matrices target = result.direct() ? result : dense(result, dtype);
  if (!left.direct()) left = dense_copy(left, dtype);
  if (!right.direct()) right = dense_copy(right, dtype);
  // oneDNN repeats one operand over the batch, not both.
  if (result.batch > 1 && left.batch_stride == 0 && right.batch_stride == 0) left = dense_copy(left, dtype);
  // A column-major result is the transposed product.
  const bool swap = !target.row_major();
  std::optional<TensorBase> row;
  if (bias && !swap && epilogue.alpha == 1 && epilogue.beta == 1) row = row_of(*bias, result);
  const double sum_scale = bias && !row ? epilogue.beta : 0;
  // Any other bias is put into the result first, to which oneDNN then adds.
  if (sum_scale != 0) copy(broadcast_bias(*bias, target), target, dtype);
  auto run = [&](const Matrices& x, const Matrices& y) {
    return swap ? multiply(y.transposed(), x.transposed(), target.transposed(), nullptr, epilogue.alpha, sum_scale,
                           dtype)
                : multiply(x, y, target, row ? row->raw_data() : nullptr, epilogue.alpha, sum_scale, dtype);
  };
  if (!run(left, right)) {
    bool done = run(dense_copy(left, dtype), dense_copy(right, dtype));
    TENON_ASSERT(done, "no oneDNN kernel for {} and {}", a.description(), b.description());
  }
  if (epilogue.relu) relu(target, dtype);
  if (target.owner.defined()) copy(target, result, dtype);
} catch (...) {
  support::rethrow_named("matmul");  // oneDNN throws what the standard library does
}

}  // namespace tenon::kernels
