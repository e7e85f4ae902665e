#include "outside.h"

namespace tenon::capture {

Inside::Inside(Session& session)
    : session_(session), reader_([&session](const Ref<CellState>& cell) { return session.read_cell(cell); }),
      reader_before_(std::exchange(core::cell_reader(), &reader_)),
      interceptor_before_(autograd::set_engine_interceptor(
          [&session](const autograd::Walk& walk) -> std::optional<std::vector<Tensor>> { return session.run_walk(walk); })),
      include_(KeySet{DispatchKey::Capture, DispatchKey::Fake}) {
  set_current_session(&session);
}

Inside::~Inside() {
  core::cell_reader() = reader_before_;
  autograd::set_engine_interceptor(std::move(interceptor_before_));
  set_current_session(session_.before_);
}

Outside::Outside(Session& session)
    : session_(session), keys_(std::exchange(dispatch::thread_keys(), session.keys_before_)),
      reader_(std::exchange(core::cell_reader(), nullptr)), interceptor_(autograd::set_engine_interceptor(nullptr)),
      mode_(session.frame_.grad_enabled), no_sizes_(nullptr) {
  set_current_session(nullptr);
}

Outside::~Outside() {
  dispatch::thread_keys() = keys_;
  core::cell_reader() = reader_;
  autograd::set_engine_interceptor(std::move(interceptor_));
  set_current_session(&session_);
}

}  // namespace tenon::capture
