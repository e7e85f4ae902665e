// Random numbers, and what they decide: coins, and which elements drop out.
#include "ops/factory/options.h"
#include "ops/random/laid_out_as.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <limits>

namespace tenon::ops {
namespace {

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

void check_probability(double p, std::string_view op_name) {
  TENON_CHECK(p >= 0 && p <= 1, "[{}] expected a probability from 0 to 1, got {}", op_name, p);
}

Tensor draws(const Tensor& like) {
  return rand(like.sym_sizes(), TensorOptions(like.dtype() == kFloat64 ? kFloat64 : kFloat32, like.device()));
}

}  // namespace

OPS(random) {
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
  op("bernoulli(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(self.defined() && is_floating(self.dtype()), "[bernoulli] expected a tensor of probabilities, got {}",
                self.defined() ? self.description() : "an undefined one");
    return (draws(self) < self).to(self.dtype());
  });
  op("bernoulli.p(Tensor self, float p) -> Tensor").decompose([](const Tensor& self, double p) {
    TENON_CHECK(self.defined(), "[bernoulli] expected a tensor, got an undefined one");
    check_probability(p, "bernoulli");
    return (draws(self) < p).to(self.dtype());
  });
  op("dropout(Tensor input, float p, bool train) -> Tensor").decompose([](const Tensor& input, double p, bool train) {
    TENON_CHECK(input.defined(), "[dropout] expected a tensor, got an undefined one");
    check_probability(p, "dropout");
    if (!train || p == 0) return input;
    TENON_CHECK(is_floating(input.dtype()), "[dropout] expected a floating point tensor, got {}", input.description());
    if (p == 1) return input * 0;
    return input * ((draws(input) >= p).to(input.dtype()) / (1 - p));
  });
}

}  // namespace tenon::ops
