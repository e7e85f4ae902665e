// The older way of making an operator, step by step and loosely typed: define it, then register what it computes, what
// it saves and how it is differentiated. New code uses custom_op.h.
//
//   using namespace library;
//   legacy::custom_op("examples::sine", "(Tensor a) -> Tensor");
//   legacy::impl("examples::sine", [](const Tensor& a) { return a.sin(); });
//   legacy::impl_save_for_backward("examples::sine",
//                                  [](const Inputs& inputs, Outputs) { return AnyValue(inputs["a"].tensor()); });
//   legacy::impl_backward("examples::sine", [](AutogradContext&, const AnyValue& saved,
//                                            const std::vector<AnyValue>& grads) {
//     return AnyValue(AnyValue::Dict{{"a", grads[0].tensor() * saved.tensor().cos()}});
//   });
//   std::string schema = legacy::get_op("examples::sine").schema().str();
//   legacy::destroy("examples::sine");
//
// Only functional operators, without overloads. Differentiating one that has no backward is an Error at the call.
// `backward` gives a dictionary with the gradient of every tensor argument, or nothing for it.
#pragma once

#include <tenon/library/custom_op.h>

namespace tenon::library::legacy {

Operator& custom_op(std::string_view name, std::string_view schema,
                    std::source_location where = std::source_location::current());
// The schema from a function's type; the function itself is not used.
template <typename F>
Operator& custom_op(std::string_view name, const dispatch::SchemaOptions& options = {},
                    std::source_location where = std::source_location::current()) {
  schema::Schema schema = dispatch::schema_of<F>(name, options);
  return custom_op(name, schema.str().substr(schema.str().find('(')), where);
}
// The same, with a schema given too: an Error if they disagree, in types or in the names that are given.
template <typename F>
Operator& custom_op(std::string_view name, std::string_view schema, std::type_identity<F>,
                    const dispatch::SchemaOptions& options = {},
                    std::source_location where = std::source_location::current()) {
  schema::Schema parsed = schema::parse(std::string(name) + std::string(schema));
  if (!options.names.empty()) dispatch::detail::check_names(parsed, options.names);
  dispatch::detail::check_signature(parsed, dispatch::detail::FunctionTypesOf<F>::get(), "the function");
  return custom_op(name, schema, where);
}
// An operator by its name; an Error if there is none.
Operator& get_op(std::string_view name);
void destroy(std::string_view name);

void impl_function(std::string_view name, KernelFunction kernel, const std::vector<std::string>& device_types,
                   const std::string& place);
template <typename F>
void impl(std::string_view name, F function, const std::vector<std::string>& device_types = {"cpu", "cuda"},
          std::source_location where = std::source_location::current()) {
  impl_function(name, dispatch::kernel_for(get_op(name).schema(), std::move(function), "the kernel"), device_types,
                dispatch::place_of(where));
}

using Save = std::function<AnyValue(const Inputs&, Outputs)>;
using Backward =
    std::function<AnyValue(AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& gradients)>;
void impl_save_for_backward(std::string_view name, Save save,
                            std::source_location where = std::source_location::current());
// `output_differentiability`: a list with a bool per result; nothing: all tensors are.
void impl_backward(std::string_view name, Backward backward, const AnyValue& output_differentiability = {},
                   std::source_location where = std::source_location::current());

}  // namespace tenon::library::legacy
