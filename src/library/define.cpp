#include "devices.h"

#include <tenon/library/define.h>

#include <cctype>

namespace tenon::library {

dispatch::Operator& define(std::string_view name, std::string_view schema, dispatch::Library* lib,
                           std::vector<dispatch::Tag> tags, std::source_location where) {
  dispatch::QualifiedName parts = dispatch::parse_qualified_name(name);
  TENON_CHECK_VALUE(schema.starts_with("("), "[{}] expected schema to look like \"(Tensor x) -> Tensor\", got \"{}\"",
                    name, schema);
  TENON_CHECK_VALUE(!dispatch::is_reserved_namespace(parts.ns), "[{}] {} is a reserved namespace", name, parts.ns);
  schema::Schema parsed = schema::parse(std::string(name) + std::string(schema));
  if (lib) return lib->define(std::move(parsed), std::move(tags), where);
  dispatch::Defined defined = dispatch::define_scoped(std::move(parsed), std::move(tags), dispatch::place_of(where));
  defined.registration.keep();
  return defined.op;
}

void impl_function(std::string_view name, const std::vector<std::string>& types,
                   const std::function<dispatch::KernelFunction(const schema::Schema&)>& kernel, dispatch::Library* lib,
                   const std::string& place) {
  std::vector<dispatch::KernelKey> keys;
  for (const std::string& type : types) {
    // Keys are written with a capital letter, devices without.
    if (!type.empty() && std::isupper(static_cast<unsigned char>(type[0])))
      keys.push_back(dispatch::parse_kernel_key(type));
    else
      for (dispatch::KernelKey key : keys_of_devices({type})) keys.push_back(key);
  }
  Ref<dispatch::Operator> op = dispatch::hold_operator(name);
  TENON_CHECK(op, "[library] {} is not defined: define it before registering a kernel of it", name);
  dispatch::KernelFunction function = kernel(op->schema());
  for (dispatch::KernelKey key : keys) {
    dispatch::Registration registration = dispatch::register_scoped(*op, key, function, place);
    if (lib)
      lib->keep(std::move(registration));
    else
      registration.keep();
  }
}

}  // namespace tenon::library
