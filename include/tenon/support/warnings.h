// Warnings: what a person should know although the program goes on.
//
//   CatchWarnings caught;                       // on this thread, while it lives
//   warn("the third argument is ignored");
//   bool one = caught.texts().size() == 1;      // else it would stand on standard error, once
#pragma once

#include <string>
#include <vector>

namespace tenon {

// Hands the text to the innermost `CatchWarnings` of this thread. Without one it is printed, once for each text.
void warn(const std::string& text);

class CatchWarnings {
 public:
  CatchWarnings();
  ~CatchWarnings();
  CatchWarnings(const CatchWarnings&) = delete;
  CatchWarnings& operator=(const CatchWarnings&) = delete;

  // In the order in which they came.
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  friend void warn(const std::string& text);
  std::vector<std::string> texts_;
  CatchWarnings* before_;
};

}  // namespace tenon
