// A scan whose body is a part of a random program. Printed programs include this file.
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

}  // namespace tenon::fuzz
