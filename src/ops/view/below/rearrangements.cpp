// Elements in another order or shape by other names: diagonals, shuffles, differences, what stands where.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

using OptionalTensor = std::optional<Tensor>;

// The sizes in front of the last three, and these.
struct Image {
  SymInts outer;
  SymInt channels, height, width;
  Image(const Tensor& self, const char* op_name) {
    TENON_CHECK(given(self, op_name).dim() >= 3, "[{}] expected a tensor of at least 3 dimensions, got {}", op_name,
                self.description());
    outer = self.sym_sizes();
    width = outer.back();
    outer.pop_back();
    height = outer.back();
    outer.pop_back();
    channels = outer.back();
    outer.pop_back();
  }
  SymInts with(std::initializer_list<SymInt> sizes) const {
    SymInts result = outer;
    for (const SymInt& size : sizes) result.push_back(size);
    return result;
  }
  // The outer dimensions, then those given, counted from the first inner one.
  Ints order(std::initializer_list<int64_t> inner) const {
    Ints result;
    const auto first = static_cast<int64_t>(outer.size());
    for (int64_t dim = 0; dim < first; ++dim) result.push_back(dim);
    for (int64_t dim : inner) result.push_back(first + dim);
    return result;
  }
};

void check_factor(int64_t factor, const char* op_name) {
  TENON_CHECK(factor > 0 && factor < (int64_t{1} << 31), "[{}] expected a factor from 1 to 2^31, got {}", op_name,
              factor);
}

Tensor channels_to_pixels(const Tensor& self, int64_t factor) {
  const Image image(self, "pixel_shuffle");
  check_factor(factor, "pixel_shuffle");
  TENON_CHECK(expect(image.channels % (SymInt(factor) * factor) == 0),
              "[pixel_shuffle] expected channels that {}² divides, got {}", factor, self.description());
  const SymInt fewer = image.channels / (SymInt(factor) * factor);
  Tensor apart = reshape(self, image.with({fewer, factor, factor, image.height, image.width}));
  return reshape(permute(apart, image.order({0, 3, 1, 4, 2})),
                 image.with({fewer, image.height * factor, image.width * factor}));
}

Tensor pixels_to_channels(const Tensor& self, int64_t factor) {
  const Image image(self, "pixel_unshuffle");
  check_factor(factor, "pixel_unshuffle");
  TENON_CHECK(expect(image.height % factor == 0) && expect(image.width % factor == 0),
              "[pixel_unshuffle] expected a height and width that {} divides, got {}", factor, self.description());
  const SymInt height = image.height / factor, width = image.width / factor;
  Tensor apart = reshape(self, image.with({image.channels, height, factor, width, factor}));
  return reshape(permute(apart, image.order({0, 2, 4, 1, 3})),
                 image.with({image.channels * factor * factor, height, width}));
}

Tensor shuffled_channels(const Tensor& self, const SymInt& groups) {
  TENON_CHECK(given(self, "channel_shuffle").dim() >= 3,
              "[channel_shuffle] expected a tensor of at least 3 dimensions, got {}", self.description());
  TENON_CHECK(expect(groups > 0) && expect(self.size(1) % groups == 0),
              "[channel_shuffle] expected groups that divide the channels of {}, got {}", self.description(),
              groups.str());
  SymInts sizes = self.sym_sizes(), apart = sizes;
  apart[1] = self.size(1) / groups;
  apart.insert(apart.begin() + 1, groups);
  return reshape(transpose(reshape(self, apart), 1, 2), sizes);
}

Tensor embedded(const Tensor& self, int64_t offset, const char* op_name) {
  return call("aten::diag_embed", {given(self, op_name), offset, int64_t{-2}, int64_t{-1}});
}

Tensor differences(const Tensor& self, int64_t n, int64_t given_dim, const OptionalTensor& before,
                   const OptionalTensor& behind) {
  TENON_CHECK(given(self, "diff").dim() > 0, "[diff] expected a tensor with dimensions, got {}", self.description());
  TENON_CHECK(n >= 0 && n < (int64_t{1} << 20), "[diff] expected an order from 0 to 2^20, got {}", n);
  const int64_t dim = wrap_dim(given_dim, self.dim(), "diff");
  std::vector<Tensor> parts;
  if (before) parts.push_back(*before);
  parts.push_back(self);
  if (behind) parts.push_back(*behind);
  // No difference is taken of what is put before and behind alone, as in PyTorch.
  if (n == 0) return clone(self);
  Tensor x = parts.size() > 1 ? cat(parts, dim) : self;
  for (int64_t each = 0; each < n; ++each) {
    if (decide_or(x.size(dim) == 0, false)) return clone(x);
    const SymInt size = x.size(dim) - 1;
    Tensor later = narrow(x, dim, 1, size), earlier = narrow(x, dim, 0, size);
    x = self.dtype() == kBool ? logical_xor(later, earlier) : later - earlier;
  }
  return x;
}

// Means of neighbours, by how far they are apart.
Tensor trapezes(const Tensor& y, const Tensor& apart, int64_t dim) {
  const SymInt size = y.size(dim) - 1;
  return (narrow(y, dim, 1, size) + narrow(y, dim, 0, size)) * apart * 0.5;
}

// How far the neighbours of x are apart, so that it can be multiplied with what lies along `dim` of y.
Tensor steps_of(const Tensor& x, const Tensor& y, int64_t dim, const char* op_name) {
  TENON_CHECK(given(x, op_name).dim() > 0 && given(y, op_name).dim() > 0,
              "[{}] expected tensors with dimensions, got {} and {}", op_name, x.description(), y.description());
  Tensor steps = x.dim() == 1 ? x : x;
  if (x.dim() == 1) {
    TENON_CHECK(same_size(x.size(0), y.size(dim)), "[{}] expected a place for each of {}, got {}", op_name,
                y.description(), x.description());
    SymInts shape(static_cast<size_t>(y.dim()), SymInt(1));
    shape[static_cast<size_t>(wrap_dim(dim, y.dim(), op_name))] = x.size(0);
    steps = view(x, shape);
  }
  return differences(steps, 1, x.dim() == 1 ? wrap_dim(dim, y.dim(), op_name) : dim, {}, {});
}

Tensor one_of(const Scalar& number, const Tensor& like) {
  return full(SymInts{}, number,
              TensorOptions(number.is_real() ? promote(like.dtype(), kFloat32) : like.dtype(), like.device()));
}

Tensor integral(const Tensor& y, const Tensor& apart, int64_t given_dim, bool running, const char* op_name) {
  TENON_CHECK(given(y, op_name).dim() > 0, "[{}] expected a tensor with dimensions, got {}", op_name, y.description());
  const int64_t dim = wrap_dim(given_dim, y.dim(), op_name);
  Tensor parts = trapezes(y, apart, dim);
  return running ? cumsum(parts, dim) : sum(parts, OptionalInts(Ints{dim}));
}

// [2, count]: rows and columns of a triangle, by rows.
Tensor triangle(int64_t rows, int64_t columns, int64_t offset, bool upper, std::optional<Dtype> dtype,
                std::optional<Device> device, const char* op_name) {
  constexpr int64_t kFar = int64_t{1} << 31;
  TENON_CHECK(rows >= 0 && columns >= 0 && rows < kFar && columns < kFar && offset > -kFar && offset < kFar,
              "[{}] expected sizes from 0 to 2^31 and an offset below that, got {}, {} and {}", op_name, rows, columns,
              offset);
  Tensor whole = ones(SymInts{rows, columns}, TensorOptions(kBool, device.value_or(kCPU)));
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t below = std::clamp<int64_t>(row + offset + (upper ? 0 : 1), 0, columns);
    count += upper ? columns - below : below;
  }
  Tensor places =
      call_in_order("aten::nonzero_static", {upper ? triu(whole, offset) : tril(whole, offset), count, int64_t{0}});
  return contiguous(transpose(places, 0, 1)).to(dtype.value_or(kInt64));
}

Tensor as_zero_d(const Scalar& number, const Tensor& beside) {
  Dtype dtype = beside.dtype();
  if (number.is_real() && !is_floating(dtype)) dtype = kFloat32;
  return full(SymInts{}, number, TensorOptions(dtype, beside.device()));
}

Tensor as_zero_d(const Scalar& number) {
  return full(SymInts{}, number, TensorOptions(number.is_real() ? kFloat32 : kInt64, kCPU));
}

}  // namespace

OPS(rearrangements) {
  op("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor").decompose(channels_to_pixels);
  op("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor").decompose(pixels_to_channels);
  op("channel_shuffle(Tensor self, SymInt groups) -> Tensor").decompose(shuffled_channels);
  op("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor").decompose(shuffled_channels);
  op("diag(Tensor self, int diagonal=0) -> Tensor").decompose([](const Tensor& self, int64_t offset) {
    TENON_CHECK(given(self, "diag").dim() == 1 || self.dim() == 2, "[diag] expected a vector or a matrix, got {}",
                self.description());
    if (self.dim() == 1) return embedded(self, offset, "diag");
    return clone(diagonal(self, offset), MemoryFormat::Contiguous);
  });
  op("diagflat(Tensor self, int offset=0) -> Tensor").decompose([](const Tensor& self, int64_t offset) {
    return embedded(reshape(given(self, "diagflat"), {-1}), offset, "diagflat");
  });
  op("fliplr(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(given(self, "fliplr").dim() >= 2, "[fliplr] expected at least 2 dimensions, got {}",
                self.description());
    return flip(self, Ints{1});
  });
  op("flipud(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(given(self, "flipud").dim() >= 1, "[flipud] expected at least 1 dimension, got {}", self.description());
    return flip(self, Ints{0});
  });
  op("mT(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    TENON_CHECK(given(self, "mT").dim() >= 2, "[mT] expected matrices, got {}", self.description());
    return transpose(self, -2, -1);
  });
  op("numpy_T(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    Ints order;
    for (int64_t dim = given(self, "numpy_T").dim(); dim-- > 0;) order.push_back(dim);
    return permute(self, order);
  });
  op("ravel(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    return reshape(contiguous(given(self, "ravel")), {-1});
  });
  op("positive(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    TENON_CHECK(given(self, "positive").dtype() != kBool, "[positive] expected numbers, got {}", self.description());
    return self;
  });
  op("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& indices, std::optional<int64_t> given_dim) {
        TENON_CHECK(given(indices, "take_along_dim").dtype() == kInt64,
                    "[take_along_dim] expected indices of int64, got {}", indices.description());
        if (!given_dim) return gather(reshape(given(self, "take_along_dim"), {-1}), 0, reshape(indices, {-1}));
        TENON_CHECK(given(self, "take_along_dim").dim() == indices.dim(),
                    "[take_along_dim] expected as many dimensions of both, got {} and {}", self.description(),
                    indices.description());
        const auto dim = static_cast<size_t>(wrap_dim(*given_dim, self.dim(), "take_along_dim"));
        SymInts from = self.sym_sizes(), at = indices.sym_sizes();
        std::swap(from[dim], at[dim]);
        const SymInts shapes[] = {from, indices.sym_sizes()};
        SymInts sizes = broadcast(shapes, "take_along_dim"), source = sizes;
        source[dim] = at[dim];
        return gather(expand(self, source), static_cast<int64_t>(dim), expand(indices, sizes));
      });
  op("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
        TENON_CHECK(given(index, "put").dtype() == kInt64, "[put] expected an index of int64, got {}",
                    index.description());
        TENON_CHECK(
            given(self, "put").dtype() == given(source, "put").dtype() && same_size(index.numel(), source.numel()),
            "[put] expected an element of {} for each of {}, got {}", name(self.dtype()), index.description(),
            source.description());
        return reshape(index_put(reshape(self, {-1}), {reshape(index, {-1})}, reshape(source, {-1}), accumulate),
                       self.sym_sizes());
      })
      .with_inplace();
  op("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
      .decompose([](const Tensor& condition, const Tensor& self, const Scalar& other) {
        return where(condition, self, as_zero_d(other, given(self, "where")));
      });
  op("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
      .decompose([](const Tensor& condition, const Scalar& self, const Tensor& other) {
        return where(condition, as_zero_d(self, given(other, "where")), other);
      });
  op("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
      .decompose([](const Tensor& condition, const Scalar& self, const Scalar& other) {
        return where(condition, as_zero_d(self), as_zero_d(other));
      });
  op("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
      .decompose(differences);
  op("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Scalar& dx, int64_t dim) {
        return integral(y, one_of(dx, given(y, "trapezoid")), dim, false, "trapezoid");
      });
  op("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Tensor& x, int64_t dim) {
        return integral(y, steps_of(x, y, dim, "trapezoid"), dim, false, "trapezoid");
      });
  op("trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor").decompose([](const Tensor& y, double dx, int64_t dim) {
    return integral(y, one_of(dx, given(y, "trapz")), dim, false, "trapz");
  });
  op("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Tensor& x, int64_t dim) {
        return integral(y, steps_of(x, y, dim, "trapz"), dim, false, "trapz");
      });
  op("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Scalar& dx, int64_t dim) {
        return integral(y, one_of(dx, given(y, "cumulative_trapezoid")), dim, true, "cumulative_trapezoid");
      });
  op("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
      .decompose([](const Tensor& y, const Tensor& x, int64_t dim) {
        return integral(y, steps_of(x, y, dim, "cumulative_trapezoid"), dim, true, "cumulative_trapezoid");
      });
  op("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](int64_t rows, int64_t columns, int64_t offset, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
        return triangle(rows, columns, offset, false, dtype, device, "tril_indices");
      });
  op("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](int64_t rows, int64_t columns, int64_t offset, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
        return triangle(rows, columns, offset, true, dtype, device, "triu_indices");
      });
}

}  // namespace tenon::ops
