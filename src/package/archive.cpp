#include "archive.h"

#include <tenon/core/tensor.h>

#include <fmt/format.h>

#include <bit>
#include <charconv>

namespace tenon::package {

using dispatch::Value;

void Reader::refuse(const std::string& why) { fail<ValueError>("{}", why); }

io::Json json_of(int64_t number) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (number > -kExact && number < kExact) return {number};
  return {fmt::format("{:x}", static_cast<uint64_t>(number))};
}

int64_t number_of(const io::Json& json) {
  if (const int64_t* number = json.number()) return *number;
  const std::string& text = text_of(json);
  uint64_t bits = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (problem != std::errc() || end != text.data() + text.size()) Reader::refuse("expected a number");
  return static_cast<int64_t>(bits);
}

const std::string& text_of(const io::Json& json) {
  if (!json.text()) Reader::refuse("expected a text");
  return *json.text();
}
const io::Json::List& list_of(const io::Json& json) {
  if (!json.list()) Reader::refuse("expected a list");
  return *json.list();
}
const io::Json::Object& object_of(const io::Json& json) {
  if (!json.object()) Reader::refuse("expected an object");
  return *json.object();
}

// A list: the kind of the value, then what it is.
io::Json json_of(const Value& value) {
  io::Json::List list = {{static_cast<int64_t>(value.tag())}};
  auto add = [&](int64_t number) { list.push_back(json_of(number)); };
  switch (value.tag()) {
    case Value::Tag::None: break;
    case Value::Tag::Int: add(value.integer()); break;
    case Value::Tag::Bool: add(value.boolean()); break;
    case Value::Tag::Real: add(std::bit_cast<int64_t>(value.real())); break;
    case Value::Tag::String: list.push_back({std::string(value.string())}); break;
    case Value::Tag::Dtype: add(static_cast<int64_t>(value.dtype())); break;
    case Value::Tag::Device: break;  // there is one
    case Value::Tag::Layout: break;
    case Value::Tag::MemoryFormat: add(static_cast<int64_t>(value.memory_format())); break;
    case Value::Tag::Ints:
    case Value::Tag::SymInts:
      for (int64_t each : value.ints()) add(each);
      break;
    case Value::Tag::Reals:
      for (double each : value.reals()) add(std::bit_cast<int64_t>(each));
      break;
    case Value::Tag::Bools:
      for (bool each : value.bools()) add(each);
      break;
    case Value::Tag::Tensor:
      TENON_CHECK_VALUE(!value.tensor().defined(), "[save_compiled] a tensor stands where a number is expected");
      break;
    case Value::Tag::Complex:
      add(std::bit_cast<int64_t>(value.complex().real()));
      add(std::bit_cast<int64_t>(value.complex().imag()));
      break;
    case Value::Tag::Generator:
    case Value::Tag::Tensors:
    case Value::Tag::OptionalTensors:
      fail<ValueError>("[save_compiled] {} cannot be written to a file", Value::name(value.tag()));
  }
  return {std::move(list)};
}

Value value_of(const io::Json& json) {
  const io::Json::List& list = list_of(json);
  if (list.empty()) Reader::refuse("expected a value");
  const auto tag = static_cast<Value::Tag>(number_of(list[0]));
  auto at = [&](size_t index) {
    if (index >= list.size()) Reader::refuse("a value is cut short");
    return number_of(list[index]);
  };
  auto real = [&](size_t index) { return std::bit_cast<double>(at(index)); };
  switch (tag) {
    case Value::Tag::None: return {};
    case Value::Tag::Int: return at(1);
    case Value::Tag::Bool: return at(1) != 0;
    case Value::Tag::Real: return real(1);
    case Value::Tag::String:
      if (list.size() < 2) Reader::refuse("a value is cut short");
      return Value(std::string_view(text_of(list[1]))).own();
    case Value::Tag::Dtype: return static_cast<Dtype>(at(1));
    case Value::Tag::Device: return kCPU;
    case Value::Tag::Layout: return Layout{};
    case Value::Tag::MemoryFormat: return static_cast<MemoryFormat>(at(1));
    case Value::Tag::Ints:
    case Value::Tag::SymInts: {
      Ints numbers;
      for (size_t index = 1; index < list.size(); ++index) numbers.push_back(at(index));
      return Value(numbers).own();
    }
    case Value::Tag::Reals: {
      std::vector<double> numbers;
      for (size_t index = 1; index < list.size(); ++index) numbers.push_back(real(index));
      return Value(numbers).own();
    }
    case Value::Tag::Bools: {
      std::vector<bool> flags;
      for (size_t index = 1; index < list.size(); ++index) flags.push_back(at(index) != 0);
      return Value(flags);
    }
    case Value::Tag::Tensor: return Tensor();
    case Value::Tag::Complex: return std::complex<double>(real(1), real(2));
    case Value::Tag::Generator:
    case Value::Tag::Tensors:
    case Value::Tag::OptionalTensors: break;
  }
  Reader::refuse("there is no such kind of value");
}

io::Json json_of(const dispatch::OperatorRef& op) { return {op->name() + "\n" + op->schema().str()}; }

dispatch::OperatorRef operator_of(const io::Json& json) {
  const std::string& text = text_of(json);
  const std::string name = text.substr(0, text.find('\n'));
  const dispatch::Operator* op = dispatch::find_operator_or_null(name);
  TENON_CHECK(op, "[load_compiled] the function calls {}, and no such operator is registered in this program", name);
  std::string schema = op->schema().str();
  TENON_CHECK(text == name + "\n" + schema,
              "[load_compiled] the function calls {} as it was when it was saved ({}); here it is {}", name,
              text.substr(name.size() + 1), schema);
  return op;
}

// A symbol's kind and source; names follow from the order. Its range stays out: it follows from the guards and checks,
// which would be read as true in a pool that knows it.
io::Json json_of(const Ref<sym::ShapeEnv>& env) {
  io::Json::List symbols;
  if (!env) return {std::move(symbols)};
  for (int32_t id = 0; id < env->pool().symbol_count(); ++id) {
    sym::Expr symbol = env->pool().symbol(id);
    symbols.push_back({io::Json::List{
        {symbol.name()}, {int64_t{symbol.is_real()}}, {int64_t{env->is_from_data(id)}}, {env->source(id)}}});
  }
  return {std::move(symbols)};
}

Ref<sym::ShapeEnv> env_of(const io::Json& json) {
  Ref<sym::ShapeEnv> env = make_ref<sym::ShapeEnv>();
  for (const io::Json& each : list_of(json)) {
    const io::Json::List& symbol = list_of(each);
    if (symbol.size() != 4) Reader::refuse("a symbol is cut short");
    const bool is_real = number_of(symbol[1]) != 0, is_from_data = number_of(symbol[2]) != 0;
    const int32_t id = env->pool().symbol_count();
    if (is_from_data && is_real)
      (void)env->create_unbacked_real();
    else if (is_from_data)
      (void)env->create_unbacked();
    else if (is_real)
      (void)env->create_real(0, text_of(symbol[3]));
    else
      (void)env->create_number(0, text_of(symbol[3]));
    sym::Expr made = env->pool().symbol(id);
    if (made.name() != text_of(symbol[0])) Reader::refuse("symbol " + made.name() + " is another one");
  }
  (void)env->take_fresh();
  return env;
}

sym::Expr expression_of(const std::string& text, sym::ExprPool* pool) {
  if (text.empty()) return {};
  if (!pool) Reader::refuse("an expression stands outside of everything");
  return pool->parse(text);
}

}  // namespace tenon::package
