// The profiler's record, for events that are no calls.
#pragma once

#include <tenon/dispatch/profiler.h>

namespace tenon::dispatch {

// The record that is being made, and the nanoseconds since it began; 0: none is.
uint64_t current_record(int64_t& now);
int32_t current_thread();
// Adds an event, unless the record that it began in is over.
void add_event(uint64_t record, Profiler::Event event);

}  // namespace tenon::dispatch
