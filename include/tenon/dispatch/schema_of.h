// A schema from a C++ function's type.
//
//   Tensor scale(const Tensor& x, double by, std::optional<Tensor> bias);
//   schema_of<decltype(&scale)>("mylib::scale", {.names = "x, by=1.0, *, bias=None"})
//     → mylib::scale(Tensor x, float by=1.0, *, Tensor? bias=None) -> Tensor
//
// C++ does not tell parameter names, so `names` lists them: separated by commas, each with a default in the language of
// schemas if it has one, and `*` where the keyword-only ones begin. Without it they are arg0, arg1, …
#pragma once

#include <tenon/dispatch/operator.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace tenon::dispatch {

struct SchemaOptions {
  std::string names = {};
  std::vector<std::string> mutates = {};  // arguments that the function writes to
};

namespace detail {

template <typename T>
struct TypeText;  // the schema type of a parameter or result; `alias` goes behind "Tensor"
#define TENON_TYPE_TEXT(type, text)                            \
  template <>                                                  \
  struct TypeText<type> {                                      \
    static std::string of(const std::string&) { return text; } \
  };
template <>
struct TypeText<Tensor> {
  static std::string of(const std::string& alias) { return "Tensor" + alias; }
};
TENON_TYPE_TEXT(int64_t, "SymInt")
TENON_TYPE_TEXT(SymInt, "SymInt")
TENON_TYPE_TEXT(double, "float")
TENON_TYPE_TEXT(SymFloat, "float")
TENON_TYPE_TEXT(std::complex<double>, "complex")
TENON_TYPE_TEXT(bool, "bool")
TENON_TYPE_TEXT(SymBool, "bool")
TENON_TYPE_TEXT(Scalar, "Scalar")
TENON_TYPE_TEXT(Dtype, "ScalarType")
TENON_TYPE_TEXT(Device, "Device")
TENON_TYPE_TEXT(Layout, "Layout")
TENON_TYPE_TEXT(MemoryFormat, "MemoryFormat")
TENON_TYPE_TEXT(std::string, "str")
TENON_TYPE_TEXT(std::string_view, "str")
TENON_TYPE_TEXT(Ints, "SymInt[]")
TENON_TYPE_TEXT(SymInts, "SymInt[]")
TENON_TYPE_TEXT(OptionalInts, "SymInt[]?")
TENON_TYPE_TEXT(std::vector<int64_t>, "SymInt[]")
TENON_TYPE_TEXT(std::vector<SymInt>, "SymInt[]")
TENON_TYPE_TEXT(std::vector<double>, "float[]")
TENON_TYPE_TEXT(std::vector<bool>, "bool[]")
TENON_TYPE_TEXT(std::vector<Scalar>, "Scalar[]")
#undef TENON_TYPE_TEXT
template <>
struct TypeText<std::vector<Tensor>> {
  static std::string of(const std::string& alias) { return "Tensor" + alias + "[]"; }
};
template <>
struct TypeText<std::vector<std::optional<Tensor>>> {
  static std::string of(const std::string& alias) { return "Tensor" + alias + "?[]"; }
};
template <typename T>
  requires requires { TypeText<T>::of(std::string()); }
struct TypeText<std::optional<T>> {
  static std::string of(const std::string& alias) { return TypeText<T>::of(alias) + "?"; }
};

}  // namespace detail

// Whether a C++ type has a schema type, as a parameter or a single result.
template <typename T>
concept HasSchemaType = requires { detail::TypeText<std::remove_cvref_t<T>>::of(std::string()); };

namespace detail {

// What to write in place of a tuple parameter: a list of its elements' type.
template <typename T>
struct Suggested {
  using type = T;
};
template <>
struct Suggested<int> {
  using type = int64_t;
};
template <>
struct Suggested<unsigned> {
  using type = int64_t;
};
template <>
struct Suggested<float> {
  using type = double;
};
template <>
struct Suggested<const char*> {
  using type = std::string_view;
};
template <typename T>
struct Bare {
  using type = T;
};
template <typename T>
struct Bare<std::optional<T>> {
  using type = T;
};
template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;
template <typename Found, typename... Rest>
struct Distinct {
  using type = Found;
};
template <typename... Found, typename T, typename... Rest>
struct Distinct<std::variant<Found...>, T, Rest...>
    : Distinct<std::conditional_t<(std::is_same_v<Found, T> || ...), std::variant<Found...>, std::variant<Found..., T>>,
               Rest...> {};
template <typename V>
struct OneOf {
  using type = V;
};
template <typename T>
struct OneOf<std::variant<T>> {
  using type = T;
};
template <typename... T>
struct Suggested<std::tuple<T...>> {
  using Element = typename OneOf<typename Distinct<std::variant<>, typename Bare<T>::type...>::type>::type;
  using type = std::vector<std::conditional_t<(is_optional<T> || ...), std::optional<Element>, Element>>;
};
template <typename A, typename B>
struct Suggested<std::pair<A, B>> : Suggested<std::tuple<A, B>> {};
template <typename T, size_t N>
struct Suggested<std::array<T, N>> {
  using type = std::vector<T>;
};

}  // namespace detail

// The type to write where `T` has no schema type: std::tuple<int64_t, int64_t> → std::vector<int64_t>, float → double.
template <typename T>
using SuggestedType = typename detail::Suggested<std::remove_cvref_t<T>>::type;

namespace detail {

// In a compiler's message their parameters tell the type, and what to write instead where something would do.
template <typename Written, typename WriteInstead>
struct ParameterHasNoSchemaType {
  static_assert(
      HasSchemaType<Written>,
      "this parameter or result has no schema type, it is of an unsupported type. Use Tensor, int64_t, SymInt, double, "
      "SymFloat, bool, SymBool, Scalar, Dtype, Device, std::string, std::optional of one of these, or std::vector of "
      "Tensor, std::optional<Tensor>, int64_t, SymInt, double, bool or Scalar; a tuple parameter is written as a "
      "std::vector. For example, the type that stands second in ParameterHasNoSchemaType<written, instead>");
  static constexpr bool value = true;
};
template <typename Written>
struct UnsupportedType {
  static_assert(
      HasSchemaType<Written>,
      "this parameter or result has no schema type, it is of an unsupported type. Use Tensor, int64_t, SymInt, double, "
      "SymFloat, bool, SymBool, Scalar, Dtype, Device, std::string, std::optional of one of these, or std::vector of "
      "Tensor, std::optional<Tensor>, int64_t, SymInt, double, bool or Scalar");
  static constexpr bool value = true;
};
template <typename Written>
constexpr bool check_schema_type() {
  if constexpr (HasSchemaType<Written>)
    return true;
  else if constexpr (HasSchemaType<SuggestedType<Written>>)
    return ParameterHasNoSchemaType<Written, SuggestedType<Written>>::value;
  else
    return UnsupportedType<Written>::value;
}

using TypeTextFunction = std::string (*)(const std::string& alias);

template <typename T>
constexpr TypeTextFunction type_text() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (check_schema_type<Plain>() && HasSchemaType<Plain>)
    return &TypeText<Plain>::of;
  else
    return nullptr;
}

// The types of a function's parameters and results, as text.
struct FunctionTypes {
  std::vector<TypeTextFunction> arguments, returns;
};

template <typename R>
std::vector<TypeTextFunction> return_types() {
  if constexpr (std::is_void_v<R>)
    return {};
  else if constexpr (requires { std::tuple_size<R>::value; })
    return []<size_t... I>(std::index_sequence<I...>) {
      return std::vector<TypeTextFunction>{type_text<std::tuple_element_t<I, R>>()...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  else
    return {type_text<R>()};
}

template <typename F>
struct FunctionTypesOf {
  static_assert(sizeof(F) == 0,
                "every parameter of the function must have a type annotation: one that takes `auto`, or that can be "
                "called in several ways, has no types to make a schema of; write const Tensor& x, double by, …");
};
template <typename F>
  requires requires { &F::operator(); }
struct FunctionTypesOf<F> : FunctionTypesOf<decltype(&F::operator())> {};
template <typename R, typename... A>
struct FunctionTypesOf<R (*)(A..., ...)> {
  static_assert(sizeof(R) == 0,
                "varargs are not supported: a schema has a fixed number of parameters; take a std::vector");
};
template <typename R, typename... A>
struct FunctionTypesOf<R (*)(A...) noexcept> : FunctionTypesOf<R (*)(A...)> {};
template <typename R, typename... A>
struct FunctionTypesOf<R(A...)> {
  using Result = R;
  using Arguments = std::tuple<std::remove_cvref_t<A>...>;
  static FunctionTypes get() { return {{type_text<A>()...}, return_types<std::remove_cvref_t<R>>()}; }
};
template <typename R, typename... A>
struct FunctionTypesOf<R (*)(A...)> : FunctionTypesOf<R(A...)> {};
template <typename C, typename R, typename... A>
struct FunctionTypesOf<R (C::*)(A...) const> : FunctionTypesOf<R(A...)> {};
template <typename C, typename R, typename... A>
struct FunctionTypesOf<R (C::*)(A...)> : FunctionTypesOf<R(A...)> {};

schema::Schema build_schema(std::string_view qualified_name, const FunctionTypes& types, const SchemaOptions& options);
// An Error if a function of these types cannot be a kernel of the schema; int and SymInt are one here, as are lengths
// of lists.
void check_signature(const schema::Schema& schema, const FunctionTypes& types, std::string_view what);
// A ValueError if names that were given beside a schema are not those of its arguments, in their order and with the
// keyword-only ones behind `*`, or bring defaults, which stand in the schema.
void check_names(const schema::Schema& schema, std::string_view names);

}  // namespace detail

template <typename F>
schema::Schema schema_of(std::string_view qualified_name = "", const SchemaOptions& options = {}) {
  return detail::build_schema(qualified_name, detail::FunctionTypesOf<F>::get(), options);
}

}  // namespace tenon::dispatch
