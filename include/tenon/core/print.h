// Tensors as text: `x.str()`, `std::cout << x`, `fmt::print("{}", x)`.
//
// | tensor([[1.0000, 0.5000, 0.2500],
// |         [1.0000, 2.0000, 4.0000]], dtype=float32)
//
// Columns are aligned, reals have four digits, or an exponent if some of them need it; a tensor of more than a thousand
// elements shows its edges. Behind the values: dtype, the device if it is not the CPU, and whether it requires grad.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon {

// How this thread prints.
//
//   PrintOptions before = print_options();
//   set_print_options({.precision = 2, .edge_items = 2, .threshold = 100});
//   std::string text = x.str();
//   set_print_options(before);
struct PrintOptions {
  int precision = 4;                    // digits behind the point
  int64_t edge_items = 3;               // shown at each end of a long dimension
  int64_t threshold = 1000;             // more elements than these are not shown in full
  int64_t line_width = 80;              // in characters
  std::optional<bool> scientific = {};  // with exponents; unless said, where the values need them
};
void set_print_options(const PrintOptions& options);
const PrintOptions& print_options();

}  // namespace tenon
