// `Evaluating`: a module as it is used, not trained, for a while.
//
//   nn::Sequential model(nn::Linear(3, 8), nn::Dropout(0.5), nn::Linear(8, 2));
//   {
//     nn::Evaluating scope(model);    // eval(), and no history
//     Tensor result = model(x);
//   }
//   bool again = model.is_training();  // as before, and so is each part of it
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/module.h>

namespace tenon::nn {

class Evaluating {
 public:
  explicit Evaluating(const Module& module);
  ~Evaluating();
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  NoGrad off_;
  std::vector<std::pair<Module, bool>> modes_;  // of all modules, those that hold others first
};

}  // namespace tenon::nn
