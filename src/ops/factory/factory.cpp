// Tensors from nothing.
#include "ops/factory/options.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::ops {
namespace {

std::vector<TensorMeta> arange_shape(const Arguments& arguments) {
  Scalar start = arguments["start"].scalar(), end = arguments["end"].scalar(), step = arguments["step"].scalar();
  bool real = start.is_real() || end.is_real() || step.is_real();
  Dtype dtype = dtype_or(arguments, real ? kFloat32 : kInt64);
  SymInt count;
  if (real) {
    double first = start.to_double(), last = end.to_double(), stride = step.to_double();
    // As PyTorch does: for int64, and for no other integers, everything is cut to whole numbers before it is counted.
    if (dtype == kInt64) {
      first = std::trunc(first);
      last = std::trunc(last);
      stride = std::trunc(stride);
    }
    TENON_CHECK(stride != 0, "[arange] expected a step other than 0");
    TENON_CHECK(std::isfinite(first) && std::isfinite(last), "[arange] expected finite bounds, got {} and {}", first,
                last);
    TENON_CHECK((last - first) / stride >= 0, "[arange] bounds {} and {} do not fit the step {}", first, last, stride);
    double steps = std::ceil((last - first) / stride);
    if (!(steps < 0x1p63))
      throw OverflowError(fmt::format("[arange] expected a number of elements that fits 64 bits, got {}", steps));
    count = static_cast<int64_t>(steps);
  } else {
    int64_t stride = step.to_int();
    TENON_CHECK(stride != 0, "[arange] expected a step other than 0");
    SymInt length = end.integer() - start.integer();
    TENON_CHECK(expect(stride > 0 ? length >= 0 : length <= 0), "[arange] bounds {} and {} do not fit the step {}",
                start.str(), end.str(), stride);
    count = stride == 1 ? length : -((-length) / SymInt(stride));
  }
  TENON_CHECK_IMPLEMENTED(dtype != kBool, "[arange] expected a dtype of numbers, got bool");
  return {TensorMeta::contiguous(SymInts{count}, dtype, device_of(arguments))};
}

std::vector<TensorMeta> eye_shape(const Arguments& arguments) {
  SymInt rows = arguments["n"].sym_int(), columns = arguments.has("m") ? arguments["m"].sym_int() : rows;
  TENON_CHECK(expect(rows >= 0) && expect(columns >= 0), "[eye] expected sizes of at least 0, got {} and {}",
              rows.str(), columns.str());
  return {TensorMeta::contiguous(SymInts{rows, columns}, dtype_or(arguments, kFloat32), device_of(arguments))};
}

Lane diagonal_ones(Element& e) {
  loop::Builder& b = e.builder();
  return cast(b.index(e.index(0)) == b.index(e.index(1)), e.dtype());
}

// From either end to the middle, so that both ends are exact.
Lane evenly_spaced(Element& e) {
  loop::Builder& b = e.builder();
  Dtype dtype = is_floating(e.dtype()) ? e.dtype() : kFloat64;
  int64_t steps = e.arguments().integer("steps");
  // Between integers the ends are whole, and the steps between them need not be.
  auto bound = [&](const char* argument) {
    return is_floating(e.dtype()) ? e.scalar(argument, dtype) : cast(e.scalar(argument, kInt64), dtype);
  };
  Lane start = bound("start"), end = bound("end");
  if (steps == 1) return cast(start, e.dtype());
  Lane position = b.index(e.index(0)), step = (end - start) / static_cast<double>(steps - 1);
  Lane from_start = start + step * cast(position, dtype);
  Lane from_end = end - step * cast(b.constant(steps - 1, kInt64) - position, dtype);
  return cast(select(position < b.constant(steps / 2, kInt64), from_start, from_end), e.dtype());
}

TensorOptions options_like(const Tensor& self, std::optional<Dtype> dtype, std::optional<Device> device) {
  TENON_CHECK(self.defined(), "[new_*] expected a tensor, got an undefined one");
  return {dtype.value_or(self.dtype()), device.value_or(self.device())};
}

TensorOptions options(std::optional<Dtype> dtype, std::optional<Device> device) {
  TensorOptions result;
  result.dtype = dtype;
  result.device = device;
  return result;
}

}  // namespace

OPS(factory) {
  op("empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .moves_elements()
      .uninitialised()
      .shape([](const Arguments& arguments) {
        std::vector<TensorMeta> metas = sized_float(arguments);
        const dispatch::Value& format = arguments["memory_format"];
        TENON_CHECK(format.is_none() || format.memory_format() != MemoryFormat::Preserve,
                    "[empty] expected an order of dimensions, got preserve: there is nothing to keep the order of");
        if (std::optional<MemoryFormat> order = order_in(arguments))
          metas[0].strides = core::strides_in(*order, metas[0].sizes.span(), "empty");
        return metas;
      });
  op("empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, "
     "bool? pin_memory=None) -> Tensor")
      .moves_elements()
      .uninitialised()
      .shape([](const Arguments& arguments) {
        std::vector<TensorMeta> metas = sized_float(arguments);
        metas[0].strides = arguments["stride"].sym_ints();
        TENON_CHECK(metas[0].strides.size() == metas[0].sizes.size(),
                    "[empty_strided] expected a stride for each of {}, got {}", str(metas[0].sizes),
                    str(metas[0].strides));
        return metas;
      });
  op("full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor")
      .role(Role::Full)
      .moves_elements()
      .element([](Element& e) { return e.scalar("fill_value", e.dtype()); })
      .shape([](const Arguments& arguments) { return sized(arguments, arguments["fill_value"].scalar().dtype()); });
  op("zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor")
      .role(Role::Zeros)
      .moves_elements()
      .element([](Element& e) { return e.builder().constant(int64_t{0}, e.dtype()); })
      .shape(sized_float);
  op("ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor")
      .role(Role::Ones)
      .moves_elements()
      .element([](Element& e) { return e.builder().constant(int64_t{1}, e.dtype()); })
      .shape(sized_float);
  op("eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
     "Tensor")
      .moves_elements()
      .element(diagonal_ones)
      .shape(eye_shape);
  op("eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None) -> Tensor")
      .moves_elements()
      .element(diagonal_ones)
      .shape(eye_shape);
  op("linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, "
     "bool? pin_memory=None) -> Tensor")
      .element(evenly_spaced)
      .shape([](const Arguments& arguments) {
        int64_t steps = arguments.integer("steps");
        TENON_CHECK(steps >= 0, "[linspace] expected a number of at least 0, got {}", steps);
        Dtype dtype = dtype_or(arguments, kFloat32);
        TENON_CHECK_IMPLEMENTED(dtype != kBool, "[linspace] expected a dtype of numbers, got bool");
        return std::vector{TensorMeta::contiguous(SymInts{steps}, dtype, device_of(arguments))};
      });
  op("scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None) -> Tensor")
      .decompose([](const Scalar& s, std::optional<Dtype> dtype, std::optional<Layout>, std::optional<Device> device,
                    std::optional<bool>) { return full(SymInts{}, s, options(dtype.value_or(kFloat32), device)); });
  op("new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor")
      .moves_elements()
      .uninitialised()
      .ignores("self")
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[new_empty] expected a tensor, got an undefined one");
        std::vector<TensorMeta> metas = sized(arguments, self.dtype());
        if (arguments["device"].is_none()) metas[0].device = self.device();
        return metas;
      });
  op("new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& size, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device,
                    std::optional<bool>) { return zeros(size, options_like(self, dtype, device)); });
  op("new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& size, std::optional<Dtype> dtype, std::optional<Layout>,
                    std::optional<Device> device,
                    std::optional<bool>) { return ones(size, options_like(self, dtype, device)); });
  op("new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, "
     "bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& size, const Scalar& fill_value, std::optional<Dtype> dtype,
                    std::optional<Layout>, std::optional<Device> device,
                    std::optional<bool>) { return full(size, fill_value, options_like(self, dtype, device)); });
  op("arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .element([](Element& e) {
        Lane position = cast(e.builder().index(e.index(0)), e.dtype());
        return e.scalar("start", e.dtype()) + position * e.scalar("step", e.dtype());
      })
      .shape(arange_shape);
  op("arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor")
      .decompose([](const Scalar& end, std::optional<Dtype> dtype, std::optional<Layout>, std::optional<Device> device,
                    std::optional<bool>) { return arange(0, end, 1, options(dtype, device)); });
  op("empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, "
     "MemoryFormat? memory_format=None) -> Tensor")
      .moves_elements()
      .uninitialised()
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        Dtype dtype = dtype_or(arguments, self.dtype());
        std::optional<MemoryFormat> order = order_in(arguments);
        // Without one, laid out as the result of a pointwise operator would be.
        SymInts strides = order ? core::strides_in(*order, self.sym_sizes().span(), "empty_like")
                                : pointwise_strides(self.sym_sizes(), {&self, 1});
        return std::vector{TensorMeta{self.sym_sizes(), std::move(strides), dtype, self.device()}};
      });
  op("zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, "
     "MemoryFormat? memory_format=None) -> Tensor")
      .role(Role::Zeros)
      .moves_elements()
      .pointwise(Promotion::Argument, [](Lane self) { return number(self, 0); })
      .ignores("self")
      .no_inplace();
  op("ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, "
     "MemoryFormat? memory_format=None) -> Tensor")
      .role(Role::Ones)
      .moves_elements()
      .pointwise(Promotion::Argument, [](Lane self) { return number(self, 1); })
      .ignores("self")
      .no_inplace();
  op("full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
      .moves_elements()
      .pointwise(Promotion::Argument, [](Lane, Lane value) { return value; })
      .ignores("self")
      .no_inplace();
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
}

}  // namespace tenon::ops
