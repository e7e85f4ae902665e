#include "registry.h"

#include <algorithm>

namespace tenon::dispatch {
namespace {

constexpr size_t kReclaimAt = 64;  // replaced tables and kernels that are worth asking all threads about

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

Operator& Registry::define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits, std::vector<Tag> tags,
                           std::string place) {
  std::string name = schema.qualified_name();
  if (auto found = operators.find(name); found != operators.end())
    fail("[{}] is defined already{}: tried to register it multiple times{}", name, at(record(*found->second).place),
         at(place));
  auto husk = removed.find(schema.str());
  std::unique_ptr<Operator> op =
      husk == removed.end() ? std::make_unique<Operator>(std::move(schema)) : std::move(husk->second);
  if (husk != removed.end()) removed.erase(husk);
  op->traits_ = std::move(traits);
  Record& known = record(*op);
  known = {};
  known.tags = std::move(tags);
  known.place = std::move(place);
  known.number = ++definitions;
  rebuild(*op);
  return *operators.emplace(std::move(name), std::move(op)).first->second;
}

void Registry::remove(Operator& op) {
  auto found = operators.find(op.name());
  if (found == operators.end() || found->second.get() != &op) return;
  Record& known = record(op);
  for (KernelRef& kernel : op.own_) retired.push_back(std::move(kernel));
  for (KernelRef* kernel : {&op.explicit_, &op.implicit_, &known.autograd_cpu, &known.autograd_cuda, &known.by_device})
    retired.push_back(std::move(*kernel));
  known = {};
  known.alive = false;
  rebuild(op);
  std::string text = op.schema().str();
  removed.emplace(std::move(text), std::move(found->second));
  operators.erase(found);
}

KernelRef& Registry::slot(Operator& op, KernelKey key) {
  switch (key) {
    case KernelKey::AutogradCPU:
      return record(op).autograd_cpu;
    case KernelKey::AutogradCUDA:
      return record(op).autograd_cuda;
    case KernelKey::CompositeExplicitAutograd:
      return op.explicit_;
    case KernelKey::CompositeImplicitAutograd:
      return op.implicit_;
    default:
      return op.own_[static_cast<size_t>(key)];
  }
}

void Registry::put(Operator& op, KernelKey key, KernelRef kernel, std::string place) {
  TENON_CHECK(record(op).alive, "[{}] was removed: define it before registering a kernel", op.name());
  KernelRef& held = slot(op, key);
  std::string& known = record(op).places[static_cast<size_t>(key)];
  TENON_CHECK(!held, "[{}] has a kernel for {} already{}, and another was registered{}", op.name(), dispatch::name(key),
              at(known), at(place));
  held = std::move(kernel);
  known = std::move(place);
  rebuild(op);
}

void Registry::take_back(Operator& op, KernelKey key, const KernelRef& kernel) {
  KernelRef& held = slot(op, key);
  if (held != kernel) return;
  retired.push_back(std::move(held));
  held = nullptr;
  record(op).places[static_cast<size_t>(key)].clear();
  rebuild(op);
}

void Registry::rebuild(Operator& op) {
  Record& known = record(op);
  if (known.by_device) retired.push_back(std::move(known.by_device));
  known.by_device = nullptr;
  op.rebuild(fallbacks);
  // Only the newest table is current.
  for (size_t at = 0; at + 1 < op.tables_.size(); ++at)
    retired.push_back(std::shared_ptr<const Operator::Table>(std::move(op.tables_[at])));
  if (op.tables_.size() > 1) op.tables_.erase(op.tables_.begin(), op.tables_.end() - 1);
  if (retired.size() >= kReclaimAt) reclaim();
}

void Registry::reclaim() {
  if (all_threads_left()) {
    // Destroying a kernel runs the user's destructors, which may come back here.
    std::vector<std::shared_ptr<const void>> gone = std::move(retired);
    retired.clear();
  }
}

KernelRef Registry::kernel_of(const Operator& op, DispatchKey key, KernelOrigin& origin) {
  auto index = static_cast<size_t>(key);
  origin = kBackends.has(key) ? KernelOrigin::Missing : KernelOrigin::PassedOver;
  if (!record(op).alive) return nullptr;
  origin = KernelOrigin::Own;
  if (op.own_[index]) return op.own_[index];
  origin = KernelOrigin::CompositeExplicit;
  if (op.explicit_ && kExplicitKeys.has(key)) return op.explicit_;
  origin = KernelOrigin::CompositeImplicit;
  // Where a backend has a kernel, the layers above lead to it: the implicit composite serves them only in its absence.
  bool backend =
      op.explicit_ || op.own_[static_cast<size_t>(DispatchKey::CPU)] || op.own_[static_cast<size_t>(DispatchKey::CUDA)];
  if (op.implicit_ && (backend ? kExplicitKeys : kImplicitKeys).has(key)) return op.implicit_;
  origin = fallbacks[index]     ? KernelOrigin::Fallback
           : kBackends.has(key) ? KernelOrigin::Missing
                                : KernelOrigin::PassedOver;
  return fallbacks[index];
}

KernelOrigin Registry::origin(const Operator& op, DispatchKey key) {
  KernelOrigin found = KernelOrigin::Missing;
  kernel_of(op, key, found);
  return found;
}

void Operator::rebuild(const std::array<KernelRef, kDispatchKeyCount>&) {
  Registry& registry = Registry::instance();
  Registry::Record& known = registry.record(*this);
  auto table = std::make_unique<Table>();
  for (size_t at = 1; at < kDispatchKeyCount; ++at) {
    auto key = static_cast<DispatchKey>(at);
    KernelOrigin origin;
    KernelRef kernel = registry.kernel_of(*this, key, origin);
    if (key == DispatchKey::Autograd && (known.autograd_cpu || known.autograd_cuda))
      kernel = known.by_device = choose_by_device(known.autograd_cpu, known.autograd_cuda, std::move(kernel));
    table->kernels[at] = kernel.get();
    if (kernel || kBackends.has(key)) table->handled = table->handled | KeySet{key};
  }
  table_.store(table.get(), std::memory_order_release);
  tables_.push_back(std::move(table));
}

Defined define_scoped(schema::Schema schema, std::vector<Tag> tags, std::string place) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  Operator& op = registry.define(std::move(schema), nullptr, std::move(tags), std::move(place));
  return {op, Registration([&registry, &op] {
            std::lock_guard undo_lock(registry.mutex);
            registry.remove(op);
          })};
}

Registration register_scoped(Operator& op, KernelKey key, KernelFunction kernel, std::string place) {
  Registry& registry = Registry::instance();
  auto held = std::make_shared<KernelFunction>(std::move(kernel));
  std::lock_guard lock(registry.mutex);
  registry.put(op, key, held, std::move(place));
  return Registration([&registry, &op, key, held] {
    std::lock_guard undo_lock(registry.mutex);
    registry.take_back(op, key, held);
  });
}

Registration register_fallback_scoped(DispatchKey key, KernelFunction kernel, std::string place) {
  Registry& registry = Registry::instance();
  auto held = std::make_shared<KernelFunction>(std::move(kernel));
  auto index = static_cast<size_t>(key);
  std::lock_guard lock(registry.mutex);
  TENON_CHECK(!registry.fallbacks[index], "[fallback] {} has a fallback already{}, and another was registered{}",
              name(key), at(registry.fallback_places[index]), at(place));
  registry.fallbacks[index] = held;
  registry.fallback_places[index] = std::move(place);
  for (auto& [op_name, op] : registry.operators) registry.rebuild(*op);
  return Registration([&registry, index, held] {
    std::lock_guard undo_lock(registry.mutex);
    if (registry.fallbacks[index] != held) return;
    registry.retired.push_back(held);
    registry.fallbacks[index] = nullptr;
    registry.fallback_places[index].clear();
    for (auto& [op_name, op] : registry.operators) registry.rebuild(*op);
  });
}

bool has_kernel(const Operator& op, KernelKey key) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  return static_cast<bool>(registry.slot(const_cast<Operator&>(op), key));
}

std::string kernel_place(const Operator& op, KernelKey key) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  return registry.record(op).places[static_cast<size_t>(key)];
}

std::string definition_place(const Operator& op) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  return registry.record(op).place;
}

bool is_defined(const Operator& op) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  return registry.record(op).alive;
}

uint64_t definition_number(const Operator& op) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  return registry.record(op).number;
}

std::vector<Tag> tags(const Operator& op) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  return registry.record(op).tags;
}

bool has_tag(const Operator& op, Tag tag) {
  std::vector<Tag> known = tags(op);
  return std::find(known.begin(), known.end(), tag) != known.end();
}

void add_tags(Operator& op, const std::vector<Tag>& added) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  std::vector<Tag>& known = registry.record(op).tags;
  for (Tag tag : added)
    if (std::find(known.begin(), known.end(), tag) == known.end()) known.push_back(tag);
}

std::vector<std::pair<DispatchKey, KernelOrigin>> describe(const Operator& op) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  std::vector<std::pair<DispatchKey, KernelOrigin>> list;
  for (size_t index = kDispatchKeyCount; --index > 0;) {
    auto key = static_cast<DispatchKey>(index);
    list.emplace_back(key, registry.origin(op, key));
  }
  return list;
}

std::string dispatch_table(const Operator& op) {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  Registry::Record& known = registry.record(op);
  std::string text = op.schema().str() + "\n";
  auto line = [&](std::string_view key, std::string_view who, const std::string& place) {
    text += fmt::format("  {:<16} {}{}\n", key, who, place.empty() ? "" : fmt::format(" ({})", place));
  };
  auto place = [&](KernelKey key) { return known.places[static_cast<size_t>(key)]; };
  for (size_t index = kDispatchKeyCount; --index > 0;) {
    auto key = static_cast<DispatchKey>(index);
    if (key == DispatchKey::Autograd) {
      if (known.autograd_cpu) line("AutogradCPU", "its own kernel", place(KernelKey::AutogradCPU));
      if (known.autograd_cuda) line("AutogradCUDA", "its own kernel", place(KernelKey::AutogradCUDA));
    }
    switch (registry.origin(op, key)) {
      case KernelOrigin::Own:
        line(name(key), "its own kernel", place(static_cast<KernelKey>(key)));
        break;
      case KernelOrigin::CompositeExplicit:
        line(name(key), "CompositeExplicitAutograd", place(KernelKey::CompositeExplicitAutograd));
        break;
      case KernelOrigin::CompositeImplicit:
        line(name(key), "CompositeImplicitAutograd", place(KernelKey::CompositeImplicitAutograd));
        break;
      case KernelOrigin::Fallback:
        line(name(key), "fallback", registry.fallback_places[index]);
        break;
      case KernelOrigin::Missing:
        line(name(key), known.alive ? "missing" : "missing: the operator was removed", {});
        break;
      case KernelOrigin::PassedOver:
        line(name(key), "passed over", {});
        break;
    }
  }
  return text;
}

size_t retired_count() {
  Registry& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  registry.reclaim();
  return registry.retired.size();
}

}  // namespace tenon::dispatch
