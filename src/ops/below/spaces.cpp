// Numbers at even steps between two that may be tensors, or their powers; memory in a given order, or of other sizes.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <cmath>

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

using OptionalDtype = std::optional<Dtype>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using OptionalBool = std::optional<bool>;

}  // namespace

OPS(spaces) {
  op("linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Tensor& end, int64_t steps, OptionalDtype dtype, OptionalLayout,
                    OptionalDevice device, OptionalBool) { return linear(start, end, steps, {dtype, device}); });
  op("linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Scalar& end, int64_t steps, OptionalDtype dtype, OptionalLayout,
                    OptionalDevice device,
                    OptionalBool) { return linear(start, number(end), steps, {dtype, device}); });
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
  op("logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Tensor& end, int64_t steps, double base, OptionalDtype dtype,
                    OptionalLayout, OptionalDevice device,
                    OptionalBool) { return powers(start, end, steps, base, {dtype, device}); });
  op("logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Tensor& start, const Scalar& end, int64_t steps, double base, OptionalDtype dtype,
                    OptionalLayout, OptionalDevice device,
                    OptionalBool) { return powers(start, number(end), steps, base, {dtype, device}); });
  op("logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .decompose([](const Scalar& start, const Tensor& end, int64_t steps, double base, OptionalDtype dtype,
                    OptionalLayout, OptionalDevice device,
                    OptionalBool) { return powers(number(start), end, steps, base, {dtype, device}); });
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
