// A `Function` in a captured graph. Its forward is recorded call by call, like other code under no_grad; behind it
// stands one call of an operator of the function's own, which gives the results their history. What forward left in the
// context comes to it as arguments: tensors, numbers, and a text that says where they belong.
#include <tenon/autograd/function.h>
#include <tenon/dispatch/call.h>
#include <tenon/dispatch/registration.h>

#include "autograd/author_formula.h"
#include "autograd/function_call.h"
#include "support/at_fork.h"

#include <cctype>
#include <cstdlib>
#include <mutex>
#include <set>

namespace tenon::autograd {
namespace {

using dispatch::Value;

// An `AnyValue` taken apart.
struct Parts {
  std::vector<std::optional<Tensor>> tensors;
  std::vector<SymInt> numbers;
  std::string text;  // words, each behind the other: "l2 % #" is a list of a tensor and a number
};

void take_apart(const AnyValue& value, Parts& parts) {
  if (!parts.text.empty()) parts.text += ' ';
  if (value.is_tensor()) {
    parts.text += '%';
    parts.tensors.emplace_back(value.tensor().defined() ? std::optional<Tensor>(value.tensor()) : std::nullopt);
  } else if (value.is_int()) {
    parts.text += '#';
    parts.numbers.push_back(value.sym_int());
  } else if (value.is_bool()) {
    parts.text += value.boolean() ? 't' : 'f';
  } else if (value.is_real()) {
    parts.text += fmt::format("r{:a}", value.real());
  } else if (value.is_string()) {
    parts.text += fmt::format("s{}:{}", value.string().size(), value.string());
  } else if (value.is_list()) {
    parts.text += fmt::format("l{}", value.list().size());
    for (const AnyValue& each : value.list()) take_apart(each, parts);
  } else if (value.is_dict()) {
    parts.text += fmt::format("d{}", value.dict().size());
    for (const AnyValue::Entry& entry : value.dict()) {
      take_apart(entry.key, parts);
      take_apart(entry.value, parts);
    }
  } else {
    parts.text += 'n';
  }
}

class Assembler {
 public:
  Assembler(std::span<const std::optional<Tensor>> tensors, SymInts numbers, std::string_view text)
      : tensors_(tensors), numbers_(std::move(numbers)), text_(text) {}

  AnyValue next() {
    char kind = text_.at(at_++);
    switch (kind) {
      case '%': skip_space(); return AnyValue(tensors_[tensor_++].value_or(Tensor()));
      case '#': skip_space(); return AnyValue(numbers_[number_++]);
      case 't':
      case 'f': skip_space(); return AnyValue(kind == 't');
      case 'r': return AnyValue(std::strtod(word().c_str(), nullptr));
      case 's': {
        size_t colon = text_.find(':', at_), size = std::stoul(text_.substr(at_, colon - at_));
        std::string content = text_.substr(colon + 1, size);
        at_ = colon + 1 + size;
        skip_space();
        return AnyValue(std::move(content));
      }
      case 'l': {
        AnyValue::List list(std::stoul(word()));
        for (AnyValue& each : list) each = next();
        return AnyValue(std::move(list));
      }
      case 'd': {
        AnyValue::Dict dict(std::stoul(word()));
        for (AnyValue::Entry& entry : dict) {
          entry.key = next();
          entry.value = next();
        }
        return AnyValue(std::move(dict));
      }
      default: skip_space(); return AnyValue();
    }
  }

 private:
  void skip_space() { at_ += at_ < text_.size(); }
  std::string word() {
    size_t end = std::min(text_.find(' ', at_), text_.size());
    std::string found = text_.substr(at_, end - at_);
    at_ = end;
    skip_space();
    return found;
  }

  std::span<const std::optional<Tensor>> tensors_;
  SymInts numbers_;
  std::string text_;
  size_t at_ = 0, tensor_ = 0, number_ = 0;
};

std::vector<Tensor> plain(std::span<const std::optional<Tensor>> list) {
  std::vector<Tensor> tensors;
  for (const auto& each : list) tensors.push_back(each.value_or(Tensor()));
  return tensors;
}

std::vector<std::optional<Tensor>> optional(std::span<const Tensor> list) {
  std::vector<std::optional<Tensor>> tensors;
  for (const Tensor& each : list) tensors.push_back(each.defined() ? std::optional<Tensor>(each) : std::nullopt);
  return tensors;
}

// Where tensors stand among the results.
AnyValue::List positions(std::span<const Tensor> tensors, std::span<const Tensor> results) {
  AnyValue::List list;
  for (const Tensor& tensor : tensors)
    for (size_t at = 0; at < results.size(); ++at)
      if (tensor.defined() && results[at].defined() && results[at].is(tensor)) list.emplace_back(at);
  return list;
}

// "ns::(anonymous namespace)::Cube" → "Cube"; graphs are compared by their text, so every function has a name of its
// own.
std::string overload_name(const std::string& type) {
  static auto& mutex = *new support::ForkSafe<std::mutex>;
  static auto* taken = new std::set<std::string>;
  std::string brief;
  for (char letter : type.substr(type.rfind(':') + 1))
    brief += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  std::lock_guard lock(mutex);
  std::string name = brief;
  for (int count = 2; !taken->insert(name).second; ++count) name = fmt::format("{}_{}", brief, count);
  return name;
}

}  // namespace

AnyValue FunctionNode::leave(std::span<const Tensor> results) const {
  for (const Tensor& dirty : context_.dirty_) detail::check_dirty_is_returned(dirty, results, name());
  AnyValue::List counts;
  for (uint32_t count : context_.counts_) counts.emplace_back(count);
  AnyValue::Dict data;
  for (const auto& [key, value] : context_.saved_data) data.push_back({AnyValue(key), value});
  return AnyValue(AnyValue::List{
      AnyValue(std::move(counts)), AnyValue(context_.to_save_), AnyValue(positions(context_.dirty_, results)),
      AnyValue(positions(context_.non_differentiable_, results)), AnyValue(context_.materialize_),
      AnyValue(std::move(data)), AnyValue(context_.materialize_non_diff_)});
}

void FunctionNode::resume(const AnyValue& left, std::span<const Tensor> arguments, std::span<const Tensor> results) {
  const AnyValue::List& parts = left.list();
  std::vector<uint32_t> counts;
  for (const AnyValue& count : parts.at(0).list()) counts.push_back(static_cast<uint32_t>(count.integer()));
  connect(arguments, std::move(counts));
  for (const AnyValue& tensor : parts.at(1).list()) context_.to_save_.push_back(tensor.tensor());
  for (const AnyValue& at : parts.at(2).list()) context_.dirty_.push_back(results[static_cast<size_t>(at.integer())]);
  for (const AnyValue& at : parts.at(3).list())
    context_.non_differentiable_.push_back(results[static_cast<size_t>(at.integer())]);
  context_.materialize_ = parts.at(4).boolean();
  context_.materialize_non_diff_ = parts.at(6).boolean();
  for (const AnyValue::Entry& entry : parts.at(5).dict()) context_.saved_data[entry.key.string()] = entry.value;
}

namespace detail {

bool is_captured() {
  const dispatch::ThreadKeys& keys = dispatch::thread_keys();
  return (keys.include - keys.exclude).has(DispatchKey::Capture);
}

dispatch::OperatorRef make_function_operator(const std::string& name, FunctionNode::Backward backward, uint64_t kind) {
  schema::Schema schema = schema::parse(
      "tenon::function(Tensor?[] arguments, Tensor?[] results, Tensor?[] kept, SymInt[] numbers, str left) -> "
      "Tensor[]");
  schema.overload = overload_name(name);
  Ref<dispatch::Operator> op = dispatch::make_operator(std::move(schema));
  FunctionNode::Backward formula = [op = op->name(), backward = std::move(backward)](AutogradContext& context,
                                                                                     std::vector<Tensor> gradients) {
    return AuthorFormula::run(op, [&] { return backward(context, std::move(gradients)); });
  };
  auto kernel = [name = node_name_of(name), formula = std::move(formula), kind](dispatch::Call& call) {
    std::vector<Tensor> arguments = plain(call.args[0].optional_tensors());
    std::vector<Tensor> results = plain(call.args[1].optional_tensors());
    if (records(arguments)) {
      auto node = make_ref<FunctionNode>(name, formula, kind);
      node->resume(Assembler(call.args[2].optional_tensors(), call.args[3].sym_ints(), call.args[4].string()).next(),
                   arguments, results);
      node->finish(arguments, results);
    }
    std::erase_if(results, [](const Tensor& result) { return !result.defined(); });
    call.results.push_back(Value(results).own());
  };
  for (auto key : {dispatch::KernelKey::Autograd, dispatch::KernelKey::CompositeExplicitAutograd})
    dispatch::register_scoped(*op, key, kernel).keep();
  return op.get();
}

void finish_in_graph(const dispatch::Operator& op, const FunctionNode& node, std::span<const Tensor> arguments,
                     std::vector<Tensor>& results) {
  Parts parts;
  take_apart(node.leave(results), parts);
  std::vector<std::optional<Tensor>> given = optional(arguments), made = optional(results);
  const Value args[] = {Value(given), Value(made), Value(parts.tensors), Value(std::span<const SymInt>(parts.numbers)),
                        Value(std::string_view(parts.text))};
  dispatch::Results finished = dispatch::call_boxed(op, args);
  size_t next = 0;
  for (Tensor& result : results)
    if (result.defined()) result = finished[0].tensors()[next++];
}

}  // namespace detail
}  // namespace tenon::autograd
