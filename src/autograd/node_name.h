// What PyTorch calls the backward step of an operator: "AddmmBackward0". People know these names from its errors, logs
// and profiles.
#pragma once

#include "autograd/recorded_call.h"

#include <string>

namespace tenon::autograd {

// Of a row, and of a call: some calls of one row are operators of their own in PyTorch.
std::string name_of_step(const ops::Row& row);
const std::string& node_name(const RecordedCall& call);

}  // namespace tenon::autograd
