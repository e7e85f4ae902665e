// Compiled functions from files that `save_compiled` wrote: without capture, without autograd, without a compiler.
//
// This header and `libtenon_runtime` are all that a program needs which only runs such files; see docs/deployment.md.
// A file holds machine code: load only what you trust. One that was damaged, or made by another version, is refused
// before anything of it runs.
#pragma once

#include <tenon/core/random.h>
#include <tenon/dispatch/structures.h>
#include <tenon/generated/ops.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon {

namespace package {

struct Function;
using FunctionRef = std::shared_ptr<const Function>;

FunctionRef load(const std::filesystem::path& path);
FunctionRef load(std::span<const std::byte> bytes, const std::string& name);
std::vector<dispatch::Value> run(const Function& function, const dispatch::FlatArguments& arguments);
[[noreturn]] void refuse_results(const Function& function, const std::string& why);

}  // namespace package

template <typename Signature>
class Loaded;

// A function from a file, with the types that it is called with here. Copies share it; threads may call it at once,
// except where the function writes to state of its own (a running mean), which is theirs to order.
//
//   auto twice = compile([](Tensor a) { return a * 2; });
//   twice(ones({3}));
//   auto path = std::filesystem::temp_directory_path() / "tenon_example_loaded.tenon";
//   save_compiled(twice, path);
//   Loaded<Tensor(Tensor)> loaded = load_compiled<Tensor(Tensor)>(path);
//   Tensor twos = loaded(ones({3}));
//   std::filesystem::remove(path);
template <typename R, typename... Args>
class Loaded<R(Args...)> {
 public:
  explicit Loaded(package::FunctionRef function) : function_(std::move(function)) {}

  R operator()(const std::decay_t<Args>&... args) const {
    dispatch::FlatArguments flat;
    (dispatch::flatten_argument<std::decay_t<Args>>(args, flat), ...);
    std::vector<dispatch::Value> results = package::run(*function_, flat);
    std::span<dispatch::Value> rest(results);
    if constexpr (std::is_void_v<R>) {
      if (!rest.empty()) package::refuse_results(*function_, "it has results, and none were asked for");
    } else {
      std::optional<R> result;
      try {
        result.emplace(dispatch::rebuild_result<R>(rest));
      } catch (const ValueError& error) {
        package::refuse_results(*function_, error.what());
      } catch (const TypeError& error) {
        package::refuse_results(*function_, error.what());
      }
      if (!rest.empty()) package::refuse_results(*function_, "it has more results than were asked for");
      return std::move(*result);
    }
  }

 private:
  package::FunctionRef function_;
};

// A ValueError that names the file and the fault if something is wrong with it.
//
//   auto sum = compile([](Tensor a, Tensor b) { return a + b; });
//   sum(ones({3}), ones({3}));
//   auto path = std::filesystem::temp_directory_path() / "tenon_example_load.tenon";
//   save_compiled(sum, path);
//   auto loaded = load_compiled<Tensor(Tensor, Tensor)>(path);
//   Tensor twos = loaded(ones({3}), ones({3}));
//   std::filesystem::remove(path);
template <typename Signature>
Loaded<Signature> load_compiled(const std::filesystem::path& path) {
  return Loaded<Signature>(package::load(path));
}

// The same from memory: of a file that is part of the program (`tenon package`). The bytes must stay as they are.
// `name` is for messages.
//
//   auto twice = compile([](Tensor a) { return a * 2; });
//   twice(ones({3}));
//   auto path = std::filesystem::temp_directory_path() / "tenon_example_bytes.tenon";
//   save_compiled(twice, path);
//   std::ifstream file(path, std::ios::binary);
//   std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
//   auto loaded = load_compiled<Tensor(Tensor)>(std::as_bytes(std::span(bytes)), "twice");
//   Tensor twos = loaded(ones({3}));
//   std::filesystem::remove(path);
template <typename Signature>
Loaded<Signature> load_compiled(std::span<const std::byte> bytes, const std::string& name) {
  return Loaded<Signature>(package::load(bytes, name));
}

// What is in a file, as text for people: sizes, tensors, kernels, guards and plans.
//
//   auto twice = compile([](Tensor a) { return a * 2; });
//   twice(ones({3}));
//   auto path = std::filesystem::temp_directory_path() / "tenon_example_show.tenon";
//   save_compiled(twice, path);
//   std::string text = describe_compiled(path);
//   std::filesystem::remove(path);
std::string describe_compiled(const std::filesystem::path& path);

}  // namespace tenon
