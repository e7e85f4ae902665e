#include "fuzz/features.h"

#include <tenon/support/error.h>

#include <array>
#include <cstdlib>
#include <string>

namespace tenon::fuzz {

const std::vector<FeatureRow>& features() {
  static const std::vector<FeatureRow> kFeatures = {
      {Feature::Aliasing, "aliasing", 35, "sources are the same, overlap or share a base, and bases are looked at"},
      {Feature::Closures, "closures", 15, "the function reads closure tensors and cells"},
      {Feature::Rebinding, "rebinding", 10, "closure tensors are replaced between calls while the old ones live"},
      {Feature::Results, "results", 25, "several results of one memory, written to after the call"},
      {Feature::Modes, "modes", 12, "grad mode set inside, with and without a scope"},
      {Feature::Seeds, "seeds", 5, "manual_seed inside"},
      {Feature::Hooks, "hooks", 8, "hooks registered inside"},
      {Feature::RequiresGrad, "requires_grad", 6, "set_requires_grad inside, on arguments and values"},
      {Feature::Leaves, "leaves", 8, "leaves made inside"},
      {Feature::GradInside, "grad_inside", 8, "backward() and grad() inside"},
      {Feature::HigherOrder, "higher_order", 12, "create_graph, and backward of gradients"},
      {Feature::Between, "between", 10, "gradients with respect to results, also of gradients"},
      {Feature::Random, "random", 12, "random operators, used and dead"},
      {Feature::Unbacked, "unbacked", 15, "sizes and numbers from data, other ones at every call"},
      {Feature::Pins, "pins", 6, "sizes read as plain numbers"},
      {Feature::Inner, "inner", 8, "compiled and disabled functions inside"},
      {Feature::Custom, "custom", 10, "custom operators with random schemas"},
      {Feature::SmallSizes, "small_sizes", 12, "sizes that come to 0 and 1"},
      {Feature::Overlap, "overlap", 6, "views whose elements share memory, and writes beneath them"},
      {Feature::Numbers, "numbers", 8, "a number in a cell that changes from call to call"},
      {Feature::Verify, "verify", 20, "captures are verified (TENON_VERIFY_CAPTURE)"},
      {Feature::Pieces, "pieces", 8, "lists of views of one tensor (unbind, split), written and differentiated"},
      {Feature::Formulas, "formulas", 6, "Functions whose backward reads what it was not given, or values"},
      {Feature::Loops, "loops", 8, "scans over what is there, with bodies of any statements"},
      {Feature::Branches, "branches", 8, "conds by values, with branches of any statements"},
      {Feature::WhileLoops, "while_loops", 6,
       "while_loops of as many steps as values say, with bodies of any statements"},
      {Feature::ZeroGradients, "zero_gradients", 0, "a gradient of zeros in eager is one in compiled code, not none"},
      {Feature::KeptInputs, "kept_inputs", 0, "an input written later stops backward only where it does in eager"},
      {Feature::Walks, "walks", 0, "eager with captured backward walks, twice, is eager"},
  };
  return kFeatures;
}

namespace {

enum class Switch : uint8_t { Off, On, Always };

std::array<Switch, static_cast<size_t>(Feature::Count)> switches() {
  std::array<Switch, static_cast<size_t>(Feature::Count)> on{};
  const char* text = std::getenv("TENON_FUZZ_FEATURES");
  std::string given = text ? text : "";
  for (const FeatureRow& row : features())
    on[static_cast<size_t>(row.feature)] = given.empty() || given == "all" ? Switch::On : Switch::Off;
  if (given.empty() || given == "all" || given == "none") return on;
  for (size_t at = 0; at <= given.size();) {
    size_t end = std::min(given.find(',', at), given.size());
    std::string name = given.substr(at, end - at);
    const bool always = name.ends_with('!');
    if (always) name.pop_back();
    bool known = false;
    for (const FeatureRow& row : features())
      if (row.name == name) {
        known = true;
        on[static_cast<size_t>(row.feature)] = always ? Switch::Always : Switch::On;
      }
    TENON_CHECK(known, "TENON_FUZZ_FEATURES: expected all, none or names of features.cpp, got '{}'", name);
    at = end + 1;
  }
  return on;
}

}  // namespace

static Switch switch_of(Feature feature) {
  static const auto on = switches();
  return on[static_cast<size_t>(feature)];
}

bool enabled(Feature feature) { return switch_of(feature) != Switch::Off; }
bool in_every_program(Feature feature) { return switch_of(feature) == Switch::Always; }

}  // namespace tenon::fuzz
