// What a program with autograd is told when it calls a function from a file.
#include "package/gradients.h"

#include <tenon/autograd/grad_mode.h>

namespace tenon::deploy {
namespace {

const bool asked = [] {
  package::ask_for_gradients([](const Tensor& tensor) { return autograd::grad_enabled() && tensor.requires_grad(); });
  return true;
}();

}  // namespace
}  // namespace tenon::deploy
