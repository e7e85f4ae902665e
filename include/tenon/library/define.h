// Operators and kernels by qualified name, with or without a `Library` that bounds their life.
//
//   library::define("examples::same", "(Tensor a) -> Tensor");
//   library::impl("examples::same", {"cpu"}, [](const Tensor& a) { return a.clone(); });
#pragma once

#include <tenon/dispatch/library.h>

namespace tenon::library {

// The schema begins with its arguments: the name stands in front already. Without a library the operator stays for
// ever.
dispatch::Operator& define(std::string_view name, std::string_view schema, dispatch::Library* lib = nullptr,
                           std::vector<dispatch::Tag> tags = {},
                           std::source_location where = std::source_location::current());

inline dispatch::Operator& define(std::string_view name, std::string_view schema, dispatch::Library* lib,
                                  dispatch::Tag tag, std::source_location where = std::source_location::current()) {
  return define(name, schema, lib, std::vector<dispatch::Tag>{tag}, where);
}

// `types`: devices ("cpu", "cuda"), "default" for all of them, or dispatch keys ("CPU", "Autograd").
void impl_function(std::string_view name, const std::vector<std::string>& types,
                   const std::function<dispatch::KernelFunction(const schema::Schema&)>& kernel, dispatch::Library* lib,
                   const std::string& place);

template <typename F>
void impl(std::string_view name, const std::vector<std::string>& types, F function, dispatch::Library* lib = nullptr,
          std::source_location where = std::source_location::current()) {
  impl_function(
      name, types,
      [&](const schema::Schema& schema) { return dispatch::kernel_for(schema, std::move(function), "the kernel"); },
      lib, dispatch::place_of(where));
}

}  // namespace tenon::library
