// Operators, their kernels and how a call finds one.
//
// An `Operator` is a schema with one kernel per dispatch key. A call computes its keys (those of its tensors and those
// of the thread), and the kernel of the highest key that has one runs; it may hand the call on to the keys below with
// `redispatch`. The table of kernels is read without a lock: registration makes a new one and swaps it in.
//
// An operator lives while it is defined and while an `OperatorRef` to it lives; calling one whose definition is gone is
// an Error. A plain reference to an operator of a library is good for as long as the library.
//
// For one key the first of these wins: the operator's own kernel, its composite (`CompositeExplicit` for the backends
// and Fake, `CompositeImplicit` for Autograd and everything below it), the key's fallback. A layer key (not a backend)
// with none of them is passed over.
#pragma once

#include <tenon/dispatch/value.h>
#include <tenon/schema/schema.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace tenon::dispatch {

class Operator;

struct Call {
  const Operator& op;
  KeySet keys;                  // the kernel's own key and those below it
  std::span<const Value> args;  // one per schema argument, defaults filled
  Results results;              // one per schema return
};

using KernelFunction = std::function<void(Call&)>;

struct OpaqueKernel;

// What other rooms know of an operator (the row of the table).
class OperatorTraits {
 public:
  virtual ~OperatorTraits() = default;
  // Null: the operator is not a kernel that fusion cannot see into.
  virtual const OpaqueKernel* opaque_kernel() const { return nullptr; }
};

class Operator final : public Counted {
 public:
  explicit Operator(schema::Schema schema);
  ~Operator() override;

  const schema::Schema& schema() const { return schema_; }
  const std::string& name() const { return name_; }  // "aten::add.Tensor"
  const std::string& brief_name() const { return schema_.name; }
  const OperatorTraits* traits() const { return traits_.get(); }

  // Null if there is none. For kernels: it is good until the running call returns.
  const KernelFunction* kernel(DispatchKey key) const {
    return table_.load(std::memory_order_acquire)->kernels[static_cast<size_t>(key)];
  }
  bool is_composite_implicit() const { return implicit_.load(std::memory_order_relaxed); }

  // What another room derives from the operator: made at the first call, and kept for as long as the operator.
  template <typename T, typename Make>
  T& derived(Make make) const {
    static char key;  // its address is this type's
    if (void* found = find_derived(&key)) return *static_cast<T*>(found);
    return *static_cast<T*>(add_derived(&key, std::shared_ptr<T>(make())));
  }

 protected:
  void release_resources() override;

 private:
  friend struct Registry;
  struct Table {
    std::array<const KernelFunction*, kDispatchKeyCount> kernels{};
    KeySet handled;
  };
  struct Record;  // what calls do not need
  void* find_derived(const void* key) const;
  void* add_derived(const void* key, std::shared_ptr<void> content) const;

  schema::Schema schema_;
  std::string name_;
  std::shared_ptr<const OperatorTraits> traits_;
  std::atomic<const Table*> table_{nullptr};
  std::atomic<bool> implicit_{false};
  std::unique_ptr<Record> record_;
};

// Keeps an operator.
class OperatorRef {
 public:
  OperatorRef() = default;
  OperatorRef(const Operator* op) : op_(op) {}
  OperatorRef(const Operator& op) : op_(&op) {}
  const Operator* get() const { return op_.get(); }
  const Operator* operator->() const { return op_.get(); }
  const Operator& operator*() const { return *op_; }
  operator const Operator*() const { return op_.get(); }

 private:
  Ref<const Operator> op_;
};

// Registration. Defining an operator twice, or a kernel of an unknown operator, is an Error.
Operator& define(schema::Schema schema, std::shared_ptr<const OperatorTraits> traits = nullptr);
enum class Composite : uint8_t { Explicit, Implicit };
void register_kernel(Operator& op, DispatchKey key, KernelFunction kernel);
void register_composite(Operator& op, Composite kind, KernelFunction kernel);
void register_fallback(DispatchKey key, KernelFunction kernel);

// By qualified name, "aten::add.Tensor"; an Error if there is none (`find_operator`) or null.
const Operator& find_operator(std::string_view name);
Operator* find_operator_or_null(std::string_view name);
// The same, kept: another thread may be removing it. Null if there is none.
Ref<Operator> hold_operator(std::string_view name);
// By name.
std::vector<const Operator*> all_operators();
// An operator that no name leads to. It lives while references to it do.
Ref<Operator> make_operator(schema::Schema schema);

// Keys that the current thread adds to, or takes from, every call.
struct ThreadKeys {
  KeySet include, exclude;
};
ThreadKeys thread_keys();
void set_thread_keys(ThreadKeys keys);

class IncludeKeys {
 public:
  explicit IncludeKeys(KeySet keys) : before_(thread_keys()) {
    set_thread_keys({before_.include | keys, before_.exclude - keys});
  }
  ~IncludeKeys() { set_thread_keys(before_); }
  IncludeKeys(const IncludeKeys&) = delete;

 private:
  ThreadKeys before_;
};

class ExcludeKeys {
 public:
  explicit ExcludeKeys(KeySet keys) : before_(thread_keys()) {
    set_thread_keys({before_.include, before_.exclude | keys});
  }
  ~ExcludeKeys() { set_thread_keys(before_); }
  ExcludeKeys(const ExcludeKeys&) = delete;

 private:
  ThreadKeys before_;
};

// The keys of a call with these arguments on this thread.
KeySet keys_of(std::span<const Value> args);

// Calls an operator from the top, or from the highest of `keys`.
Results call_boxed(const Operator& op, std::span<const Value> args);
void redispatch(Call& call, KeySet keys);
Results redispatch(const Operator& op, KeySet keys, std::span<const Value> args);

}  // namespace tenon::dispatch
