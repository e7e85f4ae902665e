#include "outside.h"

#include <tenon/dispatch/operator.h>

namespace tenon::capture {
namespace {

using support::ContextSlot;

support::ThreadContext inside(Session& session) {
  support::ThreadContext context = session.context_of_call();
  context.included_keys |= KeySet{DispatchKey::Capture, DispatchKey::Fake}.bits();
  context.drops_saved_tensors = true;
  context.set(ContextSlot::Session, &session);
  return context;
}

}  // namespace

Inside::Inside(Session& session)
    : context_(inside(session)),
      reader_([&session](const Ref<CellState>& cell) {
        support::OwnCode own;
        return session.read_cell(cell);
      }),
      sizes_([&session](const Tensor& real) { return session.stand_in(real); }),
      effects_([&session](core::Effect effect) {
        support::OwnCode own;
        return session.effect(std::move(effect));
      }),
      walks_([&session](const autograd::Walk& walk) -> std::optional<std::vector<Tensor>> {
        support::OwnCode own;
        return session.run_walk(walk);
      }) {
  support::thread_context.set(ContextSlot::CellReader, &reader_);
  support::thread_context.set(ContextSlot::SizeReader, &sizes_);
  support::thread_context.set(ContextSlot::EffectInterceptor, &effects_);
}

Outside::Outside(const Session& session) : context_(session.context_of_call()) {}

}  // namespace tenon::capture
