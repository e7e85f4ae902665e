#include "autograd/author_formula.h"

#include <tenon/autograd/engine.h>

#include <fmt/format.h>

namespace tenon::autograd {

ReadsOutside::ReadsOutside(const Tensor& tensor)
    : RuntimeError(
          fmt::format("its backward reads a tensor {} that it was not given; to be compiled, it needs the tensor "
                      "as an argument, or saved in forward",
                      tensor.description())) {}

void AuthorFormula::rethrow(const std::string& op) {
  try {
    throw;
  } catch (const NoDerivative&) {
    throw;  // one that the formula needs: known to whoever asks for the gradient
  } catch (const NotTraceable&) {
    throw;  // of another formula, inside this one
  } catch (const MemoryError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const ReadsOutside& error) {
    throw NotTraceable(op, fmt::format("[{}] {}", op, error.what()));
  } catch (const std::exception& error) {
    throw NotTraceable(op, error.what());
  } catch (...) {
    throw NotTraceable(op, fmt::format("[{}] its backward throws something that is no std::exception", op));
  }
}

}  // namespace tenon::autograd
