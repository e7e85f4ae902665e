// What programs may contain beyond pure statements. A feature that is off is left out of every program; a program is
// the same for a seed whatever else is on. TENON_FUZZ_FEATURES=all or a list of names takes the place of the table's
// column; one with an exclamation mark ("loops!") is in every program.
#pragma once

#include <string_view>
#include <vector>

namespace tenon::fuzz {

enum class Feature : uint8_t {
  Aliasing,
  Closures,
  Results,
  Modes,
  Seeds,
  Hooks,
  RequiresGrad,
  Leaves,
  GradInside,
  HigherOrder,
  Between,
  Random,
  Unbacked,
  Pins,
  Inner,
  Custom,
  SmallSizes,
  Overlap,
  Rebinding,
  Numbers,
  Verify,
  Pieces,
  Formulas,
  Loops,
  Branches,
  WhileLoops,
  // Not parts of programs, but what is looked at.
  ZeroGradients,
  KeptInputs,
  Walks,
  Count,
};

struct FeatureRow {
  Feature feature;
  std::string_view name;
  int percent;  // of programs that use it, if it is on
  std::string_view meaning;
};

const std::vector<FeatureRow>& features();
// Unless the environment (TENON_FUZZ_FEATURES) says otherwise.
bool enabled(Feature feature);
bool in_every_program(Feature feature);

}  // namespace tenon::fuzz
