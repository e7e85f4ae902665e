// Convolutions over one, two or three dimensions by oneDNN, for float32 and bfloat16. Halves are accumulated in float32
// and rounded once.
#pragma once

#include <tenon/core/tensor_fwd.h>

namespace tenon::kernels {

// How windows lie on an image, by dimension.
struct ConvolutionWindows {
  Ints stride, padding, dilation;
  int64_t groups = 1;
};

// Whether this machine's oneDNN convolves images of that dtype.
bool convolution_supports(Dtype dtype);

// Images are [batch, channels, …], a weight is [channels out, channels in / groups, …]; the three are of one dtype, and
// no two share memory. Images whose channels lie together in memory (channels last) are computed in that order, others
// are rearranged on the way; what is not dense in one of the two orders is copied first. Shapes are checked by the
// caller (the row).

// out = input convolved with weight, + bias (one number for each channel, or null).
void convolution(const TensorBase& input, const TensorBase& weight, const TensorBase* bias,
                 const ConvolutionWindows& windows, const TensorBase& out);

// The gradient of `input`, which has the sizes of `out`, from that of a result; also a transposed convolution of
// `grad`.
void convolution_input_gradient(const TensorBase& grad, const TensorBase& weight, const ConvolutionWindows& windows,
                                const TensorBase& out);

// The gradient of `weight`, which has the sizes of `out`.
void convolution_weight_gradient(const TensorBase& grad, const TensorBase& input, const ConvolutionWindows& windows,
                                 const TensorBase& out);

// How many oneDNN primitives this thread has made (tests look at it); they are kept by shape.
int64_t convolution_primitives_made();

}  // namespace tenon::kernels
