#include "registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace tenon::dispatch {
namespace {

constexpr size_t kReclaimAt = 64;  // fewer retired things are not worth asking all threads about
constexpr size_t kRetiredByRebuild = 2;

constexpr std::pair<KernelKey, std::string_view> kNames[] = {
    {KernelKey::CPU, "CPU"},
    {KernelKey::CUDA, "CUDA"},
    {KernelKey::Meta, "Meta"},
    {KernelKey::Fake, "Fake"},
    {KernelKey::Functionalize, "Functionalize"},
    {KernelKey::ADInplaceOrView, "ADInplaceOrView"},
    {KernelKey::Autograd, "Autograd"},
    {KernelKey::AutogradCPU, "AutogradCPU"},
    {KernelKey::AutogradCUDA, "AutogradCUDA"},
    {KernelKey::Autocast, "Autocast"},
    {KernelKey::CompositeExplicitAutograd, "CompositeExplicitAutograd"},
    {KernelKey::CompositeImplicitAutograd, "CompositeImplicitAutograd"},
};

std::string at(const std::string& place) { return place.empty() ? std::string() : fmt::format(" (at {})", place); }

DeviceType device_of(const Call& call) {
  DeviceType type = call.keys.has(DispatchKey::CUDA) ? DeviceType::CUDA : DeviceType::CPU;
  bool found = false;
  for (const Value& value : call.args)
    value.each_tensor([&](const Tensor& tensor) {
      if (!found && tensor.defined()) type = tensor.device().type;
      found = found || tensor.defined();
    });
  return type;
}

// The Autograd kernel of an operator that has different ones for different devices.
KernelRef choose_by_device(KernelRef cpu, KernelRef cuda, KernelRef rest) {
  return std::make_shared<KernelFunction>(
      [cpu = std::move(cpu), cuda = std::move(cuda), rest = std::move(rest)](Call& call) {
        DeviceType type = device_of(call);
        const KernelRef& chosen = type == DeviceType::CPU && cpu ? cpu : type == DeviceType::CUDA && cuda ? cuda : rest;
        if (chosen)
          (*chosen)(call);
        else
          redispatch(call, call.keys.below(DispatchKey::Autograd));
      });
}

}  // namespace

std::string_view name(KernelKey key) {
  for (const auto& [each, text] : kNames)
    if (each == key) return text;
  return name(static_cast<DispatchKey>(key));
}

KernelKey parse_kernel_key(std::string_view text) {
  std::vector<std::string_view> known;
  for (const auto& [each, spelled] : kNames) {
    if (spelled == text) return each;
    known.push_back(spelled);
  }
  fail("[library] there is no dispatch key '{}': expected one of {}", text, fmt::join(known, ", "));
}

std::string_view name(Tag tag) {
  constexpr std::string_view kTags[] = {"pointwise",
                                        "pt2_compliant_tag",
                                        "generated",
                                        "core",
                                        "view_copy",
                                        "inplace_view",
                                        "data_dependent_output",
                                        "dynamic_output_shape",
                                        "nondeterministic_seeded",
                                        "needs_fixed_stride_order",
                                        "flexible_layout"};
  return kTags[static_cast<size_t>(tag)];
}

std::string place_of(const std::source_location& where) {
  std::string_view file = where.file_name();
  if (size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, where.line());
}

Registry& Registry::instance() {
  static auto* registry = new Registry;  // never destroyed: calls may happen during exit
  return *registry;
}

// "ns::name" of "ns::name.overload".
static std::string packet_of(const schema::Schema& schema) { return fmt::format("{}::{}", schema.ns, schema.name); }

Operator& Registry::define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits, std::vector<Tag> tags,
                           std::string place) {
  std::string name = schema.qualified_name();
  if (auto found = operators.find(name); found != operators.end() && record(*found->second).abandoned)
    remove(*found->second);
  if (auto found = operators.find(name); found != operators.end())
    fail("[{}] is defined already{}: tried to register it multiple times{}", name, at(record(*found->second).place),
         at(place));
  // The last reference to an operator is not to be dropped here, with the mutex held: what fails is retired.
  retired.reserve(retired.size() + kRetiredByRebuild + 2);
  operators.reserve(operators.size() + 1);
  Ref<Operator> op;
  try {
    return define_unknown(op, std::move(schema), std::move(traits), std::move(tags), std::move(place));
  } catch (...) {
    if (op) retired.push_back({nullptr, std::move(op)});
    throw;
  }
}

Operator& Registry::define_unknown(Ref<Operator>& op, schema::Schema schema,
                                   std::shared_ptr<const OperatorTraits> traits, std::vector<Tag> tags,
                                   std::string place) {
  std::string name = schema.qualified_name();
  if (auto husk = removed.find(name); husk != removed.end()) {
    op = husk->second.lock();
    if (op && op->schema() == schema && !op->traits() && !traits)
      removed.erase(husk);
    else if (op)
      retired.push_back({nullptr, std::exchange(op, nullptr)});
  }
  std::string packet = packet_of(schema);
  if (!op) {
    op = make_ref<Operator>(std::move(schema));
    op->traits_ = std::move(traits);
  }
  Record& known = record(*op);
  known.tags = std::move(tags);
  known.place = std::move(place);
  known.alive = true;
  known.number = ++definitions;
  rebuild(*op);
  Operator& defined = *op;
  std::vector<Operator*>& overloads = packets[std::move(packet)];
  overloads.reserve(overloads.size() + 1);
  operators.emplace(std::move(name), std::move(op));
  overloads.push_back(&defined);
  return defined;
}

void Registry::remove(Operator& op) {
  auto found = operators.find(op.name());
  if (found == operators.end() || found->second.get() != &op) return;
  Record& known = record(op);
  // What takes memory comes first.
  auto packet = packets.find(packet_of(op.schema()));
  retired.reserve(retired.size() + known.kernels.size() + kRetiredByRebuild + 1);
  removed.insert_or_assign(op.name(), WeakRef<Operator>(found->second));
  known.alive = false;
  try {
    rebuild(op);
  } catch (...) {
    known.alive = true;
    removed.erase(op.name());
    throw;
  }
  for (KernelRef& kernel : known.kernels) retire(std::exchange(kernel, nullptr));
  for (std::string& each : known.places) each.clear();
  known.tags.clear();
  known.place.clear();
  known.number = 0;
  known.abandoned = false;
  known.abandoned_kernels.reset();
  std::erase(packet->second, &op);
  if (packet->second.empty()) packets.erase(packet);
  retired.push_back({nullptr, std::move(found->second)});
  operators.erase(found);
}

void Registry::forget(Operator& op) {
  nameless.erase(&op);
  auto husk = removed.find(op.name());
  if (husk != removed.end() && husk->second.address() == &op) removed.erase(husk);
}

void Registry::put(Operator& op, KernelKey key, KernelRef kernel, std::string place, bool replace) {
  Record& known = record(op);
  TENON_CHECK(known.alive, "[{}] was removed: define it before registering a kernel", op.name());
  auto index = static_cast<size_t>(key);
  TENON_CHECK(replace || !known.kernels[index] || known.abandoned_kernels[index],
              "[{}] has a kernel for {} already{}, and another was registered{}", op.name(), dispatch::name(key),
              at(known.places[index]), at(place));
  exchange_kernel(op, index, std::move(kernel));
  known.places[index] = std::move(place);
  known.abandoned_kernels[index] = false;
}

void Registry::take_back(Operator& op, KernelKey key, const KernelRef& kernel) {
  Record& known = record(op);
  auto index = static_cast<size_t>(key);
  if (known.kernels[index] != kernel) return;
  try {
    exchange_kernel(op, index, nullptr);
    known.places[index].clear();
  } catch (...) {
    known.abandoned_kernels[index] = true;
  }
}

void Registry::exchange_kernel(Operator& op, size_t index, KernelRef kernel) {
  KernelRef& slot = record(op).kernels[index];
  retired.reserve(retired.size() + kRetiredByRebuild + 1);
  std::swap(slot, kernel);
  try {
    rebuild(op);
  } catch (...) {
    std::swap(slot, kernel);
    throw;
  }
  retire(std::move(kernel));
}

void Registry::rebuild(Operator& op) {
  Record& known = record(op);
  // What takes memory comes first: what fails leaves the operator as it was.
  retired.reserve(retired.size() + kRetiredByRebuild);
  auto table = std::make_shared<Table>();
  KernelRef by_device;
  for (size_t index = 1; index < kDispatchKeyCount; ++index) {
    auto key = static_cast<DispatchKey>(index);
    KernelOrigin origin;
    KernelRef kernel = kernel_of(op, key, origin);
    if (key == DispatchKey::Autograd) {
      KernelRef cpu = kernel_of(op, key, origin, DeviceType::CPU), cuda = kernel_of(op, key, origin, DeviceType::CUDA);
      if (cpu != kernel || cuda != kernel)
        kernel = by_device = choose_by_device(std::move(cpu), std::move(cuda), std::move(kernel));
    }
    table->kernels[index] = kernel.get();
    if (kernel || kBackends.has(key)) table->handled = table->handled | KeySet{key};
  }
  op.implicit_.store(static_cast<bool>(known.kernel(KernelKey::CompositeImplicitAutograd)), std::memory_order_relaxed);
  op.table_.store(table.get(), std::memory_order_release);
  retire(std::exchange(known.by_device, std::move(by_device)));
  retire(std::exchange(known.table, std::move(table)));
}

void Registry::rebuild_all() {
  for (auto& [op_name, op] : operators) rebuild(*op);
  for (Operator* op : nameless) rebuild(*op);
}

std::vector<Registry::Retired> Registry::reclaim(bool now) {
  if (!now && retired.size() < std::max(reclaim_at, kReclaimAt)) return {};
  if (all_threads_left()) {
    reclaim_at = 0;
    return std::exchange(retired, {});
  }
  // Asked again when there is twice as much, so that a call that takes long does not make registration slow.
  reclaim_at = 2 * retired.size();
  return {};
}

static bool has_autograd(const Registry::Record& known) {
  return known.kernel(KernelKey::Autograd) || known.kernel(KernelKey::AutogradCPU) ||
         known.kernel(KernelKey::AutogradCUDA);
}

KernelRef Registry::kernel_of(const Operator& op, DispatchKey key, KernelOrigin& origin,
                              std::optional<DeviceType> device) {
  auto index = static_cast<size_t>(key);
  const Record& known = record(op);
  const KernelRef& composite = known.kernel(KernelKey::CompositeExplicitAutograd);
  const KernelRef& implicit = known.kernel(KernelKey::CompositeImplicitAutograd);
  origin = kBackends.has(key) ? KernelOrigin::Missing : KernelOrigin::PassedOver;
  if (!known.alive) return nullptr;
  origin = KernelOrigin::Own;
  if (device) {
    const KernelRef& own = known.kernel(*device == DeviceType::CPU ? KernelKey::AutogradCPU : KernelKey::AutogradCUDA);
    if (own) return own;
  }
  if (known.kernels[index]) return known.kernels[index];
  origin = KernelOrigin::CompositeExplicit;
  if (composite && kExplicitKeys.has(key)) return composite;
  origin = KernelOrigin::CompositeImplicit;
  // Where a backend has a kernel, the layers above lead to it: the implicit composite serves them only in its absence.
  bool cpu = static_cast<bool>(known.kernel(KernelKey::CPU)), cuda = static_cast<bool>(known.kernel(KernelKey::CUDA));
  bool backend = composite || (device == DeviceType::CPU ? cpu : device == DeviceType::CUDA ? cuda : cpu || cuda);
  if (implicit && (backend ? kExplicitKeys : kImplicitKeys).has(key)) return implicit;
  // Capture records the parts of a user's composite, which may make tensors and read state; of the table's, the call.
  if (key == DispatchKey::Capture && implicit && !backend && !op.traits() && !has_autograd(known)) return implicit;
  origin = fallbacks[index]     ? KernelOrigin::Fallback
           : kBackends.has(key) ? KernelOrigin::Missing
                                : KernelOrigin::PassedOver;
  return fallbacks[index];
}

Defined define_scoped(schema::Schema schema, std::vector<Tag> tags, std::string place) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  Operator& op = registry.define(std::move(schema), nullptr, std::move(tags), std::move(place));
  auto undo = [&registry](Operator& defined) {
    try {
      registry.remove(defined);
    } catch (...) {
      Registry::record(defined).abandoned = true;
    }
  };
  try {
    return {op, Registration([&registry, undo, held = Ref<Operator>(&op)] {
              Registry::Lock undo_lock(registry);
              undo(*held);
            })};
  } catch (...) {
    undo(op);
    throw;
  }
}

Ref<Operator> make_operator(schema::Schema schema) {
  auto op = make_ref<Operator>(std::move(schema));
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  registry.nameless.insert(op.get());
  Registry::record(*op).alive = true;
  Registry::record(*op).number = ++registry.definitions;
  registry.rebuild(*op);
  return op;
}

static Registration put_scoped(Operator& op, KernelKey key, KernelFunction kernel, std::string place, bool replace) {
  Registry& registry = Registry::instance();
  auto held = std::make_shared<KernelFunction>(std::move(kernel));
  // Made first: once the kernel is in place, nothing fails.
  Registration registration([&registry, keep = Ref<Operator>(&op), key, held] {
    Registry::Lock undo_lock(registry);
    registry.take_back(*keep, key, held);
  });
  Registry::Lock lock(registry);
  registry.put(op, key, held, std::move(place), replace);
  return registration;
}

Registration register_scoped(Operator& op, KernelKey key, KernelFunction kernel, std::string place) {
  return put_scoped(op, key, std::move(kernel), std::move(place), false);
}

Registration replace_scoped(Operator& op, KernelKey key, KernelFunction kernel, std::string place) {
  return put_scoped(op, key, std::move(kernel), std::move(place), true);
}

Registration register_fallback_scoped(DispatchKey key, KernelFunction kernel, std::string place) {
  Registry& registry = Registry::instance();
  auto held = std::make_shared<KernelFunction>(std::move(kernel));
  auto index = static_cast<size_t>(key);
  Registry::Lock lock(registry);
  TENON_CHECK(!registry.fallbacks[index], "[fallback] {} has a fallback already{}, and another was registered{}",
              name(key), at(registry.fallback_places[index]), at(place));
  registry.fallbacks[index] = held;
  registry.fallback_places[index] = std::move(place);
  registry.rebuild_all();
  return Registration([&registry, index, held] {
    Registry::Lock undo_lock(registry);
    if (registry.fallbacks[index] != held) return;
    registry.fallbacks[index] = nullptr;
    try {
      registry.rebuild_all();
      registry.retire(held);
      registry.fallback_places[index].clear();
    } catch (...) {
      registry.fallbacks[index] = held;  // it stays: tables that were not rebuilt still use it
    }
  });
}

bool has_kernel(const Operator& op, KernelKey key) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  return static_cast<bool>(registry.record(op).kernel(key));
}

std::string kernel_place(const Operator& op, KernelKey key) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  return registry.record(op).places[static_cast<size_t>(key)];
}

std::string definition_place(const Operator& op) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  return registry.record(op).place;
}

bool is_defined(const Operator& op) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  return registry.record(op).alive;
}

uint64_t definition_number(const Operator& op) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  return registry.record(op).number;
}

std::vector<Tag> tags(const Operator& op) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  return registry.record(op).tags;
}

bool has_tag(const Operator& op, Tag tag) {
  std::vector<Tag> known = tags(op);
  return std::find(known.begin(), known.end(), tag) != known.end();
}

void add_tags(Operator& op, const std::vector<Tag>& added) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  std::vector<Tag>& known = registry.record(op).tags;
  for (Tag tag : added)
    if (std::find(known.begin(), known.end(), tag) == known.end()) known.push_back(tag);
}

std::string dispatch_table(const Operator& op) {
  Registry& registry = Registry::instance();
  Registry::Lock lock(registry);
  Registry::Record& known = registry.record(op);
  std::string text = op.schema().str() + "\n";
  auto line = [&](std::string_view key, KernelOrigin origin, KernelKey own, size_t index) {
    auto place = [&](KernelKey which) { return known.places[static_cast<size_t>(which)]; };
    auto [who, where] = [&]() -> std::pair<std::string_view, std::string> {
      switch (origin) {
        case KernelOrigin::Own: return {"its own kernel", place(own)};
        case KernelOrigin::CompositeExplicit:
          return {"CompositeExplicitAutograd", place(KernelKey::CompositeExplicitAutograd)};
        case KernelOrigin::CompositeImplicit:
          return {"CompositeImplicitAutograd", place(KernelKey::CompositeImplicitAutograd)};
        case KernelOrigin::Fallback: return {"fallback", registry.fallback_places[index]};
        case KernelOrigin::Missing:
          return {known.alive ? "missing: a call is an error" : "missing: the operator was removed", ""};
        case KernelOrigin::PassedOver: return {"passed over", ""};
      }
      return {};
    }();
    text += fmt::format("  {:<16} {}{}\n", key, who, where.empty() ? "" : fmt::format(" ({})", where));
  };
  for (size_t index = kDispatchKeyCount; --index > 0;) {
    auto key = static_cast<DispatchKey>(index);
    KernelOrigin origin, of_device;
    KernelRef kernel = registry.kernel_of(op, key, origin);
    if (key == DispatchKey::Autograd)
      for (auto [device, own] :
           {std::pair(DeviceType::CPU, KernelKey::AutogradCPU), std::pair(DeviceType::CUDA, KernelKey::AutogradCUDA)})
        if (registry.kernel_of(op, key, of_device, device) != kernel) line(name(own), of_device, own, index);
    line(name(key), origin, static_cast<KernelKey>(key), index);
  }
  return text;
}

size_t retired_count() {
  Registry& registry = Registry::instance();
  size_t left = 0;
  // Dropping one thing may retire others.
  for (bool again = true; again;) {
    std::vector<Registry::Retired> gone;
    Registry::Lock lock(registry);
    gone = registry.reclaim(true);
    again = !gone.empty();
    left = registry.retired.size();
  }
  return left;
}

}  // namespace tenon::dispatch
