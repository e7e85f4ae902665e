#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/init.h>

#include <cmath>

namespace tenon::nn::init {
namespace {

const Tensor& overwrite(const Tensor& tensor, const Tensor& values) {
  NoGrad off;
  tensor.copy_(values);
  return tensor;
}

TensorOptions like(const Tensor& tensor) { return TensorOptions(tensor.dtype(), tensor.device()); }

void check(const Tensor& tensor, const char* name) {
  TENON_CHECK(tensor.defined() && tensor.is_floating_point(), "[{}] expected a floating point tensor, got {}", name,
              tensor.defined() ? tensor.description() : "an undefined one");
}

}  // namespace

const Tensor& uniform_(const Tensor& tensor, double low, double high) {
  check(tensor, "uniform_");
  NoGrad off;
  return overwrite(tensor, rand(tensor.sym_sizes(), like(tensor)) * (high - low) + low);
}

const Tensor& normal_(const Tensor& tensor, double mean, double std) {
  check(tensor, "normal_");
  TENON_CHECK_VALUE(std >= 0, "[normal_] expected a deviation of at least 0, got {}", std);
  NoGrad off;
  return overwrite(tensor, randn(tensor.sym_sizes(), like(tensor)) * std + mean);
}

const Tensor& trunc_normal_(const Tensor& tensor, double mean, double std, double low, double high) {
  check(tensor, "trunc_normal_");
  TENON_CHECK_VALUE(std > 0 && low < high, "[trunc_normal_] expected a deviation above 0 and a range, got {}, {} to {}",
                    std, low, high);
  NoGrad off;
  // What falls outside is drawn again; after many draws the rest, which lies far out, is put at the nearer bound.
  TensorOptions options(kFloat64);
  Tensor values = randn(tensor.sym_sizes(), options) * std + mean;
  for (int draw = 0; draw < 100; ++draw) {
    Tensor outside = logical_or(values<low, values> high);
    if (!any(outside).item<bool>()) break;
    values = where(outside, randn(tensor.sym_sizes(), options) * std + mean, values);
  }
  return overwrite(tensor, clamp(values, low, high));
}

const Tensor& constant_(const Tensor& tensor, double value) {
  TENON_CHECK(tensor.defined(), "[constant_] expected a tensor, got an undefined one");
  NoGrad off;
  tensor.fill_(value);
  return tensor;
}
const Tensor& ones_(const Tensor& tensor) { return constant_(tensor, 1); }
const Tensor& zeros_(const Tensor& tensor) { return constant_(tensor, 0); }

const Tensor& eye_(const Tensor& tensor) {
  TENON_CHECK(tensor.defined() && tensor.dim() == 2, "[eye_] expected a tensor of 2 dimensions, got {}",
              tensor.defined() ? tensor.description() : "an undefined one");
  return overwrite(tensor, eye(tensor.size(0), tensor.size(1), like(tensor)));
}

const Tensor& orthogonal_(const Tensor& tensor, double scale) {
  check(tensor, "orthogonal_");
  TENON_CHECK(tensor.dim() >= 2, "[orthogonal_] expected a tensor of at least 2 dimensions, got {}",
              tensor.description());
  NoGrad off;
  int64_t rows = int64_t(tensor.size(0)), columns = int64_t(tensor.numel()) / std::max<int64_t>(1, rows);
  bool turned = rows > columns;
  int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  Tensor drawn = randn({count, length}, TensorOptions(kFloat64)).contiguous();
  // Gram and Schmidt, twice over each vector, which is as good as orthogonal to machine precision.
  double* values = drawn.data<double>();
  for (int64_t row = 0; row < count; ++row) {
    double* own = values + row * length;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t before = 0; before < row; ++before) {
        const double* other = values + before * length;
        double share = 0;
        for (int64_t at = 0; at < length; ++at) share += own[at] * other[at];
        for (int64_t at = 0; at < length; ++at) own[at] -= share * other[at];
      }
    double square = 0;
    for (int64_t at = 0; at < length; ++at) square += own[at] * own[at];
    for (int64_t at = 0; at < length; ++at) own[at] /= std::sqrt(square);
  }
  return overwrite(tensor, reshape((turned ? drawn.t() : drawn) * scale, tensor.sym_sizes()));
}

std::pair<int64_t, int64_t> fans(const Tensor& tensor) {
  TENON_CHECK_VALUE(tensor.defined() && tensor.dim() >= 2, "[fans] expected a weight of at least 2 dimensions, got {}",
                    tensor.defined() ? tensor.description() : "an undefined one");
  int64_t window = 1;
  for (int64_t dim = 2; dim < tensor.dim(); ++dim) window *= tensor.sizes()[static_cast<size_t>(dim)];
  return {tensor.sizes()[1] * window, tensor.sizes()[0] * window};
}

double gain(std::string_view nonlinearity, double slope) {
  if (nonlinearity == "linear" || nonlinearity == "sigmoid") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + slope * slope));
  if (nonlinearity == "selu") return 0.75;
  fail<ValueError>("[gain] expected linear, sigmoid, tanh, relu, leaky_relu or selu, got '{}'", nonlinearity);
}

const Tensor& xavier_uniform_(const Tensor& tensor, double scale) {
  auto [in, out] = fans(tensor);
  double bound = scale * std::sqrt(6.0 / static_cast<double>(in + out));
  return init::uniform_(tensor, -bound, bound);
}
const Tensor& xavier_normal_(const Tensor& tensor, double scale) {
  auto [in, out] = fans(tensor);
  return init::normal_(tensor, 0, scale * std::sqrt(2.0 / static_cast<double>(in + out)));
}

namespace {

double kaiming_deviation(const Tensor& tensor, const KaimingOptions& options) {
  auto [in, out] = fans(tensor);
  return gain(options.nonlinearity, options.slope) / std::sqrt(static_cast<double>(options.mode == Fan::In ? in : out));
}

}  // namespace

const Tensor& kaiming_uniform_(const Tensor& tensor, const KaimingOptions& options) {
  double bound = std::sqrt(3.0) * kaiming_deviation(tensor, options);
  return init::uniform_(tensor, -bound, bound);
}
const Tensor& kaiming_normal_(const Tensor& tensor, const KaimingOptions& options) {
  return init::normal_(tensor, 0, kaiming_deviation(tensor, options));
}

}  // namespace tenon::nn::init
