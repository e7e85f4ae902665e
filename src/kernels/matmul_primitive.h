// oneDNN's matrix product for one shape: made once, kept by each thread.
#pragma once

#include <tenon/core/dtype.h>

#include <compare>
#include <cstdint>
#include <memory>

namespace tenon::kernels {

// The layout of one operand; a batch of 1 is used for the whole batch.
struct MatmulOperand {
  int64_t batch = 1, batch_stride = 0, row_stride = 0, column_stride = 0;
  bool operator==(const MatmulOperand&) const = default;
};

// All that a primitive depends on.
struct MatmulKey {
  Dtype dtype = Dtype::Float32;
  int threads = 1;  // oneDNN fixes its split when the primitive is made
  int64_t batch = 1, m = 0, k = 0, n = 0;
  MatmulOperand a, b, out;
  bool bias = false;    // a row of n elements
  bool pack_b = false;  // rearrange `b` into oneDNN's own layout at each run
  float alpha = 1;
  float sum_scale = 0;  // times what the result held before
  bool operator==(const MatmulKey&) const = default;
  size_t hash() const;
};

class MatmulPrimitive {
 public:
  explicit MatmulPrimitive(const MatmulKey& key);
  ~MatmulPrimitive();
  // oneDNN chose its plain loops, which are about a hundred times slower.
  bool is_reference() const;
  void run(const void* a, const void* b, const void* bias, void* out);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// This thread's primitive of that key; valid until the next call.
MatmulPrimitive& matmul_primitive(const MatmulKey& key);

}  // namespace tenon::kernels
