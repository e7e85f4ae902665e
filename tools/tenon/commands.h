// The commands of `tenon`. Each takes the words after its name and gives the program's exit status.
#pragma once

#include <tenon/support/error.h>

#include <string>
#include <vector>

namespace tool {

using Words = std::vector<std::string>;

// A fault in the command line itself: exit status 2.
class UsageError : public tenon::Error {
 public:
  using Error::Error;
};

int run_ops(const Words& words);
int run_cache(const Words& words);
int run_kernel(const Words& words);
int run_show(const Words& words);
int run_package(const Words& words);
int run_version(const Words& words);

}  // namespace tool
