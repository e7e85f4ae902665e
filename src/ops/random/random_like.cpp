// Random numbers for a tensor like another, and of a generator that is given.
#include "ops/random/generator_argument.h"
#include "ops/random/laid_out_as.h"

#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

TensorOptions options_like(const Tensor& self, std::optional<Dtype> dtype, std::optional<Device> device) {
  TENON_CHECK(self.defined(), "[*_like] expected a tensor, got an undefined one");
  return {dtype.value_or(self.dtype()), device.value_or(self.device())};
}

}  // namespace

OPS(random_like) {
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
  // For graphs alone.
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
  // In place alone.
  op("bernoulli.float(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor")
      .decompose([](const Tensor& self, double p, Generator* generator) {
        refuse(generator, "bernoulli_");
        TENON_CHECK(self.defined(), "[bernoulli_] expected a tensor, got an undefined one");
        return bernoulli(self, p);
      })
      .with_inplace();
}

}  // namespace tenon::ops
