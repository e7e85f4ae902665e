// generate_api --out <include folder> --source-out <source folder> file.cpp …
#include "functions.h"
#include "generate.h"

#include <tenon/support/error.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

constexpr const char* kHelp =
    "usage: generate_api --out <include folder> --source-out <source folder> file.cpp ...\n"
    "\n"
    "Reads the rows op(\"...schema...\") of the given sources and writes the C++ API of the operators:\n"
    "  <include folder>/tensor_methods.h   methods, to be included inside class Tensor\n"
    "  <include folder>/ops/<file>.h       free functions of the rows of a source\n"
    "  <include folder>/ops.h              all of them\n"
    "  <include folder>/compat_*.h         methods and functions with libtorch's types, for compat/\n"
    "  <source folder>/ops_<file>.cpp      the bodies of the functions and methods of a source\n"
    "A file whose content would not change is left alone.\n"
    "\n"
    "  --out <folder>         where the headers go\n"
    "  --source-out <folder>  where the source goes\n"
    "  --help                 this text\n";

struct Options {
  std::string out, source_out;
  std::vector<std::string> files;
  bool help = false;
};

// A fault in the command line itself; it ends with the usage.
struct UsageError : tenon::Error {
  using tenon::Error::Error;
};

Options read_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (argument == "--out" || argument == "--source-out") {
      if (i + 1 == count) throw UsageError("expected a folder after " + argument);
      (argument == "--out" ? options.out : options.source_out) = arguments[++i];
    } else if (argument.starts_with("-")) {
      throw UsageError("unknown option " + argument);
    } else {
      options.files.push_back(argument);
    }
  }
  if (options.out.empty()) throw UsageError("expected --out <include folder>");
  if (options.source_out.empty()) throw UsageError("expected --source-out <source folder>");
  if (options.files.empty()) throw UsageError("expected the sources to read");
  return options;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // A folder opens as a file and reads as nothing.
  if (!file || std::filesystem::is_directory(path)) tenon::fail("cannot read {}", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) tenon::fail("cannot make the folder {}: {}", path, failure.message());
}

void run(const Options& options) {
  using namespace tenon::generate_api;
  std::vector<Row> rows;
  for (const std::string& file : options.files) {
    for (Row& row : scan(file, read_file(file))) rows.push_back(std::move(row));
  }
  const Api api = generate(rows);
  make_folder(options.out + "/ops");
  make_folder(options.source_out);
  write_if_changed(options.out + "/tensor_methods.h", api.tensor_methods);
  write_if_changed(options.out + "/ops.h", api.ops_header);
  const Compat compat = generate_compat(rows);
  write_if_changed(options.out + "/compat_methods.h", compat.methods);
  write_if_changed(options.out + "/compat_functions.h", compat.functions);
  for (const Family& family : api.families) {
    write_if_changed(fmt::format("{}/ops/{}.h", options.out, family.name), family.header);
    write_if_changed(fmt::format("{}/ops_{}.cpp", options.source_out, family.name), family.source);
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Options options = read_options(count, arguments);
    if (options.help) {
      std::fputs(kHelp, stdout);
      return 0;
    }
    run(options);
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "generate_api: %s\n\n%s", error.what(), kHelp);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
