#include "autograd/row_plan.h"

#include "autograd/node_name.h"
#include "autograd/row_node.h"
#include "support/at_fork.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace tenon::autograd {
namespace {

std::unique_ptr<const RowPlan> make_plan(const ops::Row& row) {
  auto plan = std::make_unique<RowPlan>();
  plan->node_name = name_of_step(row);
  for (const ops::GradRule& rule : row.grads) {
    int input = row.schema.argument_index(rule.input);
    TENON_ASSERT(input >= 0, "{} has a gradient for '{}', which is no argument", row.schema.str(), rule.input);
    RowPlan::Rule& made = plan->rules.emplace_back(RowPlan::Rule{static_cast<size_t>(input), {}});
    for (const std::string& name : rule.saves) {
      int argument = row.schema.argument_index(name), result = argument < 0 ? result_index(row.schema, name) : -1;
      TENON_ASSERT(argument >= 0 || result >= 0,
                   "the gradient of {} saves '{}', which is neither an argument nor a result", row.schema.str(), name);
      made.saves.push_back({name, argument, result});
      plan->saves_results |= result >= 0;
    }
    plan->saves += made.saves.size();
  }
  return plan;
}

const RowPlan& look_up(const ops::Row& row) {
  static auto& mutex = *new support::ForkSafe<std::mutex>;
  static auto* plans = new std::unordered_map<const ops::Row*, std::unique_ptr<const RowPlan>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<const RowPlan>& plan = (*plans)[&row];
  if (!plan) plan = make_plan(row);
  return *plan;
}

}  // namespace

// Asked at every recorded call: the row knows the answer.
const RowPlan& plan_of(const ops::Row& row) {
  if (const void* known = row.gradient_plan.get()) [[likely]]
    return *static_cast<const RowPlan*>(known);
  const RowPlan& plan = look_up(row);
  row.gradient_plan.set(&plan);
  return plan;
}

}  // namespace tenon::autograd
