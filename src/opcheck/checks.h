// The tests of opcheck, one file each. They raise what they find; their arguments are bound to the schema.
#pragma once

#include <tenon/opcheck/opcheck.h>

namespace tenon::opcheck {

using dispatch::Operator;
using dispatch::Value;
using dispatch::Values;

void schema_test(const Operator& op, std::span<const Value> args);
void autograd_registration_test(const Operator& op, std::span<const Value> args);
void fake_test(const Operator& op, std::span<const Value> args);
void aot_test(const Operator& op, std::span<const Value> args, bool dynamic, bool gradcheck);

// The operator as a function of its arguments that leaves them alone: it works on clones.
BoxedFunction on_clones(const Operator& op);
// "mylib.foo.default": how the overload of an operator is called where names are attributes.
std::string dotted_name(const Operator& op);

// How two tensors differ, in words; empty: they do not. Real numbers may differ by rounding.
std::string difference(const Tensor& expected, const Tensor& given);
// The same for results of a call, numbers and lists included.
std::string difference(const Value& expected, const Value& given);

// Finite differences of the function's results against autograd.
void check_derivatives(const BoxedFunction& function, std::span<const Value> args);

}  // namespace tenon::opcheck
