#include "fake_kernel.h"

#include <optional>

namespace tenon::library {

dispatch::KernelFunction fake_kernel(dispatch::KernelFunction fake) {
  return [fake = std::move(fake)](dispatch::Call& call) {
    constexpr KeySet kLayers{DispatchKey::Trace,    DispatchKey::Functionalize, DispatchKey::ADInplaceOrView,
                             DispatchKey::Autograd, DispatchKey::Autocast,      DispatchKey::Capture};
    dispatch::ExcludeKeys unseen(kLayers);
    std::optional<dispatch::IncludeKeys> fakes;
    if (call.keys.highest() == DispatchKey::Fake) fakes.emplace(KeySet{DispatchKey::Fake});
    fake(call);
  };
}

}  // namespace tenon::library
