// The schema language of operators: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
//
// `parse` turns the text into a `Schema`, `str` prints it back; parse(str(s)) == s. An error names the column and hints
// at the mend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon::schema {

enum class Kind : uint8_t {
  Tensor,
  Int,
  SymInt,
  Float,
  Bool,
  Str,
  Scalar,
  ScalarType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  List,      // of `element`, with a fixed length or not
  Optional,  // of `element`
  Complex,   // a number; tensors of them come later
};

struct Type {
  Kind kind = Kind::Tensor;
  std::vector<Type> element;      // one entry for List and Optional
  std::optional<int64_t> length;  // `int[2]`
  bool operator==(const Type&) const = default;
  std::string str() const;
  bool is_list() const { return kind == Kind::List; }
  bool is_optional() const { return kind == Kind::Optional; }
  // Tensor, Tensor?, Tensor[], Tensor?[] …
  bool is_tensor_like() const;
};

// `(a)`, `(a!)`, `(a -> *)`, `(a|b!)`.
struct Alias {
  std::vector<std::string> before,
      after;  // sets; `after` equals `before` unless an arrow was written; "*" is the wildcard
  bool write = false;
  bool operator==(const Alias&) const = default;
};

struct NoneDefault {
  bool operator==(const NoneDefault&) const = default;
};
// A name used as a value: `contiguous_format`, `float`, `Mean`.
struct NameDefault {
  std::string name;
  bool operator==(const NameDefault&) const = default;
};
using Default = std::variant<NoneDefault, bool, int64_t, double, std::string, NameDefault, std::vector<int64_t>,
                             std::vector<double>, std::vector<bool>>;

struct Argument {
  std::string name;  // may be empty in returns
  Type type;
  std::optional<Alias> alias;
  std::optional<Default> default_value;
  bool keyword_only = false;
  bool operator==(const Argument&) const = default;
};

struct Schema {
  std::string ns;        // "aten"; empty when the text names none
  std::string name;      // "add"
  std::string overload;  // "Tensor"; empty for the default one
  std::vector<Argument> arguments;
  std::vector<Argument> returns;
  bool operator==(const Schema&) const = default;

  std::string str() const;                              // the whole schema
  std::string qualified_name() const;                   // "aten::add.Tensor"
  int argument_index(std::string_view argument) const;  // -1 if there is none

  bool is_mutable() const;     // writes to an argument
  bool is_view() const;        // a return aliases an argument that is not written
  bool is_functional() const;  // neither
  std::vector<int> mutated_arguments() const;
};

Schema parse(std::string_view text);

}  // namespace tenon::schema
