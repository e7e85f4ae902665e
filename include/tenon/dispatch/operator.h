// Operators, their kernels and how a call finds one.
//
// An `Operator` is a schema with one kernel per dispatch key. A call computes its keys (those of its tensors and those of
// the thread), and the kernel of the highest key that has one runs; it may hand the call on to the keys below with
// `redispatch`. The table of kernels is read without a lock: registration makes a new one and swaps it in.
//
// For one key the first of these wins: the operator's own kernel, its composite (`CompositeExplicit` for the backends and
// Fake, `CompositeImplicit` for Autograd and everything below it), the key's fallback. A layer key (not a backend) with none
// of them is passed over.
#pragma once

#include <tenon/dispatch/value.h>
#include <tenon/schema/schema.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>

namespace tenon::dispatch {

class Operator;

struct Call {
  const Operator& op;
  KeySet keys;                    // the kernel's own key and those below it
  std::span<const Value> args;    // one per schema argument, defaults filled
  Results results;                // one per schema return
};

using KernelFunction = std::function<void(Call&)>;

// What other rooms know of an operator (the row of the table).
class OperatorTraits {
 public:
  virtual ~OperatorTraits() = default;
};

class Operator {
 public:
  explicit Operator(schema::Schema schema);
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  ~Operator();

  const schema::Schema& schema() const { return schema_; }
  const std::string& name() const { return name_; }  // "aten::add.Tensor"
  const std::string& brief_name() const { return schema_.name; }
  const OperatorTraits* traits() const { return traits_.get(); }

  // Keys with a kernel of any origin; others are passed over.
  KeySet handled() const { return table_.load(std::memory_order_acquire)->handled; }
  const KernelFunction* kernel(DispatchKey key) const {
    return table_.load(std::memory_order_acquire)->kernels[static_cast<size_t>(key)];
  }
  bool is_composite_implicit() const { return static_cast<bool>(implicit_); }

 private:
  friend struct Registry;
  struct Table {
    std::array<const KernelFunction*, kDispatchKeyCount> kernels{};
    KeySet handled;
  };
  void rebuild(const std::array<std::shared_ptr<KernelFunction>, kDispatchKeyCount>& fallbacks);

  schema::Schema schema_;
  std::string name_;
  std::shared_ptr<const OperatorTraits> traits_;
  std::array<std::shared_ptr<KernelFunction>, kDispatchKeyCount> own_;
  std::shared_ptr<KernelFunction> explicit_, implicit_;
  std::atomic<const Table*> table_{nullptr};
  std::vector<std::unique_ptr<const Table>> tables_;         // current and replaced ones
  std::vector<std::shared_ptr<KernelFunction>> retired_;     // kernels that a running call may still use
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
std::vector<const Operator*> all_operators();

// Keys that the current thread adds to, or takes from, every call.
struct ThreadKeys {
  KeySet include, exclude;
};
ThreadKeys& thread_keys();

class IncludeKeys {
 public:
  explicit IncludeKeys(KeySet keys) : before_(thread_keys()) {
    thread_keys().include = before_.include | keys;
    thread_keys().exclude = before_.exclude - keys;
  }
  ~IncludeKeys() { thread_keys() = before_; }
  IncludeKeys(const IncludeKeys&) = delete;

 private:
  ThreadKeys before_;
};

class ExcludeKeys {
 public:
  explicit ExcludeKeys(KeySet keys) : before_(thread_keys()) { thread_keys().exclude = before_.exclude | keys; }
  ~ExcludeKeys() { thread_keys() = before_; }
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
