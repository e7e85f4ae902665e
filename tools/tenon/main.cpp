// `tenon`: looks into the compiler from the command line.
#include <fmt/format.h>

#include <cstdio>

#include "commands.h"

namespace {

struct Command {
  const char* name;
  int (*run)(const tool::Words&);
  const char* help;
};

constexpr Command kCommands[] = {
    {"ops", tool::run_ops,
     "  tenon ops                    every operator: schema, kind, where it is defined\n"
     "  tenon ops NAME               one operator, or all of a name: gradients, in-place form\n"
     "  tenon ops --dispatch NAME    the kernel behind each dispatch key\n"
     "  tenon ops --find TEXT        file and line of each row that has the text in its name\n"},
    {"cache", tool::run_cache,
     "  tenon cache                  the object cache: folder, entries, bytes\n"
     "  tenon cache clear            removes its entries\n"},
    {"kernel", tool::run_kernel,
     "  tenon kernel FILE            parses, verifies and compiles a kernel text; with TENON_DEBUG_DIR set, shows "
     "where its\n"
     "                               LLVM IR and assembly are\n"},
    {"show", tool::run_show,
     "  tenon show FILE              what is in a file of save_compiled: calls, guards, tensors, kernels, plans\n"},
    {"package", tool::run_package,
     "  tenon package FILE [-o FILE.o] [--header FILE.h] [--name NAME]\n"
     "                               the same as an object file, so that it is part of a program\n"},
    {"version", tool::run_version, "  tenon version                version, vector width and target\n"},
};

void print_help(std::FILE* to) {
  fmt::print(to, "usage: tenon COMMAND ...\n\n");
  for (const Command& command : kCommands) fmt::print(to, "{}", command.help);
  fmt::print(to, "\nExit status: 0, 1 if something is wrong, 2 if the command line is.\n");
}

}  // namespace

int main(int argc, char** argv) {
  tool::Words words(argv + 1, argv + argc);
  if (words.empty()) {
    print_help(stderr);
    return 2;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help(stdout);
    return 0;
  }
  if (words[0] == "--version") words[0] = "version";
  try {
    for (const Command& command : kCommands) {
      if (words[0] != command.name) continue;
      words.erase(words.begin());
      if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
        fmt::print("{}", command.help);
        return 0;
      }
      return command.run(words);
    }
    std::string known;
    for (const Command& command : kCommands) known += (known.empty() ? "" : ", ") + std::string(command.name);
    throw tool::UsageError(fmt::format("[tenon] unknown command '{}': expected one of {}", words[0], known));
  } catch (const tool::UsageError& error) {
    fmt::print(stderr, "{}\nSee tenon --help.\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
