// `Plan`: a compiled graph as a list of steps. Running it evaluates the sizes once, then allocates, launches, calls
// libraries and frees, in order.
//
// Slots hold tensors: the inputs first, then buffers and views in the order in which they are made. A number that may
// depend on sizes is an index into the plan's list of expressions. Those of the inputs' sizes are evaluated at the
// start of a run; those that need a value from data (an `item()`, the size of a `nonzero()`) once a step has bound it.
#pragma once

#include <tenon/dispatch/opaque_kernel.h>
#include <tenon/load/kernel.h>
#include <tenon/runtime/body.h>
#include <tenon/sym/shape_env.h>

#include <string>
#include <variant>
#include <vector>

namespace tenon::runtime {

using Slot = int32_t;
using ExprIndex = int32_t;

struct AllocateStep {
  Slot slot;
  std::vector<ExprIndex> sizes, strides;
  Dtype dtype;
  Slot reuse = -1;  // takes over the memory of this slot, which is dead and of the same size
};

struct ViewStep {
  Slot slot, base;
  std::vector<ExprIndex> sizes, strides;
  ExprIndex offset;  // in elements, from the base's first element
};

struct ScalarSource {
  enum class Kind : uint8_t { Constant, Expr, Seed, Offset } kind = Kind::Constant;
  uint64_t bits = 0;  // Constant
  int32_t index = 0;  // Expr: which expression; Seed, Offset: which random use
};

struct LaunchStep {
  size_t kernel;  // position in `Plan::kernels`
  std::vector<Slot> buffers;
  std::vector<ExprIndex> integers;
  std::vector<ScalarSource> scalars;
};

// An argument of a call: a constant, or what stands next among the step's inputs or numbers.
struct CallArgument {
  enum class Kind : uint8_t {
    Constant,
    Tensor,
    Tensors,
    OptionalTensors,
    Integer,
    Integers,
    Real,  // the number is its bits
    Flag,
  } kind = Kind::Constant;
  dispatch::Value constant;      // of a Constant; owned
  int64_t count = 1;             // of Tensors, Integers
  std::vector<bool> given = {};  // of OptionalTensors: by place, whether there is one
};

// A call of an operator that loops do not express: of an opaque row's kernel, or of an author's operator through the
// dispatcher.
struct CallStep {
  dispatch::OperatorRef op;
  // Of the row; null: an author's operator, which makes its results. Tensors come first among these, then numbers, as
  // tensors of one element.
  const dispatch::OpaqueKernel* kernel = nullptr;
  dispatch::Epilogue epilogue = dispatch::Epilogue::None;
  std::vector<CallArgument> arguments;
  std::vector<Slot> inputs, outputs;
  std::vector<ExprIndex> numbers;
  size_t tensors = 0;  // how many of the outputs are tensors among the operator's results
};

// Bodies that are run with these arguments: a loop, a branch.
struct BodyStep {
  BodiesRef bodies;
  std::vector<CallArgument> arguments;
  std::vector<Slot> inputs, outputs;
  std::vector<ExprIndex> numbers;
};

// What an author's operator gave must look like its fake: the rest of the plan relies on those sizes and strides.
struct CheckResultsStep {
  struct Expected {
    Slot slot;
    Dtype dtype;
    std::vector<ExprIndex> sizes, strides;
  };
  dispatch::OperatorRef op;
  std::vector<Expected> results;
};

struct FreeStep {
  Slot slot;
};

// An unbacked symbol takes its value: the element of a tensor, or a piece of its geometry.
struct BindStep {
  enum class Kind : uint8_t { Item, Size, Stride, Offset } kind;
  int32_t symbol;
  Slot slot;
  int32_t dim = 0;
};

// Evaluates the expressions that can be by now.
struct EvaluateStep {
  size_t phase;  // position in `Plan::phases`
};

// An assertion of the user's, or of an operator's, about sizes.
struct CheckStep {
  ExprIndex condition;
  sym::Guard check;
};

using Step = std::variant<AllocateStep, ViewStep, LaunchStep, CallStep, CheckResultsStep, FreeStep, BindStep,
                          EvaluateStep, CheckStep, BodyStep>;

// Expressions that are evaluated together.
struct Phase {
  sym::ExprProgram program;
  std::vector<ExprIndex> results;  // where each goes
};

struct PlanOutput {
  Slot slot = -1;         // a tensor
  ExprIndex number = -1;  // or a number
};

struct Plan {
  size_t input_count = 0;
  size_t slot_count = 0;
  std::vector<sym::Expr> expressions;  // of the graph's pool
  Ref<sym::ShapeEnv> env;              // owns that pool
  std::vector<Phase> phases;           // the first is evaluated at the start
  size_t symbol_count = 0;             // of the pool, where steps bind symbols
  std::vector<load::KernelRef> kernels;
  std::vector<Step> steps;
  std::vector<PlanOutput> outputs;
  std::vector<int32_t> draws;  // by random use: the number of the call's draw; -1: a draw of its own
};

// `symbols`: values by symbol id.
std::vector<dispatch::Value> run(const Plan& plan, std::span<const Tensor> inputs, std::span<const int64_t> symbols);

std::string to_string(const Plan& plan);

}  // namespace tenon::runtime
