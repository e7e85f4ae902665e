#include <tenon/codegen/compile.h>
#include <tenon/deploy/save_compiled.h>
#include <tenon/support/log.h>

#include "capture/function_state.h"
#include "package/file.h"
#include "support/out_of_memory.h"
#include "variant.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::deploy {
namespace {

using capture::Captured;

package::Objects objects_for(const package::NumberedKernels& kernels, int bits) {
  package::Objects objects{bits, {}};
  for (const load::KernelRef& kernel : kernels.kernels)
    objects.code.push_back(codegen::portable_object(codegen::compiled_from(*kernel)->kernel, bits));
  return objects;
}

}  // namespace

void save(const capture::CompiledFunction& compiled, const std::filesystem::path& path) try {
  std::vector<capture::SegmentRef> roots = Captured::roots(compiled);
  TENON_CHECK_VALUE(!roots.empty(),
                    "[save_compiled] the function was not compiled yet: call it once for every way in which the file "
                    "is to be called");
  package::Function function;
  function.name = path.stem().string();
  function.numbers_are_constants = Captured::options(compiled).dynamic == Dynamic::Off;
  FileTensors tensors(function);
  std::vector<std::string> reasons;
  std::optional<std::optional<Dtype>> autocast;
  for (const capture::SegmentRef& root : roots) {
    try {
      function.variants.push_back(make_variant(*root, tensors));
    } catch (const NotSaved& refused) {
      TENON_CHECK_VALUE(!refused.is_final, "[save_compiled] the function cannot be saved: {}", refused.why);
      TENON_LOG(Guards, "not saved: {}", refused.why);
      if (std::find(reasons.begin(), reasons.end(), refused.why) == reasons.end()) reasons.push_back(refused.why);
      continue;
    }
    std::optional<Dtype> its = root->guards.parts().autocast;
    TENON_CHECK_VALUE(!autocast || *autocast == its,
                      "[save_compiled] the function was compiled with autocast and without: reset() it, and call it "
                      "in the way that is to be saved");
    autocast = its;
  }
  TENON_CHECK_VALUE(!function.variants.empty(), "[save_compiled] the function cannot be saved: {}",
                    fmt::join(reasons, "; "));
  package::NumberedKernels kernels = package::number_kernels(function);
  std::vector<package::Objects> objects;
  for (int bits : package::kLevels) objects.push_back(objects_for(kernels, bits));
  package::write(path, function, kernels, objects);
} catch (...) {
  support::rethrow_named("save_compiled");
}

}  // namespace tenon::deploy
