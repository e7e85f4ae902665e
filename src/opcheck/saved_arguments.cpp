// Arguments in a safetensors file: eight bytes of length, a head in JSON (names, dtypes, shapes, places), the elements.
// A tensor argument has its position or name as its name; "2.0" is the first tensor of the list that is argument 2. The
// head's "__metadata__" says of every argument what it is: "tensor", "tensor grad", "tensors 3", "int 5", "str x", …
#include "checks.h"
#include "json.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/opcheck/mode.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>

namespace tenon::opcheck {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian");

constexpr std::pair<Dtype, const char*> kNames[] = {{Dtype::Bool, "BOOL"},
                                                    {Dtype::UInt8, "U8"},
                                                    {Dtype::Int8, "I8"},
                                                    {Dtype::Int16, "I16"},
                                                    {Dtype::Int32, "I32"},
                                                    {Dtype::Int64, "I64"},
                                                    {Dtype::Float16, "F16"},
                                                    {Dtype::BFloat16, "BF16"},
                                                    {Dtype::Float32, "F32"},
                                                    {Dtype::Float64, "F64"},
                                                    {Dtype::Float8E4M3FN, "F8_E4M3"},
                                                    {Dtype::Float8E5M2, "F8_E5M2"}};

const char* name_of(Dtype dtype) {
  for (const auto& [each, text] : kNames)
    if (each == dtype) return text;
  fail("[safetensors] {} has no name there", name(dtype));
}
Dtype dtype_named(std::string_view text) {
  for (const auto& [each, known] : kNames)
    if (known == text) return each;
  fail<ValueError>("[safetensors] '{}' is no dtype that is known here", text);
}

bool requires_grad(const Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() && tensor.requires_grad();
}

class Writer {
 public:
  void add(const std::string& key, const Value& value) { metadata_.emplace_back(key, Json(describe(key, value))); }
  void write(const std::string& path) {
    head_.insert(head_.begin(), {"__metadata__", Json(std::move(metadata_))});
    std::string head = Json(std::move(head_)).str(-1);
    uint64_t length = head.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof(length));
    file << head << data_;
    TENON_CHECK(file.good(), "[safetensors] {} cannot be written", path);
  }

 private:
  void add_tensor(const std::string& key, const Tensor& tensor) {
    autograd::NoGrad off;
    Tensor plain = tensor.detach().contiguous();
    size_t bytes = static_cast<size_t>(plain.numel().plain() * plain.element_size());
    Json::Array shape;
    for (int64_t size : plain.sizes()) shape.emplace_back(static_cast<double>(size));
    Json::Array places = {Json(static_cast<double>(data_.size())), Json(static_cast<double>(data_.size() + bytes))};
    head_.emplace_back(key, Json::Object{{"dtype", Json(std::string(name_of(plain.dtype())))},
                                         {"shape", Json(std::move(shape))},
                                         {"data_offsets", Json(std::move(places))}});
    if (bytes > 0) data_.append(static_cast<const char*>(plain.raw_data()), bytes);
  }

  std::string describe(const std::string& key, const Value& value) {
    using Tag = Value::Tag;
    switch (value.tag()) {
      case Tag::None: return "none";
      case Tag::Tensor:
        if (!value.tensor().defined()) return "undefined";
        add_tensor(key, value.tensor());
        return requires_grad(value.tensor()) ? "tensor grad" : "tensor";
      case Tag::Tensors: {
        size_t at = 0;
        std::string text = fmt::format("tensors {}", value.tensors().size());
        for (const Tensor& tensor : value.tensors()) {
          add_tensor(fmt::format("{}.{}", key, at++), tensor);
          text += requires_grad(tensor) ? " grad" : " -";
        }
        return text;
      }
      case Tag::Int: return fmt::format("int {}", value.integer());
      case Tag::Real: return fmt::format("float {:a}", value.real());
      case Tag::Bool: return fmt::format("bool {}", value.boolean());
      case Tag::String: return fmt::format("str {}", value.string());
      case Tag::Dtype: return fmt::format("dtype {}", name_of(value.dtype()));
      case Tag::Ints:
      case Tag::SymInts: return fmt::format("ints {}", fmt::join(value.ints(), " "));
      case Tag::Reals: {
        std::string text = "floats";
        for (double each : value.reals()) text += fmt::format(" {:a}", each);
        return text;
      }
      case Tag::Bools: {
        std::string text = "bools";
        for (bool each : value.bools()) text += each ? " 1" : " 0";
        return text;
      }
      default:
        fail<NotImplementedError>("[opcheck] an argument of the kind {} cannot be saved", Value::name(value.tag()));
    }
  }

  Json::Object head_, metadata_;
  std::string data_;
};

class Reader {
 public:
  explicit Reader(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    TENON_CHECK(file, "[safetensors] {} cannot be read", path);
    data_.assign(std::istreambuf_iterator<char>(file), {});
    uint64_t length = 0;
    TENON_CHECK_VALUE(data_.size() >= sizeof(length), "[safetensors] {} is too short", path);
    std::memcpy(&length, data_.data(), sizeof(length));
    TENON_CHECK_VALUE(length <= data_.size() - sizeof(length), "[safetensors] the head of {} is longer than the file",
                      path);
    head_ = parse_json(std::string_view(data_).substr(sizeof(length), length));
    start_ = sizeof(length) + length;
    TENON_CHECK_VALUE(head_.find("__metadata__"), "[opcheck] {} holds tensors, but not the arguments of a call", path);
  }
  const Json::Object& described() const { return head_.find("__metadata__")->object(); }

  Value read(const std::string& key, const std::string& text) const {
    size_t space = text.find(' ');
    std::string kind = text.substr(0, space), rest = space == std::string::npos ? "" : text.substr(space + 1);
    std::vector<std::string> words;
    for (size_t at = 0; at < rest.size();) {
      size_t end = std::min(rest.find(' ', at), rest.size());
      words.push_back(rest.substr(at, end - at));
      at = end + 1;
    }
    if (kind == "none") return Value();
    if (kind == "undefined") return Value(Tensor());
    if (kind == "tensor") return Value(tensor(key, rest == "grad"));
    if (kind == "tensors") {
      std::vector<Tensor> list;
      for (size_t at = 1; at < words.size(); ++at)
        list.push_back(tensor(fmt::format("{}.{}", key, at - 1), words[at] == "grad"));
      return Value(list).own();
    }
    if (kind == "int") return Value(static_cast<int64_t>(std::stoll(rest)));
    if (kind == "float") return Value(std::strtod(rest.c_str(), nullptr));
    if (kind == "bool") return Value(rest == "true");
    if (kind == "str") return Value(std::string_view(rest)).own();
    if (kind == "dtype") return Value(dtype_named(rest));
    if (kind == "ints") {
      std::vector<int64_t> list;
      for (const std::string& word : words) list.push_back(std::stoll(word));
      return Value(std::span<const int64_t>(list)).own();
    }
    if (kind == "floats") {
      std::vector<double> list;
      for (const std::string& word : words) list.push_back(std::strtod(word.c_str(), nullptr));
      return Value(list).own();
    }
    if (kind == "bools") {
      std::vector<bool> list;
      for (const std::string& word : words) list.push_back(word == "1");
      return Value(list).own();
    }
    fail<ValueError>("[opcheck] an argument of the kind '{}' is not known here", kind);
  }

 private:
  Tensor tensor(const std::string& key, bool grad) const {
    const Json* described = head_.find(key);
    TENON_CHECK_VALUE(described && described->find("dtype") && described->find("shape") &&
                          described->find("data_offsets") && described->find("data_offsets")->array().size() == 2,
                      "[safetensors] there is no tensor '{}'", key);
    Ints shape;
    for (const Json& size : described->find("shape")->array()) shape.push_back(static_cast<int64_t>(size.number()));
    Dtype dtype = dtype_named(described->find("dtype")->text());
    Ints strides = core::contiguous_strides(shape.span());
    Tensor made = core::allocate(shape.span(), strides.span(), dtype, kCPU);
    auto bytes = static_cast<size_t>(made.numel().plain() * made.element_size());
    double first = described->find("data_offsets")->array()[0].number();
    TENON_CHECK_VALUE(first >= 0 && start_ + static_cast<size_t>(first) + bytes <= data_.size(),
                      "[safetensors] the elements of '{}' lie beyond the end of the file", key);
    if (bytes > 0) std::memcpy(made.raw_data(), data_.data() + start_ + static_cast<size_t>(first), bytes);
    if (grad) made.set_requires_grad();
    return made;
  }

  std::string data_;
  size_t start_ = 0;
  Json head_;
};

}  // namespace

std::vector<dispatch::Keyword> SavedArguments::keywords() const {
  std::vector<dispatch::Keyword> list;
  for (const auto& [name, value] : kwargs) list.push_back({name, value});
  return list;
}

void save_arguments(const std::string& path, std::span<const Value> args, std::span<const dispatch::Keyword> kwargs) {
  Writer writer;
  for (size_t at = 0; at < args.size(); ++at) writer.add(std::to_string(at), args[at]);
  for (const dispatch::Keyword& keyword : kwargs) writer.add(std::string(keyword.name), keyword.value);
  writer.write(path);
}

SavedArguments load_arguments(const std::string& path) {
  Reader reader(path);
  SavedArguments loaded;
  for (const auto& [key, text] : reader.described()) {
    Value value = reader.read(key, text.text());
    if (key.find_first_not_of("0123456789") == std::string::npos)
      loaded.args.push_back(std::move(value));
    else
      loaded.kwargs.emplace_back(key, std::move(value));
  }
  return loaded;
}

}  // namespace tenon::opcheck
