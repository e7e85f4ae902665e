#include "registry.h"

namespace tenon::dispatch {
namespace {

[[noreturn]] void no_kernel(const Call& call) {
  TENON_CHECK(is_defined(call.op), "[{}] was removed: the library that defined it is gone", call.op.name());
  DispatchKey key = call.keys.highest();
  std::vector<std::string> given;
  for (const Value& value : call.args) given.push_back(value.str());
  if (key == DispatchKey::None)
    fail("[{}] no Tensor inputs and no device to run on: ({})", call.op.name(), fmt::join(given, ", "));
  fail("[{}] has no kernel for {}, called with ({})", call.op.name(), name(key), fmt::join(given, ", "));
}

}  // namespace

Operator::Operator(schema::Schema schema) : schema_(std::move(schema)), name_(schema_.qualified_name()) {}
Operator::~Operator() = default;

Operator& define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  return registry.define(std::move(schema), std::move(traits), {}, {});
}

void register_kernel(Operator& op, DispatchKey key, KernelFunction kernel) {
  register_scoped(op, static_cast<KernelKey>(key), std::move(kernel)).keep();
}

void register_composite(Operator& op, Composite kind, KernelFunction kernel) {
  KernelKey key =
      kind == Composite::Explicit ? KernelKey::CompositeExplicitAutograd : KernelKey::CompositeImplicitAutograd;
  register_scoped(op, key, std::move(kernel)).keep();
}

void register_fallback(DispatchKey key, KernelFunction kernel) {
  register_fallback_scoped(key, std::move(kernel)).keep();
}

Operator* find_operator_or_null(std::string_view name) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  auto found = registry.operators.find(name);
  return found == registry.operators.end() ? nullptr : found->second.get();
}

const Operator& find_operator(std::string_view name) {
  Operator* op = find_operator_or_null(name);
  TENON_CHECK(op, "[operator] there is no operator '{}'", name);
  return *op;
}

std::vector<const Operator*> all_operators() {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  std::vector<const Operator*> list;
  for (auto& [name, op] : registry.operators) list.push_back(op.get());
  return list;
}

ThreadKeys& thread_keys() {
  thread_local ThreadKeys keys;
  return keys;
}

KeySet keys_of(std::span<const Value> args) {
  KeySet keys = thread_keys().include;
  bool any = false;
  for (const Value& value : args)
    value.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      keys = keys | tensor.impl()->keys;
      any = true;
    });
  if (!any) {
    // A factory: the device argument, else the CPU, names the backend.
    DispatchKey backend = DispatchKey::CPU;
    for (const Value& value : args)
      if (value.tag() == Value::Tag::Device)
        backend = value.device().type == DeviceType::CPU    ? DispatchKey::CPU
                  : value.device().type == DeviceType::CUDA ? DispatchKey::CUDA
                                                            : DispatchKey::Meta;
    keys = keys | KeySet{backend};
  }
  return keys - thread_keys().exclude;
}

void redispatch(Call& call, KeySet keys) {
  InsideCall inside;
  auto [handled, kernel] = Registry::look_up(call.op, keys);
  call.keys = handled;
  if (!kernel) no_kernel(call);
  (*kernel)(call);
}

Results redispatch(const Operator& op, KeySet keys, std::span<const Value> args) {
  Call call{op, {}, args, {}};
  redispatch(call, keys);
  return std::move(call.results);
}

Results call_boxed(const Operator& op, std::span<const Value> args) { return redispatch(op, keys_of(args), args); }

}  // namespace tenon::dispatch
