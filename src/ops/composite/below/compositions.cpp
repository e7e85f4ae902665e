// Small functions of other operators that graphs name.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <cmath>

namespace tenon::ops {
namespace {

// Of bytes these are bytes, as in PyTorch.
Tensor truth(const Tensor& result, const Tensor& self) { return self.dtype() == kUInt8 ? result.to(kUInt8) : result; }

Ints one_dim(const Tensor& self, int64_t dim, const char* op_name) {
  return {wrap_dim(dim, given(self, op_name).dim(), op_name)};
}

// Among integers a factor is one too.
Scalar factor(const Scalar& number, Dtype dtype) {
  if (is_floating(dtype) || !number.is_real()) return number;
  const double whole = std::trunc(number.to_double());
  TENON_CHECK(std::abs(whole) < 0x1p63, "[add*] expected a factor that fits 64 bits, got {}", whole);
  return static_cast<int64_t>(whole);
}

// `beta` times what is there, and `alpha` times a product; with a beta of 0 nothing that is there counts.
Tensor added(const Tensor& self, const Tensor& product, const Scalar& given_beta, const Scalar& given_alpha) {
  const Scalar beta = factor(given_beta, product.dtype()), alpha = factor(given_alpha, product.dtype());
  Tensor scaled = alpha.to_double() == 1 ? product : product * alpha;
  if (beta.to_double() == 0) return scaled;
  return (beta.to_double() == 1 ? self : self * beta) + scaled;
}

void check_rank(const Tensor& tensor, int64_t rank, const char* what, const char* op_name) {
  TENON_CHECK(given(tensor, op_name).dim() == rank, "[{}] expected {} of {} dimensions, got {}", op_name, what, rank,
              tensor.description());
}

// `self` with elements along `dim` replaced by those of `source`.
Tensor replaced(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const char* op_name) {
  TENON_CHECK(given(index, op_name).dim() <= 1 && (index.dtype() == kInt64 || index.dtype() == kInt32),
              "[{}] expected a list of int64 or int32 as the index, got {}", op_name, index.description());
  if (given(self, op_name).dim() == 0) return reshape(replaced(reshape(self, {1}), 0, index, source, op_name), {});
  const int64_t along = wrap_dim(dim, self.dim(), op_name);
  SymInts sizes = self.sym_sizes();
  sizes[static_cast<size_t>(along)] = index.numel();
  Tensor rows = movedim(expand(source.dim() == 0 ? source : reshape(source, sizes), sizes), along, 0);
  Tensor made = index_put(movedim(self, along, 0), {reshape(index, {-1})}, rows);
  return contiguous(movedim(made, 0, along));
}

}  // namespace

OPS(compositions) {
  op("lift_fresh(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) { return given(self, "lift_fresh"); });
  op("any(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return truth(any(given(self, "any"), OptionalInts()), self);
  });
  op("all(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return truth(all(given(self, "all"), OptionalInts()), self);
  });
  op("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return truth(any(self, OptionalInts(one_dim(self, dim, "any")), keepdim), self);
      });
  op("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return truth(all(self, OptionalInts(one_dim(self, dim, "all")), keepdim), self);
      });
  op("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
      .decompose([](const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
        return sort(given(self, "sort"), dim, descending);
      });
  op("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& other, const Scalar& alpha) {
        return sub(given(other, "rsub"), given(self, "rsub"), alpha);
      });
  op("arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor")
      .decompose([](const Scalar& start, const Scalar& end, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
        TensorOptions options;
        options.dtype = dtype;
        options.device = device;
        return arange(start, end, 1, options);
      });
  op("ldexp.Tensor(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    return given(self, "ldexp") * pow(2.0, given(other, "ldexp"));
  });
  op("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
      .decompose([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
        Ints dims;
        if (dim) dims.push_back(wrap_dim(*dim, given(self, "aminmax").dim(), "aminmax"));
        for (int64_t each = 0; !dim && each < given(self, "aminmax").dim(); ++each) dims.push_back(each);
        return std::tuple(amin(self, dims, keepdim), amax(self, dims, keepdim));
      });
  op("take(Tensor self, Tensor index) -> Tensor").decompose([](const Tensor& self, const Tensor& index) {
    TENON_CHECK(given(index, "take").dtype() == kInt64, "[take] expected an index of int64, got {}",
                index.description());
    Tensor flat = reshape(given(self, "take"), {-1});
    return reshape(tenon::index(flat, {reshape(index, {-1})}), index.sym_sizes());
  });
  op("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
        TensorOptions options(given(self, "index_fill").dtype(), self.device());
        return replaced(self, dim, index, full(SymInts{}, value, options), "index_fill");
      })
      .with_inplace();
  op("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
        check_rank(value, 0, "a value", "index_fill");
        return replaced(self, dim, index, value.to(given(self, "index_fill").dtype()), "index_fill");
      })
      .with_inplace();
  op("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
        TENON_CHECK(given(source, "index_copy").dtype() == given(self, "index_copy").dtype(),
                    "[index_copy] expected a source of {}, got {}", name(self.dtype()), source.description());
        return replaced(self, dim, index, source, "index_copy");
      })
      .with_inplace();
  op("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) {
        check_rank(mat, 2, "a matrix", "addmv");
        check_rank(vec, 1, "a vector", "addmv");
        Tensor there = expand(given(self, "addmv"), SymInts{mat.size(0)});
        return added(there, matmul(mat, vec), beta, alpha);
      });
  op("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .decompose(
          [](const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
            check_rank(vec1, 1, "vectors", "addr");
            check_rank(vec2, 1, "vectors", "addr");
            Tensor there = expand(given(self, "addr"), SymInts{vec1.size(0), vec2.size(0)});
            return added(there, unsqueeze(vec1, 1) * vec2, beta, alpha);
          });
  op("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                    const Scalar& alpha) {
        check_rank(batch1, 3, "batches of matrices", "addbmm");
        check_rank(batch2, 3, "batches of matrices", "addbmm");
        // Halves are added up in float32 and rounded once.
        const Dtype wide = compute_dtype(batch1.dtype());
        Tensor product = sum(bmm(batch1.to(wide), batch2.to(wide)), Ints{0}, false, wide);
        Tensor there = expand(given(self, "addbmm"), product.sym_sizes());
        return added(there.dtype() == batch1.dtype() ? there.to(wide) : there, product, beta, alpha).to(batch1.dtype());
      });
  op("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
      .decompose([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
        const int64_t rank = given(self, "diag_embed").dim() + 1;
        check_rank(self, std::max<int64_t>(1, self.dim()), "a tensor", "diag_embed");
        const int64_t a = wrap_dim(dim1, rank, "diag_embed"), b = wrap_dim(dim2, rank, "diag_embed");
        TENON_CHECK(a != b, "[diag_embed] expected two dimensions, got {} twice", a);
        constexpr int64_t kFar = int64_t{1} << 31;
        TENON_CHECK(offset > -kFar && offset < kFar, "[diag_embed] expected an offset below 2^31, got {}", offset);
        const SymInt size = self.size(-1) + std::abs(offset);
        SymInts sizes = self.sym_sizes(), whole;
        size_t next = 0;
        for (int64_t dim = 0; dim < rank; ++dim) whole.push_back(dim == a || dim == b ? size : sizes[next++]);
        return diagonal_scatter(zeros(whole, TensorOptions(self.dtype(), self.device())), self, offset, a, b);
      });
  op("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
      .decompose([](const Tensor& self, int64_t k, const Ints& dims) {
        TENON_CHECK(dims.size() == 2, "[rot90] expected two dimensions, got [{}]", fmt::join(dims, ", "));
        const int64_t rank = given(self, "rot90").dim();
        const int64_t a = wrap_dim(dims[0], rank, "rot90"), b = wrap_dim(dims[1], rank, "rot90");
        TENON_CHECK(a != b, "[rot90] expected two dimensions, got {} twice", a);
        switch ((k % 4 + 4) % 4) {
          case 1: return transpose(flip(self, Ints{b}), a, b);
          case 2: return flip(self, Ints{a, b});
          case 3: return transpose(flip(self, Ints{a}), a, b);
          default: return clone(self, MemoryFormat::Contiguous);
        }
      });
  op("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "reflect"); });
  op("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "reflect"); });
  op("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "reflect"); });
  op("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "replicate"); });
  op("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "replicate"); });
  op("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& padding) { return pad(self, padding, "replicate"); });
}

}  // namespace tenon::ops
