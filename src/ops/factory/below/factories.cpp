// Tensors like others, and random numbers of a generator that is given.
#include "ops/random/generator_argument.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

TensorOptions options_like(const Tensor& self, std::optional<Dtype> dtype, std::optional<Device> device) {
  TENON_CHECK(self.defined(), "[*_like] expected a tensor, got an undefined one");
  return {dtype.value_or(self.dtype()), device.value_or(self.device())};
}

// In the order in memory of the tensor that it is made like, unless another is asked for.
Tensor laid_out_as(const Tensor& self, const Tensor& drawn, std::optional<MemoryFormat> format) {
  const bool keeps = !format || *format == MemoryFormat::Preserve;
  if (keeps ? self.is_contiguous() : *format == MemoryFormat::Contiguous) return drawn;
  return copy(empty_like(self, TensorOptions(drawn.dtype(), drawn.device()), format), drawn);
}

}  // namespace

OPS(factories) {
  op("new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .uninitialised()
      .ignores("self")
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[new_empty_strided] expected a tensor, got an undefined one");
        const dispatch::Value &dtype = arguments["dtype"], &device = arguments["device"];
        TensorMeta meta{arguments["size"].sym_ints(), arguments["stride"].sym_ints(),
                        dtype.is_none() ? self.dtype() : dtype.dtype(),
                        device.is_none() ? self.device() : device.device()};
        TENON_CHECK(meta.sizes.size() == meta.strides.size(),
                    "[new_empty_strided] expected a stride for each of {}, got {}", str(meta.sizes), str(meta.strides));
        for (const SymInt& size : meta.sizes)
          TENON_CHECK(may_be_size(size), "[new_empty_strided] expected sizes of at least 0, got {}", str(meta.sizes));
        return std::vector{meta};
      });
  op("randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? "
     "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInt& high, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>, std::optional<MemoryFormat> format) {
        TensorOptions options = options_like(self, dtype, device);
        return laid_out_as(self, randint(high, self.sym_sizes(), options), format);
      });
  op("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInt& low, const SymInt& high, std::optional<Dtype> dtype,
                    std::optional<Layout>, std::optional<Device> device, std::optional<bool>,
                    std::optional<MemoryFormat> format) {
        TensorOptions options = options_like(self, dtype, device);
        return laid_out_as(self, randint(low, high, self.sym_sizes(), options), format);
      });
  op("randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const SymInts& size, Generator* generator, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
        refuse(generator, "randn");
        TensorOptions options;
        options.dtype = dtype;
        options.device = device;
        return randn(size, options);
      });
  // For the sake of its in-place form, which is ATen's.
  op("bernoulli.float(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double p, Generator* generator) {
        refuse(generator, "bernoulli_");
        TENON_CHECK(self.defined(), "[bernoulli_] expected a tensor, got an undefined one");
        return bernoulli(self, p);
      })
      .with_inplace();
}

}  // namespace tenon::ops
