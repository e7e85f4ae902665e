// Tensors from nothing.
#include <tenon/core/random.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tenon::ops {
namespace {

Device device_of(const Arguments& arguments) {
  const dispatch::Value& device = arguments["device"];
  return device.is_none() ? kCPU : device.device();
}

Dtype dtype_or(const Arguments& arguments, Dtype standard) {
  const dispatch::Value& dtype = arguments["dtype"];
  return dtype.is_none() ? standard : dtype.dtype();
}

std::vector<TensorMeta> sized(const Arguments& arguments, Dtype standard) {
  SymInts sizes = arguments["size"].sym_ints();
  for (const SymInt& size : sizes)
    TENON_CHECK(may_be_size(size), "[{}] expected sizes of at least 0, got {}", arguments.op().brief_name(),
                str(sizes));
  return {TensorMeta::contiguous(sizes, dtype_or(arguments, standard), device_of(arguments))};
}

std::vector<TensorMeta> sized_float(const Arguments& arguments) { return sized(arguments, kFloat32); }

std::vector<TensorMeta> random_shape(const Arguments& arguments) {
  std::vector<TensorMeta> metas = sized_float(arguments);
  TENON_CHECK_IMPLEMENTED(is_floating(metas[0].dtype), "[{}] expected a floating point dtype, got {}",
                          arguments.op().brief_name(), name(metas[0].dtype));
  return metas;
}

// 24 random bits as a float in [0, 1): every value is exact in float32.
Lane uniform(Element& e, Expr word, Dtype dtype) {
  loop::Builder& b = e.builder();
  Lane bits = e.random_bits(word);
  Lane high = b.binary(loop::OpCode::Shr, bits, b.constant(int64_t{8}, kInt64));
  return cast(high, dtype) * (1.0 / 16777216.0);
}

// In the order in memory of the tensor that it is made like, unless another is asked for.
Tensor laid_out_as(const Tensor& self, const Tensor& drawn, std::optional<MemoryFormat> format) {
  bool keeps = !format || *format == MemoryFormat::Preserve;
  if (keeps ? self.is_contiguous() : *format == MemoryFormat::Contiguous) return drawn;
  return copy(empty_like(self, TensorOptions(drawn.dtype(), drawn.device()), format), drawn);
}

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

// Whether there are more than 2^62 numbers from `low` to `high`, and perhaps more than 64 bits count.
bool is_vast(const SymInt& low, const SymInt& high) {
  constexpr int64_t kMany = int64_t{1} << 62;
  if (low.is_symbolic() || high.is_symbolic()) return bool(high - low > kMany);
  int64_t count;
  return __builtin_sub_overflow(high.plain(), low.plain(), &count) || count > kMany;
}

// Of a vast range: 64 random bits, taken as a number without sign. Lanes wrap, as such numbers do.
Lane vast_random_integer(Element& e, const SymInt& low, const SymInt& high) {
  loop::Builder& b = e.builder();
  Expr word = e.linear_index() * 2;
  Lane bits =
      b.binary(loop::OpCode::Shl, e.random_bits(word), b.constant(int64_t{32}, kInt64)) | e.random_bits(word + 1);
  Lane first = b.index(e.integer(low)), count = b.index(e.integer(high)) - first;
  Lane zero = b.constant(int64_t{0}, kInt64), sign = b.constant(std::numeric_limits<int64_t>::min(), kInt64);
  // More than half of all numbers count, if they are more than signed ones can say: what lies beyond is brought back by
  // one subtraction. Else by a remainder of 63 bits.
  Lane beyond = (bits ^ sign) >= (count ^ sign);
  Lane folded = select(beyond, bits - count, bits);
  Lane small = b.constant(std::numeric_limits<int64_t>::max(), kInt64);
  Lane rest = rem(bits & small, select(count > zero, count, small));
  return cast(first + select(count > zero, rest, folded), e.dtype());
}

// Whole numbers from `low` to `high` - 1: 62 random bits for each, of which the remainder is close enough to uniform.
Lane random_integer(Element& e, const SymInt& low, const SymInt& high) {
  if (is_vast(low, high)) return vast_random_integer(e, low, high);
  loop::Builder& b = e.builder();
  Expr word = e.linear_index() * 2;
  Lane upper = b.binary(loop::OpCode::Shl, e.random_bits(word) & b.constant(int64_t{0x3fffffff}, kInt64),
                        b.constant(int64_t{32}, kInt64));
  Lane bits = upper | e.random_bits(word + 1);
  return cast(b.index(e.integer(low)) + rem(bits, b.index(e.integer(high - low))), e.dtype());
}

std::vector<TensorMeta> randint_shape(const Arguments& arguments) {
  SymInt low = arguments.has("low") ? arguments["low"].sym_int() : SymInt(0), high = arguments["high"].sym_int();
  TENON_CHECK(expect(low < high), "[randint] expected a range of at least one number, got {} to {}", low.str(),
              high.str());
  return sized(arguments, kInt64);
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
  op("rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor")
      .element([](Element& e) { return uniform(e, e.linear_index(), e.dtype()); })
      .shape(random_shape)
      .random();
  // Box and Muller's method on two words for each element.
  op("randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor")
      .element([](Element& e) {
        Expr word = e.linear_index() * 2;
        Lane radius = sqrt(log(1.0 - uniform(e, word, e.dtype())) * -2.0);
        return radius * cos(uniform(e, word + 1, e.dtype()) * 6.283185307179586);
      })
      .shape(random_shape)
      .random();
  op("randint(SymInt high, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor")
      .element([](Element& e) { return random_integer(e, 0, e.arguments()["high"].sym_int()); })
      .shape(randint_shape)
      .random();
  op("randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, "
     "bool? pin_memory=None) -> Tensor")
      .element(
          [](Element& e) { return random_integer(e, e.arguments()["low"].sym_int(), e.arguments()["high"].sym_int()); })
      .shape(randint_shape)
      .random();
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
  op("rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, "
     "MemoryFormat? memory_format=None) -> Tensor")
      .decompose([](const Tensor& self, std::optional<Dtype> dtype, std::optional<Layout>, std::optional<Device>,
                    std::optional<bool>, std::optional<MemoryFormat> format) {
        return laid_out_as(self, rand(self.sym_sizes(), TensorOptions(dtype.value_or(self.dtype()), self.device())),
                           format);
      });
  op("randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, "
     "MemoryFormat? memory_format=None) -> Tensor")
      .decompose([](const Tensor& self, std::optional<Dtype> dtype, std::optional<Layout>, std::optional<Device>,
                    std::optional<bool>, std::optional<MemoryFormat> format) {
        return laid_out_as(self, randn(self.sym_sizes(), TensorOptions(dtype.value_or(self.dtype()), self.device())),
                           format);
      });
}

}  // namespace tenon::ops
