#include "fuzz/features.h"

#include <tenon/support/error.h>

#include <array>
#include <cstdlib>
#include <string>

namespace tenon::fuzz {

const std::vector<FeatureRow>& features() {
  // Off: known faults that are being worked on (tests/fuzz/mutants/README.md has a seed for each).
  static const std::vector<FeatureRow> kFeatures = {
      {Feature::Aliasing, "aliasing", false, 35,
       "sources are the same, overlap or share a base, and bases are looked at"},
      {Feature::Closures, "closures", true, 15, "the function reads closure tensors and cells"},
      {Feature::Rebinding, "rebinding", false, 10,
       "closure tensors are replaced between calls while the old ones live"},
      {Feature::Results, "results", false, 25, "several results of one memory, written to after the call"},
      {Feature::Modes, "modes", false, 12, "grad mode set inside, with and without a scope"},
      {Feature::Seeds, "seeds", false, 5, "manual_seed inside"},
      {Feature::Hooks, "hooks", false, 8, "hooks registered inside"},
      {Feature::RequiresGrad, "requires_grad", false, 6, "set_requires_grad inside, on arguments and values"},
      {Feature::Leaves, "leaves", false, 8, "leaves made inside"},
      {Feature::GradInside, "grad_inside", false, 8, "backward() and grad() inside"},
      {Feature::HigherOrder, "higher_order", false, 12, "create_graph, and backward of gradients"},
      {Feature::Random, "random", false, 12, "random operators, used and dead"},
      {Feature::Unbacked, "unbacked", false, 15, "sizes and numbers from data, other ones at every call"},
      {Feature::Pins, "pins", false, 6, "sizes read as plain numbers"},
      {Feature::Inner, "inner", false, 8, "compiled and disabled functions inside"},
      {Feature::Custom, "custom", false, 10, "custom operators with random schemas"},
      {Feature::SmallSizes, "small_sizes", false, 12, "sizes that come to 0 and 1"},
      {Feature::Overlap, "overlap", false, 6, "views whose elements share memory, and writes beneath them"},
      {Feature::Numbers, "numbers", true, 8, "a number in a cell that changes from call to call"},
      {Feature::Verify, "verify", false, 20, "captures are verified (TENON_VERIFY_CAPTURE)"},
      {Feature::ZeroGradients, "zero_gradients", false, 0,
       "a gradient of zeros in eager is one in compiled code, not none"},
      {Feature::KeptInputs, "kept_inputs", false, 0,
       "an input written later stops backward only where it does in eager"},
  };
  return kFeatures;
}

namespace {

std::array<bool, static_cast<size_t>(Feature::Count)> switches() {
  std::array<bool, static_cast<size_t>(Feature::Count)> on{};
  const char* text = std::getenv("TENON_FUZZ_FEATURES");
  std::string given = text ? text : "";
  for (const FeatureRow& row : features())
    on[static_cast<size_t>(row.feature)] = given.empty() ? row.enabled : given == "all";
  if (given.empty() || given == "all" || given == "none") return on;
  for (size_t at = 0; at <= given.size();) {
    size_t end = std::min(given.find(',', at), given.size());
    std::string name = given.substr(at, end - at);
    bool known = false;
    for (const FeatureRow& row : features())
      if (row.name == name) known = on[static_cast<size_t>(row.feature)] = true;
    TENON_CHECK(known, "TENON_FUZZ_FEATURES: expected all, none or names of features.cpp, got '{}'", name);
    at = end + 1;
  }
  return on;
}

}  // namespace

bool enabled(Feature feature) {
  static const auto on = switches();
  return on[static_cast<size_t>(feature)];
}

}  // namespace tenon::fuzz
