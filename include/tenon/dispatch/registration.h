// Registration that can be undone, and what is known of each registration.
//
// A kernel is registered for a dispatch key or for an alias: `AutogradCPU` and `AutogradCUDA` serve the Autograd key
// for tensors of one device; a `CompositeExplicitAutograd` kernel serves every backend, a `CompositeImplicitAutograd`
// one every backend and autograd too, for it is made of operators that have gradients (and capture, which records
// these). For one key the first of these wins: the operator's own kernel, its explicit composite, its implicit
// composite, the key's fallback.
//
// An operator whose definition was undone raises an Error when it is called, and comes back to life if one with the
// very same schema is defined again while an `OperatorRef` still keeps it.
#pragma once

#include <tenon/dispatch/operator.h>

#include <source_location>

namespace tenon::dispatch {

enum class KernelKey : uint8_t {
  Meta = static_cast<uint8_t>(DispatchKey::Meta),
  CUDA = static_cast<uint8_t>(DispatchKey::CUDA),
  CPU = static_cast<uint8_t>(DispatchKey::CPU),
  Fake = static_cast<uint8_t>(DispatchKey::Fake),
  Functionalize = static_cast<uint8_t>(DispatchKey::Functionalize),
  ADInplaceOrView = static_cast<uint8_t>(DispatchKey::ADInplaceOrView),
  Autograd = static_cast<uint8_t>(DispatchKey::Autograd),
  Autocast = static_cast<uint8_t>(DispatchKey::Autocast),
  AutogradCPU = kDispatchKeyCount,
  AutogradCUDA,
  CompositeExplicitAutograd,
  CompositeImplicitAutograd,
  Count_,
};
constexpr size_t kKernelKeyCount = static_cast<size_t>(KernelKey::Count_);

std::string_view name(KernelKey key);
// "CPU", "AutogradCUDA", …; an Error that lists them otherwise.
KernelKey parse_kernel_key(std::string_view text);

// Properties that tools ask for.
enum class Tag : uint8_t {
  pointwise,
  pt2_compliant_tag,
  generated,
  core,
  view_copy,
  inplace_view,
  data_dependent_output,
  dynamic_output_shape,
  nondeterministic_seeded,
  needs_fixed_stride_order,
  flexible_layout,
};
std::string_view name(Tag tag);

// A place in the user's source, "file.cpp:12".
std::string place_of(const std::source_location& where);

// Undone when it dies; move-only.
class Registration {
 public:
  Registration() = default;
  explicit Registration(std::function<void()> undo) : undo_(std::move(undo)) {}
  Registration(Registration&& other) noexcept : undo_(std::exchange(other.undo_, nullptr)) {}
  Registration& operator=(Registration&& other) noexcept {
    if (this != &other) {
      reset();
      undo_ = std::exchange(other.undo_, nullptr);
    }
    return *this;
  }
  ~Registration() { reset(); }
  void reset() noexcept {
    if (auto undo = std::exchange(undo_, nullptr)) undo();
  }
  // The registration stays for ever.
  void keep() { undo_ = nullptr; }

 private:
  std::function<void()> undo_;
};

struct Defined {
  Operator& op;
  Registration registration;
};
// Defines an operator; a second definition is an Error that names both places.
[[nodiscard]] Defined define_scoped(schema::Schema schema, std::vector<Tag> tags = {}, std::string place = {});
// A kernel; a second one for the same key is an Error that names both places.
[[nodiscard]] Registration register_scoped(Operator& op, KernelKey key, KernelFunction kernel, std::string place = {});
// The same in place of the one that is there, if any: calls on other threads find either.
[[nodiscard]] Registration replace_scoped(Operator& op, KernelKey key, KernelFunction kernel, std::string place = {});
[[nodiscard]] Registration register_fallback_scoped(DispatchKey key, KernelFunction kernel, std::string place = {});

// Whether the operator itself, not a composite or a fallback, has a kernel for the key.
bool has_kernel(const Operator& op, KernelKey key);
// Where it was registered; empty if there is none or nobody said.
std::string kernel_place(const Operator& op, KernelKey key);
std::string definition_place(const Operator& op);
bool is_defined(const Operator& op);
// Another number after every definition; 0 while it is removed.
uint64_t definition_number(const Operator& op);
std::vector<Tag> tags(const Operator& op);
bool has_tag(const Operator& op, Tag tag);
void add_tags(Operator& op, const std::vector<Tag>& tags);

// Who serves each key, one line per key from the top: "CPU              its own kernel (ops.cpp:12)".
std::string dispatch_table(const Operator& op);

// For tests: kernels, tables and operators that were replaced or removed and that a running call may still use; and all
// operators in memory.
size_t retired_count();
size_t operator_count();

}  // namespace tenon::dispatch
