// Layers that move elements: flattening, padding, shuffling, other sizes.
#pragma once

#include <tenon/nn/functional.h>
#include <tenon/nn/layer.h>
#include <tenon/nn/sizes.h>

namespace tenon {

// Channels into squares of r by r pixels, and back; channels of groups in turn.
//
//   Tensor a = pixel_shuffle(ones({1, 8, 3, 3}), 2), b = pixel_unshuffle(a, 2);     // [1, 2, 6, 6], [1, 8, 3, 3]
//   Tensor c = channel_shuffle(ones({1, 6, 2, 2}), 3);
Tensor pixel_shuffle(const Tensor& input, int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& input, int64_t downscale_factor);
Tensor channel_shuffle(const Tensor& input, int64_t groups);

}  // namespace tenon

namespace tenon::nn {

//   Tensor row = nn::Flatten()(ones({2, 3, 4}));                       // [2, 12]
//   Tensor back = nn::Unflatten(1, {3, 4})(row);                       // [2, 3, 4]
//   Tensor fine = nn::PixelShuffle(2)(ones({1, 4, 3, 3})), coarse = nn::PixelUnshuffle(2)(fine);
//   Tensor mixed = nn::ChannelShuffle(2)(ones({1, 4, 3, 3}));
class Flatten : public FunctionLayer {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1);
};
class Unflatten : public FunctionLayer {
 public:
  Unflatten(int64_t dim, const Ints& sizes);
};
class PixelShuffle : public FunctionLayer {
 public:
  explicit PixelShuffle(int64_t upscale_factor);
};
class PixelUnshuffle : public FunctionLayer {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor);
};
class ChannelShuffle : public FunctionLayer {
 public:
  explicit ChannelShuffle(int64_t groups);
};
//   Tensor twice = nn::Upsample({.scale_factor = std::vector<double>{2}})(ones({1, 1, 3, 3}));
class Upsample : public FunctionLayer {
 public:
  explicit Upsample(const InterpolateOptions& options);
};

// Before and behind each of the last dimensions, the last one first; one number is for all sides.
//
//   Tensor i = ones({1, 2, 4, 4}), s = ones({1, 2, 4});
//   Tensor a = nn::ZeroPad2d({1, 1, 2, 2})(i), b = nn::ConstantPad2d({1, 1, 1, 1}, 3.5)(i);
//   Tensor c = nn::ReflectionPad2d({1, 1, 1, 1})(i), d = nn::ReplicationPad1d({2, 0})(s);
//   Tensor e = nn::ZeroPad1d(1)(s), f = nn::ConstantPad1d(1, 0.5)(s), g = nn::ReflectionPad1d(1)(s);
//   Tensor l = nn::ConstantPad3d(1, 2.0)(ones({1, 1, 2, 2, 2}));
//   Tensor h = nn::ReplicationPad2d(1)(i), j = nn::CircularPad1d(1)(s), k = nn::CircularPad2d(1)(i);
class PadLayer : public FunctionLayer {
 protected:
  PadLayer(const char* kind, const Ints& padding, int64_t dims, const char* mode, double value = 0);
};
#define TENON_PAD(name, dims, mode)                                                                \
  class name##Pad##dims##d : public PadLayer {                                                     \
   public:                                                                                         \
    explicit name##Pad##dims##d(const Ints& p) : PadLayer(#name "Pad" #dims "d", p, dims, mode) {} \
  };
TENON_PAD(Zero, 1, "constant")
TENON_PAD(Zero, 2, "constant")
TENON_PAD(Zero, 3, "constant")
TENON_PAD(Reflection, 1, "reflect")
TENON_PAD(Reflection, 2, "reflect")
TENON_PAD(Reflection, 3, "reflect")
TENON_PAD(Replication, 1, "replicate")
TENON_PAD(Replication, 2, "replicate")
TENON_PAD(Replication, 3, "replicate")
TENON_PAD(Circular, 1, "circular")
TENON_PAD(Circular, 2, "circular")
TENON_PAD(Circular, 3, "circular")
#undef TENON_PAD
class ConstantPad1d : public PadLayer {
 public:
  ConstantPad1d(const Ints& padding, double value) : PadLayer("ConstantPad1d", padding, 1, "constant", value) {}
};
class ConstantPad2d : public PadLayer {
 public:
  ConstantPad2d(const Ints& padding, double value) : PadLayer("ConstantPad2d", padding, 2, "constant", value) {}
};
class ConstantPad3d : public PadLayer {
 public:
  ConstantPad3d(const Ints& padding, double value) : PadLayer("ConstantPad3d", padding, 3, "constant", value) {}
};

}  // namespace tenon::nn
