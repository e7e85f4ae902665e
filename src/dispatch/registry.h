// All operators, kernels and fallbacks. Registration locks; calls do not come here.
#pragma once

#include <tenon/dispatch/describe.h>
#include <tenon/dispatch/registration.h>

#include <map>
#include <mutex>
#include <unordered_map>

namespace tenon::dispatch {

constexpr KeySet kBackends{DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::Meta};
constexpr KeySet kExplicitKeys = kBackends | KeySet{DispatchKey::Fake};
constexpr KeySet kImplicitKeys = kExplicitKeys | KeySet{DispatchKey::Trace, DispatchKey::Functionalize,
                                                        DispatchKey::ADInplaceOrView, DispatchKey::Autograd};

using KernelRef = std::shared_ptr<KernelFunction>;

struct Registry {
  // What is known of an operator beyond what calls need.
  struct Record {
    std::array<std::string, kKernelKeyCount> places;
    KernelRef autograd_cpu, autograd_cuda;
    KernelRef by_device;  // serves Autograd where one of the two exists
    std::vector<Tag> tags;
    std::string place;
    bool alive = true;
    uint64_t number = 0;  // of the definition
  };

  std::recursive_mutex mutex;  // dropping a kernel may drop registrations that it holds
  std::map<std::string, std::unique_ptr<Operator>, std::less<>> operators;
  std::map<std::string, std::unique_ptr<Operator>, std::less<>> removed;  // by schema: references to them stay valid
  std::unordered_map<const Operator*, Record> records;
  std::array<KernelRef, kDispatchKeyCount> fallbacks;
  std::array<std::string, kDispatchKeyCount> fallback_places;
  std::vector<std::shared_ptr<const void>> retired;
  uint64_t definitions = 0;

  static Registry& instance();

  // The kernel of the highest of these keys that the operator handles, by one look at its table: without a lock, a
  // second look might see another one.
  struct Found {
    KeySet keys;
    const KernelFunction* kernel;
  };
  static Found look_up(const Operator& op, KeySet keys) {
    const Operator::Table* table = op.table_.load(std::memory_order_acquire);
    KeySet handled = keys & table->handled;
    return {handled, table->kernels[static_cast<size_t>(handled.highest())]};
  }

  // All with the mutex held.
  Record& record(const Operator& op) { return records[&op]; }
  Operator& define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits, std::vector<Tag> tags,
                   std::string place);
  void remove(Operator& op);
  KernelRef& slot(Operator& op, KernelKey key);
  void put(Operator& op, KernelKey key, KernelRef kernel, std::string place);
  // Gives the slot up if it still holds this kernel.
  void take_back(Operator& op, KernelKey key, const KernelRef& kernel);
  void rebuild(Operator& op);
  // Who serves a key, by the rules of registration.h.
  KernelRef kernel_of(const Operator& op, DispatchKey key, KernelOrigin& origin);
  KernelOrigin origin(const Operator& op, DispatchKey key);
  // Drops what no running call can still see.
  void reclaim();
};

// Marks the thread as inside a call, for as long as it may use a kernel table.
class InsideCall {
 public:
  InsideCall();
  ~InsideCall();
  InsideCall(const InsideCall&) = delete;

 private:
  std::atomic<uint32_t>& depth_;
};
// True if every thread has been outside of calls at some moment since the call of this function.
bool all_threads_left();

}  // namespace tenon::dispatch
