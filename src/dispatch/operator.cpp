#include "borrows.h"
#include "named_errors.h"
#include "profile_scope.h"
#include "registry.h"
#include "support/thread_context.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::dispatch {
namespace {

[[noreturn]] void no_kernel(const Call& call) {
  TENON_CHECK(is_defined(call.op), "[{}] was removed: the library that defined it is gone", call.op.name());
  DispatchKey key = call.keys.highest();
  std::vector<std::string> given;
  for (const Value& value : call.args) given.push_back(value.str());
  if (key == DispatchKey::None)
    fail<NotImplementedError>("[{}] no Tensor inputs and no device to run on: ({})", call.op.name(),
                              fmt::join(given, ", "));
  fail<NotImplementedError>("[{}] has no kernel for {}, called with ({})", call.op.name(), name(key),
                            fmt::join(given, ", "));
}

}  // namespace

namespace {
std::atomic<size_t> live_operators{0};
}

Operator::Operator(schema::Schema schema)
    : schema_(std::move(schema)), name_(schema_.qualified_name()), record_(std::make_unique<Record>()) {
  ++live_operators;
}
Operator::~Operator() { --live_operators; }

size_t operator_count() { return live_operators; }

void Operator::release_resources() {
  Registry& registry = Registry::instance();
  std::unique_ptr<Record> record;  // its destructors are the user's, and may come back
  Registry::Lock lock(registry);
  registry.forget(*this);
  record = std::move(record_);
}

void* Operator::find_derived(const void* key) const {
  Registry::Lock lock(Registry::instance());
  for (const auto& [each, content] : record_->derived)
    if (each == key) return content.get();
  return nullptr;
}

void* Operator::add_derived(const void* key, std::shared_ptr<void> content) const {
  Registry::Lock lock(Registry::instance());
  // Another thread may have been faster.
  for (const auto& [each, known] : record_->derived)
    if (each == key) return known.get();
  return record_->derived.emplace_back(key, std::move(content)).second.get();
}

Operator& define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
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

Ref<Operator> hold_operator(std::string_view name) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  auto found = registry.operators.find(name);
  return found == registry.operators.end() ? nullptr : found->second;
}

Operator* find_operator_or_null(std::string_view name) { return hold_operator(name).get(); }

const Operator& find_operator(std::string_view name) {
  Operator* op = find_operator_or_null(name);
  TENON_CHECK(op, "[operator] there is no operator '{}'", name);
  return *op;
}

std::vector<const Operator*> all_operators() {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  std::vector<const Operator*> list;
  for (auto& [name, op] : registry.operators) list.push_back(op.get());
  std::sort(list.begin(), list.end(), [](const Operator* a, const Operator* b) { return a->name() < b->name(); });
  return list;
}

ThreadKeys thread_keys() {
  const support::ThreadContext& context = support::thread_context;
  return {KeySet::from_bits(context.included_keys), KeySet::from_bits(context.excluded_keys)};
}
void set_thread_keys(ThreadKeys keys) {
  support::thread_context.included_keys = keys.include.bits();
  support::thread_context.excluded_keys = keys.exclude.bits();
}

namespace {

// `undefined`: whether there is an undefined tensor among the arguments.
inline KeySet call_keys(std::span<const Value> args, bool& undefined) {
  const ThreadKeys thread = thread_keys();
  KeySet keys = thread.include;
  bool any = false;
  for (const Value& value : args)
    value.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) [[unlikely]] {
        undefined = true;
        return;
      }
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
  return keys - thread.exclude;
}

[[gnu::noinline]] void run_checked(const KernelFunction& kernel, Call& call) {
  BorrowScope scope(call.op.name());
  kernel(call);
}

inline void run_kernel(Call& call, KeySet keys) {
  InsideCall inside;
  auto [handled, kernel] = Registry::look_up(call.op, keys);
  call.keys = handled;
  if (!kernel) [[unlikely]]
    no_kernel(call);
  if (detail::borrows_checked.load(std::memory_order_relaxed)) [[unlikely]]
    return run_checked(*kernel, call);
  (*kernel)(call);
}

}  // namespace

// Only where the schema says `Tensor?` may a tensor be undefined.
[[gnu::noinline]] void check_defined(const Operator& op, std::span<const Value> args) {
  const std::vector<schema::Argument>& arguments = op.schema().arguments;
  for (size_t at = 0; at < args.size() && at < arguments.size(); ++at) {
    const schema::Type& type = arguments[at].type;
    const bool may_miss = type.is_optional() || (type.is_list() && type.element[0].is_optional());
    if (!may_miss)
      args[at].each_tensor([&](const Tensor& tensor) {
        TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", op.brief_name());
      });
  }
}

KeySet keys_of(std::span<const Value> args) {
  bool undefined = false;
  return call_keys(args, undefined);
}

void redispatch(Call& call, KeySet keys) { run_kernel(call, keys); }

Results redispatch(const Operator& op, KeySet keys, std::span<const Value> args) {
  Call call{op, {}, args, {}};
  run_kernel(call, keys);
  return std::move(call.results);
}

Results call_boxed(const Operator& op, std::span<const Value> args) {
  ProfileScope profiled(op.name(), args);
  Call call{op, {}, args, {}};
  bool undefined = false;
  const KeySet keys = call_keys(args, undefined);
  if (undefined) [[unlikely]]
    check_defined(op, args);
  try {
    run_kernel(call, keys);
  } catch (const support::NoMemory&) {
    raise_out_of_memory(op, args);
  } catch (const std::bad_alloc&) {
    raise_out_of_memory(op, args);
  }
  return std::move(call.results);
}

}  // namespace tenon::dispatch
