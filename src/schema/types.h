// The names of the base types, in one table that the parser, the printer and the hints read.
#pragma once

#include <tenon/schema/schema.h>

#include <utility>

namespace tenon::schema {

inline constexpr std::pair<std::string_view, Kind> kBaseTypes[] = {
    {"Tensor", Kind::Tensor},
    {"int", Kind::Int},
    {"SymInt", Kind::SymInt},
    {"float", Kind::Float},
    {"bool", Kind::Bool},
    {"str", Kind::Str},
    {"Scalar", Kind::Scalar},
    {"ScalarType", Kind::ScalarType},
    {"Device", Kind::Device},
    {"Layout", Kind::Layout},
    {"MemoryFormat", Kind::MemoryFormat},
    {"Generator", Kind::Generator},
    {"complex", Kind::Complex},
};

// What is written often for a type of the language, and the hint to give.
inline constexpr std::pair<std::string_view, std::string_view> kTypeHints[] = {
    {"int64_t", "Use `SymInt` or `int`"},
    {"int32_t", "Use `SymInt` or `int`"},
    {"long", "Use `SymInt` or `int`"},
    {"size_t", "Use `SymInt` or `int`"},
    {"double", "Use `float`"},
    {"string", "Use `str`"},
    {"string_view", "Use `str`"},
    {"Dtype", "Use `ScalarType`"},
    {"dtype", "Use `ScalarType`"},
    {"number", "Use `Scalar`"},
    {"TensorList", "Use `Tensor[]`"},
    {"IntArrayRef", "Use `int[]`"},
    {"SymIntArrayRef", "Use `SymInt[]`"},
    {"List", "Write a list as `int[]`"},
    {"vector", "Write a list as `int[]`"},
    {"Optional", "Write an optional as `int?`"},
    {"optional", "Write an optional as `int?`"},
    {"void", "An operator without results returns `()`"},
};

}  // namespace tenon::schema
