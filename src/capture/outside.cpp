#include "outside.h"

namespace tenon::capture {

Inside::Inside(Session& session)
    : session_(session),
      reader_([&session](const Ref<CellState>& cell) { return session.read_cell(cell); }),
      reader_before_(std::exchange(core::cell_reader(), &reader_)),
      interceptor_before_(autograd::set_engine_interceptor(
          [&session](const autograd::Walk& walk) -> std::optional<std::vector<Tensor>> {
            return session.run_walk(walk);
          })),
      gradients_before_(autograd::set_gradient_interceptor(
          [&session](const char* why, std::span<const Tensor> tensors, autograd::GradientAction action) {
            std::vector<Tensor> fakes;
            for (const Tensor& tensor : tensors) fakes.push_back(session.stand_in(tensor));
            return session.act_on(why, fakes, std::move(action));
          })),
      include_(KeySet{DispatchKey::Capture, DispatchKey::Fake}) {
  set_current_session(&session);
}

Inside::~Inside() {
  core::cell_reader() = reader_before_;
  autograd::set_engine_interceptor(std::move(interceptor_before_));
  autograd::set_gradient_interceptor(std::move(gradients_before_));
  set_current_session(session_.before_);
}

Outside::Outside(Session& session)
    : session_(session),
      keys_(std::exchange(dispatch::thread_keys(), session.keys_before_)),
      reader_(std::exchange(core::cell_reader(), nullptr)),
      interceptor_(autograd::set_engine_interceptor(nullptr)),
      gradients_(autograd::set_gradient_interceptor(nullptr)),
      mode_(session.frame_.grad_enabled),
      no_sizes_(nullptr) {
  set_current_session(nullptr);
}

Outside::~Outside() {
  dispatch::thread_keys() = keys_;
  core::cell_reader() = reader_;
  autograd::set_engine_interceptor(std::move(interceptor_));
  autograd::set_gradient_interceptor(std::move(gradients_));
  set_current_session(&session_);
}

}  // namespace tenon::capture
