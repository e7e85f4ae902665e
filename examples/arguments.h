// What the examples share: their arguments, and the switch between compiled and eager.
#pragma once

#include <tenon/tenon.h>

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace examples {

struct Arguments {
  int64_t steps;
  std::string path;                              // of the user's data, if there is any
  std::shared_ptr<tenon::SetStance> eager = {};  // while it lives, compiled functions run as they are written
};

// PROGRAM [--eager] [--steps N] [PATH]
inline Arguments read_arguments(int count, char** words, int64_t steps) {
  Arguments arguments{steps, ""};
  for (int at = 1; at < count; ++at) {
    std::string_view word = words[at];
    if (word == "--eager") {
      arguments.eager = std::make_shared<tenon::SetStance>(tenon::Stance::ForceEager);
    } else if (word == "--steps" && at + 1 < count) {
      arguments.steps = std::atoll(words[++at]);
    } else if (word.starts_with("--")) {
      fmt::print(stderr, "usage: {} [--eager] [--steps N] [PATH]\n", words[0]);
      std::exit(2);
    } else {
      arguments.path = word;
    }
  }
  return arguments;
}

}  // namespace examples
