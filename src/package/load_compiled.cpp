#include <tenon/package/load_compiled.h>

#include "file.h"
#include "gradients.h"
#include "support/out_of_memory.h"

#include <atomic>

namespace tenon {
namespace package {
namespace {

std::atomic<bool (*)(const Tensor&)> requires_grad{nullptr};

}  // namespace

void ask_for_gradients(bool (*would_record)(const Tensor&)) { requires_grad = would_record; }

FunctionRef load(const std::filesystem::path& path) try {
  return std::make_shared<const Function>(read(path));
} catch (...) {
  support::rethrow_named("load_compiled");
}

FunctionRef load(std::span<const std::byte> bytes, const std::string& name) try {
  return std::make_shared<const Function>(read(bytes, name));
} catch (...) {
  support::rethrow_named("load_compiled");
}

std::vector<dispatch::Value> run(const Function& function, const dispatch::FlatArguments& arguments) try {
  if (auto would_record = requires_grad.load(std::memory_order_relaxed))
    for (const Tensor& tensor : arguments.tensors)
      TENON_CHECK(!tensor.defined() || !would_record(tensor),
                  "[{}] a function from a file has no gradients, and it was given a tensor that requires grad: call it "
                  "under NoGrad, or with x.detach()",
                  function.name);
  return call(function, arguments.tensors.span(), arguments.numbers.span(), arguments.constants.span());
} catch (...) {
  support::rethrow_named(function.name.c_str());
}

void refuse_results(const Function& function, const std::string& why) {
  fail<ValueError>("[{}] the results are asked for in another form than the function has: {}", function.name, why);
}

}  // namespace package

std::string describe_compiled(const std::filesystem::path& path) try { return package::describe(path); } catch (...) {
  support::rethrow_named("describe_compiled");
}

}  // namespace tenon
