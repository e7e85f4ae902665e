// Numbers at even steps between two that may be tensors, or their powers; memory in a given order, or of other sizes.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <cmath>
#include <limits>

namespace tenon::ops {
namespace {

// The ends of a sequence, as float64.
struct Ends {
  Tensor start, end;
  Ends(const Tensor& from, const Tensor& to, const char* op_name) {
    for (const Tensor& each : {from, to})
      TENON_CHECK(each.defined() && each.dim() == 0, "[{}] expected numbers, or tensors of no dimensions, got {}",
                  op_name, each.defined() ? each.description() : "an undefined one");
    start = from.detach().to(kFloat64);
    end = to.detach().to(kFloat64);
  }
};

Tensor number(const Scalar& value) { return full(SymInts{}, value, TensorOptions(kFloat64)); }

struct Asked {
  std::optional<Dtype> dtype;
  std::optional<Device> device;
};

Dtype dtype_of(const Asked& asked, const char* op_name) {
  const Dtype dtype = asked.dtype.value_or(kFloat32);
  TENON_CHECK_IMPLEMENTED(dtype != kBool, "[{}] expected a dtype of numbers, got bool", op_name);
  return dtype;
}

// From both ends, so that each of them is met exactly.
Tensor even_steps(const Ends& ends, int64_t steps, const char* op_name) {
  constexpr int64_t kMost = int64_t{1} << 40;
  TENON_CHECK(steps >= 0 && steps < kMost, "[{}] expected a number of steps from 0 to 2^40, got {}", op_name, steps);
  Tensor at = arange(Scalar(steps), TensorOptions(kFloat64, ends.start.device()));
  if (steps == 1) return at + ends.start;
  Tensor step = (ends.end - ends.start) / static_cast<double>(steps - 1);
  return where(at < steps / 2, ends.start + at * step, ends.end - (static_cast<double>(steps - 1) - at) * step);
}

Tensor linear(const Tensor& start, const Tensor& end, int64_t steps, const Asked& asked) {
  const Dtype dtype = dtype_of(asked, "linspace");
  return even_steps(Ends(start, end, "linspace"), steps, "linspace").to(dtype);
}

Tensor powers(const Tensor& start, const Tensor& end, int64_t steps, double base, const Asked& asked) {
  const Dtype dtype = dtype_of(asked, "logspace");
  Tensor exponents = even_steps(Ends(start, end, "logspace"), steps, "logspace");
  return pow(number(base), exponents).to(dtype);
}

// What stands where nobody has written: of floating point numbers NaN, of integers the largest, so that it shows, and
// is the same eagerly and compiled.
Scalar nothing_written(Dtype dtype) {
  if (is_floating(dtype)) return std::numeric_limits<double>::quiet_NaN();
  switch (dtype) {
    case Dtype::Bool: return true;
    case Dtype::UInt8: return int64_t{std::numeric_limits<uint8_t>::max()};
    case Dtype::Int8: return int64_t{std::numeric_limits<int8_t>::max()};
    case Dtype::Int16: return int64_t{std::numeric_limits<int16_t>::max()};
    case Dtype::Int32: return int64_t{std::numeric_limits<int32_t>::max()};
    default: return std::numeric_limits<int64_t>::max();
  }
}

// A tensor of other sizes with the elements of `self` in the order in which they lie in memory. Sizes that it has
// already leave it as it is, unless a format is asked for.
Tensor resized(const Tensor& self, const SymInts& sizes, std::optional<MemoryFormat> format, const char* op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK(format != MemoryFormat::Preserve,
              "[{}] unsupported memory format: expected the contiguous one, or one with the channels last, got one to "
              "be preserved, and other sizes have other strides",
              op_name);
  // (Of what is dense in the usual order nothing has to be asked: it comes to the same.)
  bool same = !format && sizes.size() == self.sym_sizes().size() && !self.is_contiguous();
  SymInt wanted = 1, there = 1;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    TENON_CHECK(may_be_size(sizes[dim]), "[{}] expected sizes of at least 0, got {}", op_name, str(sizes));
    wanted = wanted * sizes[dim];
    same = same && decide_or(sizes[dim] == self.size(static_cast<int64_t>(dim)), false);
  }
  const SymInts own = self.sym_sizes(), steps = self.sym_strides();
  for (size_t dim = 0; dim < own.size(); ++dim) there = there + (own[dim] - 1) * steps[dim];
  if (decide_or(self.numel() == 0, false)) there = 0;
  if (same) wanted = there;
  const SymInts strides = same ? steps
                               : core::strides_in(format.value_or(MemoryFormat::Contiguous),
                                                  std::span<const SymInt>(sizes.begin(), sizes.size()), op_name);
  Tensor memory = as_strided(self, SymInts{there}, SymInts{1});
  if (decide_or(wanted <= there, true))
    memory = narrow(memory, 0, 0, wanted).clone();
  else
    memory = cat({memory, full(SymInts{wanted - there}, nothing_written(self.dtype()),
                               TensorOptions(self.dtype(), self.device()))});
  return as_strided(memory, sizes, strides);
}

using OptionalDtype = std::optional<Dtype>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using OptionalBool = std::optional<bool>;

}  // namespace

OPS(spaces) {
  // Example: linspace(zeros({}), ones({}), 5);
  op("linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Tensor& end, int64_t steps, OptionalDtype dtype, OptionalLayout,
                    OptionalDevice device, OptionalBool) { return linear(start, end, steps, {dtype, device}); });
  // Example: linspace(zeros({}), 1, 5);
  op("linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Scalar& end, int64_t steps, OptionalDtype dtype, OptionalLayout,
                    OptionalDevice device,
                    OptionalBool) { return linear(start, number(end), steps, {dtype, device}); });
  // Example: linspace(0, ones({}), 5);
  op("linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Scalar& start, const Tensor& end, int64_t steps, OptionalDtype dtype, OptionalLayout,
                    OptionalDevice device,
                    OptionalBool) { return linear(number(start), end, steps, {dtype, device}); });
  op("logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Scalar& start, const Scalar& end, int64_t steps, double base, OptionalDtype dtype,
                    OptionalLayout, OptionalDevice device,
                    OptionalBool) { return powers(number(start), number(end), steps, base, {dtype, device}); });
  // Example: logspace(zeros({}), ones({}), 5);
  op("logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Tensor& end, int64_t steps, double base, OptionalDtype dtype,
                    OptionalLayout, OptionalDevice device,
                    OptionalBool) { return powers(start, end, steps, base, {dtype, device}); });
  // Example: logspace(zeros({}), 1, 5);
  op("logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Scalar& end, int64_t steps, double base, OptionalDtype dtype,
                    OptionalLayout, OptionalDevice device,
                    OptionalBool) { return powers(start, number(end), steps, base, {dtype, device}); });
  // Example: logspace(0, ones({}), 5);
  op("logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Scalar& start, const Tensor& end, int64_t steps, double base, OptionalDtype dtype,
                    OptionalLayout, OptionalDevice device,
                    OptionalBool) { return powers(number(start), end, steps, base, {dtype, device}); });
  // For graphs alone.
  op("resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& size, std::optional<MemoryFormat> format) {
        return resized(self, size, format, "resize");
      });
  // For graphs alone.
  op("resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& like, std::optional<MemoryFormat> format) {
        TENON_CHECK(like.defined(), "[resize_as] expected a tensor, got an undefined one");
        if (format == MemoryFormat::Preserve) format = like.suggested_format();
        return resized(self, like.sym_sizes(), format, "resize_as");
      });
  op("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)")
      .decompose([](const Tensor& self, const Tensor& like, std::optional<MemoryFormat> format) {
        TENON_CHECK(like.defined(), "[resize_as_] expected a tensor, got an undefined one");
        if (format == MemoryFormat::Preserve) format = like.suggested_format();
        static const dispatch::Operator& resize = dispatch::find_operator("aten::resize_");
        const dispatch::Value args[] = {dispatch::Value(self), dispatch::Value(like.sym_sizes()),
                                        format ? dispatch::Value(*format) : dispatch::Value()};
        return dispatch::call_boxed(resize, args)[0].take_tensor();
      })
      .moves_self();
  // `physical_layout`: the dimensions in the order in which they lie in memory, the outermost first.
  // Example: empty_permuted({2, 3}, {1, 0});
  op("empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor")
      .uninitialised()
      .shape([](const Arguments& arguments) {
        const SymInts sizes = arguments["size"].sym_ints();
        const Ints order = arguments["physical_layout"].ints();
        bool fits = sizes.size() == order.size();
        std::vector<bool> seen(sizes.size());
        SymInts strides = sizes;
        SymInt step = 1;
        for (size_t at = order.size(); fits && at-- > 0;) {
          const auto dim = static_cast<size_t>(order[at]);
          fits = order[at] >= 0 && dim < sizes.size() && !seen[dim] && may_be_size(sizes[dim]);
          if (!fits) break;
          seen[dim] = true;
          strides[dim] = step;
          step *= sizes[dim];
        }
        TENON_CHECK(fits,
                    "[empty_permuted] expected sizes of at least 0 and an order of their dimensions, got {} and "
                    "[{}]",
                    str(sizes), fmt::join(order, ", "));
        const dispatch::Value &dtype = arguments["dtype"], &device = arguments["device"];
        return std::vector{TensorMeta{sizes, strides, dtype.is_none() ? kFloat32 : dtype.dtype(),
                                      device.is_none() ? Device(kCPU) : device.device()}};
      });
}

}  // namespace tenon::ops
