// What was compiled of walks, by their description.
#pragma once

#include "run.h"
#include "support/at_fork.h"

#include <tenon/capture/compiled_function.h>
#include <tenon/compiled_autograd/enable.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace tenon::compiled_autograd {

class Cache {
 public:
  explicit Cache(Options options) : options_(std::move(options)) {}

  // Runs the walk, captured and compiled; nothing where it is better run node by node. `verbose`: says what it does.
  std::optional<std::vector<Tensor>> run(const autograd::Walk& walk, bool verbose);

 private:
  // Walks that are alike. What changes from one to the next is a symbol.
  struct Entry {
    support::ForkSafe<std::mutex> mutex;  // guards what follows, not the function
    std::vector<Description::Number> last;
    std::vector<bool> changes;  // by number
    bool any_changes = false;   // of them
    int64_t generation = 0;     // counts changes of `changes`
    int64_t compiled = -1;      // the last generation that was captured
    std::shared_ptr<capture::CompiledFunction> function;
    std::map<int64_t, std::vector<std::function<void()>>> callbacks;  // that captures left, by number
  };
  // Descriptions that begin alike, for the reason of a miss.
  struct Prefix {
    std::map<std::string, std::unique_ptr<Prefix>, std::less<>> next;
  };

  std::shared_ptr<Entry> find(const Description& description, bool verbose);
  void note_new(const Description& description, bool verbose);
  void note_changes(Entry& entry, const Description& description, bool verbose);
  // Whether the next walk like it will find what was compiled.
  bool is_known(Entry& entry) const;
  // `gives_up`: the nodes will not be run again.
  std::vector<Tensor> call(Entry& entry, Run& run, bool verbose, bool gives_up);

  Options options_;
  support::ForkSafe<std::mutex> mutex_;
  struct Hash {
    using is_transparent = void;
    // Of whole words, as keys are made of them.
    size_t operator()(std::string_view key) const {
      uint64_t hash = key.size(), word = 0;
      for (size_t at = 0; at + sizeof word <= key.size(); at += sizeof word) {
        std::memcpy(&word, key.data() + at, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };
  std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>> entries_;
  Prefix prefixes_;
};

}  // namespace tenon::compiled_autograd
