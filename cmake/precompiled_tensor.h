// What nearly every file includes that works with tensors and operators. All of it depends on `Tensor`, and so is
// parsed again when a row is added. The functions of the operators are not here.
#pragma once

#include <tenon/dispatch/call.h>

#include "precompiled.h"
