#include "fuzz/machine.h"

#include "fuzz/grammar.h"
#include "fuzz/loops.h"

#include <tenon/tenon.h>

#include <algorithm>

namespace tenon::fuzz {
namespace {

void note_uses(const Statement& statement, size_t at, std::vector<size_t>& last) {
  for (int value : statement.operands) last[static_cast<size_t>(value)] = at;
  for (int value : statement.results) last[static_cast<size_t>(value)] = at;
  for (int value : statement.returns) last[static_cast<size_t>(value)] = at;
  for (const Statement& each : statement.body) note_uses(each, at, last);
}

std::vector<size_t> last_uses(const Program& program) {
  std::vector<size_t> last(static_cast<size_t>(program.values), 0);
  for (size_t at = 0; at < program.statements.size(); ++at) note_uses(program.statements[at], at, last);
  for (int output : program.outputs) last[static_cast<size_t>(output)] = program.statements.size();
  for (size_t at = 0; at < program.sources.size(); ++at) last[at] = program.statements.size();
  return last;
}

}  // namespace

Machine::Machine(const Program& program, World& world, const std::string& backend)
    : program_(program), world_(world), last_(last_uses(program)), plain_(backend.empty()) {
  if (plain_) return;
  each_statement(program.statements, [&](const Statement& statement) {
    if (statement.kind != Kind::Inner) return;
    Function body = [this, &statement](const std::vector<Tensor>& operands) { return call_inner(statement, operands); };
    if (statement.n == 0)
      inner_[&statement] = compile(body, {.backend = backend});
    else
      inner_[&statement] = disable(body);
  });
}

std::vector<Tensor> Machine::begin(const std::vector<Tensor>& arguments) const {
  std::vector<Tensor> values(static_cast<size_t>(program_.values));
  size_t argument = 0;
  for (size_t at = 0; at < program_.sources.size(); ++at) switch (program_.sources[at].role) {
      case Role::Argument: values[at] = arguments[argument++]; break;
      case Role::Closure: values[at] = world_.closures[at]; break;
      case Role::Cell: values[at] = world_.cells[at].get(); break;
    }
  return values;
}

std::vector<Tensor> Machine::operator()(const std::vector<Tensor>& arguments) {
  std::vector<Tensor> values = begin(arguments), outputs;
  for (size_t at = 0; at < program_.statements.size(); ++at) {
    run(program_.statements[at], values);
    // A variable goes when nobody needs it any more, as in a written program: what is alive at a break is kept.
    for (size_t value = program_.sources.size(); value < values.size(); ++value)
      if (last_[value] <= at) values[value] = Tensor();
  }
  for (int output : program_.outputs) outputs.push_back(values[static_cast<size_t>(output)]);
  return outputs;
}

void Machine::run_all(const std::vector<Statement>& statements, std::vector<Tensor>& values) {
  for (const Statement& statement : statements) run(statement, values);
}

std::vector<Tensor> Machine::call_inner(const Statement& statement, const std::vector<Tensor>& operands) {
  std::vector<Tensor> values(static_cast<size_t>(program_.values)), results;
  for (size_t at = 0; at < operands.size(); ++at) values[static_cast<size_t>(statement.parameters[at])] = operands[at];
  run_all(statement.body, values);
  for (int value : statement.returns) results.push_back(values[static_cast<size_t>(value)]);
  return results;
}

void Machine::run(const Statement& statement, std::vector<Tensor>& values) {
  // Loops in steps of loops in steps of loops; eager goes first here, too.
  constexpr int64_t kMostStatements = 4000;
  if (plain_ && ++statements_run_ > kMostStatements) fail("[fuzz] more than {} statements are run", kMostStatements);
  auto operand = [&](size_t at) -> const Tensor& { return values[static_cast<size_t>(statement.operands[at])]; };
  auto set = [&](size_t at, Tensor result) { values[static_cast<size_t>(statement.results[at])] = std::move(result); };
  switch (statement.kind) {
    case Kind::Operation: {
      const Operation& operation = operations()[statement.operation];
      // Eager goes first, and leaves out what is undefined.
      if (plain_) check_write(operation, operand(0), operand(statement.operands.size() - 1));
      Tensor result = operation.run(operand(0), operand(statement.operands.size() - 1), statement.n);
      // What it computed anew; not what it shows, wrote to or passed on.
      if (program_.nudged && !(operation.traits & (kView | kInplace)) && result.defined() &&
          result.is_floating_point() && !result.is_same_storage(operand(0)) &&
          !result.is_same_storage(operand(statement.operands.size() - 1)))
        result = nudged(result);
      bool widens = program_.widened && result.defined() && is_half(result.dtype());
      set(0, widens ? result.to(kFloat64) : std::move(result));
      break;
    }
    case Kind::GradMode: autograd::set_grad_enabled(statement.n != 0); break;
    case Kind::Scope: {
      autograd::SetGradMode mode(statement.n != 0);
      run_all(statement.body, values);
      break;
    }
    case Kind::Seed: manual_seed(static_cast<uint64_t>(statement.n)); break;
    case Kind::Hook: {
      World& world = world_;
      int64_t factor = statement.n;
      autograd::register_hook(operand(0), [&world, factor](const Tensor& gradient) {
        if (!gradient.defined()) return gradient;  // another piece alone has one
        if (!gradient.is_fake()) ++world.hook_calls[static_cast<size_t>(factor)];
        return gradient * factor;
      });
      break;
    }
    case Kind::RequiresGrad: operand(0).set_requires_grad(statement.n != 0); break;
    case Kind::Grad: {
      std::vector<Tensor> inputs;
      for (size_t at = 1; at < statement.operands.size(); ++at) inputs.push_back(operand(at));
      std::vector<Tensor> gradients = gradients_of(operand(0), inputs, statement.n != 0);
      for (size_t at = 0; at < gradients.size(); ++at) set(at, gradients[at]);
      break;
    }
    case Kind::Backward: sum(operand(0)).backward({}, true, statement.n != 0); break;
    case Kind::Rate: set(0, operand(0) * world_.rate.get()); break;
    case Kind::Custom: {
      std::vector<Tensor> tensors;
      for (size_t at = 0; at < statement.operands.size(); ++at) tensors.push_back(operand(at));
      std::vector<Tensor> results = call_custom(program_.custom[statement.operation], tensors, statement.n);
      for (size_t at = 0; at < statement.results.size(); ++at) set(at, results[at]);
      break;
    }
    case Kind::Formula: set(0, outside_formula(operand(0), statement.n)); break;
    case Kind::Loop: {
      const std::vector<Tensor> operands{operand(0), operand(1), operand(2)};
      std::vector<Tensor> results = run_loop(
          [&](const std::vector<Tensor>& given) { return call_inner(statement, given); }, operands, statement.n != 0);
      for (size_t at = 0; at < statement.results.size(); ++at) set(at, results[at]);
      break;
    }
    case Kind::Branch:
    case Kind::While: {
      const std::vector<Tensor> operands{operand(0), operand(1), operand(2)};
      auto body = [&](const std::vector<Tensor>& given) { return call_inner(statement, given); };
      std::vector<Tensor> results =
          statement.kind == Kind::Branch ? run_branch(body, operands, statement.n != 0) : run_while(body, operands);
      for (size_t at = 0; at < statement.results.size(); ++at) set(at, results[at]);
      break;
    }
    case Kind::Inner: {
      std::vector<Tensor> operands;
      for (size_t at = 0; at < statement.operands.size(); ++at) operands.push_back(operand(at));
      auto made = inner_.find(&statement);
      std::vector<Tensor> results = made == inner_.end() ? call_inner(statement, operands) : made->second(operands);
      for (size_t at = 0; at < statement.results.size(); ++at) set(at, results[at]);
      break;
    }
  }
}

}  // namespace tenon::fuzz
