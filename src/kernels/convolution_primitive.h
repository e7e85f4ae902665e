// oneDNN's convolution and its two gradients for one shape: made once, kept by each thread.
#pragma once

#include <tenon/core/tensor_fwd.h>

#include <memory>

namespace tenon::kernels {

enum class ConvolutionKind : uint8_t { Forward, InputGradient, WeightGradient };

// A tensor in memory: what is dense, in whatever order of its dimensions.
struct ConvolutionOperand {
  Ints sizes, strides;
  bool operator==(const ConvolutionOperand&) const = default;
};

// All that a primitive depends on.
struct ConvolutionKey {
  ConvolutionKind kind = ConvolutionKind::Forward;
  Dtype dtype = Dtype::Float32;
  int threads = 1;  // oneDNN fixes its split when the primitive is made
  bool bias = false;
  bool channels_last = false;  // compute in that order; else in the one that oneDNN likes best
  int64_t groups = 1;
  Ints stride, padding, dilation;
  ConvolutionOperand input, weight, result;  // of the convolution; a gradient's are laid out alike
  bool operator==(const ConvolutionKey&) const = default;
  size_t hash() const;
};

class ConvolutionPrimitive {
 public:
  explicit ConvolutionPrimitive(const ConvolutionKey& key);
  ~ConvolutionPrimitive();
  // Two of the three are read, and the third is written, as the kind says.
  void run(void* input, void* weight, const void* bias, void* result);
  const char* implementation() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// This thread's primitive of that key; valid until the next call.
ConvolutionPrimitive& convolution_primitive(const ConvolutionKey& key);

}  // namespace tenon::kernels
