// The backends that must agree with eager.
#pragma once

namespace tenon::testing {

inline constexpr const char* kBackends[] = {"inductor", "aot_eager", "eager"};

}  // namespace tenon::testing
