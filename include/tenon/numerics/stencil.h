// Differences on a grid, for equations of heat, waves and potentials.
//
//   Tensor field = rand({64, 64});
//   Tensor flow = numerics::laplacian(field);                                 // beyond the edges it is 0
//   numerics::LaplacianOptions round{.spacing = 0.1, .boundary = numerics::Boundary::Periodic};
//   Tensor torus = numerics::laplacian(field, round);
//   Tensor many = numerics::laplacian(rand({8, 64, 64}), {.dims = 2});        // eight fields
//   auto heat = compile([](Tensor u) { return u + 0.2 * numerics::laplacian(u); });
//   Tensor later = heat(field);                                               // one kernel
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::numerics {

// What lies beyond an edge.
enum class Boundary : uint8_t {
  Zero,      // zeros: edges are held at 0
  Mirror,    // what is at the edge: nothing flows through it
  Periodic,  // the other edge
};

struct LaplacianOptions {
  int64_t dims = 0;    // the last ones are the grid's, those before are fields; 0: all of them
  double spacing = 1;  // between neighbours
  Boundary boundary = Boundary::Zero;
};

// The sum of an element's neighbours, less as many times the element: ∂²/∂x² + ∂²/∂y² + …, to second order.
Tensor laplacian(const Tensor& field, const LaplacianOptions& options = {});

}  // namespace tenon::numerics
