#include <tenon/numerics/conjugate_gradients.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include <algorithm>
#include <cmath>

namespace tenon::numerics {
namespace {

double product(const Tensor& a, const Tensor& b) { return sum(a * b).item<double>(); }
double length(const Tensor& a) { return std::sqrt(product(a, a)); }

std::string described(const Tensor& tensor) { return tensor.defined() ? tensor.description() : "an undefined tensor"; }

void check_like(const Tensor& got, const Tensor& b, const char* what) {
  TENON_CHECK(got.defined() && std::ranges::equal(got.sizes(), b.sizes()) && got.dtype() == b.dtype(),
              "[cg] expected {} like the right side, {}, got {}", what, b.description(), described(got));
}

}  // namespace

CGResult cg(const LinearMap& map, const Tensor& b, const CGOptions& options) {
  TENON_CHECK_VALUE(map != nullptr, "[cg] expected a function, got none");
  TENON_CHECK_TYPE(b.defined() && b.is_floating_point(), "[cg] expected a right side of floating point numbers, got {}",
                   described(b));
  TENON_CHECK_VALUE(options.tolerance >= 0 && options.absolute_tolerance >= 0 && options.max_iterations >= 0,
                    "[cg] expected tolerances and iterations that are not negative, got {}, {} and {}",
                    options.tolerance, options.absolute_tolerance, options.max_iterations);
  NoGrad off;
  const Tensor right = b.detach();
  auto image = [&](const Tensor& v) {
    Tensor result = map(v);
    check_like(result, right, "the function to give a tensor");
    return result.detach();
  };
  auto conditioned = [&](const Tensor& residual) {
    if (!options.preconditioner) return residual;
    Tensor result = options.preconditioner(residual);
    check_like(result, right, "the preconditioner to give a tensor");
    return result.detach();
  };

  CGResult result{.x = zeros_like(right)};
  Tensor residual = right;
  if (options.start.defined()) {
    check_like(options.start, right, "a start");
    result.x = options.start.detach();
    residual = right - image(result.x);
  }
  result.residual = length(residual);
  const double enough = std::max(options.tolerance * length(right), options.absolute_tolerance);
  const int64_t most = options.max_iterations > 0 ? options.max_iterations : 10 * int64_t(right.numel());
  Tensor towards = conditioned(residual), direction = towards;
  double size = product(residual, towards);
  while (!(result.converged = result.residual <= enough) && result.iterations < most) {
    Tensor turned = image(direction);
    const double curvature = product(direction, turned);
    if (!(curvature > 0)) {
      result.indefinite = curvature <= 0;  // else it is not a number
      break;
    }
    const double share = size / curvature;
    result.x = add(result.x, direction, share);
    residual = sub(residual, turned, share);
    towards = conditioned(residual);
    const double next = product(residual, towards);
    direction = add(towards, direction, next / size);
    size = next;
    result.residual = length(residual);
    ++result.iterations;
  }
  return result;
}

}  // namespace tenon::numerics
