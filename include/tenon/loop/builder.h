// Builds kernels: `Builder` keeps the scope in which operations are put, `Lane` is a value with arithmetic.
//
// The functions on lanes are the vocabulary of the operator table: a row's expression is written with them, and a
// builder turns it into IR. Identical operations of one scope are made once.
//
//   Builder b("relu");
//   int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
//   Expr n = b.integer("n");
//   b.loop(n, {.parallel = true, .vector = true}, [&](Expr i) {
//     Lane v = b.load(x, i);
//     b.store(out, i, maximum(v, b.constant(0.0, kFloat32)));
//   });
//   Kernel kernel = b.finish();          // verified
#pragma once

#include <tenon/loop/kernel.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <unordered_map>

namespace tenon::loop {

class Builder;

// A value in the kernel being built. Arithmetic on two lanes wants equal dtypes; a plain number takes the other's
// dtype.
class Lane {
 public:
  Lane() = default;
  Lane(Builder* builder, ValueId id, Dtype dtype) : builder_(builder), id_(id), dtype_(dtype) {}
  bool defined() const { return builder_ != nullptr; }
  Builder& builder() const { return *builder_; }
  ValueId id() const { return id_; }
  Dtype dtype() const { return dtype_; }

 private:
  Builder* builder_ = nullptr;
  ValueId id_ = kNone;
  Dtype dtype_ = Dtype::Float32;
};

struct LoopFlags {
  bool parallel = false, vector = false, reduction = false, pairwise = false;
};

class Builder {
 public:
  explicit Builder(std::string name);
  ~Builder();

  Kernel& kernel() { return kernel_; }
  sym::ExprPool& pool() { return *kernel_.pool; }

  int buffer(std::string name, Dtype dtype, BufferRole role, sym::Expr extent = {});
  sym::Expr integer(std::string name, sym::Range range = {});
  int scalar(std::string name, Dtype dtype);  // Float64, or an integer dtype

  // Runs `body` with the new loop as the current scope.
  void loop(sym::Expr extent, LoopFlags flags, const std::function<void(sym::Expr index)>& body);
  // The same in two calls, for code that cannot nest.
  sym::Expr begin_loop(sym::Expr extent, LoopFlags flags);
  void end_loop();

  // Narrow floats are widened to f32 by `load` and rounded by `store`; a store casts to the buffer's dtype if needed.
  // Inside of `when` a load has its condition; `always` says that there is something to read at any rate.
  Lane load(int buffer, sym::Expr index, bool always = false);
  void store(int buffer, sym::Expr index, Lane value);
  Lane constant(double value, Dtype dtype);
  Lane constant(int64_t value, Dtype dtype);
  Lane constant(int value, Dtype dtype) { return constant(int64_t{value}, dtype); }
  Lane parameter(int scalar);
  Lane index(sym::Expr expr);  // its value, as int64
  sym::Expr bind_index(Lane int64_value, sym::Range range = {});
  Lane random_bits(Lane seed, Lane offset, sym::Expr element);  // int64 holding 32 random bits
  Lane reduce(ReduceKind kind, Lane value);
  void check(Lane condition, std::string message);
  // What `body` loads and checks, it does only where the condition holds. Conditions of enclosing calls hold too.
  Lane when(Lane condition, const std::function<Lane()>& body);
  // What `then` gives where the condition holds, `otherwise` elsewhere: neither reads nor checks where it is not asked.
  Lane choose(Lane condition, const std::function<Lane()>& then, const std::function<Lane()>& otherwise);
  // Of the calls of `when` that are running, the outermost first; each includes those before it.
  std::span<const Lane> conditions() const { return conditions_; }

  Lane unary(OpCode code, Lane a);
  Lane binary(OpCode code, Lane a, Lane b);
  Lane compare(OpCode code, Lane a, Lane b);
  Lane select(Lane condition, Lane a, Lane b);
  // To a narrow dtype: rounds, the lane stays f32.
  Lane cast(Lane a, Dtype dtype);

  // Ends building; verifies.
  Kernel finish();

 private:
  struct Scope;
  struct Notes;
  Lane emit(Op op);
  Lane apply(OpCode code, std::initializer_list<Lane> operands);
  void require_own(Lane lane) const;
  sym::Expr fresh_symbol(const char* prefix, sym::Range range);

  Kernel kernel_;
  std::unique_ptr<Notes> notes_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Lane> conditions_;
  int next_index_ = 0;
};

// The vocabulary of rows. Names follow the IR's operations.
Lane operator+(Lane a, Lane b);
Lane operator-(Lane a, Lane b);
Lane operator*(Lane a, Lane b);
Lane operator/(Lane a, Lane b);
Lane operator-(Lane a);
Lane operator+(Lane a, double b);
Lane operator-(Lane a, double b);
Lane operator*(Lane a, double b);
Lane operator/(Lane a, double b);
Lane operator+(double a, Lane b);
Lane operator-(double a, Lane b);
Lane operator*(double a, Lane b);
Lane operator/(double a, Lane b);
Lane operator<(Lane a, Lane b);
Lane operator<=(Lane a, Lane b);
Lane operator>(Lane a, Lane b);
Lane operator>=(Lane a, Lane b);
Lane operator==(Lane a, Lane b);
Lane operator!=(Lane a, Lane b);
Lane operator<(Lane a, double b);
Lane operator<=(Lane a, double b);
Lane operator>(Lane a, double b);
Lane operator>=(Lane a, double b);
Lane operator==(Lane a, double b);
Lane operator!=(Lane a, double b);
Lane operator&(Lane a, Lane b);
Lane operator|(Lane a, Lane b);
Lane operator^(Lane a, Lane b);
Lane operator!(Lane a);
Lane abs(Lane a);
Lane sign(Lane a);
Lane floor(Lane a);
Lane ceil(Lane a);
Lane trunc(Lane a);
Lane round(Lane a);
Lane sqrt(Lane a);
Lane rsqrt(Lane a);
Lane reciprocal(Lane a);
Lane exp(Lane a);
Lane exp2(Lane a);
Lane expm1(Lane a);
Lane log(Lane a);
Lane log2(Lane a);
Lane log10(Lane a);
Lane log1p(Lane a);
Lane sin(Lane a);
Lane cos(Lane a);
Lane tan(Lane a);
Lane asin(Lane a);
Lane acos(Lane a);
Lane atan(Lane a);
Lane sinh(Lane a);
Lane cosh(Lane a);
Lane tanh(Lane a);
Lane asinh(Lane a);
Lane acosh(Lane a);
Lane atanh(Lane a);
Lane erf(Lane a);
Lane erfc(Lane a);
Lane lgamma(Lane a);  // the logarithm of the gamma function's absolute value
Lane sigmoid(Lane a);
Lane isnan(Lane a);
Lane floor_div(Lane a, Lane b);
Lane rem(Lane a, Lane b);
Lane mod(Lane a, Lane b);
Lane pow(Lane a, Lane b);
Lane atan2(Lane a, Lane b);
Lane minimum(Lane a, Lane b);
Lane maximum(Lane a, Lane b);
Lane select(Lane condition, Lane a, Lane b);
Lane cast(Lane a, Dtype dtype);
// A number of the same dtype as `like`.
Lane number(Lane like, double value);

}  // namespace tenon::loop
