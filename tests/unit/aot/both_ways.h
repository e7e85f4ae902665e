// Helpers for tests that compare a compiled function with itself uncompiled, on every backend.
#pragma once

#include "../capture/testing.h"
#include "backends.h"

namespace tenon::testing {

// Calls `test` with something that compiles a function, for each backend.
inline void on_all_backends(auto&& test) {
  for (const char* name : kBackends) {
    SCOPED_TRACE(name);
    test([name](auto function) { return compile(function, {.backend = name}); });
  }
}

// `run(f, size)` gives tensors: those of the function and of the compiled one must agree, at several sizes.
inline void both_ways(auto& function, auto&& compiled, auto&& run, double tolerance = 1e-6,
                      std::initializer_list<int64_t> sizes = {4, 4, 7, 5}) {
  for (int64_t size : sizes) {
    SCOPED_TRACE(size);
    std::vector<Tensor> expected = run(function, size), got = run(compiled, size);
    ASSERT_EQ(expected.size(), got.size());
    for (size_t at = 0; at < got.size(); ++at) {
      SCOPED_TRACE(at);
      ASSERT_EQ(got[at].defined(), expected[at].defined());
      if (!got[at].defined()) continue;
      EXPECT_LE(difference(got[at].detach(), expected[at].detach()), tolerance) << got[at].str() << "\nand\n"
                                                                                << expected[at].str();
    }
  }
}

}  // namespace tenon::testing
