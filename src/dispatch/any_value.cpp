#include <tenon/dispatch/any_value.h>

#include <fmt/format.h>

namespace tenon {

AnyValue::AnyValue(const std::vector<Tensor>& list) : content_(List(list.begin(), list.end())) {}

AnyValue::AnyValue(const dispatch::Value& value) {
  using Tag = dispatch::Value::Tag;
  switch (value.tag()) {
    case Tag::None: break;
    case Tag::Tensor: content_ = value.tensor(); break;
    case Tag::Int: content_ = value.sym_int(); break;
    case Tag::Real: content_ = value.sym_float(); break;
    case Tag::Bool: content_ = value.sym_bool(); break;
    case Tag::String: content_ = std::string(value.string()); break;
    case Tag::Tensors: content_ = List(value.tensors().begin(), value.tensors().end()); break;
    case Tag::OptionalTensors: content_ = List(value.optional_tensors().begin(), value.optional_tensors().end()); break;
    case Tag::Ints:
    case Tag::SymInts: {
      SymInts numbers = value.sym_ints();
      content_ = List(numbers.begin(), numbers.end());
      break;
    }
    case Tag::Reals: content_ = List(value.reals().begin(), value.reals().end()); break;
    case Tag::Bools: {
      List flags;
      for (bool flag : value.bools()) flags.emplace_back(flag);
      content_ = std::move(flags);
      break;
    }
    default: content_ = value.str(); break;
  }
}

const AnyValue* AnyValue::find(const AnyValue& key) const {
  for (const Entry& entry : dict())
    if (entry.key == key) return &entry.value;
  return nullptr;
}

bool AnyValue::operator==(const AnyValue& other) const {
  if (content_.index() != other.content_.index()) return false;
  if (is_tensor()) return tensor().is(other.tensor());
  if (is_bool()) return tenon::to_int(sym_bool()).same(tenon::to_int(other.sym_bool()));
  if (is_int()) return sym_int().same(other.sym_int());
  if (is_real() && !sym_float().is_symbolic() && !other.sym_float().is_symbolic()) return real() == other.real();
  if (is_real()) return sym_float().same(other.sym_float());
  if (is_string()) return string() == other.string();
  if (is_list()) return list() == other.list();
  if (!is_dict()) return true;
  if (dict().size() != other.dict().size()) return false;
  for (const Entry& entry : dict()) {
    const AnyValue* found = other.find(entry.key);
    if (!found || !(*found == entry.value)) return false;
  }
  return true;
}

std::string_view AnyValue::kind() const {
  constexpr std::string_view kKinds[] = {"None", "Tensor", "bool", "int", "float", "str", "list", "dict"};
  return kKinds[content_.index()];
}

std::string AnyValue::str() const {
  if (is_tensor()) return tensor().description();
  if (is_bool()) return sym_bool().str();
  if (is_int()) return sym_int().str();
  if (is_real()) return sym_float().is_symbolic() ? sym_float().str() : fmt::format("{}", real());
  if (is_string()) return fmt::format("\"{}\"", string());
  std::vector<std::string> words;
  if (is_list()) {
    for (const AnyValue& each : list()) words.push_back(each.str());
    return fmt::format("[{}]", fmt::join(words, ", "));
  }
  if (is_dict()) {
    for (const Entry& entry : dict()) words.push_back(fmt::format("{}: {}", entry.key.str(), entry.value.str()));
    return fmt::format("{{{}}}", fmt::join(words, ", "));
  }
  return "None";
}

void AnyValue::wrong_kind(std::string_view expected) const {
  fail<TypeError>("[value] expected {}, got {}", expected, str());
}

}  // namespace tenon
