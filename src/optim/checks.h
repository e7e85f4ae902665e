// What options of optimizers must fulfil.
#pragma once

#include <tenon/support/error.h>

namespace tenon::optim {

inline void check_not_negative(const char* optimizer, const char* option, double value) {
  TENON_CHECK_VALUE(value >= 0, "[{}] expected {} to be at least 0, got {}", optimizer, option, value);
}

}  // namespace tenon::optim
