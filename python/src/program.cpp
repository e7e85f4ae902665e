#include "program.h"

#include <tenon/dispatch/packet.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/graph/trace.h>
#include <tenon/sym/sym_float.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace tenon::python {
namespace {

using dispatch::Value;

std::string text_of(const Number& number) {
  const auto* plain = std::get_if<int64_t>(&number);
  return plain ? std::to_string(*plain) : std::get<std::string>(number);
}

std::string text_of(const std::vector<Number>& list) {
  std::vector<std::string> words;
  for (const Number& number : list) words.push_back(text_of(number));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

// Operators below autograd, recorded.
class Recording {
 public:
  explicit Recording(graph::Recorder& recorder) : trace_(recorder), no_sizes_from_data_(nullptr) {}

 private:
  dispatch::ExcludeKeys below_autograd_{KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView,
                                               DispatchKey::Functionalize, DispatchKey::Capture,
                                               DispatchKey::Autocast}};
  graph::TraceMode trace_;
  fake::DynamicSizes no_sizes_from_data_;
};

// Formats that we have no word for are strides, and those are brought to what the program says of the result.
MemoryFormat memory_format_from_name(const std::string& name) {
  if (name == "channels_last") return MemoryFormat::ChannelsLast;
  if (name == "channels_last_3d") return MemoryFormat::ChannelsLast3d;
  return name == "contiguous_format" ? MemoryFormat::Contiguous : MemoryFormat::Preserve;
}

Dtype dtype_named(const std::string& name) {
  std::optional<Dtype> dtype = dtype_from_name(name);
  TENON_CHECK_TYPE(dtype, "there are no {} here", name);
  return *dtype;
}

const std::string& text_in(const Literal& literal, const schema::Type& type) {
  const auto* text = std::get_if<std::string>(&literal.content);
  TENON_CHECK_TYPE(text, "expected the name of a {}", type.str());
  return *text;
}

// The dimensions from the largest stride to the smallest; nothing if elements lie apart or upon each other.
std::optional<Ints> dense_order(const SymInts& sizes, const SymInts& strides) {
  auto hint = [](const SymInt& number) { return number.hint().value_or(0); };
  Ints order;
  for (size_t dim = 0; dim < sizes.size(); ++dim) order.push_back(static_cast<int64_t>(dim));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    auto key = [&](int64_t dim) {
      auto at = static_cast<size_t>(dim);
      return std::pair(hint(strides[at]), hint(sizes[at]));
    };
    return key(a) > key(b);
  });
  SymInt expected = 1;
  for (size_t at = order.size(); at-- > 0;) {
    auto dim = static_cast<size_t>(order[at]);
    if (hint(sizes[dim]) <= 1) continue;
    if (!bool(strides[dim] == expected)) return std::nullopt;
    expected = expected * sizes[dim];
  }
  return order;
}

bool same_strides(const SymInts& sizes, const SymInts& a, const SymInts& b) {
  for (const SymInt& size : sizes)
    if (size.hint() == 0 && bool(size == 0)) return true;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (a[dim].same(b[dim])) continue;
    if (sizes[dim].hint() == 1 && bool(sizes[dim] == 1)) continue;
    if (!bool(a[dim] == b[dim])) return false;
  }
  return true;
}

// A number where the operator takes a tensor: the overload for numbers is meant, if there is one.
std::string overload_for_numbers(const CallDescription& call) {
  const bool plain = call.op.find('.') == std::string::npos;
  if (!plain && !call.op.ends_with(".Tensor")) return call.op;
  for (const auto& [name, literal] : call.arguments) {
    if (name != "other" || !literal.is_number()) continue;
    std::string other = (plain ? call.op : call.op.substr(0, call.op.size() - std::string_view(".Tensor").size()));
    other += ".Scalar";
    if (dispatch::find_operator_or_null(other)) return other;
  }
  return call.op;
}

}  // namespace

std::string TensorType::str() const {
  return fmt::format("{}{} strides={}", name(dtype), text_of(sizes), text_of(strides));
}

bool Literal::is_number() const {
  return std::holds_alternative<int64_t>(content) || std::holds_alternative<double>(content) ||
         std::holds_alternative<bool>(content) || std::holds_alternative<Symbolic>(content);
}

int32_t Program::add_value(TensorType type) {
  types.push_back(std::move(type));
  return static_cast<int32_t>(types.size() - 1);
}

Build::Build(const Program& program, std::span<const int64_t> hints)
    : program_(program), recorder_(make_ref<sym::ShapeEnv>()) {
  graph::Graph& graph = recorder_.graph();
  TENON_ASSERT(hints.size() == program.symbols.size(), "{} hints for {} symbols", hints.size(), program.symbols.size());
  for (size_t at = 0; at < hints.size(); ++at) {
    const Symbol& symbol = program.symbols[at];
    const std::string source = fmt::format("symbol {} of the program", at);
    graph.symbols.push_back({graph::SymbolSource::Kind::Number, static_cast<int32_t>(at), -1});
    if (symbol.kind == Symbol::Kind::Real) {
      env().create_real(std::bit_cast<double>(hints[at]), source);
    } else if (symbol.kind == Symbol::Kind::Size && hints[at] >= 2) {
      SymInt size = env().create_size(hints[at], source);
      if (symbol.range.max != sym::Range::kMax) env().pool().refine(size.expr(), {2, symbol.range.max});
    } else {
      SymInt integer = env().create_number(hints[at], source);
      env().pool().refine(integer.expr(), symbol.range);
      // What a size of 0 or 1 means is decided all over the rules: such a graph is for that size alone.
      if (hints[at] == 0 || hints[at] == 1) integer.plain();
    }
  }
}

void Build::add_input(int32_t value) {
  const TensorType& type = program_.types.at(static_cast<size_t>(value));
  Tensor meta = fake::make(numbers(type.sizes), numbers(type.strides), type.dtype);
  recorder_.add_input(meta, fmt::format("v{}", value), meta);
  values_[value] = meta;
}

SymInt Build::number(const Number& number) {
  if (const auto* plain = std::get_if<int64_t>(&number)) return *plain;
  const std::string& text = std::get<std::string>(number);
  auto found = parsed_.find(text);
  if (found == parsed_.end())
    found = parsed_.emplace(text, SymInt(env().pool().parse(text), recorder_.graph().env)).first;
  return found->second;
}

SymInts Build::numbers(const std::vector<Number>& list) {
  SymInts result;
  for (const Number& each : list) result.push_back(number(each));
  return result;
}

Value Build::symbolic(const std::string& text) {
  sym::Expr expr = env().pool().parse(text);
  if (expr.is_real()) return Value(SymFloat(expr, recorder_.graph().env)).own();
  if (expr.is_boolean()) return Value(SymBool(expr, recorder_.graph().env)).own();
  return Value(SymInt(expr, recorder_.graph().env)).own();
}

// A number as a tensor without dimensions, of the widest dtype of its kind: beside a tensor with dimensions it decides
// the kind of the result's dtype and nothing else, as a number does. Beside one without, the result's dtype would be
// another than the program says, and the call is refused.
Value Build::wrapped(const Literal& number) {
  static const schema::Type kScalar{schema::Kind::Scalar, {}, {}};
  Value value = argument(kScalar, number);
  const Dtype dtype = value.tag() == Value::Tag::Bool ? kBool : value.tag() == Value::Tag::Int ? kInt64 : kFloat64;
  Recording recording(recorder_);
  return dispatch::call_by_name("aten::full", {SymInts{}, value}, {{"dtype", dtype}})[0].own();
}

Value Build::argument(const schema::Type& type, const Literal& literal) {
  using schema::Kind;
  if (type.is_optional()) return literal.is_none() ? Value() : argument(type.element[0], literal);
  if (type.is_list()) {
    const schema::Type& element = type.element[0];
    const auto* items = std::get_if<std::vector<Literal>>(&literal.content);
    // A single number where a list of a known length is meant.
    const std::vector<Literal> repeated(items ? 0 : static_cast<size_t>(type.length.value_or(1)), literal);
    if (!items) items = &repeated;
    if (element.is_tensor_like()) {
      if (element.is_optional()) {
        std::vector<std::optional<Tensor>> tensors;
        for (const Literal& item : *items) tensors.push_back(argument(element, item).optional_tensor());
        return Value(tensors).own();
      }
      std::vector<Tensor> tensors;
      for (const Literal& item : *items) tensors.push_back(argument(element, item).tensor());
      return Value(tensors).own();
    }
    switch (element.kind) {
      case Kind::Int:
      case Kind::SymInt: {
        SymInts list;
        for (const Literal& item : *items) list.push_back(argument(element, item).sym_int());
        return Value(list).own();
      }
      case Kind::Float: {
        std::vector<double> list;
        for (const Literal& item : *items) list.push_back(argument(element, item).real());
        return Value(list).own();
      }
      case Kind::Bool: {
        std::vector<bool> list;
        for (const Literal& item : *items) list.push_back(argument(element, item).boolean());
        return Value(list).own();
      }
      default: fail("an argument of type {} cannot be passed", type.str());
    }
  }
  switch (type.kind) {
    case Kind::Tensor: {
      if (literal.is_number()) return wrapped(literal);
      const auto* reference = std::get_if<Reference>(&literal.content);
      TENON_CHECK_TYPE(reference, "expected a tensor");
      auto found = values_.find(reference->value);
      TENON_CHECK(found != values_.end(), "an argument is computed by PyTorch, or undefined");
      return Value(Tensor(found->second));
    }
    case Kind::Str: return Value(std::string_view(text_in(literal, type))).own();
    case Kind::ScalarType: return dtype_named(text_in(literal, type));
    case Kind::Device:
      TENON_CHECK(text_in(literal, type) == "cpu", "expected device cpu, got {}", text_in(literal, type));
      return kCPU;
    case Kind::Layout:
      TENON_CHECK(text_in(literal, type) == "strided", "expected a strided layout, got {}", text_in(literal, type));
      return Value(Layout::Strided);
    case Kind::MemoryFormat: return memory_format_from_name(text_in(literal, type));
    case Kind::Generator: fail("a generator cannot be passed");
    default: break;
  }
  Value number;
  if (const auto* flag = std::get_if<bool>(&literal.content))
    number = *flag;
  else if (const auto* integer = std::get_if<int64_t>(&literal.content))
    number = *integer;
  else if (const auto* real = std::get_if<double>(&literal.content))
    number = *real;
  else if (const auto* text = std::get_if<Symbolic>(&literal.content))
    number = symbolic(text->text);
  else
    fail<TypeError>("expected a number of type {}", type.str());
  // A float that the program gives as an integer.
  if (type.kind == Kind::Float && number.tag() == Value::Tag::Int) return Value(number.sym_float()).own();
  return number;
}

dispatch::Values Build::arguments(const dispatch::Operator& op, const CallDescription& call) {
  dispatch::Values args;
  size_t used = 0;
  for (const schema::Argument& each : op.schema().arguments) {
    auto written = std::find_if(call.arguments.begin(), call.arguments.end(),
                                [&](const auto& argument) { return argument.first == each.name; });
    if (written == call.arguments.end()) {
      args.push_back(dispatch::default_value(each).own());
      continue;
    }
    ++used;
    args.push_back(argument(each.type, written->second));
  }
  for (const auto& [name, literal] : call.arguments) {
    if (op.schema().argument_index(name) >= 0) continue;
    TENON_CHECK(literal.is_none(), "it takes no argument '{}' here", name);
    ++used;
  }
  TENON_ASSERT(used == call.arguments.size(), "an argument of {} is given twice", op.name());
  return args;
}

// A made tensor, with the strides of its type.
Tensor Build::with_type(const Tensor& made, const TensorType& type) {
  TENON_CHECK(made.dtype() == type.dtype, "it gives {} here, {} there", made.description(), type.str());
  SymInts sizes = numbers(type.sizes), strides = numbers(type.strides), ours = made.sym_sizes();
  TENON_CHECK(sizes.size() == ours.size(), "it gives {} here, {} there", made.description(), type.str());
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    TENON_CHECK(ours[dim].same(sizes[dim]) || bool(ours[dim] == sizes[dim]), "it gives {} here, {} there",
                made.description(), type.str());
  if (same_strides(sizes, made.sym_strides(), strides)) return made;
  std::optional<Ints> order = dense_order(sizes, strides);
  TENON_CHECK(order, "it gives {} with strides {} here, {} there", made.description(), str(made.sym_strides()),
              type.str());
  Ints back(*order);
  for (size_t at = 0; at < order->size(); ++at) back[static_cast<size_t>((*order)[at])] = static_cast<int64_t>(at);
  auto call = [](const char* name, const Value& self, const Value& argument) {
    return dispatch::call_by_name(name, {self, argument})[0].take_tensor();
  };
  Tensor turned = call("aten::permute", made, *order);
  Tensor dense =
      dispatch::call_by_name("aten::clone", {turned}, {{"memory_format", MemoryFormat::Contiguous}})[0].take_tensor();
  return call("aten::permute", dense, back);
}

void Build::run(const dispatch::Operator& op, const CallDescription& call) {
  dispatch::Values args = arguments(op, call);
  Recording recording(recorder_);
  dispatch::Results results = dispatch::call_boxed(op, args);
  std::vector<Tensor> tensors;
  for (const Value& result : results) {
    TENON_CHECK(result.is_tensor() || result.is_tensors() || result.is_none(), "it gives a number");
    if (result.is_none()) tensors.emplace_back();
    if (result.is_tensor()) tensors.push_back(result.tensor());
    if (result.is_tensors()) tensors.insert(tensors.end(), result.tensors().begin(), result.tensors().end());
  }
  TENON_CHECK(tensors.size() == call.types.size(), "it gives {} results here, {} there", tensors.size(),
              call.types.size());
  for (size_t at = 0; at < tensors.size(); ++at) {
    if (!call.types[at]) continue;
    TENON_CHECK(tensors[at].defined(), "its result {} is undefined here", at);
    tensors[at] = with_type(tensors[at], *call.types[at]);
  }
  for (size_t at = 0; at < tensors.size(); ++at)
    if (call.types[at]) values_[call.results[at]] = tensors[at];
}

Decision Build::call(const CallDescription& call) {
  Ref<dispatch::Operator> op = dispatch::hold_operator(overload_for_numbers(call));
  if (!op) return Decision::forbid("there is no such operator here");
  if (!op->schema().is_functional() && !op->schema().is_view()) return Decision::forbid("it writes to its arguments");
  try {
    run(*op, call);
  } catch (const Error& error) {
    return Decision::forbid("{}", error.what());
  } catch (const InternalError& error) {
    return Decision::forbid("{}", error.what());
  }
  return Decision::allow();
}

graph::Graph Build::finish(std::span<const int32_t> outputs) {
  for (int32_t output : outputs) recorder_.graph().outputs.push_back(recorder_.to_argument(Value(values_.at(output))));
  graph::remove_dead_code(recorder_.graph());
  return std::move(recorder_.graph());
}

}  // namespace tenon::python
