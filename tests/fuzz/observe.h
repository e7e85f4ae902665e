// What one call leaves to see, for the user and for whoever holds the tensors around it.
#pragma once

#include "fuzz/machine.h"

namespace tenon::fuzz {

struct Seen {
  std::string name;  // "result 0"
  std::string description;
  Ints sizes, strides;
  bool requires_grad = false, leaf = true;
  size_t shares_with = 0;  // the first tensor seen that has the same storage
  int64_t distance = 0;    // in elements, to where that one begins
  Tensor values;           // a copy
};

struct Observation {
  std::vector<Seen> after_call, after_actions;
  bool grad_mode = true;
  uint64_t seed = 0, offset = 0;
  std::vector<bool> written;      // by base: its version moved
  std::vector<Tensor> gradients;  // copies; undefined where there is none
  std::vector<int64_t> hook_calls;
  std::string call_error, action_error, gradient_error;  // texts of what was raised, by stage
  bool refuses = false;  // call_error says that nothing is known of a number from data: a plan may say so
  bool broken = false;   // what was raised is no Error, or the thread is left in a capture
};

// Prepares and runs call number `call` of the program, then what the program does after it.
Observation observe(const Program& program, World& world, size_t call, const Function& function);

// What is different; empty if nothing is. `lenient`: eager refuses to differentiate for what happened inside, and
// compiled code, which has all values, need not.
// PyTorch computes functions otherwise, so that nothing is exact, and has no obligations to what we are still to mend.
enum class Against : uint8_t { Eager, Peer };
std::string compare(const Program& program, const Observation& got, const Observation& expected, bool lenient,
                    Against against = Against::Eager);

bool all_finite(const Observation& observation);

// What eager leaves to see, call by call.
std::vector<Observation> run_eagerly(const Program& program);
// Whether all values are as near to each other as they would be if the arguments, and what functions give, were off by
// one in the last place: what cancels, or the sine of a large number, is rounding.
bool agree_but_for_rounding(const Program& program, size_t call, const Observation& ours, const Observation& theirs);
// Whether something in it is computed in halves.
bool rounds_coarsely(const Program& program);
// Whether a difference in the last bits of a function may become large.
bool amplifies(const Program& program);

}  // namespace tenon::fuzz
