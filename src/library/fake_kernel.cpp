#include "fake_kernel.h"

#include <optional>

namespace tenon::library {
namespace {

// What a fake gives must be able to stand for what the kernel gives: a new tensor on the device of the arguments.
void check_fakes(const dispatch::Call& call, bool fake) {
  const schema::Schema& schema = call.op.schema();
  for (size_t at = 0; at < call.results.size() && at < schema.returns.size(); ++at)
    call.results[at].each_tensor([&](const Tensor& result) {
      if (!result.defined()) return;
      TENON_CHECK(
          !fake || result.device() != kMeta,
          "[{}] the fake implementation gave a tensor on the device meta: make it like an argument, empty_like(x), "
          "or without a device",
          call.op.name());
      TENON_CHECK(!fake || result.is_fake(),
                  "[{}] the fake implementation returned {} with data, which is what it was when the function was "
                  "captured: make a new tensor, empty_like(x)",
                  call.op.name(), result.description());
      if (schema.returns[at].alias) return;
      for (size_t arg = 0; arg < call.args.size(); ++arg)
        call.args[arg].each_tensor([&](const Tensor& argument) {
          TENON_CHECK(!result.is(argument),
                      "[{}] the fake implementation returned its argument '{}' itself, and results of the operator are "
                      "new tensors: return empty_like({})",
                      call.op.name(), schema.arguments[arg].name, schema.arguments[arg].name);
        });
    });
}

}  // namespace

void check_defined(const dispatch::Call& call, std::string_view who) {
  const schema::Schema& schema = call.op.schema();
  for (size_t at = 0; at < call.results.size() && at < schema.returns.size(); ++at)
    TENON_CHECK(schema.returns[at].type.kind != schema::Kind::Tensor || !call.results[at].is_tensor() ||
                    call.results[at].tensor().defined(),
                "[{}] the {} returned an undefined tensor as its result {}: return a tensor, or declare the result as "
                "Tensor?",
                call.op.name(), who, at);
}

dispatch::KernelFunction fake_kernel(dispatch::KernelFunction fake) {
  return [fake = std::move(fake)](dispatch::Call& call) {
    constexpr KeySet kLayers{DispatchKey::Trace,    DispatchKey::Functionalize, DispatchKey::ADInplaceOrView,
                             DispatchKey::Autograd, DispatchKey::Autocast,      DispatchKey::Capture};
    dispatch::ExcludeKeys unseen(kLayers);
    std::optional<dispatch::IncludeKeys> fakes;
    if (call.keys.highest() == DispatchKey::Fake) fakes.emplace(KeySet{DispatchKey::Fake});
    fake(call);
    check_defined(call, "fake implementation");
    check_fakes(call, fakes.has_value());
  };
}

}  // namespace tenon::library
