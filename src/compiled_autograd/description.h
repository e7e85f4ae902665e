// What a walk is like, node by node: what it is known by, what may differ between walks that are alike, and the tensors
// that it starts from.
#pragma once

#include "autograd/running_walk.h"

#include <tenon/autograd/visit.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::compiled_autograd {

// Words, one behind the other; a text is its length and what it takes of them.
class Key {
 public:
  void reserve(size_t words) { words_.reserve(words); }
  void add(uint64_t word) { words_.push_back(word); }
  void add(std::string_view text) {
    size_t at = words_.size() + 1;
    words_.push_back(text.size());
    words_.resize(at + (text.size() + 7) / 8);
    std::memcpy(words_.data() + at, text.data(), text.size());
  }
  size_t size() const { return words_.size(); }
  void resize(size_t words) { words_.resize(words); }
  // As bytes: all of it, or the words from `begin` to `end`.
  std::string_view bytes() const { return bytes(0, words_.size()); }
  std::string_view bytes(size_t begin, size_t end) const {
    return {reinterpret_cast<const char*>(words_.data() + begin), (end - begin) * sizeof(uint64_t)};
  }

 private:
  std::vector<uint64_t> words_;
};

struct Description {
  struct Step {
    autograd::Node* node;
    bool runs = true;                                      // false: only its gradients are wanted
    bool opaque = false;                                   // called as it is, at every walk
    size_t key_end = 0, numbers_end = 0, tensors_end = 0;  // where its part of the lists ends
  };
  struct Number {
    int64_t bits;
    bool real;
  };
  std::vector<Step> steps;  // in depth; the engine may take another order
  Key key;                  // walks that are alike have the same
  size_t root_key_end = 0;
  std::vector<Number> numbers;
  std::vector<Tensor> tensors;  // the roots' gradients, then what nodes saved
  size_t roots = 0;
  std::vector<int64_t> foreseen;  // sizes that are known to change
  size_t breaks = 0;              // calls that cannot be captured
  std::string broken;             // not empty: something that a node saved cannot be read, and why
};

Description describe(autograd::RunningWalk& walk);

// Reads the saved tensor of a node that is packed away, by its number among those; and all others, so that one which
// was changed in place raises its Error.
Tensor unpack(autograd::Node& node, size_t number);
void check_saved(autograd::Node& node);
// Lets go of what a node saved, which the description holds; it can still be copied, and no more be run.
void drop_saved(autograd::Node& node);

}  // namespace tenon::compiled_autograd
