// Random numbers from a generator of one's own.
//
//   Generator generator(7);
//   Tensor noise = rand({2, 3}, generator), normal = randn({3}, generator, kFloat64);
//   Tensor whole = randint(0, 10, {4}, generator), flags = bernoulli(noise, generator);
//   Tensor alike = rand_like(x, generator), also = randn_like(x, generator);
//   generator.manual_seed(7);                        // rand({2, 3}, generator) is `noise` again
//   Tensor other = with_generator(generator, [&] { return dropout(x, 0.5, true); });
//
// The default generator is left alone. In a compiled function these are done at every call, between two graphs, and the
// generator must live as long as the function is called; `with_generator` is refused there.
#pragma once

#include <tenon/core/random.h>
#include <tenon/core/tensor.h>

#include <functional>

namespace tenon {

// While one lives, random operators that this thread runs draw from the generator. The draws of compiled functions are
// the default generator's all the same.
//
//   Generator generator(7);
//   UseGenerator here(generator);
//   Tensor noise = rand({2});
class UseGenerator {
 public:
  explicit UseGenerator(Generator& generator);
  ~UseGenerator();
  UseGenerator(const UseGenerator&) = delete;
  UseGenerator& operator=(const UseGenerator&) = delete;

 private:
  Generator* before_;
};

// What the function draws comes from the generator.
Tensor with_generator(Generator& generator, const std::function<Tensor()>& function);

Tensor rand(const SymInts& size, Generator& generator, const TensorOptions& options = {});
Tensor randn(const SymInts& size, Generator& generator, const TensorOptions& options = {});
Tensor randint(int64_t low, int64_t high, const SymInts& size, Generator& generator, const TensorOptions& options = {});
Tensor randint(int64_t high, const SymInts& size, Generator& generator, const TensorOptions& options = {});
Tensor bernoulli(const Tensor& probabilities, Generator& generator);
Tensor rand_like(const Tensor& self, Generator& generator, const TensorOptions& options = {});
Tensor randn_like(const Tensor& self, Generator& generator, const TensorOptions& options = {});

}  // namespace tenon
