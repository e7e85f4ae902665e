// Fake tensors: sizes, strides and dtype of a tensor, and no data. Operators on them compute metadata only, by the
// rows' shape rules; sizes may be symbolic.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/dispatch/value.h>

#include <string>
#include <vector>

namespace tenon::fake {

// A fake with these sizes and strides.
Tensor make(const SymInts& sizes, const SymInts& strides, Dtype dtype, Device device = kCPU);
// A fake of a real tensor, sizes as they are.
Tensor like(const Tensor& real);

// While one lives, factories (`zeros`, `arange`) give fakes on this thread.
class FakeMode {
 public:
  FakeMode();
  ~FakeMode();
  FakeMode(const FakeMode&) = delete;

 private:
  std::unique_ptr<class FakeModeState> state_;
};

// Raised when an operator's result depends on data that a fake does not have (`item`).
class NeedsData : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

}  // namespace tenon::fake
