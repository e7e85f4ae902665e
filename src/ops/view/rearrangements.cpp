// Elements in another order or shape by other names: diagonals, shuffles, turns.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <cmath>

namespace tenon::ops {
namespace {

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

}  // namespace

OPS(rearrangements) {
  // For graphs alone.
  op("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor").decompose(channels_to_pixels);
  // For graphs alone.
  op("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor").decompose(pixels_to_channels);
  // For graphs alone.
  op("channel_shuffle(Tensor self, SymInt groups) -> Tensor").decompose(shuffled_channels);
  // For graphs alone.
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
  // For graphs alone.
  op("mT(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    TENON_CHECK(given(self, "mT").dim() >= 2, "[mT] expected matrices, got {}", self.description());
    return transpose(self, -2, -1);
  });
  // For graphs alone.
  op("numpy_T(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    Ints order;
    for (int64_t dim = given(self, "numpy_T").dim(); dim-- > 0;) order.push_back(dim);
    return permute(self, order);
  });
  op("ravel(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    return reshape(contiguous(given(self, "ravel")), {-1});
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
}

}  // namespace tenon::ops
