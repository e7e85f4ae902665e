// Bodies: what a step of a plan runs as a whole, any number of times: the body of a loop, a branch.
//
// A body is a plan inside of the plan. It is called with numbers, which are the symbols of its sizes, and it may have
// been compiled in several ways, each for the numbers that its conditions hold for. A body in a process compiles what
// is missing; one from a file has what was saved.
#pragma once

#include <tenon/core/tensor.h>
#include <tenon/dispatch/operator.h>
#include <tenon/dispatch/value.h>
#include <tenon/sym/shape_env.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::runtime {

struct Plan;

// What a tensor of a body is like, in the symbols of its numbers.
struct BodyTensor {
  Dtype dtype = kFloat32;
  std::vector<sym::Expr> sizes, strides;
};

struct BodyShape {
  Ref<sym::ShapeEnv> env;  // owns the expressions
  std::vector<BodyTensor> inputs, results;
};

// One way of compiling a body.
struct BodyPlan {
  Ref<sym::ShapeEnv> env;  // of the conditions
  std::vector<sym::Expr> conditions;
  std::shared_ptr<const Plan> plan;
  // By result of the body: which output of the plan, or, below zero, which input: -1 is the first.
  std::vector<int32_t> results;
  // Without a plan: how it is run instead.
  std::function<std::vector<dispatch::Value>(std::span<const Tensor>, std::span<const int64_t>)> run = {};
};
using BodyPlanRef = std::shared_ptr<const BodyPlan>;

// Whether it was compiled for such numbers.
bool holds(const BodyPlan& plan, std::span<const int64_t> numbers);
// Inputs lie as the body's shape says.
std::vector<Tensor> run(const BodyPlan& plan, std::span<const Tensor> inputs, std::span<const int64_t> numbers);

class Body {
 public:
  explicit Body(BodyShape shape) : shape_(std::move(shape)) {}
  virtual ~Body() = default;
  const BodyShape& shape() const { return shape_; }
  // An Error, or what is compiled now, if there is none for such numbers.
  virtual BodyPlanRef find(std::span<const int64_t> numbers) = 0;
  // As many as there are by now.
  virtual std::vector<BodyPlanRef> plans() const = 0;

 protected:
  BodyShape shape_;
};
using BodyRef = std::shared_ptr<Body>;

// Of a file.
class SavedBody final : public Body {
 public:
  SavedBody(BodyShape shape, std::vector<BodyPlanRef> plans) : Body(std::move(shape)), plans_(std::move(plans)) {}
  BodyPlanRef find(std::span<const int64_t> numbers) override;
  std::vector<BodyPlanRef> plans() const override { return plans_; }

 private:
  std::vector<BodyPlanRef> plans_;
};

// What an operator with bodies does. By kind, its arguments:
//   Scan    Tensor[] carry, Tensor[] xs, Tensor[] captured, SymInt[] numbers, SymInt steps, bool reverse
//   Branch  Tensor predicate, Tensor[] captured, SymInt[] numbers
//   While   Tensor[] carry, Tensor[] captured, SymInt[] numbers
// and its results, as one list:
//   Scan    the last carry; what was kept of each step, along a new first dimension
//   Branch  those of the branch that was taken
//   While   the last carry; what was kept, likewise; if anything was
struct Bodies {
  enum class Kind : uint8_t { Scan, Branch, While } kind = Kind::Scan;
  std::string name;             // of the operator
  std::vector<BodyRef> bodies;  // Scan: the body. Branch: if it holds, if not. While: the condition, the body
  size_t carried = 0;           // by Scan and While
};
using BodiesRef = std::shared_ptr<const Bodies>;

std::vector<Tensor> run(const Bodies& bodies, std::span<const dispatch::Value> arguments);

// Plans run such operators by themselves, if it is known here what they do. Null: it is not.
void set_bodies_of(const dispatch::Operator& op, BodiesRef bodies);
BodiesRef bodies_of(const dispatch::Operator& op);

}  // namespace tenon::runtime
