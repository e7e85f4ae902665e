// Kernels that fusion cannot see into: of matrix products, sorts, convolutions. Eager code, compiled plans and saved
// functions call the same ones, and find them by their operators.
#pragma once

#include <tenon/dispatch/arguments.h>

namespace tenon::dispatch {

// What a library's kernel may do to each element of its result before it stores it. (The row of an operator says which
// of these it is, and the kernel which it takes on.)
enum class Epilogue : uint8_t { None, Relu };
std::string_view name(Epilogue epilogue);

struct OpaqueKernel {
  // Writes the results into memory that it is given.
  std::function<void(const Arguments&, std::span<Tensor> outputs)> fill;
  // In place of `fill`: makes its results, because only the data tells their sizes.
  std::function<std::vector<Tensor>(const Arguments&)> make;
  // As `fill`, and the epilogue of the first result; for the epilogues that it takes.
  std::function<void(const Arguments&, std::span<Tensor> outputs, Epilogue)> fill_with;
  std::vector<Epilogue> epilogues;

  bool takes(Epilogue epilogue) const;
};

// Of an operator that is not defined by such a kernel: null.
const OpaqueKernel* opaque_kernel_of(const Operator& op);

}  // namespace tenon::dispatch
