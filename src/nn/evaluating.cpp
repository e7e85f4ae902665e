#include <tenon/nn/evaluating.h>

namespace tenon::nn {

Evaluating::Evaluating(const Module& module) {
  for (const auto& [name, each] : module.named_modules()) modes_.emplace_back(each, each.is_training());
  module.eval();
}

// `train` goes on to the parts of a module, which come after it and have the last word.
Evaluating::~Evaluating() {
  for (const auto& [module, training] : modes_) module.train(training);
}

}  // namespace tenon::nn
