#include "autograd/author_formula.h"
#include "autograd_kernel.h"
#include "devices.h"
#include "support/at_fork.h"

#include <tenon/library/legacy.h>
#include <tenon/library/schema_checks.h>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

namespace tenon::library::legacy {
namespace {

using dispatch::KernelKey;
using dispatch::Registration;
using dispatch::Value;

// What has been registered for an operator; of one that another library defined, only the backward side, which its
// Autograd kernel keeps.
struct State {
  dispatch::OperatorRef op;
  std::vector<Registration> registrations;  // the definition first
  Save save;
  Backward backward;
  std::vector<bool> differentiable;  // by result; empty: all tensors
  uint64_t definition = 0;           // of the operator that all this belongs to
};
using StateRef = std::shared_ptr<State>;

struct States {
  support::ForkSafe<std::mutex> mutex;
  std::map<std::string, StateRef, std::less<>> by_name;
  static States& all() {
    static auto* states = new States;
    return *states;
  }
};

// "{'x', 'y'}"
std::string braces(const std::set<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back("'" + name + "'");
  return fmt::format("{{{}}}", fmt::join(quoted, ", "));
}

struct ArgumentGradient {
  std::string name;
  bool list = false;
  size_t count = 1;
};

void append_gradients(const std::string& op, const ArgumentGradient& argument, const AnyValue& gradient,
                      std::vector<Tensor>& flat) {
  auto tensor = [](const AnyValue& each) { return each.is_tensor() ? each.tensor() : Tensor(); };
  if (!argument.list) {
    TENON_CHECK(gradient.is_none() || gradient.is_tensor(),
                "[{}] expected the gradient of '{}' from the backward function to be either None or a Tensor, got {}",
                op, argument.name, gradient.kind());
    flat.push_back(tensor(gradient));
    return;
  }
  TENON_CHECK(gradient.is_list(),
              "[{}] for the input '{}' expected the backward function to give a list of gradients, got {}", op,
              argument.name, gradient.kind());
  TENON_CHECK(gradient.list().size() == argument.count,
              "[{}] for the input '{}' expected the backward function to give {} gradients but got {}", op,
              argument.name, argument.count, gradient.list().size());
  for (const AnyValue& each : gradient.list()) {
    TENON_CHECK(each.is_none() || each.is_tensor(),
                "[{}] for the input '{}' expected a list of gradients that are None or Tensor, got {}", op,
                argument.name, each.kind());
    flat.push_back(tensor(each));
  }
}

// The dictionary that backward gave, checked, as a flat list.
std::vector<Tensor> read_gradients(const schema::Schema& schema, const std::vector<ArgumentGradient>& arguments,
                                   const AnyValue& given) {
  std::string op = schema.qualified_name();
  TENON_CHECK(given.is_dict(), "[{}] expected the output of the backward function to be a dict, got {}", op,
              given.kind());
  std::set<std::string> expected, got;
  for (const ArgumentGradient& argument : arguments) expected.insert(argument.name);
  for (const AnyValue::Entry& entry : given.dict()) got.insert(entry.key.string());
  for (const std::string& key : got)
    TENON_CHECK(schema.argument_index(key) < 0 || expected.contains(key),
                "[{}] expected the returned dict to have keys {}, got {}: '{}' is of the non-Tensor-like types, which "
                "have no gradient",
                op, braces(expected), braces(got), key);
  TENON_CHECK(expected == got, "[{}] expected the returned dict to have keys {}, got {}", op, braces(expected),
              braces(got));
  std::vector<Tensor> flat;
  for (const ArgumentGradient& argument : arguments) append_gradients(op, argument, *given.find(argument.name), flat);
  return flat;
}

void check_results(const State& state, const dispatch::Results& results) {
  for (size_t at = 0; at < state.differentiable.size(); ++at) {
    bool tensors = results[at].is_tensor() || results[at].is_tensors();
    TENON_CHECK(!state.differentiable[at] || tensors,
                "[{}] output_differentiability says that result {} is differentiable, but it is not a Tensor or a list "
                "of them: {}",
                state.op->name(), at, results[at].str());
  }
}

void record(dispatch::Call& call, const StateRef& state) {
  std::vector<ArgumentGradient> arguments;
  std::vector<Tensor> flat;
  std::vector<uint32_t> counts;
  const schema::Schema& schema = call.op.schema();
  for (size_t at = 0; at < schema.arguments.size(); ++at) {
    if (!schema.arguments[at].type.is_tensor_like()) continue;
    const Value& value = call.args[at];
    ArgumentGradient argument{schema.arguments[at].name,
                              value.is_tensors() || value.tag() == Value::Tag::OptionalTensors, 1};
    size_t before = flat.size();
    if (value.tag() == Value::Tag::OptionalTensors)
      for (const auto& tensor : value.optional_tensors()) flat.push_back(tensor.value_or(Tensor()));
    else if (value.is_none())
      flat.emplace_back();
    else
      value.each_tensor([&](const Tensor& tensor) { flat.push_back(tensor); });
    argument.count = flat.size() - before;
    counts.push_back(static_cast<uint32_t>(argument.count));
    arguments.push_back(std::move(argument));
  }
  struct Kept {
    AnyValue saved;
    std::vector<ResultShape> shapes;
  };
  auto kept = std::make_shared<Kept>();
  auto node =
      make_ref<autograd::FunctionNode>(call.op.name(), [state, kept, arguments, op = dispatch::OperatorRef(call.op)](
                                                           AutogradContext& context, std::vector<Tensor> gradients) {
        return autograd::AuthorFormula::run(op->name(), [&] {
          return read_gradients(op->schema(), arguments,
                                state->backward(context, kept->saved, group_gradients(kept->shapes, gradients)));
        });
      });
  node->connect(flat, std::move(counts));
  run_below_autograd(call);
  check_results(*state, call.results);
  kept->shapes = shapes_of(call.results);
  {
    autograd::NoGrad off;
    kept->saved = state->save(inputs_of(call, false), call.results.span());
  }
  std::vector<Tensor> results = flatten_tensors(call.results.span()), fixed;
  size_t next = 0;
  for (size_t at = 0; at < kept->shapes.size(); ++at)
    for (size_t each = 0; each < kept->shapes[at].count; ++each, ++next)
      if (at < state->differentiable.size() && !state->differentiable[at]) fixed.push_back(results[next]);
  node->context().mark_non_differentiable(std::move(fixed));
  node->finish(flat, results);
  replace_tensors(call.results, results);
}

// `state` gives what is registered, or null.
KernelFunction autograd_kernel(std::function<StateRef()> state) {
  return [state = std::move(state)](dispatch::Call& call) {
    if (!is_recorded(call)) return run_below_autograd(call);
    StateRef self = state();
    TENON_CHECK(self && (self->backward || self->save),
                "[{0}] Autograd has not been implemented for operator {0}: use impl_backward", call.op.name());
    TENON_CHECK(self->save, "[{}] unable to find a 'save_for_backward' registration: backward needs one",
                call.op.name());
    TENON_CHECK(self->backward, "[{}] unable to find a 'backward' registration beside 'save_for_backward'",
                call.op.name());
    record(call, self);
  };
}

// The state to register the backward side in; an Error if the operator cannot have one.
StateRef state_for_backward(std::string_view name, const std::string& place) {
  States& all = States::all();
  {
    std::lock_guard lock(all.mutex);
    auto found = all.by_name.find(name);
    if (found != all.by_name.end() && found->second->definition == dispatch::definition_number(*found->second->op))
      return found->second;
  }
  Ref<Operator> op = dispatch::hold_operator(name);
  TENON_CHECK(op, "[library] there is no operator '{}'", name);
  struct Known {
    support::ForkSafe<std::mutex> mutex;
    std::weak_ptr<State> state;
  };
  Known& known = op->derived<Known>([] { return std::make_shared<Known>(); });
  std::lock_guard known_lock(known.mutex);
  if (StateRef state = known.state.lock(); state && state->definition == dispatch::definition_number(*op)) return state;
  const schema::Schema& schema = op->schema();
  auto refuse = [&](std::string_view why) {
    fail("[{}] cannot register a backward for {}: {}", name, why, schema.str());
  };
  if (schema.is_view()) refuse("an operator that returns views");
  if (schema.is_mutable()) refuse("a non-functional operator");
  if (schema.returns.empty()) refuse("an operator with no returns");
  for (KernelKey key :
       {KernelKey::CompositeImplicitAutograd, KernelKey::Autograd, KernelKey::AutogradCPU, KernelKey::AutogradCUDA})
    if (dispatch::has_kernel(*op, key))
      refuse(fmt::format("an operator that has an implementation for {}", dispatch::name(key)));
  auto state = std::make_shared<State>();
  state->op = op.get();
  state->definition = dispatch::definition_number(*op);
  dispatch::register_scoped(*op, KernelKey::Autograd, autograd_kernel([state] { return state; }), place).keep();
  known.state = state;
  return state;
}

}  // namespace

Operator& custom_op(std::string_view name, std::string_view schema, std::source_location where) {
  dispatch::QualifiedName parts = dispatch::parse_qualified_name(name);
  TENON_CHECK_VALUE(parts.overload.empty(), "[{}] the name of a custom operator may not have an overload ('{}')", name,
                    parts.overload);
  TENON_CHECK_VALUE(!dispatch::is_reserved_namespace(parts.ns), "[{}] {} is a reserved namespace", name, parts.ns);
  schema::Schema parsed;
  try {
    parsed = schema::parse(std::string(name) + std::string(schema));
  } catch (const Error& error) {
    fail("Invalid function schema: {}{}: {}", parts.name, schema, error.what());
  }
  for (const schema::Argument& argument : parsed.arguments)
    TENON_CHECK_VALUE(argument.name != "self", "[{}] an argument of a custom operator may not be named 'self': {}",
                      name, parsed.str());
  TENON_CHECK_VALUE(
      is_functional_operator(parsed),
      "[{}] custom_op only supports functional operators, which return something and neither write to nor "
      "alias their arguments: {}",
      name, parsed.str());
  auto state = std::make_shared<State>();
  dispatch::Defined defined = dispatch::define_scoped(std::move(parsed), {}, dispatch::place_of(where));
  state->op = &defined.op;
  state->definition = dispatch::definition_number(defined.op);
  state->registrations.push_back(std::move(defined.registration));
  std::weak_ptr<State> weak = state;
  state->registrations.push_back(dispatch::register_scoped(
      defined.op, KernelKey::Autograd, autograd_kernel([weak] { return weak.lock(); }), dispatch::place_of(where)));
  States& all = States::all();
  std::lock_guard lock(all.mutex);
  all.by_name[std::string(name)] = state;
  return defined.op;
}

Operator& get_op(std::string_view name) {
  Operator* op = dispatch::find_operator_or_null(name);
  TENON_CHECK(op, "[library] there is no operator '{}'", name);
  return *op;
}

void destroy(std::string_view name) {
  States& all = States::all();
  StateRef state;
  {
    std::lock_guard lock(all.mutex);
    auto found = all.by_name.find(name);
    if (found == all.by_name.end()) return;
    state = std::move(found->second);
    all.by_name.erase(found);
  }
  while (!state->registrations.empty()) state->registrations.pop_back();
}

void impl_function(std::string_view name, KernelFunction kernel, const std::vector<std::string>& device_types,
                   const std::string& place) {
  std::vector<KernelKey> keys = keys_of_devices(device_types, ErrorKind::Value);
  Operator& op = get_op(name);
  StateRef state;
  {
    States& all = States::all();
    std::lock_guard lock(all.mutex);
    if (auto found = all.by_name.find(name); found != all.by_name.end()) state = found->second;
  }
  for (KernelKey key : keys) {
    for (KernelKey existing : {key, KernelKey::CompositeImplicitAutograd, KernelKey::CompositeExplicitAutograd})
      TENON_CHECK(!dispatch::has_kernel(op, existing), "[{}] already has an implementation for {} ({}{})", name,
                  dispatch::name(key), dispatch::name(existing),
                  dispatch::kernel_place(op, existing).empty() ? "" : ", " + dispatch::kernel_place(op, existing));
    Registration registration = dispatch::register_scoped(op, key, kernel, place);
    if (state)
      state->registrations.push_back(std::move(registration));
    else
      registration.keep();
  }
}

void impl_save_for_backward(std::string_view name, Save save, std::source_location where) {
  StateRef state = state_for_backward(name, dispatch::place_of(where));
  TENON_CHECK(!state->save, "[{}] already has a 'save_for_backward'", name);
  state->save = std::move(save);
}

void impl_backward(std::string_view name, Backward backward, const AnyValue& output_differentiability,
                   std::source_location where) {
  StateRef state = state_for_backward(name, dispatch::place_of(where));
  TENON_CHECK(!state->backward, "[{}] already has a 'backward'", name);
  std::vector<bool> differentiable;
  if (!output_differentiability.is_none()) {
    size_t expected = state->op->schema().returns.size();
    bool good = output_differentiability.is_list() && output_differentiability.list().size() == expected;
    if (good)
      for (const AnyValue& each : output_differentiability.list()) good = good && each.is_bool();
    TENON_CHECK(good, "[{}] expected output_differentiability to be a list of {} bools, one per result, got {}", name,
                expected, output_differentiability.str());
    for (const AnyValue& each : output_differentiability.list()) differentiable.push_back(each.boolean());
  }
  state->backward = std::move(backward);
  state->differentiable = std::move(differentiable);
}

}  // namespace tenon::library::legacy
