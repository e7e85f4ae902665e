// Tells lines of the user's program from addresses, by its debug information.
#include <tenon/support/call_site.h>

#include <llvm/DebugInfo/Symbolize/Symbolize.h>

#include <mutex>

#include "support/at_fork.h"

namespace tenon::codegen {
namespace {

std::vector<CodePlace> places_at(const std::string& module, uint64_t offset) {
  static auto& mutex = *new support::ForkSafe<std::mutex>;
  static auto& symbolizer = *new llvm::symbolize::LLVMSymbolizer;
  support::NoFork inside_llvm;
  std::lock_guard lock(mutex);
  llvm::Expected<llvm::DIInliningInfo> found =
      symbolizer.symbolizeInlinedCode(module, {offset, llvm::object::SectionedAddress::UndefSection});
  std::vector<CodePlace> places;
  if (!found) {
    llvm::consumeError(found.takeError());
    return places;
  }
  for (uint32_t at = 0; at < found->getNumberOfFrames(); ++at) {
    const llvm::DILineInfo& frame = found->getFrame(at);
    auto known = [](const std::string& text) { return text == llvm::DILineInfo::BadString ? std::string() : text; };
    places.push_back({known(frame.FunctionName), known(frame.FileName), static_cast<int64_t>(frame.Line)});
  }
  return places;
}

[[maybe_unused]] const bool registered = [] {
  set_symbolizer(places_at);
  return true;
}();

}  // namespace
}  // namespace tenon::codegen
