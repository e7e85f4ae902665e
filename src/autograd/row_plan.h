// What recording a call of a row looks up in the row, looked up once.
#pragma once

#include <tenon/ops/row.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::autograd {

struct RowPlan {
  std::string node_name;  // as `name_of_step` gives it
  // Something that a rule saves: an argument or a result, the other being -1.
  struct Save {
    std::string_view name;  // of the rule, which outlives everything
    int argument, result;
  };
  struct Rule {
    size_t argument;  // whose gradient it is
    std::vector<Save> saves;
  };
  std::vector<Rule> rules;  // as the row has them
  size_t saves = 0;         // of all rules together
  bool saves_results = false;
};

const RowPlan& plan_of(const ops::Row& row);

}  // namespace tenon::autograd
