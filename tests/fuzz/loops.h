// Loops and branches whose bodies are parts of a random program. Printed programs include this file.
#pragma once

#include <tenon/tenon.h>

namespace tenon::fuzz {

// Operands: what is carried, what is gone over, what every step reads. The body is given all three, and gives what goes
// into the carry, and what is kept. Results: the last carry, and all that was kept.
template <typename Body>
std::vector<Tensor> run_loop(const Body& body, const std::vector<Tensor>& operands, bool reverse) {
  auto step = [&](const Tensor& carry, const Tensor& x) {
    std::vector<Tensor> made = body(std::vector<Tensor>{carry, x, operands[2]});
    Tensor next = carry * 0.5 + made[0].to(carry.dtype()).sum() * 0.125;
    return std::pair(next, made[1]);
  };
  auto [last, kept] = scan(step, operands[0], operands[1], {.reverse = reverse});
  return {last, kept};
}

// So that every operand has a part in a result by either way, and gradients: where none comes by the way that was
// taken, eager has none, and what is compiled zeros.
inline Tensor with_all(const Tensor& like, const std::vector<Tensor>& operands) {
  Tensor sum = like;
  for (const Tensor& each : operands) sum = sum + each.to(like.dtype()).sum() * 0.0625;
  return sum;
}

// The body is given the operands. Results: like the first of them; and a number.
template <typename Body>
std::vector<Tensor> run_branch(const Body& body, const std::vector<Tensor>& operands, bool otherwise) {
  const Tensor& first = operands[0];
  auto with_body = [&] {
    std::vector<Tensor> made = body(operands);
    Tensor next = first * 0.5 + made[0].to(first.dtype()).sum() * 0.125;
    return std::pair(with_all(next, operands), with_all(made[1].to(first.dtype()).sum(), operands));
  };
  auto without = [&] { return std::pair(with_all(first * 2, operands), with_all(first.sum(), operands)); };
  Tensor predicate = operands[1].to(kFloat64).sum() > 0;
  auto [next, kept] = otherwise ? cond(predicate, without, with_body) : cond(predicate, with_body, without);
  return {next, kept};
}

// One step or more, as values say. The body is given what is carried, and the other operands. Results: what is carried,
// and how many steps there were.
template <typename Body>
std::vector<Tensor> run_while(const Body& body, const std::vector<Tensor>& operands) {
  using Carry = std::pair<Tensor, Tensor>;
  Tensor limit = (operands[1] != 0).sum().remainder(3) + 1;
  auto step = [&](const Carry& now) {
    std::vector<Tensor> made = body(std::vector<Tensor>{now.second, operands[1], operands[2]});
    Tensor next = now.second * 0.5;
    for (const Tensor& each : made) next = next + each.to(next.dtype()).sum() * 0.125;
    return Carry{now.first + 1, with_all(next, {operands[1], operands[2]})};
  };
  auto [steps, last] =
      while_loop([&](const Carry& now) { return now.first < limit; }, step, Carry{zeros({}, kInt64), operands[0]});
  return {last, steps};
}

}  // namespace tenon::fuzz
