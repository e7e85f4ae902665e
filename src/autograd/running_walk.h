// A walk while it runs: what has arrived where, which node is running, what is to be called when it is over.
#pragma once

#include "autograd/walk_plan.h"

#include <any>
#include <functional>
#include <map>

namespace tenon::autograd {

struct RunningWalk {
  explicit RunningWalk(const Walk& its_walk);

  const Walk& walk;
  int64_t id = -1;  // its number among the walks of the process; one that stands for another has none
  WalkPlan plan;
  std::vector<std::vector<Tensor>> arrived;  // by node; empty: nothing came yet
  std::vector<Tensor> captured;
  const Node* running = nullptr;
  RunningWalk* outer;                            // the walk around this one, on this thread
  bool keeps_callbacks = false;                  // those that are queued in it are not the outer walk's
  std::vector<std::function<void()>> callbacks;  // of the outermost walk
  std::map<const void*, std::any> notes;         // what hooks gather in the course of it, by owner
};

int64_t next_walk_id();

// The walk on this thread; null if there is none.
RunningWalk* current_walk();

// Runs the nodes; the results are in `captured`.
void run_nodes(RunningWalk& walk);
// Calls what was queued, if this walk is the outermost.
void run_callbacks(RunningWalk& walk);

// Asked where no scope says who is.
void set_default_interceptor(const EngineInterceptor* interceptor);

}  // namespace tenon::autograd
