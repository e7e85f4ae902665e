// Arguments from a schema: shapes and kinds of elements are guessed and tried; what the operator takes is a sample.
#include "checks.h"
#include "copies.h"

#include <tenon/core/random.h>
#include <tenon/generated/ops.h>

#include <set>

namespace tenon::opcheck {
namespace {

using schema::Kind;

struct Guess {
  Ints shape;
  bool transposed = false;
};

// From what most operators take to what few do.
const Guess kGuesses[] = {{{4, 4}}, {{3, 4}}, {{3, 4}, true}, {{5}}, {{2, 3, 4}}, {{2, 4, 6, 6}}, {{}}, {{1}}};
constexpr size_t kEnough = 4;

bool is_named(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Tensor make_tensor(const std::string& name, const Guess& guess, bool whole_numbers) {
  SymInts sizes(guess.shape.span());
  if (whole_numbers || is_named(name, {"index", "indices", "target", "offsets"}))
    return zeros(sizes, TensorOptions(kInt64));
  if (is_named(name, {"mask", "condition"})) return rand(sizes) > 0.5;
  Tensor made = rand(sizes) + 0.25;  // away from zero, where divisions and logarithms have their trouble
  if (guess.transposed) made = made.t().contiguous().t();
  return made.detach().set_requires_grad();
}

// Nothing for a kind that cannot be guessed.
std::optional<Value> make_value(const schema::Argument& argument, const schema::Type& type, const Guess& guess,
                                bool whole_numbers) {
  if (argument.default_value) return dispatch::default_value(argument);
  if (type.is_optional()) return Value();
  switch (type.kind) {
    case Kind::Tensor: return Value(make_tensor(argument.name, guess, whole_numbers));
    case Kind::Int:
    case Kind::SymInt: return Value(int64_t{is_named(argument.name, {"dim", "start", "axis"}) ? 0 : 1});
    case Kind::Float: return Value(0.5);
    case Kind::Bool: return Value(false);
    case Kind::Str: return Value(std::string_view("none"));
    case Kind::Scalar: return Value(Scalar(2));
    case Kind::ScalarType: return Value(kFloat32);
    case Kind::Device: return Value(kCPU);
    case Kind::MemoryFormat: return Value(MemoryFormat::Contiguous);
    case Kind::Layout: return Value(Layout::Strided);
    case Kind::List: break;
    default: return std::nullopt;
  }
  const schema::Type& element = type.element[0];
  if (element.kind == Kind::Tensor) {
    std::vector<Tensor> list = {make_tensor(argument.name, guess, whole_numbers),
                                make_tensor(argument.name, guess, whole_numbers)};
    return Value(list).own();
  }
  if (element.is_optional()) {
    std::vector<std::optional<Tensor>> list = {make_tensor(argument.name, guess, whole_numbers), std::nullopt};
    return Value(list).own();
  }
  if (element.kind == Kind::Int || element.kind == Kind::SymInt) {
    // Sizes of a view: all elements in one dimension. Otherwise the first dimension.
    bool sizes = is_named(argument.name, {"size", "sizes", "shape"});
    std::vector<int64_t> list(static_cast<size_t>(type.length.value_or(1)), sizes ? -1 : 0);
    return Value(std::span<const int64_t>(list)).own();
  }
  if (element.kind == Kind::Float) return Value(std::vector<double>{0.5}).own();
  if (element.kind == Kind::Bool) return Value(std::vector<bool>{true}).own();
  return std::nullopt;
}

}  // namespace

std::vector<Values> samples(const Subject& subject) {
  const Operator& op = subject.op();
  std::vector<Values> taken;
  std::set<std::string> refusals;
  for (bool whole_numbers : {false, true}) {
    for (const Guess& guess : kGuesses) {
      Values args;
      for (const schema::Argument& argument : op.schema().arguments) {
        std::optional<Value> value = make_value(argument, argument.type, guess, whole_numbers);
        if (!value)
          fail<ValueError>("[opcheck] no value can be made up for the argument '{}': pass arguments: {}", argument.name,
                           op.schema().str());
        args.push_back(std::move(*value));
      }
      try {
        autograd::NoGrad off;
        dispatch::call_boxed(op, copy_arguments(args));
      } catch (const std::exception& error) {
        refusals.insert(error.what());
        continue;
      }
      taken.push_back(std::move(args));
      bool any_tensor = !tensors_of(taken.back()).empty();
      if (taken.size() == kEnough || !any_tensor) return taken;
    }
    if (!taken.empty()) return taken;
  }
  fail<ValueError>("[opcheck] no arguments could be found that {} takes: pass some. It said:\n  {}", op.schema().str(),
                   fmt::join(refusals, "\n  "));
}

}  // namespace tenon::opcheck
