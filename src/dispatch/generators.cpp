#include "core/effects.h"

#include <tenon/core/generators.h>
#include <tenon/generated/ops.h>

namespace tenon {

Tensor with_generator(Generator& generator, const std::function<Tensor()>& function) {
  TENON_CHECK(!core::effect_interceptor(),
              "[with_generator] cannot be part of a compiled function: the draws of its graphs are the default "
              "generator's. Write rand(size, generator), or call it outside and give the result as an argument");
  UseGenerator here(generator);
  return function();
}

namespace {

// Plain numbers: a compiled function repeats the call with them.
SymInts plain(const SymInts& size) {
  SymInts numbers;
  for (const SymInt& each : size) numbers.push_back(SymInt(int64_t(each)));
  return numbers;
}

// A function of numbers alone. In a capture it is an effect, done at every call.
Tensor drawn(Generator& generator, std::function<Tensor()> function) {
  auto draw = [&generator, function = std::move(function)](std::span<const Tensor>) {
    UseGenerator here(generator);
    return std::vector<Tensor>{function()};
  };
  if (const core::EffectInterceptor* instead = core::effect_interceptor())
    return (*instead)({"a random operator draws from a generator of its own", {}, draw}).at(0);
  return draw({})[0];
}

}  // namespace

Tensor rand(const SymInts& size, Generator& generator, const TensorOptions& options) {
  return drawn(generator, [sizes = plain(size), options] { return rand(sizes, options); });
}
Tensor randn(const SymInts& size, Generator& generator, const TensorOptions& options) {
  return drawn(generator, [sizes = plain(size), options] { return randn(sizes, options); });
}
Tensor randint(int64_t low, int64_t high, const SymInts& size, Generator& generator, const TensorOptions& options) {
  return drawn(generator, [low, high, sizes = plain(size), options] { return randint(low, high, sizes, options); });
}
Tensor randint(int64_t high, const SymInts& size, Generator& generator, const TensorOptions& options) {
  return randint(0, high, size, generator, options);
}
Tensor rand_like(const Tensor& self, Generator& generator, const TensorOptions& options) {
  return rand(self.sym_sizes(), generator, TensorOptions(options.dtype.value_or(self.dtype())));
}
Tensor randn_like(const Tensor& self, Generator& generator, const TensorOptions& options) {
  return randn(self.sym_sizes(), generator, TensorOptions(options.dtype.value_or(self.dtype())));
}
Tensor bernoulli(const Tensor& probabilities, Generator& generator) {
  Tensor uniform = rand(probabilities.sym_sizes(), generator, TensorOptions(probabilities.dtype()));
  return (uniform < probabilities).to(probabilities.dtype());
}

}  // namespace tenon
