#include <tenon/io/pytorch.h>

#include "io/pickle.h"
#include "io/readers.h"
#include "io/zip.h"

#include <fmt/format.h>

#include <set>

namespace tenon::io {
namespace {

using Node = Object::Document::Node;

constexpr std::string_view kPickle = "data.pkl";
constexpr size_t kMostVisits = 1'000'000;

std::string_view kind_name(Object::Kind kind) {
  constexpr std::string_view names[] = {"None",   "a bool",   "an integer", "a real number",
                                        "a text", "a tensor", "a list",     "a dictionary"};
  return names[static_cast<size_t>(kind)];
}

Object::Kind kind_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::None: return Object::Kind::None;
    case Node::Kind::Bool: return Object::Kind::Bool;
    case Node::Kind::Int: return Object::Kind::Int;
    case Node::Kind::Real: return Object::Kind::Real;
    case Node::Kind::Text:
    case Node::Kind::Name: return Object::Kind::Text;
    case Node::Kind::Tensor:
    case Node::Kind::Storage: return Object::Kind::Tensor;
    case Node::Kind::List: return Object::Kind::List;
    case Node::Kind::Dict: return Object::Kind::Dict;
  }
  return Object::Kind::None;
}

const Node& expect(const Object::Document& document, size_t node, Object::Kind kind) {
  const Node& found = document.nodes[node];
  TENON_CHECK_TYPE(kind_of(found) == kind, "[load_pytorch] expected {}, got {}", kind_name(kind),
                   kind_name(kind_of(found)));
  return found;
}

std::string key_text(const Node& key) {
  return key.kind == Node::Kind::Int ? fmt::format("{}", key.integer) : key.text;
}

// The value of a key; of several, the last, as in Python.
std::optional<size_t> find(const Object::Document& document, const Node& dict, std::string_view key) {
  for (size_t at = dict.items.size(); at >= 2; at -= 2)
    if (key_text(document.nodes[dict.items[at - 2]]) == key) return dict.items[at - 1];
  return std::nullopt;
}

void collect(const Object::Document& document, size_t dict, const std::string& prefix, int depth, size_t& visits,
             NamedTensors& found) {
  const Node& node = document.nodes[dict];
  for (size_t at = 0; at < node.items.size(); at += 2) {
    TENON_CHECK_VALUE(++visits < kMostVisits && depth < 32, "[load_pytorch] the file refers to itself too often");
    const Node& value = document.nodes[node.items[at + 1]];
    std::string name = prefix + key_text(document.nodes[node.items[at]]);
    if (value.kind == Node::Kind::Tensor)
      found.emplace_back(std::move(name), value.tensor);
    else if (value.kind == Node::Kind::Dict)
      collect(document, node.items[at + 1], name + ".", depth + 1, visits, found);
  }
}

void print(const Object::Document& document, size_t which, int depth, std::string& text) {
  constexpr size_t kMostItems = 20, kLongest = 10'000;
  const Node& node = document.nodes[which];
  if (text.size() > kLongest || depth > 6) {
    text += "…";
    return;
  }
  auto each = [&](size_t step, auto&& item) {
    for (size_t at = 0; at < node.items.size(); at += step) {
      if (at > 0) text += ", ";
      if (at / step >= kMostItems) {
        text += fmt::format("… {} more", node.items.size() / step - kMostItems);
        break;
      }
      item(at);
    }
  };
  switch (node.kind) {
    case Node::Kind::None: text += "None"; break;
    case Node::Kind::Bool: text += node.integer != 0 ? "True" : "False"; break;
    case Node::Kind::Int: text += fmt::format("{}", node.integer); break;
    case Node::Kind::Real: text += fmt::format("{}", node.real); break;
    case Node::Kind::Text: text += "'" + node.text.substr(0, 80) + "'"; break;
    case Node::Kind::Name: text += node.text; break;
    case Node::Kind::Tensor:
    case Node::Kind::Storage: text += node.tensor.description(); break;
    case Node::Kind::List:
      text += "[";
      each(1, [&](size_t at) { print(document, node.items[at], depth + 1, text); });
      text += "]";
      break;
    case Node::Kind::Dict:
      text += "{";
      each(2, [&](size_t at) {
        text += "'" + key_text(document.nodes[node.items[at]]) + "': ";
        print(document, node.items[at + 1], depth + 1, text);
      });
      text += "}";
      break;
  }
}

}  // namespace

Object::Kind Object::kind() const { return kind_of(document_->nodes[node_]); }

size_t Object::size() const {
  const Node& node = document_->nodes[node_];
  TENON_CHECK_TYPE(node.kind == Node::Kind::List || node.kind == Node::Kind::Dict,
                   "[load_pytorch] expected a list or a dictionary, got {}", kind_name(kind()));
  return node.kind == Node::Kind::Dict ? node.items.size() / 2 : node.items.size();
}

Object Object::at(size_t position) const {
  const Node& list = expect(*document_, node_, Kind::List);
  TENON_CHECK_INDEX(position < list.items.size(), "[load_pytorch] expected a position below {}, got {}",
                    list.items.size(), position);
  return Object(document_, list.items[position]);
}

bool Object::has(std::string_view key) const {
  return find(*document_, expect(*document_, node_, Kind::Dict), key).has_value();
}

Object Object::at(std::string_view key) const {
  std::optional<size_t> found = find(*document_, expect(*document_, node_, Kind::Dict), key);
  TENON_CHECK_INDEX(found, "[load_pytorch] there is no '{}' in {}", key, str());
  return Object(document_, *found);
}

std::vector<std::string> Object::keys() const {
  const Node& dict = expect(*document_, node_, Kind::Dict);
  std::vector<std::string> names;
  for (size_t at = 0; at < dict.items.size(); at += 2) names.push_back(key_text(document_->nodes[dict.items[at]]));
  return names;
}

bool Object::boolean() const { return expect(*document_, node_, Kind::Bool).integer != 0; }
int64_t Object::integer() const { return expect(*document_, node_, Kind::Int).integer; }
double Object::real() const {
  if (kind() == Kind::Int) return static_cast<double>(integer());
  return expect(*document_, node_, Kind::Real).real;
}
const std::string& Object::text() const { return expect(*document_, node_, Kind::Text).text; }
Tensor Object::tensor() const { return expect(*document_, node_, Kind::Tensor).tensor; }

NamedTensors Object::tensors() const {
  expect(*document_, node_, Kind::Dict);
  NamedTensors found;
  size_t visits = 0;
  collect(*document_, node_, "", 0, visits, found);
  return found;
}

std::string Object::str() const {
  std::string text;
  print(*document_, node_, 0, text);
  return text;
}

Object read_pytorch(const Bytes& bytes) {
  TENON_CHECK_VALUE(
      bytes.size() >= 4 && little<uint32_t>(bytes.span, 0) == 0x04034b50,
      "[load_pytorch] {}: expected what torch.save writes since PyTorch 1.6, a zip archive. An older file "
      "becomes one if it is loaded and saved there",
      bytes.name);
  Zip zip(bytes, "load_pytorch");
  const Zip::Entry* pickle = nullptr;
  for (const Zip::Entry& entry : zip.entries())
    if (entry.name == kPickle || entry.name.ends_with("/data.pkl")) pickle = pickle ? pickle : &entry;
  TENON_CHECK_VALUE(pickle, "[load_pytorch] {}: expected an archive with data.pkl", bytes.name);
  std::string prefix = pickle->name.substr(0, pickle->name.size() - kPickle.size());
  if (const Zip::Entry* order = zip.find(prefix + "byteorder")) {
    Bytes word = zip.read(*order, false);
    std::string_view text(reinterpret_cast<const char*>(word.span.data()), word.size());
    TENON_CHECK_VALUE(text == "little", "[load_pytorch] {}: expected numbers in little-endian order, got '{}'",
                      bytes.name, text);
  }
  StorageLoader load = [&](const std::string& key, Dtype dtype, int64_t count) {
    const Zip::Entry* entry = zip.find(prefix + "data/" + key);
    TENON_CHECK_VALUE(entry, "storage '{}' is not in the archive", key);
    Bytes content = zip.read(*entry, false);
    TENON_CHECK_VALUE(static_cast<uint64_t>(count) <= content.size() / static_cast<size_t>(size_of(dtype)),
                      "storage '{}' has {} bytes, too few for {} elements of {}", key, content.size(), count,
                      name(dtype));
    return tensor_on(content, dtype, Ints{count}, Ints{1});
  };
  try {
    return read_pickle(zip.read(*pickle, true).span, load);
  } catch (const ValueError& error) {
    std::string text = error.what();
    if (text.starts_with("[load_pytorch]")) throw;
    fail<ValueError>("[load_pytorch] {}: {}", bytes.name, text);
  }
}

Object load_pytorch(const std::filesystem::path& path) { return read_pytorch(map_file(path, "load_pytorch")); }

}  // namespace tenon::io
