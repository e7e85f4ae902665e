#include "autograd_kernel.h"

#include <tenon/autograd/engine.h>
#include <tenon/library/schema_checks.h>

#include "autograd/author_formula.h"
#include "autograd/forward_mode.h"
#include "autograd/layers.h"
#include "autograd/operation.h"

namespace tenon::library {
namespace {

using dispatch::Value;

// What an argument of the call was, for checking and flattening its gradient.
struct ArgumentShape {
  std::string name;
  bool list = false;
  bool tensors = false;  // a tensor, an optional tensor or a list
  size_t count = 0;      // entries in the flat list: one for everything but lists
};

void flatten_gradient(const std::string& op, const ArgumentShape& shape, const AnyValue& gradient,
                      std::vector<Tensor>& flat) {
  auto add = [&](const AnyValue& each) {
    TENON_CHECK(each.is_none() || each.is_tensor(),
                "[{}] backward gave {} as the gradient of '{}': expected a tensor or nothing", op, each.str(),
                shape.name);
    flat.push_back(each.is_tensor() ? each.tensor() : Tensor());
  };
  if (!shape.list) {
    if (!shape.tensors)
      TENON_CHECK(gradient.is_none() || (gradient.is_tensor() && !gradient.tensor().defined()),
                  "[{}] backward gave {} as the gradient of '{}', which is no tensor", op, gradient.str(), shape.name);
    return add(gradient);
  }
  if (gradient.is_none()) {
    flat.resize(flat.size() + shape.count);
    return;
  }
  TENON_CHECK(gradient.is_list(), "[{}] backward gave {} for '{}': expected a list of gradients", op, gradient.str(),
              shape.name);
  TENON_CHECK(gradient.list().size() == shape.count, "[{}] for '{}' expected a list of {} gradients but got {}", op,
              shape.name, shape.count, gradient.list().size());
  for (const AnyValue& each : gradient.list()) add(each);
}

std::vector<Tensor> flatten_gradients(const std::string& op, const std::vector<ArgumentShape>& shapes,
                                      std::vector<AnyValue> gradients) {
  // Arguments at the end that take no gradient need none.
  size_t needed = shapes.size();
  while (needed > 0 && !shapes[needed - 1].tensors) --needed;
  // An operator on one list may give the list's gradients as they are.
  if (shapes.size() == 1 && shapes[0].list && !(gradients.size() == 1 && gradients[0].is_list()))
    gradients = {AnyValue(AnyValue::List(gradients.begin(), gradients.end()))};
  TENON_CHECK(gradients.size() >= needed && gradients.size() <= shapes.size(),
              "[{}] backward returned an incorrect number of gradients (expected {}, got {})", op, shapes.size(),
              gradients.size());
  gradients.resize(shapes.size());
  std::vector<Tensor> flat;
  for (size_t at = 0; at < shapes.size(); ++at) flatten_gradient(op, shapes[at], gradients[at], flat);
  return flat;
}

}  // namespace

void run_below_autograd(dispatch::Call& call) {
  autograd::refuse_tangents(call);
  dispatch::ExcludeKeys below(autograd::kAutogradAndAbove);
  dispatch::redispatch(call, call.keys.below(DispatchKey::Autograd));
}

bool is_recorded(const dispatch::Call& call) {
  if (!autograd::grad_enabled()) return false;
  bool any = false;
  for (const Value& value : call.args)
    value.each_tensor([&](const Tensor& tensor) {
      any =
          any || (tensor.defined() && tensor.impl()->autograd && tensor.is_floating_point() && tensor.requires_grad());
    });
  return any;
}

Inputs inputs_of(const dispatch::Call& call, bool keyword_only) {
  std::vector<std::string_view> names;
  std::vector<Value> values;
  const schema::Schema& schema = call.op.schema();
  for (size_t at = 0; at < schema.arguments.size(); ++at) {
    if (schema.arguments[at].keyword_only != keyword_only) continue;
    names.push_back(schema.arguments[at].name);
    values.push_back(call.args[at]);
  }
  return Inputs(std::move(names), std::move(values));
}

std::vector<Tensor> flatten_tensors(std::span<const Value> values) {
  std::vector<Tensor> flat;
  for (const Value& value : values) value.each_tensor([&](const Tensor& tensor) { flat.push_back(tensor); });
  return flat;
}

void replace_tensors(dispatch::Results& values, std::span<const Tensor> tensors) {
  size_t next = 0;
  for (Value& value : values) {
    bool any = false;
    value.each_tensor([&](const Tensor&) { any = true; });
    if (any) value = value.map_tensors([&](const Tensor&) { return tensors[next++]; });
  }
}

std::vector<ResultShape> shapes_of(const dispatch::Results& results) {
  std::vector<ResultShape> shapes;
  for (const Value& result : results) {
    ResultShape shape;
    shape.list = result.tag() == Value::Tag::Tensors || result.tag() == Value::Tag::OptionalTensors;
    shape.tensors = shape.list || result.is_tensor();
    result.each_tensor([&](const Tensor&) { ++shape.count; });
    shapes.push_back(shape);
  }
  return shapes;
}

std::vector<AnyValue> group_gradients(const std::vector<ResultShape>& shapes, const std::vector<Tensor>& gradients) {
  std::vector<AnyValue> grouped;
  size_t next = 0;
  auto one = [&]() -> AnyValue {
    const Tensor& gradient = gradients[next++];
    return gradient.defined() ? AnyValue(gradient) : AnyValue();
  };
  for (const ResultShape& shape : shapes) {
    if (!shape.list) {
      grouped.push_back(shape.count == 1 ? one() : AnyValue());
      continue;
    }
    AnyValue::List list;
    for (size_t at = 0; at < shape.count; ++at) list.push_back(one());
    grouped.emplace_back(std::move(list));
  }
  return grouped;
}

void run_with_formula(dispatch::Call& call, const std::shared_ptr<const Formula>& formula) {
  autograd::Operation numbered;
  const schema::Schema& schema = call.op.schema();
  std::vector<ArgumentShape> shapes;
  std::vector<Tensor> flat;
  std::vector<uint32_t> counts;
  for (size_t at = 0; at < schema.arguments.size(); ++at) {
    const schema::Argument& argument = schema.arguments[at];
    if (argument.keyword_only) continue;
    const Value& value = call.args[at];
    // A list that was not given is like any other argument that was not.
    bool list = is_tensorlist_like(argument.type) && !value.is_none();
    ArgumentShape shape{argument.name, list, argument.type.is_tensor_like(), 1};
    if (value.tag() == Value::Tag::Tensors) {
      shape.count = value.tensors().size();
      for (const Tensor& tensor : value.tensors()) flat.push_back(tensor);
    } else if (value.tag() == Value::Tag::OptionalTensors) {
      shape.count = value.optional_tensors().size();
      for (const auto& tensor : value.optional_tensors()) flat.push_back(tensor.value_or(Tensor()));
    } else {
      flat.push_back(value.is_tensor() ? value.tensor() : Tensor());
    }
    counts.push_back(static_cast<uint32_t>(shape.count));
    shapes.push_back(std::move(shape));
  }
  auto result_shapes = std::make_shared<std::vector<ResultShape>>();
  auto node = make_ref<autograd::FunctionNode>(call.op.name(), [formula, shapes = std::move(shapes), result_shapes,
                                                                name = call.op.name()](AutogradContext& context,
                                                                                       std::vector<Tensor> gradients) {
    if (!formula)
      throw autograd::NoDerivative(
          fmt::format("[{0}] Trying to backward through {0} but no autograd formula was registered: use "
                      "register_autograd to add one",
                      name));
    return autograd::AuthorFormula::run(name, [&] {
      return flatten_gradients(name, shapes, formula->backward(context, group_gradients(*result_shapes, gradients)));
    });
  });
  node->connect(flat, std::move(counts));
  run_below_autograd(call);
  *result_shapes = shapes_of(call.results);
  if (formula && formula->setup_context) {
    autograd::NoGrad off;
    formula->setup_context(node->context(), inputs_of(call, false), inputs_of(call, true), call.results.span());
  }
  std::vector<Tensor> results = flatten_tensors(call.results.span());
  node->finish(flat, results);
  replace_tensors(call.results, results);
}

}  // namespace tenon::library
