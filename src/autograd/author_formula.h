// Gradients by authors of operators: the backward of a `Function`, a formula of `register_autograd`.
//
// Ahead-of-time autograd runs them once, on fakes, and compiles what they call. One that reads a tensor which it was
// not given (a global, a parameter of a module that it knows) would have it baked in; eager reads it anew at every
// walk. So that is an error of its own, upon which a capture leaves the operator out of its graphs: the operator runs
// between two of them, and its backward as it is.
#pragma once

#include <tenon/core/tensor.h>

#include <string>
#include <utility>

namespace tenon::autograd {

// While one lives, the formula of that operator runs on this thread.
class AuthorFormula {
 public:
  explicit AuthorFormula(const std::string& op) : before_(std::exchange(running_, &op)) {}
  ~AuthorFormula() { running_ = before_; }
  AuthorFormula(const AuthorFormula&) = delete;
  AuthorFormula& operator=(const AuthorFormula&) = delete;

  static const std::string* running() { return running_; }  // null: none

 private:
  static inline thread_local const std::string* running_ = nullptr;
  const std::string* before_;
};

class ReadsOutside final : public RuntimeError {
 public:
  ReadsOutside(const std::string& op, const Tensor& tensor);
  const std::string& op() const { return op_; }

 private:
  std::string op_;
};

}  // namespace tenon::autograd
