#include <tenon/capture/compile.h>

#include "support/out_of_memory.h"

#include <fmt/format.h>

#include <ostream>

namespace tenon {

std::string Explanation::str() const try {
  std::string text =
      fmt::format("{} graph(s), {} recompile(s), {} break(s)\n", entries.size(), recompiles.size(), breaks.size());
  for (size_t at = 0; at < entries.size(); ++at) {
    const Entry& entry = entries[at];
    std::string after = entry.depth > 0 ? fmt::format(" (after {} break(s))", entry.depth) : "";
    text += fmt::format("\ngraph {}{}{}\n{}", at, entry.eager ? " (runs eagerly)" : "", after, entry.captured);
    text += "guards:\n";
    for (const std::string& guard : entry.guards) text += "  " + guard + "\n";
    if (!entry.forward.empty()) text += "forward after aot:\n" + entry.forward;
    if (!entry.backward.empty()) text += "backward after aot:\n" + entry.backward;
    if (!entry.frozen.empty()) text += "frozen:\n" + entry.frozen;
    if (!entry.freezing.empty()) text += "freezing:\n";
    for (const std::string& line : entry.freezing) text += "  " + line + "\n";
    if (!entry.why.empty()) text += "ends because: " + entry.why + "\n";
  }
  for (const std::string& reason : recompiles) text += "recompiled: " + reason + "\n";
  for (const std::string& reason : breaks) text += "broke: " + reason + "\n";
  return text;
} catch (...) {
  support::rethrow_named("explain");
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) { return out << explanation.str(); }

}  // namespace tenon
