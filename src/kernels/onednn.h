// What our uses of oneDNN have in common: the engine, memory for one run, and primitives that each thread keeps.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/storage.h>

#include <dnnl.hpp>

#include <list>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/at_fork.h"

namespace tenon::kernels::onednn {

dnnl::engine& engine();

// Of float32 and bfloat16.
dnnl::memory::data_type data_type(Dtype dtype);

// oneDNN chose its plain loops, which are about a hundred times slower.
inline bool is_reference(const char* implementation) {
  return std::string_view(implementation).find("ref") != std::string_view::npos;
}

// Memory for one run.
class Block {
 public:
  explicit Block(size_t bytes)
      : bytes_(static_cast<int64_t>(bytes)), data_(bytes ? allocator::allocate(bytes_) : nullptr) {}
  ~Block() {
    if (data_) allocator::release(data_, bytes_);
  }
  Block(const Block&) = delete;
  void* data() const { return data_; }

 private:
  int64_t bytes_;
  void* data_;
};

// The primitives that were used last, at most `kept` of them. One for each thread: no lock to wait for, and none that a
// fork could leave taken. `Key` has hash() and ==, `Primitive` is made from a key.
template <typename Key, typename Primitive>
class PrimitiveCache {
 public:
  explicit PrimitiveCache(size_t kept) : kept_(kept) {}

  // Valid until the next call.
  Primitive& get(const Key& key) {
    if (auto found = by_key_.find(key); found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->second;
    }
    support::NoFork library_holds_locks;
    entries_.emplace_front(std::piecewise_construct, std::forward_as_tuple(key), std::forward_as_tuple(key));
    by_key_.emplace(key, entries_.begin());
    if (entries_.size() > kept_) {
      by_key_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

 private:
  struct Hash {
    size_t operator()(const Key& each) const { return each.hash(); }
  };
  using Entry = std::pair<Key, Primitive>;
  size_t kept_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> by_key_;
};

}  // namespace tenon::kernels::onednn
