// A captured piece as something that is frozen: which of its inputs are parameters, and who compiles the parts.
#pragma once

#include "session.h"

namespace tenon::capture {

// What the function is given at every call is no parameter; what it reaches by itself is.
freezing::Parameters parameters_of(std::span<const InputRef> inputs, const Piece& piece, const Session& session);
// `records`: grad mode is on somewhere in it.
Decision can_be_frozen(const Backend& backend, bool records);
// By input: whether it comes from a cell. What a cell holds lives as long as the guards that read it.
std::vector<bool> in_cells(std::span<const InputRef> inputs, const Session& session);
aot::Compiled compile_frozen(const Backend& backend, const Piece& piece, const freezing::Parameters& parameters,
                             const std::vector<bool>& may_hold, const aot::Options& options,
                             std::shared_ptr<freezing::Frozen>& frozen);

// The capture is over, and the segments of its path have run. Their parameters in cells are given up: each cell gets
// what stands for its tensor, and the constants hold the rest. True if there was one.
bool give_up_parameters(std::span<const std::shared_ptr<const Segment>> path, const Session& session);

}  // namespace tenon::capture
