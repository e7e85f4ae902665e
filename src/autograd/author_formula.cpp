#include "autograd/author_formula.h"

#include <fmt/format.h>

namespace tenon::autograd {

ReadsOutside::ReadsOutside(const std::string& op, const Tensor& tensor)
    : RuntimeError(
          fmt::format("[{}] its backward reads a tensor {} that it was not given; to be compiled, it needs the "
                      "tensor as an argument, or saved in forward",
                      op, tensor.description())),
      op_(op) {}

}  // namespace tenon::autograd
