// Runs the statements of a program, as the function that is compiled.
#pragma once

#include "fuzz/program.h"
#include "fuzz/world.h"

#include <functional>
#include <map>

namespace tenon::fuzz {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

class Machine {
 public:
  // `backend`: inner functions are compiled for it; empty: everything runs eagerly.
  Machine(const Program& program, World& world, const std::string& backend = "");
  Machine(const Machine&) = delete;

  // The program's function.
  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments);

  // The values that sources are, as the function begins; the rest is undefined.
  std::vector<Tensor> begin(const std::vector<Tensor>& arguments) const;
  void run(const Statement& statement, std::vector<Tensor>& values);

 private:
  void run_all(const std::vector<Statement>& statements, std::vector<Tensor>& values);
  std::vector<Tensor> call_inner(const Statement& statement, const std::vector<Tensor>& operands);

  const Program& program_;
  World& world_;
  std::vector<size_t> last_;  // by value: the last statement that reads it, past the end for outputs
  bool plain_;
  int64_t statements_run_ = 0;
  std::map<const Statement*, Function> inner_;
};

}  // namespace tenon::fuzz
