#include <tenon/dispatch/describe.h>
#include <tenon/dispatch/operator.h>

#include <map>
#include <mutex>

namespace tenon::dispatch {

// All operators and fallbacks. Registration locks; calls do not come here.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Operator>, std::less<>> operators;
  std::array<std::shared_ptr<KernelFunction>, kDispatchKeyCount> fallbacks;

  static Registry& instance() {
    static auto* registry = new Registry;  // never destroyed: calls may happen during exit
    return *registry;
  }

  static void set_traits(Operator& op, std::shared_ptr<const OperatorTraits> traits) { op.traits_ = std::move(traits); }
  static void rebuild(Operator& op) { op.rebuild(instance().fallbacks); }

  static void put(Operator& op, std::shared_ptr<KernelFunction>& place, KernelFunction kernel) {
    if (place) op.retired_.push_back(std::move(place));
    place = std::make_shared<KernelFunction>(std::move(kernel));
    rebuild(op);
  }
  static std::shared_ptr<KernelFunction>& own(Operator& op, DispatchKey key) { return op.own_[static_cast<size_t>(key)]; }
  // The rules of `Operator::rebuild`, told instead of applied.
  KernelOrigin origin(const Operator& op, DispatchKey key) const {
    const KernelFunction* kernel = op.kernel(key);
    if (!kernel) return op.handled().has(key) ? KernelOrigin::Missing : KernelOrigin::PassedOver;
    if (kernel == op.own_[static_cast<size_t>(key)].get()) return KernelOrigin::Own;
    if (kernel == op.explicit_.get()) return KernelOrigin::CompositeExplicit;
    return kernel == op.implicit_.get() ? KernelOrigin::CompositeImplicit : KernelOrigin::Fallback;
  }
  static std::shared_ptr<KernelFunction>& composite(Operator& op, Composite kind) {
    return kind == Composite::Explicit ? op.explicit_ : op.implicit_;
  }
};

namespace {

constexpr KeySet kBackends{DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::Meta};
constexpr KeySet kExplicitKeys = kBackends | KeySet{DispatchKey::Fake};
constexpr KeySet kImplicitKeys = kExplicitKeys | KeySet{DispatchKey::Trace, DispatchKey::Functionalize,
                                                        DispatchKey::ADInplaceOrView, DispatchKey::Autograd};

[[noreturn]] void no_kernel(const Call& call) {
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

void Operator::rebuild(const std::array<std::shared_ptr<KernelFunction>, kDispatchKeyCount>& fallbacks) {
  auto table = std::make_unique<Table>();
  for (size_t at = 1; at < kDispatchKeyCount; ++at) {
    auto key = static_cast<DispatchKey>(at);
    const KernelFunction* kernel = own_[at].get();
    if (!kernel && explicit_ && kExplicitKeys.has(key)) kernel = explicit_.get();
    if (!kernel && implicit_ && kImplicitKeys.has(key)) kernel = implicit_.get();
    if (!kernel) kernel = fallbacks[at].get();
    table->kernels[at] = kernel;
    if (kernel || kBackends.has(key)) table->handled = table->handled | KeySet{key};
  }
  table_.store(table.get(), std::memory_order_release);
  tables_.push_back(std::move(table));
}

Operator& define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  auto op = std::make_unique<Operator>(std::move(schema));
  TENON_CHECK(!registry.operators.contains(op->name()), "[{}] is defined already", op->name());
  Registry::set_traits(*op, std::move(traits));
  Registry::rebuild(*op);
  Operator& defined = *op;
  registry.operators.emplace(defined.name(), std::move(op));
  return defined;
}

void register_kernel(Operator& op, DispatchKey key, KernelFunction kernel) {
  std::lock_guard lock(Registry::instance().mutex);
  TENON_CHECK(!Registry::own(op, key), "[{}] has a kernel for {} already", op.name(), name(key));
  Registry::put(op, Registry::own(op, key), std::move(kernel));
}

void register_composite(Operator& op, Composite kind, KernelFunction kernel) {
  std::lock_guard lock(Registry::instance().mutex);
  TENON_CHECK(!Registry::composite(op, kind), "[{}] has a composite kernel already", op.name());
  Registry::put(op, Registry::composite(op, kind), std::move(kernel));
}

void register_fallback(DispatchKey key, KernelFunction kernel) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  auto& place = registry.fallbacks[static_cast<size_t>(key)];
  TENON_CHECK(!place, "[fallback] {} has a fallback already", name(key));
  place = std::make_shared<KernelFunction>(std::move(kernel));
  for (auto& [op_name, op] : registry.operators) Registry::rebuild(*op);
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

std::vector<std::pair<DispatchKey, KernelOrigin>> describe(const Operator& op) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  std::vector<std::pair<DispatchKey, KernelOrigin>> list;
  for (int at = kDispatchKeyCount; --at > 0;) {
    auto key = static_cast<DispatchKey>(at);
    list.emplace_back(key, registry.origin(op, key));
  }
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
  call.keys = keys & call.op.handled();
  const KernelFunction* kernel = call.op.kernel(call.keys.highest());
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
