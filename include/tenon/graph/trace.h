// Recording below autograd: while a `TraceMode` lives, every call that reaches the Trace key on this thread is appended
// to a recorder, and then handed on to the keys below (fake tensors).
#pragma once

#include <tenon/graph/recorder.h>

namespace tenon::graph {

class TraceMode {
 public:
  // An operator for which `decompose` gives true is not recorded: its parts are.
  using Decompose = std::function<bool(const dispatch::Call&)>;
  explicit TraceMode(Recorder& recorder, Decompose decompose = nullptr);
  ~TraceMode();
  TraceMode(const TraceMode&) = delete;

  static TraceMode* current();
  Recorder& recorder() const { return recorder_; }
  const Decompose& decompose() const { return decompose_; }
  // Null, or the node of another graph that is being run: those recorded for it have its number, module and draw.
  const Node* origin = nullptr;

 private:
  Recorder& recorder_;
  Decompose decompose_;
  TraceMode* before_;
  std::unique_ptr<dispatch::IncludeKeys> include_;
};

// Runs the decomposition of an operator that has one; set by the room that knows rows.
using DecompositionOf = std::function<const dispatch::KernelFunction*(const dispatch::Operator&)>;
void set_decomposition_source(DecompositionOf source);

}  // namespace tenon::graph
