#include <tenon/numerics/stencil.h>

#include <tenon/generated/ops.h>

namespace tenon::numerics {
namespace {

// With one more element at either end of a dimension.
Tensor widened(const Tensor& field, int64_t dim, Boundary boundary) {
  if (boundary == Boundary::Zero) {
    SymInts ends;  // from the last dimension backwards
    for (int64_t at = field.dim() - 1; at >= dim; --at)
      for (int side = 0; side < 2; ++side) ends.push_back(SymInt(at == dim ? 1 : 0));
    return constant_pad_nd(field, ends);
  }
  Tensor first = slice(field, dim, 0, 1), last = slice(field, dim, -1);
  if (boundary == Boundary::Mirror) return cat({first, field, last}, dim);
  return cat({last, field, first}, dim);
}

}  // namespace

Tensor laplacian(const Tensor& field, const LaplacianOptions& options) {
  TENON_CHECK_TYPE(field.defined() && field.is_floating_point(),
                   "[laplacian] expected a tensor of floating point numbers, got {}",
                   field.defined() ? field.description() : "an undefined one");
  TENON_CHECK_VALUE(options.dims >= 0 && options.dims <= field.dim() && field.dim() > 0,
                    "[laplacian] expected a grid of 1 to {} dimensions, got {}", field.dim(), options.dims);
  TENON_CHECK_VALUE(options.spacing > 0, "[laplacian] expected a spacing above 0, got {}", options.spacing);
  const int64_t dims = options.dims == 0 ? field.dim() : options.dims;
  Tensor total = field * static_cast<double>(-2 * dims);
  for (int64_t dim = field.dim() - dims; dim < field.dim(); ++dim) {
    Tensor wide = widened(field, dim, options.boundary);
    total = total + slice(wide, dim, 0, -2) + slice(wide, dim, 2);
  }
  return options.spacing == 1 ? total : total * (1 / (options.spacing * options.spacing));
}

}  // namespace tenon::numerics
