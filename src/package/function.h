// What a file of a compiled function holds: for each way in which it was compiled what must hold for a call to take it
// (guards), the plan that runs, and how the function's results come about; and the tensors that it reaches by itself.
#pragma once

#include <tenon/core/alias_classes.h>
#include <tenon/core/size_guards.h>
#include <tenon/runtime/plan.h>

#include <functional>
#include <optional>

namespace tenon::package {

// Where a call finds a tensor: among its arguments, or in the file. Neither: nothing looks at it.
struct Place {
  enum class Kind : uint8_t { Nowhere, Argument, File } kind = Kind::Nowhere;
  int32_t index = -1;
  bool operator==(const Place&) const = default;
};

struct ArgumentRule {
  std::string name;
  Dtype dtype = kFloat32;
  int64_t rank = 0;
};

// How one result of the function comes about.
struct ResultRule {
  enum class Kind : uint8_t {
    Constant,
    Output,         // number `index` of the plan's
    Number,         // an expression
    Tensor,         // an argument, or a tensor of the file, itself
    ViewOfOutput,   // that looks into an output,
    ViewOfTensor,   // or into such a tensor
    SameAsAnother,  // the very tensor that an earlier result is
  } kind = Kind::Constant;
  int32_t index = -1;
  Place place = {};
  std::vector<sym::Expr> sizes = {}, strides = {};  // of a view
  sym::Expr offset = {};                            // behind where the other begins
  sym::Expr number = {};
  dispatch::Value constant = {};
};

// The plan computes the new content of a tensor that the function writes to.
struct WriteBack {
  int32_t output = -1;
  Place place = {};
};

struct Variant {
  std::vector<dispatch::Value> constants;  // of the call
  std::vector<int32_t> same_as;            // by argument: the first that is the same tensor
  std::vector<ArgumentRule> arguments;
  std::vector<Place> inputs;         // that guards speak of
  std::vector<int64_t> own_numbers;  // behind the call's: what cells held; bits
  core::SizeGuards sizes;
  std::vector<Place> aliased;  // what `aliases` speaks of
  core::AliasClasses aliases;

  std::vector<Place> plan_inputs;
  std::vector<std::optional<sym::Expr>> seeds;  // what the function does to the generator: seeds it, or draws
  runtime::Plan plan;
  std::vector<int32_t> bound;  // symbols whose values are the plan's last outputs
  std::vector<WriteBack> written;
  std::vector<ResultRule> results;
};

struct Function {
  std::string name;
  bool numbers_are_constants = false;
  std::vector<Variant> variants;
  std::vector<std::string> tensor_names;
  std::vector<Tensor> tensors;
};

// A plan, then those inside of it, always in the same order.
void each_plan(const runtime::Plan& plan, const std::function<void(const runtime::Plan&)>& visit);

// An Error if it speaks of what is not there: of a step, an expression, a tensor. `tensors`: how many the file has.
void check(const Variant& variant, size_t tensors);

// Runs the first variant that fits. An Error that says what does not hold if none does.
std::vector<dispatch::Value> call(const Function& function, std::span<const Tensor> tensors,
                                  std::span<const dispatch::Value> numbers, std::span<const dispatch::Value> constants);

}  // namespace tenon::package
