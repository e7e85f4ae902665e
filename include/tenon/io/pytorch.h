// What `torch.save` writes (PyTorch 1.6 and later): tensors, numbers, texts, and lists and dictionaries of them.
//
// Such a file is a program for Python's unpickler, which may call anything. This reader admits what builds tensors and
// containers and refuses every other name, so that a file from a stranger is data.
//
//   auto look = [](const char* path) {
//     io::Object checkpoint = io::load_pytorch(path);
//     int64_t epoch = checkpoint.at("epoch").integer();
//     double rate = checkpoint.at("lr").real();
//     bool done = checkpoint.at("done").boolean();
//     std::string name = checkpoint.at("name").text();
//     io::Object first = checkpoint.at("history").at(0);
//     bool known = checkpoint.has("model") && checkpoint.kind() == io::Object::Kind::Dict && checkpoint.size() > 0;
//     Tensor weight = checkpoint.at("model").at("0.weight").tensor();
//     std::vector<std::string> names = checkpoint.keys();
//     fmt::print("{}\n", checkpoint.str());     // what is in it, without the values
//     return checkpoint.at("model").tensors();  // names and tensors
//   };
//
// Tensors look into the file's pages, as those of safetensors do; tensors that shared memory share it again.
#pragma once

#include <tenon/io/tensors.h>

#include <memory>

namespace tenon::io {

// A value of the file. It keeps the file's values alive.
class Object {
 public:
  enum class Kind : uint8_t { None, Bool, Int, Real, Text, Tensor, List, Dict };

  Kind kind() const;
  // Of a list or a dictionary.
  size_t size() const;
  Object at(size_t position) const;
  Object at(int position) const { return at(static_cast<size_t>(position)); }
  bool has(std::string_view key) const;
  Object at(std::string_view key) const;
  Object at(const char* key) const { return at(std::string_view(key)); }
  std::vector<std::string> keys() const;  // of a dictionary; numbers as text
  // The value; a TypeError that says what it is, if it is something else.
  bool boolean() const;
  int64_t integer() const;
  double real() const;  // of an integer too
  const std::string& text() const;
  tenon::Tensor tensor() const;
  // Of a dictionary: the entries that are tensors. Those of dictionaries within have the names of both, "model.weight".
  NamedTensors tensors() const;

  // "{'epoch': 3, 'model': {'0.weight': float32[4, 3]}}"
  std::string str() const;

  struct Document;  // of the reader
  Object(std::shared_ptr<const Document> document, size_t node) : document_(std::move(document)), node_(node) {}

 private:
  std::shared_ptr<const Document> document_;
  size_t node_;
};

Object load_pytorch(const std::filesystem::path& path);

}  // namespace tenon::io
