// `CallSite`: the line of the user's program from which this library was entered.
//
// Taking one walks the stack to the first frames outside the library and keeps their addresses, which takes
// microseconds; telling what they are (with debug information file and line, else the function) is left until somebody
// asks for the text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon {

class CallSite {
 public:
  // Nowhere.
  CallSite() = default;
  // Where the user's code is on this thread.
  //
  //   CallSite site = CallSite::here();
  //   fmt::print("called from {}\n", site.str());
  static CallSite here();

  bool known() const { return addresses_[0] != 0; }
  // "model.cpp:31", or "step(tenon::Tensor) in trainer" where there is no debug information; empty if nothing is known.
  std::string str() const;

 private:
  // Functions of our headers may be compiled into the user's program, so the nearest frame need not be the user's.
  static constexpr size_t kFrames = 6;
  std::array<uintptr_t, kFrames> addresses_{};
};

// One function at an address; several if some were inlined there, innermost first.
struct CodePlace {
  std::string function, file;
  int64_t line = 0;  // 0: not known
};
// Who can tell what stands at an offset of a file of code; the compiler's back end registers itself.
using Symbolizer = std::function<std::vector<CodePlace>(const std::string& module, uint64_t offset)>;
void set_symbolizer(Symbolizer symbolizer);

}  // namespace tenon
