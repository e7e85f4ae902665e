#include "dispatch/inside_kernel.h"
#include "support/thread_context.h"

#include <tenon/graph/trace.h>

namespace tenon::graph {
namespace {

DecompositionOf& decomposition_source() {
  static auto* source = new DecompositionOf;  // never destroyed: static objects may trace while the process ends
  return *source;
}

void record_call(dispatch::Call& call) {
  TraceMode* mode = TraceMode::current();
  TENON_ASSERT(mode, "{} reached the Trace key outside a TraceMode", call.op.name());
  if (mode->decompose() && mode->decompose()(call)) {
    const dispatch::KernelFunction* parts = decomposition_source()(call.op);
    TENON_ASSERT(parts, "{} has no decomposition", call.op.name());
    (*parts)(call);
    return;
  }
  {
    dispatch::InsideKernel kernel;
    dispatch::redispatch(call, call.keys.below(DispatchKey::Trace));
  }
  Node& node = mode->recorder().record(call.op, call.args, call.results);
  if (!mode->origin) return;
  node.sequence = mode->origin->sequence;
  node.module = mode->origin->module;
  node.draw = mode->origin->draw;
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::Trace, record_call);
  return true;
}();

}  // namespace

void set_decomposition_source(DecompositionOf source) { decomposition_source() = std::move(source); }

TraceMode::TraceMode(Recorder& recorder, Decompose decompose)
    : recorder_(recorder),
      decompose_(std::move(decompose)),
      before_(current()),
      include_(std::make_unique<dispatch::IncludeKeys>(KeySet{DispatchKey::Trace, DispatchKey::Fake})) {
  support::thread_context.set(support::ContextSlot::TraceMode, this);
}

TraceMode::~TraceMode() { support::thread_context.set(support::ContextSlot::TraceMode, before_); }

TraceMode* TraceMode::current() { return support::thread_context.get<TraceMode>(support::ContextSlot::TraceMode); }

}  // namespace tenon::graph
