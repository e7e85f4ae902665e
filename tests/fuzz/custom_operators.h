// Custom operators of any schema that programs use: one meaning for all of them. Printed programs include this file.
//
// Arguments that are written to are doubled and added to, in order, so that who shares memory with whom shows. A tensor
// that comes back is the first argument times its position and 2; a number that comes back is known from the arguments,
// but for a SymInt, which is counted in the data.
#pragma once

#include <tenon/fake/dynamic_size.h>
#include <tenon/library/custom_op.h>
#include <tenon/schema/schema.h>
#include <tenon/tenon.h>

#include <map>

namespace tenon::fuzz {
namespace detail {

inline Tensor first_tensor(const dispatch::Call& call) {
  Tensor first;
  for (const dispatch::Value& value : call.args)
    value.each_tensor([&](const Tensor& tensor) {
      if (!first.defined()) first = tensor;
    });
  return first;
}

inline int64_t sum_of_numbers(const dispatch::Call& call) {
  int64_t sum = 0;
  for (const dispatch::Value& value : call.args) {
    if (value.is_number()) sum += static_cast<int64_t>(value.real());
    if (value.tag() == dispatch::Value::Tag::Ints || value.tag() == dispatch::Value::Tag::SymInts)
      for (int64_t each : value.ints()) sum += each;
  }
  return sum;
}

// One result per return of the schema; `real` gives tensors with data.
inline void give_results(dispatch::Call& call, bool real) {
  Tensor like = first_tensor(call);
  int64_t position = 0, sum = real ? sum_of_numbers(call) : 0;
  auto tensor = [&] {
    ++position;
    if (!real) return empty(like.sym_sizes(), TensorOptions(like.dtype()));
    return like.clone(MemoryFormat::Contiguous).mul_(position + 1).add_(sum);
  };
  for (const schema::Argument& each : call.op.schema().returns) {
    dispatch::Value result;
    switch (each.type.kind) {
      case schema::Kind::Tensor: result = dispatch::Value(tensor()); break;
      case schema::Kind::List: result = dispatch::Value(std::vector<Tensor>{tensor(), tensor()}).own(); break;
      case schema::Kind::Int: result = dispatch::Value(like.dim() + 2); break;
      case schema::Kind::Float: result = dispatch::Value(0.5 * static_cast<double>(like.dim())); break;
      case schema::Kind::Bool: result = dispatch::Value(like.dim() > 1); break;
      case schema::Kind::SymInt:
        result = real ? dispatch::Value((like > 0.1).sum().item<int64_t>())
                      : dispatch::Value(fake::new_dynamic_size()).own();
        break;
      default: fail("[fuzz] {} returns what no rule is for", call.op.schema().str());
    }
    call.results.push_back(std::move(result));
  }
}

inline void run_custom(dispatch::Call& call) {
  int64_t position = 0, sum = sum_of_numbers(call);
  for (int at : call.op.schema().mutated_arguments())
    call.args[static_cast<size_t>(at)].each_tensor(
        [&](const Tensor& tensor) { tensor.mul_(2).add_(++position + sum); });
  give_results(call, true);
}

inline dispatch::Operator& custom_operator(const std::string& schema) {
  static std::map<std::string, std::shared_ptr<library::detail::CustomOpState>> known;
  std::shared_ptr<library::detail::CustomOpState>& state = known[schema];
  if (state) return library::detail::operator_of(*state);
  schema::Schema parsed = schema::parse(fmt::format("_fuzz::operator_{}{}", known.size(), schema));
  bool differentiable = !parsed.is_mutable() && !parsed.returns.empty() &&
                        parsed.returns[0].type.kind == schema::Kind::Tensor &&
                        parsed.arguments[0].type.kind == schema::Kind::Tensor;
  size_t arguments = parsed.arguments.size();
  state = library::detail::define_custom_op(parsed, "custom_operators.h");
  library::detail::set_kernel(*state, {}, run_custom, "custom_operators.h");
  library::detail::set_fake(state, [](dispatch::Call& call) { give_results(call, false); }, "custom_operators.h");
  if (differentiable)
    library::detail::set_formula(*state,
                                 {[arguments](library::AutogradContext&, const std::vector<AnyValue>& gradients) {
                                    std::vector<AnyValue> result(arguments);
                                    if (gradients[0].is_tensor()) result[0] = AnyValue(gradients[0].tensor() * 2);
                                    return result;
                                  },
                                  nullptr});
  return library::detail::operator_of(*state);
}

}  // namespace detail

// How many tensors a call of the schema takes: two for a list.
inline size_t custom_operands(const std::string& schema) {
  size_t count = 0;
  for (const schema::Argument& each : schema::parse("_fuzz::f" + schema).arguments)
    if (each.type.is_tensor_like()) count += each.type.is_list() ? 2 : 1;
  return count;
}

// Calls the operator: tensors fill the arguments that take some, `n` the others (and leaves optional ones out where it
// is odd). What comes back is tensors; a number is multiplied by the first of the given ones.
inline std::vector<Tensor> call_custom(const std::string& schema, std::span<const Tensor> tensors, int64_t n) {
  dispatch::Operator& op = detail::custom_operator(schema);
  std::vector<dispatch::Value> values;
  std::vector<Tensor> results;
  size_t used = 0;
  for (const schema::Argument& each : op.schema().arguments) {
    const schema::Type& type = each.type;
    if (type.is_tensor_like() && type.is_list()) {
      values.push_back(dispatch::Value(std::vector<Tensor>{tensors[used], tensors[used + 1]}).own());
      used += 2;
    } else if (type.is_tensor_like()) {
      const Tensor& given = tensors[used++];
      values.push_back(type.is_optional() && n % 2 != 0 ? dispatch::Value() : dispatch::Value(given).own());
    } else if (type.is_optional() && n % 2 != 0) {
      values.emplace_back();
    } else if (type.is_list()) {
      values.push_back(dispatch::Value(Ints{n, n + 1}).own());
    } else {
      const schema::Type& plain = type.is_optional() ? type.element[0] : type;
      values.push_back(plain.kind == schema::Kind::Float  ? dispatch::Value(static_cast<double>(n))
                       : plain.kind == schema::Kind::Bool ? dispatch::Value(n > 1)
                                                          : dispatch::Value(n));
    }
  }
  for (dispatch::Value& value : dispatch::call_boxed(op, values)) {
    if (value.is_tensors())
      results.insert(results.end(), value.tensors().begin(), value.tensors().end());
    else
      results.push_back(value.is_tensor() ? value.take_tensor() : tensors[0] * value.scalar());
  }
  return results;
}

}  // namespace tenon::fuzz
