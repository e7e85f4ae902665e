// Anomaly mode: where a wrong gradient comes from.
//
// While it is on, nodes remember the line of the program whose operator made them. A node that fails says that line in
// a warning, and one that gives a nan is an Error. Walks run node by node, also under compiled autograd.
//
//   autograd::DetectAnomaly on;
//   Tensor w = zeros({3}).set_requires_grad();
//   try {
//     (w.sqrt() * 0).sum().backward();  // 0 / 0
//   } catch (const RuntimeError& error) {
//     std::string text = error.what();  // "[backward] Function 'SqrtBackward0' returned nan values in its 0th output…"
//   }
#pragma once

namespace tenon::autograd {

// As long as it lives, on this thread.
class DetectAnomaly {
 public:
  explicit DetectAnomaly(bool check_nan = true);
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  friend bool checks_nan();
  bool check_nan_;
  const void* before_;
};

//   bool neither = !autograd::anomaly_enabled() && !autograd::checks_nan();
bool anomaly_enabled();
bool checks_nan();

}  // namespace tenon::autograd
