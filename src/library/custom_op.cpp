#include "autograd_kernel.h"
#include "devices.h"
#include "fake_kernel.h"
#include "support/at_fork.h"

#include "fake/unknown_numbers.h"
#include "support/out_of_memory.h"

#include <tenon/library/schema_checks.h>

#include <fmt/format.h>

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <mutex>

namespace tenon::library {

using dispatch::KernelKey;
using dispatch::Registration;
using dispatch::Value;

const Value& Inputs::operator[](std::string_view name) const {
  auto found = std::find(names_.begin(), names_.end(), name);
  TENON_CHECK(found != names_.end(), "[inputs] there is no argument '{}', only ({})", name, fmt::join(names_, ", "));
  return values_[static_cast<size_t>(found - names_.begin())];
}

OperatorHandle::OperatorHandle(std::string_view name) : op_(dispatch::hold_operator(name)) {
  TENON_CHECK(op_, "[library] there is no operator '{}'", name);
}

namespace detail {

struct CustomOpState {
  Ref<Operator> op;  // handles may outlive the definition
  std::string name;
  Registration definition;
  support::ForkSafe<std::mutex> mutex;  // of what follows
  std::map<KernelKey, Registration> kernels;
  std::shared_ptr<const KernelFunction> fake;
  std::string fake_place;
  std::shared_ptr<const Formula> formula;

  template <typename T>
  std::shared_ptr<const T> read(const std::shared_ptr<const T>& member) {
    std::lock_guard lock(mutex);
    return member;
  }
};

namespace {

struct CustomOps {
  support::ForkSafe<std::mutex> mutex;
  std::map<std::string, std::shared_ptr<CustomOpState>, std::less<>> by_name;
  static CustomOps& all() {
    static auto* ops = new CustomOps;
    return *ops;
  }
  std::shared_ptr<CustomOpState> find(std::string_view name) {
    std::lock_guard lock(mutex);
    auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
};

// The operator is opaque to functionalization and autograd, which can only be right if its results are new tensors.
void check_aliasing(const dispatch::Call& call) {
  const Storage* seen[16];
  size_t count = 0;
  auto refuse = [&](const char* what) {
    fail("[{}] the output of a custom operator may not alias {}: return a clone instead", call.op.name(), what);
  };
  for (const Value& result : call.results)
    result.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      const Storage* storage = tensor.impl()->storage.get();
      for (const Value& argument : call.args)
        argument.each_tensor([&](const Tensor& input) {
          if (input.defined() && input.impl()->storage.get() == storage) refuse("an input");
        });
      for (size_t at = 0; at < count; ++at)
        if (seen[at] == storage) refuse("another output");
      if (count < std::size(seen)) seen[count++] = storage;
    });
}

KernelFunction checked(KernelFunction kernel) {
  return [kernel = std::move(kernel)](dispatch::Call& call) {
    kernel(call);
    check_defined(call, "kernel");
    check_aliasing(call);
  };
}

}  // namespace

Tensor only_gradient(const std::vector<AnyValue>& gradients) {
  std::vector<Tensor> flat = flat_gradients(gradients);
  TENON_CHECK(flat.size() == 1, "[backward] a backward of one gradient was given {}", flat.size());
  return flat[0];
}

std::vector<Tensor> flat_gradients(const std::vector<AnyValue>& gradients) {
  std::vector<Tensor> flat;
  auto add = [&](const AnyValue& each) { flat.push_back(each.is_tensor() ? each.tensor() : Tensor()); };
  for (const AnyValue& gradient : gradients) {
    if (gradient.is_list())
      for (const AnyValue& each : gradient.list()) add(each);
    else
      add(gradient);
  }
  return flat;
}

schema::Schema custom_schema(std::string_view name, const dispatch::detail::FunctionTypes& types,
                             const CustomOpOptions& options) try {
  dispatch::QualifiedName parts = dispatch::parse_qualified_name(name);
  TENON_CHECK_VALUE(!dispatch::is_reserved_namespace(parts.ns), "[{}] {} is a reserved namespace", name, parts.ns);
  schema::Schema schema;
  if (options.schema.empty()) {
    schema = dispatch::detail::build_schema(name, types, {options.names, options.mutates});
  } else {
    schema = schema::parse(std::string(name) + options.schema);
    if (!options.names.empty()) dispatch::detail::check_names(schema, options.names);
    std::vector<std::string> written, declared;
    for (int at : schema.mutated_arguments())
      written.push_back("'" + schema.arguments[static_cast<size_t>(at)].name + "'");
    for (const std::string& each : options.mutates) declared.push_back("'" + each + "'");
    std::sort(written.begin(), written.end());
    std::sort(declared.begin(), declared.end());
    TENON_CHECK_VALUE(written == declared, "[{}] the schema says the op mutates {{{}}}, but mutates_args is {{{}}}: {}",
                      name, fmt::join(written, ", "), fmt::join(declared, ", "), schema.str());
  }
  for (const schema::Argument& argument : schema.arguments)
    TENON_CHECK_IMPLEMENTED(!argument.keyword_only || !argument.type.is_tensor_like(),
                            "[{}] custom_op does not support kwarg-only Tensor args: '{}' in {}", name, argument.name,
                            schema.str());
  return schema;
} catch (...) {
  support::rethrow_named("custom_op");
}

std::vector<Value> trailing_defaults(const Operator& op, size_t given) {
  std::vector<Value> values;
  const auto& arguments = op.schema().arguments;
  for (size_t at = given; at < arguments.size(); ++at) {
    TENON_CHECK_TYPE(arguments[at].default_value, "[{}] argument '{}' is missing: {}", op.name(), arguments[at].name,
                     op.schema().str());
    values.push_back(dispatch::default_value(arguments[at]));
  }
  return values;
}

Operator& operator_of(const CustomOpState* state) {
  TENON_CHECK(state, "[custom_op] expected an operator, got none: custom_op(name, function) makes one");
  return *state->op;
}

std::shared_ptr<CustomOpState> define_custom_op(schema::Schema schema, const std::string& place) try {
  destroy_custom_op(schema.qualified_name());
  auto state = std::make_shared<CustomOpState>();
  dispatch::Defined defined = dispatch::define_scoped(std::move(schema), {dispatch::Tag::pt2_compliant_tag}, place);
  state->op = Ref<Operator>(&defined.op);
  state->name = defined.op.name();
  state->definition = std::move(defined.registration);
  std::weak_ptr<CustomOpState> weak = state;
  KernelFunction run_fake = [weak](dispatch::Call& call) {
    std::shared_ptr<CustomOpState> self = weak.lock();
    std::shared_ptr<const KernelFunction> fake = self ? self->read(self->fake) : nullptr;
    if (!fake && tenon::fake::give_unknown_numbers(call)) return;
    if (!fake)
      fail(
          "[{0}] There was no fake impl registered for <CustomOpDef({0})>. This is necessary for "
          "compile/export/fx tracing to work (it has no fake impl or Meta kernel). Please use `{1}.register_fake` to "
          "add an fake impl.",
          call.op.name(), call.op.brief_name());
    (*fake)(call);
  };
  // Meta too: a kernel for every device would serve it otherwise, and read data that is not there.
  for (KernelKey key : {KernelKey::Fake, KernelKey::Meta})
    state->kernels[key] = dispatch::register_scoped(*state->op, key, run_fake);
  if (!state->op->schema().is_mutable())
    state->kernels[KernelKey::Autograd] =
        dispatch::register_scoped(*state->op, KernelKey::Autograd, [weak](dispatch::Call& call) {
          if (!is_recorded(call)) return run_below_autograd(call);
          std::shared_ptr<CustomOpState> self = weak.lock();
          run_with_formula(call, self ? self->read(self->formula) : nullptr);
        });
  CustomOps& all = CustomOps::all();
  std::lock_guard lock(all.mutex);
  all.by_name[state->name] = state;
  return state;
} catch (...) {
  support::rethrow_named("custom_op");
}

namespace {

// Removes the operator if it is still this one.
void remove(const std::shared_ptr<CustomOpState>& state) {
  {
    CustomOps& all = CustomOps::all();
    std::lock_guard lock(all.mutex);
    auto found = all.by_name.find(state->name);
    if (found == all.by_name.end() || found->second != state) return;
    all.by_name.erase(found);
  }
  std::lock_guard lock(state->mutex);
  state->kernels.clear();
  state->fake = nullptr;
  state->formula = nullptr;
  state->definition.reset();
}

// Whether a place lies in a library; what is in the program itself has no name.
bool in_library(const void* place) {
  Dl_info info{};
  void* map = nullptr;
  if (!dladdr1(place, &info, &map, RTLD_DL_LINKMAP) || !map) return false;
  const char* name = static_cast<const link_map*>(map)->l_name;
  return name && *name;
}

}  // namespace

void OwnedOps::add(const std::shared_ptr<CustomOpState>& state) {
  std::lock_guard lock(CustomOps::all().mutex);
  std::erase_if(ops_, [](const std::weak_ptr<CustomOpState>& each) { return each.expired(); });
  ops_.push_back(state);
}

OwnedOps::~OwnedOps() {
  if (!in_library(this)) return;
  for (const std::weak_ptr<CustomOpState>& weak : ops_)
    if (std::shared_ptr<CustomOpState> state = weak.lock()) remove(state);
}

void set_kernel(CustomOpState& state, const std::vector<std::string>& device_types, KernelFunction kernel,
                const std::string& place) try {
  for (KernelKey key : keys_of_devices(device_types)) {
    Registration before;  // dropped without the lock
    std::lock_guard lock(state.mutex);
    before = std::exchange(state.kernels[key], dispatch::replace_scoped(*state.op, key, checked(kernel), place));
  }
} catch (...) {
  support::rethrow_named("register_kernel");
}

void set_fake(const std::shared_ptr<CustomOpState>& state, KernelFunction fake, const std::string& place) try {
  auto wrapped = std::make_shared<const KernelFunction>(fake_kernel(std::move(fake)));
  std::lock_guard lock(state->mutex);
  state->fake = std::move(wrapped);
  state->fake_place = place;
} catch (...) {
  support::rethrow_named("register_fake");
}

void set_formula(CustomOpState& state, Formula formula) try {
  auto shared = std::make_shared<const Formula>(std::move(formula));
  std::lock_guard lock(state.mutex);
  state.formula = std::move(shared);
} catch (...) {
  support::rethrow_named("register_autograd");
}

}  // namespace detail

using detail::CustomOps;
using detail::CustomOpState;

namespace {

// Undone with the library, or kept until the operator goes.
void keep(Registration registration, dispatch::Library* lib) {
  if (lib)
    lib->keep(std::move(registration));
  else
    registration.keep();
}

}  // namespace

void register_kernel_function(OperatorHandle handle, const std::vector<std::string>& device_types,
                              KernelFunction kernel, dispatch::Library* lib, const std::string& place) try {
  if (std::shared_ptr<CustomOpState> state = CustomOps::all().find(handle.op().name()))
    return detail::set_kernel(*state, device_types, std::move(kernel), place);
  for (KernelKey key : keys_of_devices(device_types))
    keep(dispatch::register_scoped(handle.op(), key, kernel, place), lib);
} catch (...) {
  support::rethrow_named("register_kernel");
}

void register_fake_function(OperatorHandle handle, KernelFunction fake, dispatch::Library* lib,
                            const std::string& place) try {
  Operator& op = handle.op();
  if (std::shared_ptr<CustomOpState> state = CustomOps::all().find(op.name()))
    return detail::set_fake(state, std::move(fake), place);
  TENON_CHECK(!dispatch::has_kernel(op, KernelKey::Meta),
              "[{}] already has a Meta implementation (a kernel for the Meta key), which serves fake tensors too",
              op.name());
  TENON_CHECK(!dispatch::has_kernel(op, KernelKey::CompositeImplicitAutograd),
              "[{}] already has a CompositeImplicitAutograd implementation, through which fake tensors pass: it needs "
              "no fake impl",
              op.name());
  keep(dispatch::register_scoped(op, KernelKey::Fake, fake_kernel(std::move(fake)), place), lib);
} catch (...) {
  support::rethrow_named("register_fake");
}

void register_formula(OperatorHandle handle, Formula formula, dispatch::Library* lib, const std::string& place) try {
  Operator& op = handle.op();
  const schema::Schema& schema = op.schema();
  TENON_CHECK(is_functional_operator(schema),
              "[{}] a gradient formula cannot be registered for a non-functional operator: {}", op.name(),
              schema.str());
  for (const schema::Argument& argument : schema.arguments)
    TENON_CHECK_IMPLEMENTED(!argument.keyword_only || !argument.type.is_tensor_like(),
                            "[{}] register_autograd does not support kwarg-only Tensor args: '{}' in {}", op.name(),
                            argument.name, schema.str());
  if (std::shared_ptr<CustomOpState> state = CustomOps::all().find(op.name()))
    return detail::set_formula(*state, std::move(formula));
  auto shared = std::make_shared<const Formula>(std::move(formula));
  keep(dispatch::register_scoped(
           op, KernelKey::Autograd,
           [shared](dispatch::Call& call) {
             if (is_recorded(call))
               run_with_formula(call, shared);
             else
               run_below_autograd(call);
           },
           place),
       lib);
} catch (...) {
  support::rethrow_named("register_autograd");
}

std::string fake_source(OperatorHandle op) {
  if (std::shared_ptr<CustomOpState> state = CustomOps::all().find(op.op().name())) {
    std::lock_guard lock(state->mutex);
    return state->fake_place;
  }
  return dispatch::kernel_place(op.op(), KernelKey::Fake);
}

void destroy_custom_op(std::string_view name) {
  if (std::shared_ptr<CustomOpState> state = CustomOps::all().find(name)) detail::remove(state);
}

}  // namespace tenon::library
