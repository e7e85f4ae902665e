// A reader of Python's pickles that runs nothing: it admits numbers, texts, containers, and the names that PyTorch uses
// to describe tensors.
#pragma once

#include <tenon/io/pytorch.h>

#include "io/bytes.h"

#include <functional>

namespace tenon::io {

// All values of a file, by number. A pickle may refer to a value twice, or to one from within itself; numbers make that
// harmless.
struct Object::Document {
  struct Node {
    enum class Kind : uint8_t { None, Bool, Int, Real, Text, Tensor, List, Dict, Name, Storage };
    Kind kind = Kind::None;
    int64_t integer = 0;  // Bool, Int; the number of elements of a Storage
    double real = 0;
    std::string text;           // Text, Name ("torch.float32")
    tenon::Tensor tensor;       // of a Storage: all of it
    std::vector<size_t> items;  // List: elements; Dict: key, value, key, value, …
  };
  std::vector<Node> nodes;
};

// The elements of a storage: `count` of that dtype under that key. Raises if there are not so many.
using StorageLoader = std::function<Tensor(const std::string& key, Dtype dtype, int64_t count)>;

// A ValueError that says what is wrong, without the file's name.
Object read_pickle(std::span<const std::byte> bytes, const StorageLoader& load_storage);

}  // namespace tenon::io
