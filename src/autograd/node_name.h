// What PyTorch calls the backward step of an operator: "AddmmBackward0". People know these names from its errors, logs
// and profiles.
#pragma once

#include "autograd/recorded_call.h"

#include <string>

namespace tenon::autograd {

const std::string& node_name(const RecordedCall& call);

}  // namespace tenon::autograd
