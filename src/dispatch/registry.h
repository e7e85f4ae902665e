// All operators, kernels and fallbacks. Registration locks; calls do not come here.
#pragma once

#include "inside_call.h"
#include "support/at_fork.h"

#include <tenon/dispatch/registration.h>

#include <bitset>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace tenon::dispatch {

constexpr KeySet kBackends{DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::Meta};
constexpr KeySet kExplicitKeys = kBackends | KeySet{DispatchKey::Fake};
constexpr KeySet kImplicitKeys = kExplicitKeys | KeySet{DispatchKey::Trace, DispatchKey::Functionalize,
                                                        DispatchKey::ADInplaceOrView, DispatchKey::Autograd};

using KernelRef = std::shared_ptr<KernelFunction>;

// Where the kernel of a dispatch key comes from.
enum class KernelOrigin : uint8_t {
  PassedOver,  // a layer that does not concern this operator
  Missing,     // a backend without a kernel: a call is an Error
  Own,
  CompositeExplicit,
  CompositeImplicit,
  Fallback,  // of the key, for all operators
};

struct Operator::Record {
  std::array<KernelRef, kKernelKeyCount> kernels;  // the operator's own, by `KernelKey`
  std::array<std::string, kKernelKeyCount> places;
  KernelRef by_device;  // serves Autograd where there is a kernel for AutogradCPU or AutogradCUDA
  std::shared_ptr<const Table> table;
  std::vector<Tag> tags;
  std::string place;
  bool alive = false;
  // Registrations that were to be undone when there was no memory for it: the next one takes their place.
  bool abandoned = false;
  std::bitset<kKernelKeyCount> abandoned_kernels;
  uint64_t number = 0;  // of the definition
  std::vector<std::pair<const void*, std::shared_ptr<void>>> derived;

  const KernelRef& kernel(KernelKey key) const { return kernels[static_cast<size_t>(key)]; }
};

struct Registry {
  struct NameHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  template <typename T>
  using ByName = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;
  using Record = Operator::Record;
  using Table = Operator::Table;

  // Replaced or removed, and perhaps still used by a running call.
  struct Retired {
    std::shared_ptr<const void> memory;
    Ref<const Operator> op;
  };

  support::ForkSafe<std::mutex> mutex;
  ByName<Ref<Operator>> operators;
  ByName<std::vector<Operator*>> packets;  // overloads by "ns::name"
  std::unordered_set<Operator*> nameless;  // of `make_operator`
  ByName<WeakRef<Operator>> removed;       // by name: operators whose definition is gone, while references to them live
  std::array<KernelRef, kDispatchKeyCount> fallbacks;
  std::array<std::string, kDispatchKeyCount> fallback_places;
  std::vector<Retired> retired;
  size_t reclaim_at = 0;  // how many retired things are worth asking all threads about
  uint64_t definitions = 0;

  static Registry& instance();

  // Holds the mutex. Things that no call can still see go when it is released, for their destructors are the user's and
  // may come back here.
  class Lock {
   public:
    explicit Lock(Registry& registry) : registry_(registry), lock_(registry.mutex) {}
    ~Lock() {
      std::vector<Retired> gone = registry_.reclaim(false);
      lock_.unlock();
    }
    Lock(const Lock&) = delete;

   private:
    Registry& registry_;
    std::unique_lock<std::mutex> lock_;
  };

  // The kernel of the highest of these keys that the operator handles, by one look at its table: without a lock, a
  // second look might see another one.
  struct Found {
    KeySet keys;
    const KernelFunction* kernel;
  };
  static Found look_up(const Operator& op, KeySet keys) {
    const Table* table = op.table_.load(std::memory_order_acquire);
    KeySet handled = keys & table->handled;
    return {handled, table->kernels[static_cast<size_t>(handled.highest())]};
  }

  // All with the mutex held.
  static Record& record(const Operator& op) { return *op.record_; }
  Operator& define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits, std::vector<Tag> tags,
                   std::string place);
  Operator& define_unknown(Ref<Operator>& op, schema::Schema schema, std::shared_ptr<const OperatorTraits> traits,
                           std::vector<Tag> tags, std::string place);
  void remove(Operator& op);
  // An operator whose last reference went.
  void forget(Operator& op);
  void put(Operator& op, KernelKey key, KernelRef kernel, std::string place, bool replace);
  // Another kernel in a slot; as it was if that fails.
  void exchange_kernel(Operator& op, size_t index, KernelRef kernel);
  // Gives the slot up if it still holds this kernel.
  void take_back(Operator& op, KernelKey key, const KernelRef& kernel);
  void rebuild(Operator& op);
  void rebuild_all();
  // Who serves a key, by the rules of registration.h; of Autograd, for tensors of `device` if it is given.
  KernelRef kernel_of(const Operator& op, DispatchKey key, KernelOrigin& origin,
                      std::optional<DeviceType> device = std::nullopt);
  void retire(std::shared_ptr<const void> memory) {
    if (memory) retired.push_back({std::move(memory), {}});
  }
  // What no running call can still see, for the caller to drop. Unless `now`, asks only when there is enough of it.
  std::vector<Retired> reclaim(bool now);
};

}  // namespace tenon::dispatch
