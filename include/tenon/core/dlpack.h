// Tensors to and from other libraries without a copy, by the DLPack convention (version 0, `DLManagedTensor`).
//
//   DLManagedTensor* lent = to_dlpack(x);    // keeps x's memory alive until its deleter is called
//   Tensor same = from_dlpack(lent);         // takes it over: the deleter runs when the last tensor on it goes
//   bool shared = same.raw_data() == x.raw_data();
//
// The struct is that of `dlpack.h`, which a program that passes tensors on includes itself.
#pragma once

#include <tenon/core/tensor.h>

struct DLManagedTensor;

namespace tenon {

DLManagedTensor* to_dlpack(const Tensor& tensor);
Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace tenon
