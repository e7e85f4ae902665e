// Small functions of vectors and matrices: distances, traces, outer products.
#include "ops/by_name.h"

#include <tenon/ops/table.h>

namespace tenon::ops {

OPS(vectors) {
  op("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& other, const Scalar& p) {
        return linalg_vector_norm(given(self, "dist") - given(other, "dist"), p);
      });
  op("trace(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(given(self, "trace").dim() == 2, "[trace] expected a matrix, got {}", self.description());
    return sum(diagonal(self));
  });
  op("outer(Tensor self, Tensor vec2) -> Tensor").decompose([](const Tensor& self, const Tensor& vec2) {
    TENON_CHECK(given(self, "outer").dim() == 1 && given(vec2, "outer").dim() == 1,
                "[outer] expected two vectors, got {} and {}", self.description(), vec2.description());
    return unsqueeze(self, 1) * vec2;
  });
}

}  // namespace tenon::ops
