#include <tenon/dispatch/library.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "support/at_fork.h"

namespace tenon::dispatch {
namespace {

constexpr std::string_view kReserved[] = {"aten", "prim", "prims", "at", "torch", "pytorch", "tenon"};

// Namespaces that a Kind::Def library defines, with its place.
struct Claims {
  support::ForkSafe<std::mutex> mutex;
  std::map<std::string, std::string, std::less<>> places;
  static Claims& all() {
    static auto* claims = new Claims;
    return *claims;
  }
};

}  // namespace

bool is_reserved_namespace(std::string_view ns) {
  return std::find(std::begin(kReserved), std::end(kReserved), ns) != std::end(kReserved);
}

QualifiedName parse_qualified_name(std::string_view text) {
  size_t colons = text.find("::");
  TENON_CHECK_VALUE(colons != std::string_view::npos && colons > 0 && colons + 2 < text.size(),
                    "[library] expected a name with a namespace, such as \"mylib::foo\", got \"{}\"", text);
  QualifiedName parts{std::string(text.substr(0, colons)), std::string(text.substr(colons + 2)), {}};
  if (size_t dot = parts.name.find('.'); dot != std::string::npos) {
    parts.overload = parts.name.substr(dot + 1);
    parts.name.resize(dot);
  }
  return parts;
}

Library::Library(std::string ns, Kind kind, std::optional<KernelKey> key, std::source_location where)
    : ns_(std::move(ns)), kind_(kind), key_(key) {
  TENON_CHECK_VALUE(!ns_.empty() && ns_.find(':') == std::string::npos,
                    "[library] expected a namespace, such as \"mylib\", got \"{}\"", ns_);
  if (kind_ != Kind::Def) return;
  TENON_CHECK_VALUE(!is_reserved_namespace(ns_), "[library] {} is a reserved namespace", ns_);
  Claims& claims = Claims::all();
  std::lock_guard lock(claims.mutex);
  auto [at, added] = claims.places.try_emplace(ns_, place_of(where));
  TENON_CHECK(added,
              "[library] only one TENON_LIBRARY may define the namespace {}: the first is at {}, another at {}; use "
              "TENON_LIBRARY_FRAGMENT",
              ns_, at->second, place_of(where));
  claim_ = Registration([&claims, name = ns_] {
    std::lock_guard undo_lock(claims.mutex);
    claims.places.erase(name);
  });
}

void Library::reset() {
  while (!registrations_.empty()) registrations_.pop_back();
  claim_.reset();
}

std::string Library::qualify(std::string_view name) const {
  if (name.find("::") == std::string_view::npos) return fmt::format("{}::{}", ns_, name);
  TENON_CHECK(parse_qualified_name(name).ns == ns_, "[library] {} is not in the namespace {} of this library", name,
              ns_);
  return std::string(name);
}

Ref<Operator> Library::find(std::string_view name) const {
  std::string full = qualify(name);
  Ref<Operator> op = hold_operator(full);
  TENON_CHECK(op, "[library] {} is not defined: define it before registering a kernel of it", full);
  return op;
}

Operator& Library::define(schema::Schema schema, std::vector<Tag> tags, std::source_location where) {
  TENON_CHECK(kind_ != Kind::Impl, "[library] a library of kernels (TENON_LIBRARY_IMPL) defines no operators: {}",
              schema.str());
  if (schema.ns.empty()) schema.ns = ns_;
  TENON_CHECK(schema.ns == ns_, "[library] {} is not in the namespace {} of this library", schema.qualified_name(),
              ns_);
  TENON_CHECK_VALUE(!is_reserved_namespace(ns_), "[library] {} is a reserved namespace", ns_);
  Defined defined = define_scoped(std::move(schema), std::move(tags), place_of(where));
  keep(std::move(defined.registration));
  return defined.op;
}

Operator& Library::def(std::string_view schema, std::vector<Tag> tags, std::source_location where) {
  return define(schema::parse(schema), std::move(tags), where);
}

KernelKey Library::own_key() const {
  TENON_CHECK(key_, "[library] say for which key the kernel is: the library of {} has none", ns_);
  return *key_;
}

Library& Library::fallback(KernelFunction kernel, std::source_location where) {
  KernelKey key = own_key();
  TENON_CHECK(static_cast<size_t>(key) < kDispatchKeyCount,
              "[library] {} is an alias of several keys and has no fallback", name(key));
  keep(register_fallback_scoped(static_cast<DispatchKey>(key), std::move(kernel), place_of(where)));
  return *this;
}

}  // namespace tenon::dispatch
