// `Library`: the operators and kernels that one author adds, under one namespace. They vanish with it.
//
//   TENON_LIBRARY(mylib, m) {
//     m.def("scale(Tensor x, float by) -> Tensor");
//     m.def("twice", [](const Tensor& x) { return x + x; });     // schema from the type; a composite
//   }
//   TENON_LIBRARY_IMPL(mylib, CPU, m) { m.impl("scale", scale_cpu); }
//
// or as an object, for as long as it lives:  Library lib("mylib"); lib.def(…);
#pragma once

#include <tenon/dispatch/function.h>
#include <tenon/dispatch/registration.h>

#include <string>
#include <string_view>

namespace tenon::dispatch {

// Namespaces that only the operator table may define operators in.
bool is_reserved_namespace(std::string_view ns);

// "ns::name.overload", taken apart; an Error if it has no namespace.
struct QualifiedName {
  std::string ns, name, overload;
};
QualifiedName parse_qualified_name(std::string_view text);

class Library {
 public:
  enum class Kind : uint8_t {
    Def,       // the one library that defines a namespace
    Fragment,  // adds to it
    Impl,      // kernels only
  };
  explicit Library(std::string ns, Kind kind = Kind::Fragment, std::optional<KernelKey> key = {},
                   std::source_location where = std::source_location::current());
  ~Library() { reset(); }
  Library(Library&&) = default;
  Library& operator=(Library&&) = default;
  // Everything that was registered through it goes, the last first.
  void reset();

  // "name.overload(Tensor x) -> Tensor".
  Operator& def(std::string_view schema, std::vector<Tag> tags = {},
                std::source_location where = std::source_location::current());
  // A name, the schema being that of the function, or a schema; the function is a composite of other operators, through
  // which autograd and capture see.
  template <typename F>
    requires(!std::is_convertible_v<F, std::vector<Tag>>)
  Operator& def(std::string_view name_or_schema, F function, const SchemaOptions& options = {},
                std::source_location where = std::source_location::current()) {
    Operator& op = name_or_schema.find('(') == std::string_view::npos
                       ? define(schema_of<F>(qualify(name_or_schema), options), {}, where)
                       : def(name_or_schema, std::vector<Tag>(), where);
    keep(register_scoped(op, KernelKey::CompositeImplicitAutograd,
                         kernel_for(op.schema(), std::move(function), "the function"), place_of(where)));
    return op;
  }

  // A kernel of "name.overload" for a key; without one, for the key of the library.
  template <typename F>
  Library& impl(std::string_view name, F function, KernelKey key,
                std::source_location where = std::source_location::current()) {
    Ref<Operator> op = find(name);
    keep(register_scoped(*op, key, kernel_for(op->schema(), std::move(function), "the kernel"), place_of(where)));
    return *this;
  }
  template <typename F>
  Library& impl(std::string_view name, F function, std::string_view key,
                std::source_location where = std::source_location::current()) {
    return impl(name, std::move(function), parse_kernel_key(key), where);
  }
  template <typename F>
  Library& impl(std::string_view name, F function, std::source_location where = std::source_location::current()) {
    return impl(name, std::move(function), own_key(), where);
  }
  // What runs for operators that have nothing for the library's key.
  Library& fallback(KernelFunction kernel, std::source_location where = std::source_location::current());

  const std::string& ns() const { return ns_; }
  // Keeps a registration that another room made for as long as the library lives.
  void keep(Registration registration) { registrations_.push_back(std::move(registration)); }
  // "foo" or "ns::foo" as a full name; an Error if it names another namespace.
  std::string qualify(std::string_view name) const;
  // An Error if there is no such operator.
  Ref<Operator> find(std::string_view name) const;
  Operator& define(schema::Schema schema, std::vector<Tag> tags, std::source_location where);

 private:
  KernelKey own_key() const;

  std::string ns_;
  Kind kind_;
  std::optional<KernelKey> key_;
  Registration claim_;  // of the namespace, by Kind::Def
  std::vector<Registration> registrations_;
};

namespace detail {
struct LibraryBlock {
  Library library;
  LibraryBlock(const char* ns, Library::Kind kind, std::optional<KernelKey> key, void (*fill)(Library&),
               std::source_location where)
      : library(ns, kind, key, where) {
    fill(library);
  }
};
}  // namespace detail

}  // namespace tenon::dispatch

#define TENON_LIBRARY_BLOCK_(ns, kind, key, m, id) TENON_LIBRARY_BLOCK__(ns, kind, key, m, id)
#define TENON_LIBRARY_BLOCK__(ns, kind, key, m, id)                                                                \
  static void tenon_library_fill_##id(::tenon::dispatch::Library&);                                                \
  static const ::tenon::dispatch::detail::LibraryBlock tenon_library_block_##id(                                   \
      #ns, ::tenon::dispatch::Library::Kind::kind, key, tenon_library_fill_##id, std::source_location::current()); \
  static void tenon_library_fill_##id([[maybe_unused]] ::tenon::dispatch::Library& m)

#define TENON_LIBRARY(ns, m) TENON_LIBRARY_BLOCK_(ns, Def, std::nullopt, m, __COUNTER__)
#define TENON_LIBRARY_FRAGMENT(ns, m) TENON_LIBRARY_BLOCK_(ns, Fragment, std::nullopt, m, __COUNTER__)
#define TENON_LIBRARY_IMPL(ns, key, m) \
  TENON_LIBRARY_BLOCK_(ns, Impl, ::tenon::dispatch::parse_kernel_key(#key), m, __COUNTER__)
