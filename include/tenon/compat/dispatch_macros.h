// One lambda for several element types: `scalar_t` is the type at hand.
//
//   AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] { … x.data_ptr<scalar_t>() … });
#pragma once

#include <tenon/compat/tensor.h>

namespace at::compat {
inline ScalarType type_of(ScalarType type) { return type; }
inline ScalarType type_of(tenon::Dtype type) { return type; }
inline ScalarType type_of(const DeprecatedTypeProperties& type) { return type.scalarType(); }
[[noreturn]] inline void not_implemented(const char* name, ScalarType type) {
  throw tenon::NotImplementedError(c10::str('"', name, "\" not implemented for '", type, "'"));
}
// Calls the function with the C++ type of the first of these that `type` is.
template <tenon::Dtype kFirst, tenon::Dtype... kRest, typename F>
decltype(auto) dispatch_to(ScalarType type, const char* name, F&& function) {
  if (type.dtype == kFirst) return function.template operator()<typename c10::CppType<kFirst>::type>();
  if constexpr (sizeof...(kRest) > 0)
    return dispatch_to<kRest...>(type, name, function);
  else
    not_implemented(name, type);
}
}  // namespace at::compat

#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, HINT, ...)              \
  case ::tenon::Dtype(enum_type): {                                        \
    using HINT = typename ::c10::CppType<::tenon::Dtype(enum_type)>::type; \
    return __VA_ARGS__();                                                  \
  }
#define AT_DISPATCH_CASE(enum_type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
// No variable of its own: one such switch may stand in another's case.
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                      \
  [&] {                                                                          \
    switch (::at::compat::type_of(TYPE).dtype) {                                 \
      __VA_ARGS__                                                                \
      default: ::at::compat::not_implemented(NAME, ::at::compat::type_of(TYPE)); \
    }                                                                            \
  }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)               \
  AT_DISPATCH_CASE(::c10::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(T1, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)       \
  AT_DISPATCH_CASE(T1, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(T1, T2, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND(T1, __VA_ARGS__)    \
  AT_DISPATCH_CASE(T2, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND(::c10::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)             \
  AT_DISPATCH_CASE(::c10::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::c10::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(T1, ...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)       \
  AT_DISPATCH_CASE(T1, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND(T1, ...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)       \
  AT_DISPATCH_CASE(T1, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND2(T1, T2, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND(T1, __VA_ARGS__)    \
  AT_DISPATCH_CASE(T2, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND3(T1, T2, T3, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND2(T1, T2, __VA_ARGS__)   \
  AT_DISPATCH_CASE(T3, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(T1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND(T1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(T1, T2, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(T1, T2, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...)                 \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                            \
                     AT_DISPATCH_CASE(::c10::ScalarType::Half, __VA_ARGS__) \
                         AT_DISPATCH_CASE(::c10::ScalarType::BFloat16, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(T1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES_AND(T1, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                   \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_PRIVATE_CASE_TYPE_USING_HINT(::c10::ScalarType::Int, index_t, __VA_ARGS__) \
                         AT_PRIVATE_CASE_TYPE_USING_HINT(::c10::ScalarType::Long, index_t, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(T1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND(T1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_ALL_TYPES_AND(::c10::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(T1, T2, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND2(T1, T2, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND3(T1, T2, T3, __VA_ARGS__))
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND3(T1, T2, T3, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND2(T1, T2, __VA_ARGS__)   \
  AT_DISPATCH_CASE(T3, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND4(T1, T2, T3, T4, ...) \
  AT_DISPATCH_CASE_FLOATING_TYPES_AND3(T1, T2, T3, __VA_ARGS__)   \
  AT_DISPATCH_CASE(T4, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND4(T1, T2, T3, T4, ...) \
  AT_DISPATCH_CASE_ALL_TYPES_AND3(T1, T2, T3, __VA_ARGS__)   \
  AT_DISPATCH_CASE(T4, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND3(T1, T2, T3, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES_AND4(T1, T2, T3, T4, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND4(T1, T2, T3, T4, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES_AND4(T1, T2, T3, T4, __VA_ARGS__))

// There are no complex tensors: the families that name complex types have the real ones.
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES AT_DISPATCH_CASE_FLOATING_TYPES
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND AT_DISPATCH_CASE_FLOATING_TYPES_AND
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES_AND2 AT_DISPATCH_CASE_FLOATING_TYPES_AND2
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX AT_DISPATCH_CASE_ALL_TYPES
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND AT_DISPATCH_CASE_ALL_TYPES_AND
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND2 AT_DISPATCH_CASE_ALL_TYPES_AND2
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX_AND3 AT_DISPATCH_CASE_ALL_TYPES_AND3
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES AT_DISPATCH_FLOATING_TYPES
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND AT_DISPATCH_FLOATING_TYPES_AND
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1 AT_DISPATCH_FLOATING_TYPES_AND
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2 AT_DISPATCH_FLOATING_TYPES_AND2
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3 AT_DISPATCH_FLOATING_TYPES_AND3
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX AT_DISPATCH_ALL_TYPES
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND AT_DISPATCH_ALL_TYPES_AND
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2 AT_DISPATCH_ALL_TYPES_AND2
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3 AT_DISPATCH_ALL_TYPES_AND3
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4 AT_DISPATCH_ALL_TYPES_AND4

// AT_DISPATCH_V2(type, name, AT_WRAP(lambda), AT_EXPAND(AT_FLOATING_TYPES), kHalf): a list of types, one behind the
// other.
#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(types) types
#define AT_FLOATING_TYPES ::c10::kDouble, ::c10::kFloat
#define AT_REDUCED_FLOATING_TYPES ::c10::kHalf, ::c10::kBFloat16
#define AT_INTEGRAL_TYPES ::c10::kByte, ::c10::kChar, ::c10::kInt, ::c10::kLong, ::c10::kShort
#define AT_INTEGRAL_TYPES_V2 AT_INTEGRAL_TYPES
#define AT_ALL_TYPES AT_INTEGRAL_TYPES, AT_FLOATING_TYPES
#define AT_DISPATCH_V2(TYPE, NAME, BODY, ...)                               \
  ::at::compat::dispatch_to<__VA_ARGS__>(::at::compat::type_of(TYPE), NAME, \
                                         [&]<typename scalar_t>() { return (BODY)(); })
