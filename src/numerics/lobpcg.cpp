#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/numerics/lobpcg.h>

#include <algorithm>
#include <limits>

namespace tenon::numerics {
namespace {

using autograd::AutogradContext;
using Tensors = std::vector<Tensor>;

Tensor turned(const Tensor& matrix) { return transpose(matrix, -2, -1); }

double epsilon_of(const Tensor& tensor) {
  return tensor.dtype() == kFloat64 ? std::numeric_limits<double>::epsilon()
                                    : static_cast<double>(std::numeric_limits<float>::epsilon());
}

// An orthonormal basis of what the columns span. Where they depend on each other there are fewer directions than
// columns: the others are columns of zeros, and `missing` is 1 there. (Stathopoulos and Wu's way, by the products of
// the columns, twice: the first time leaves errors as large as the columns were close.)
struct Basis {
  Tensor columns, missing;

  explicit Basis(const Tensor& given) : columns(given) {
    for (int pass = 0; pass < 2; ++pass) {
      Tensor lengths = sqrt(sum(columns * columns, Ints{-2}, true));
      columns = columns / where(lengths == 0, ones_like(lengths), lengths);
      auto [values, vectors] = linalg_eigh(matmul(turned(columns), columns));
      Tensor none = values <= epsilon_of(given) * static_cast<double>(values.size(-1).plain()) * 4;
      Tensor scale = where(none, zeros_like(values), rsqrt(where(none, ones_like(values), values)));
      columns = matmul(columns, vectors * unsqueeze(scale, -2));
      missing = none.to(given.dtype());
    }
  }
};

// The pairs at one end of the spectrum, the outermost first.
Eigenpairs outermost(const Tensor& values, const Tensor& vectors, int64_t k, bool largest) {
  int64_t count = values.size(-1).plain();
  if (!largest) return {narrow(values, -1, 0, k), narrow(vectors, -1, 0, k)};
  return {flip(narrow(values, -1, count - k, k), {-1}), flip(narrow(vectors, -1, count - k, k), {-1})};
}

// The best approximations within the span of the columns.
Eigenpairs best_within(const Tensor& matrix, const Tensor& columns, int64_t k, bool largest, double norm) {
  Basis basis(columns);
  Tensor small = matmul(turned(basis.columns), matmul(matrix, basis.columns));
  // Directions that are not there go to the far end of the spectrum.
  Tensor far = basis.missing * (largest ? -4 * norm - 1 : 4 * norm + 1);
  Tensor one = eye(small.size(-1), TensorOptions(small.dtype(), small.device()));
  auto [values, vectors] = linalg_eigh(small + unsqueeze(far, -1) * one);
  Eigenpairs pairs = outermost(values, vectors, k, largest);
  return {pairs.values, matmul(basis.columns, pairs.vectors)};
}

Eigenpairs iterate(const Tensor& matrix, const LobpcgOptions& options) {
  const double norm = matrix.numel().plain() > 0 ? sqrt(sum(matrix * matrix, Ints{-2, -1})).max().item<double>() : 0;
  const int64_t most = options.max_iterations > 0 ? options.max_iterations : 1000;
  const double enough = std::max(options.tolerance, 2 * epsilon_of(matrix)) * norm;
  constexpr int kPatience = 20;  // residuals may grow for a while; after as many steps rounding is all that is left
  Eigenpairs pairs = best_within(matrix, options.start, options.k, options.largest, norm), best = pairs;
  double least = std::numeric_limits<double>::infinity();
  Tensor direction;
  for (int64_t step = 0, waited = 0; step < most; ++step) {
    Tensor residual = matmul(matrix, pairs.vectors) - pairs.vectors * unsqueeze(pairs.values, -2);
    double left = residual.numel().plain() > 0 ? sqrt(sum(residual * residual, Ints{-2})).max().item<double>() : 0;
    waited = left < least ? 0 : waited + 1;
    if (left < least) best = pairs;
    least = std::min(least, left);
    if (!(left > enough) || waited >= kPatience) break;
    Tensors columns{pairs.vectors, residual};
    if (direction.defined()) columns.push_back(direction);
    Eigenpairs next = best_within(matrix, cat(columns, -1), options.k, options.largest, norm);
    direction = next.vectors - matmul(pairs.vectors, matmul(turned(pairs.vectors), next.vectors));
    pairs = next;
  }
  return best;
}

// How the pairs move with the matrix. All eigenvectors take part: one turns towards the others, the more the closer
// their eigenvalues are. It is written with operators that have gradients, so that it can be differentiated.
struct Lobpcg : autograd::Function<Lobpcg> {
  static constexpr bool is_traceable = true;

  static Tensors forward(AutogradContext* context, const Tensor& matrix, const LobpcgOptions& options) {
    Eigenpairs pairs = iterate(matrix, options);
    context->save_for_backward({matrix, pairs.vectors});
    context->saved_data["largest"] = options.largest;
    return {pairs.values, pairs.vectors};
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    Tensors saved = context->get_saved_variables();
    const Tensor& matrix = saved[0];
    const Tensor found = saved[1].detach();
    const bool largest = context->saved_data.at("largest").boolean();
    int64_t k = found.size(-1).plain(), n = found.size(-2).plain();
    auto [values, vectors] = linalg_eigh(matrix);
    Eigenpairs chosen = outermost(values, vectors, k, largest);
    // The vectors that were found, as those of the matrix: up to a sign.
    Tensor signs = sign(sum(chosen.vectors.detach() * found, Ints{-2}, true));
    chosen.vectors = chosen.vectors * signs;
    Tensor own =
        outermost(zeros_like(values.detach()), eye(n, TensorOptions(values.dtype(), values.device())), k, largest)
            .vectors;
    Tensor apart = unsqueeze(chosen.values, -2) - unsqueeze(values, -1) + own;
    Tensor turn = matmul(turned(vectors), gradients[1]) / apart * (1 - own);
    Tensor moved = chosen.vectors * unsqueeze(gradients[0], -2) + matmul(vectors, turn);
    Tensor whole = matmul(moved, turned(chosen.vectors));
    return {(whole + turned(whole)) / 2, Tensor()};
  }
};

}  // namespace

Eigenpairs lobpcg(const Tensor& matrix, const LobpcgOptions& options) {
  TENON_CHECK(matrix.defined() && matrix.dim() >= 2 &&
                  matrix.sizes()[matrix.sizes().size() - 1] == matrix.sizes()[matrix.sizes().size() - 2],
              "[lobpcg] expected square matrices, or batches of them, got {}", matrix.description());
  TENON_CHECK_IMPLEMENTED(matrix.dtype() == kFloat32 || matrix.dtype() == kFloat64,
                          "[lobpcg] expected numbers of float32 or float64, got {}", matrix.description());
  int64_t n = matrix.size(-1).plain();
  TENON_CHECK_VALUE(options.k >= 1 && 3 * options.k <= n,
                    "[lobpcg] expected k from 1 to {}, a third of the {} rows of the matrix, got {}", n / 3, n,
                    options.k);
  LobpcgOptions whole = options;
  Ints sizes(matrix.sizes());
  sizes.back() = options.k;
  if (!whole.start.defined()) {
    autograd::NoGrad off;
    whole.start = randn(SymInts(sizes.span()), TensorOptions(matrix.dtype(), matrix.device()));
  }
  TENON_CHECK(whole.start.sizes() == sizes.span() && whole.start.dtype() == matrix.dtype(),
              "[lobpcg] expected a start of {}{}, got {}", name(matrix.dtype()), str(SymInts(sizes.span())),
              whole.start.description());
  whole.start = whole.start.detach();
  Tensors pairs = Lobpcg::apply((matrix + turned(matrix)) / 2, whole);
  return {pairs[0], pairs[1]};
}

}  // namespace tenon::numerics
