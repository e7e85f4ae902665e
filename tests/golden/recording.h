// What a program becomes on its way through the compiler, as text.
//
//   Recording recording;
//   auto f = compile(body, recording.options());
//   f(x).sum().backward();
//   std::string text = recording.text(f.explain());
#pragma once

#include <tenon/tenon.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon::golden {

class Recording {
 public:
  Recording();
  // For `compile`: does what "inductor" does, and keeps the texts. `trained`: inputs of the captured graph that require
  // grad (a backend of the user's is not told).
  CompileOptions options(std::vector<size_t> trained = {}) const;
  // For each graph that was compiled: as captured, after aot, its guards, its plans and kernels.
  std::string text(const Explanation& explanation) const;

 private:
  struct Compiled;
  std::shared_ptr<std::vector<Compiled>> compiled_;
};

}  // namespace tenon::golden
