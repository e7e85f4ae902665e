// The table of operations: the public traits and how each operation's dtypes hang together. Everything else about
// operations (verifier, printer, parser, builder) reads it.
#pragma once

#include <tenon/loop/kernel.h>

#include <optional>
#include <string_view>

namespace tenon::loop {

enum class Typing : uint8_t {
  Special,    // sources and sinks: a rule of their own
  Uniform,    // operands have the result's dtype
  Predicate,  // operands share a dtype, the result is Bool
  Convert,    // one operand of any dtype
  Choose,     // a Bool, then two operands of the result's dtype
};

struct OpRow {
  OpCode code;
  OpTraits traits;
  Typing typing;
};

const OpRow& row(OpCode code);
std::optional<OpCode> op_from_name(std::string_view name);

inline bool has_result(OpCode code) {
  return code != OpCode::Store && code != OpCode::Check && code != OpCode::BindIndex;
}
inline bool is_allowed(const OpTraits& traits, Dtype dtype) {
  return dtype == Dtype::Bool ? traits.booleans : is_floating(dtype) ? traits.floats : traits.integers;
}

struct ReduceRow {
  ReduceKind kind;
  std::string_view name;
  bool booleans;  // the dtypes that it is defined for: Bool, or else floats and integers
};
constexpr ReduceRow kReduceRows[] = {
    {ReduceKind::Sum, "sum", false}, {ReduceKind::Product, "product", false}, {ReduceKind::Max, "max", false},
    {ReduceKind::Min, "min", false}, {ReduceKind::Any, "any", true},          {ReduceKind::All, "all", true},
};
constexpr const ReduceRow& row(ReduceKind kind) { return kReduceRows[static_cast<int>(kind)]; }

constexpr std::string_view kRoleNames[] = {"in", "out", "inout", "temporary", "scratch"};
constexpr std::string_view name(BufferRole role) { return kRoleNames[static_cast<int>(role)]; }

// The dtype of that brief name ("f32").
std::optional<Dtype> dtype_from_brief(std::string_view brief);

}  // namespace tenon::loop
