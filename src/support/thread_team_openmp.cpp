#include "support/thread_team.h"

#ifndef TENON_OWN_THREADS

#include <omp.h>

namespace tenon::support {

void run_parts(int parts, void (*part)(void* state, int index), void* state) {
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int index = 0; index < parts; ++index) part(state, index);
}

bool openmp_may_run_in_parallel() { return true; }

int limit_openmp(int threads) {
  int before = omp_get_max_threads();
  if (before != threads) omp_set_num_threads(threads);
  return before;
}

}  // namespace tenon::support

#endif
