// Gradients by authors of operators: the backward of a `Function`, a formula of `register_autograd`.
//
// Ahead-of-time autograd runs them once, on fakes, and compiles what they call. Some cannot be had so: one that reads a
// tensor which it was not given (a global, a parameter of a module that it knows), where eager reads it anew at every
// walk; one that looks at values, or at memory; one that throws, as it would in eager, but at backward. All that is a
// `NotTraceable`, upon which a capture leaves the operator out of its graphs: it is called between two of them, and its
// backward runs as it is.
#pragma once

#include <tenon/core/tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::autograd {

// While one lives, walks of this thread run on fakes, to be compiled.
class TraceAhead {
 public:
  TraceAhead() : before_(std::exchange(on_, true)) {}
  ~TraceAhead() { on_ = before_; }
  TraceAhead(const TraceAhead&) = delete;
  TraceAhead& operator=(const TraceAhead&) = delete;
  static bool on() { return on_; }

 private:
  static inline thread_local bool on_ = false;
  bool before_;
};

// Says what the formula of an operator has thrown.
class NotTraceable final : public RuntimeError {
 public:
  NotTraceable(std::string op, const std::string& what) : RuntimeError(what), op_(std::move(op)) {}
  const std::string& op() const { return op_; }

 private:
  std::string op_;
};

// Thrown by the trace where a formula reads such a tensor.
class ReadsOutside final : public RuntimeError {
 public:
  explicit ReadsOutside(const Tensor& tensor);
};

// The formula that runs on this thread, to be compiled.
class AuthorFormula {
 public:
  static bool is_running() { return running_; }

  // Runs one of `op`.
  template <typename Body>
  static std::vector<Tensor> run(const std::string& op, Body&& body) {
    if (!TraceAhead::on()) return body();
    struct Running {
      bool before = std::exchange(running_, true);
      ~Running() { running_ = before; }
    } running;
    try {
      return body();
    } catch (...) {
      rethrow(op);
    }
  }

 private:
  // The exception at hand, as a NotTraceable, unless it is one of the library's own making.
  [[noreturn]] static void rethrow(const std::string& op);
  static inline thread_local bool running_ = false;
};

}  // namespace tenon::autograd
