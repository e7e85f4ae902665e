// libtorch's names, so that extensions written for it compile here unchanged: what the headers of compat/ include.
// docs/from_libtorch.md lists what there is and what is missing.
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/inference_mode.h>
#include <tenon/compat/autograd.h>
#include <tenon/compat/dispatch_macros.h>
#include <tenon/compat/library.h>
#include <tenon/compat/nn.h>
#include <tenon/compat/parallel.h>
#include <tenon/compat/tensor.h>
#include <tenon/compat/vectorized.h>

#include <cassert>
#include <cmath>
#include <iostream>

namespace torch {

using namespace at;
using at::Tensor;
using Dtype = c10::ScalarType;
using IntArrayRef = c10::IntArrayRef;
namespace indexing = at::indexing;

using NoGradGuard = tenon::autograd::NoGrad;
using AutoGradMode = tenon::autograd::SetGradMode;
using InferenceMode = tenon::autograd::InferenceMode;
namespace autograd {
using tenon::autograd::grad_enabled;
using AutoGradMode = tenon::autograd::SetGradMode;
}  // namespace autograd
struct GradMode {
  static bool is_enabled() { return tenon::autograd::grad_enabled(); }
  static void set_enabled(bool enabled) { tenon::autograd::set_grad_enabled(enabled); }
};
inline void manual_seed(uint64_t seed) { tenon::manual_seed(seed); }

}  // namespace torch
namespace at {
using NoGradGuard = tenon::autograd::NoGrad;
using AutoGradMode = tenon::autograd::SetGradMode;
}  // namespace at
namespace c10 {
using InferenceMode = tenon::autograd::InferenceMode;
}
namespace torch::cuda {
inline bool is_available() { return false; }
inline int64_t device_count() { return 0; }
}  // namespace torch::cuda

// Python's side of an extension is not compiled: the block is a template that nobody instantiates.
namespace pybind11 {
struct module_ {};
using module = module_;
struct gil_scoped_release {};
struct arg {
  explicit arg(const char*) {}
  template <typename T>
  arg& operator=(const T&) {
    return *this;
  }
};
}  // namespace pybind11
namespace py = pybind11;
#define PYBIND11_MODULE(name, variable) \
  template <typename TenonModule>       \
  [[maybe_unused]] static void tenon_skipped_python_module([[maybe_unused]] TenonModule& variable)
#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME tenon_extension
#endif
