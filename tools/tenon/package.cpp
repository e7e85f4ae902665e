// `tenon show FILE` and `tenon package FILE`: compiled functions as files.
#include <fmt/format.h>
#include <tenon/package/load_compiled.h>

#include <filesystem>

#include "commands.h"
#include "deploy/object_file.h"

namespace tool {

namespace fs = std::filesystem;

int run_show(const Words& words) {
  if (words.size() != 1) throw UsageError(fmt::format("[show] expected one file, got {} words", words.size()));
  fmt::print("{}", tenon::describe_compiled(words[0]));
  return 0;
}

int run_package(const Words& words) {
  fs::path file;
  std::string object, header, name;
  for (size_t at = 0; at < words.size(); ++at) {
    std::string* option = words[at] == "-o"         ? &object
                          : words[at] == "--header" ? &header
                          : words[at] == "--name"   ? &name
                                                    : nullptr;
    if (option) {
      if (at + 1 == words.size()) throw UsageError(fmt::format("[package] nothing follows {}", words[at]));
      *option = words[++at];
    } else if (words[at].starts_with("-") || !file.empty()) {
      throw UsageError(fmt::format("[package] expected one file, -o, --header and --name, got '{}'", words[at]));
    } else {
      file = words[at];
    }
  }
  if (file.empty()) throw UsageError("[package] expected a file that save_compiled wrote");
  if (name.empty()) name = file.stem().string();
  if (object.empty()) object = fs::path(file).replace_extension(".o").string();
  if (header.empty()) header = fs::path(object).replace_extension(".h").string();
  tenon::deploy::write_object(file, object, header, name);
  fmt::print("{}: link it\n{}: tenon::packaged::{}<Signature>()\n", object, header, name);
  return 0;
}

}  // namespace tool
