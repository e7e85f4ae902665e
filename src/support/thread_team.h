// The threads beneath `parallel_for`: runs part(state, 0) … part(state, parts - 1) at once, one of them on the calling
// thread, and returns when all are done. One caller at a time; `part` does not throw.
//
// OpenMP's threads, shared with oneDNN, in thread_team_openmp.cpp; threads of our own in thread_team_own.cpp, where
// libgomp cannot be used: the thread sanitizer does not see its barriers.
#pragma once

namespace tenon::support {

void run_parts(int parts, void (*part)(void* state, int index), void* state);

// Whether OpenMP regions of others may have several threads.
bool openmp_may_run_in_parallel();
// How many threads an OpenMP region gets that this thread starts from now on; returns what it was.
int limit_openmp(int threads);

}  // namespace tenon::support

#if defined(__SANITIZE_THREAD__) && !defined(TENON_OWN_THREADS)
#define TENON_OWN_THREADS
#endif
