#include "run.h"

#include "autograd/current_walk.h"

#include <tenon/autograd/meta.h>

namespace tenon::compiled_autograd {

thread_local Run* Run::current_ = nullptr;

Run& Run::current() {
  TENON_ASSERT(current_, "a captured walk runs outside of a walk");
  return *current_;
}

void land(Run& run, const Arrival& arrival, Tensor gradient) {
  autograd::Node& node = run.node(arrival.step);
  if (arrival.kind == Arrival::Kind::Accumulate) {
    static_cast<autograd::AccumulateGrad&>(node).accumulate(std::move(gradient));
    return;
  }
  for (const auto& [nr, weak] : node.retained()) {
    if (nr != arrival.input) continue;
    if (Ref<TensorImpl> impl = weak.lock()) autograd::keep_gradient(Tensor(impl), gradient);
  }
}

}  // namespace tenon::compiled_autograd
