#include "support/thread_team.h"

#ifndef TENON_OWN_THREADS

namespace tenon::support {

void run_parts(int parts, void (*part)(void* state, int index), void* state) {
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int index = 0; index < parts; ++index) part(state, index);
}

}  // namespace tenon::support

#endif
