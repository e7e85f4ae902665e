// Parts of networks: normalisation, dropout, embeddings.
#include <tenon/kernels/matmul.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

bool same_sizes(const SymInts& a, const SymInts& b) {
  bool same = a.size() == b.size();
  for (size_t dim = 0; same && dim < a.size(); ++dim) same = same_size(a[dim], b[dim]);
  return same;
}

Tensor normalised(const Tensor& input, const SymInts& shape, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps, bool) {
  TENON_CHECK(input.defined() && is_floating(input.dtype()), "[layer_norm] expected a floating point tensor, got {}",
              input.defined() ? input.description() : "an undefined one");
  SymInts sizes = input.sym_sizes();
  bool fits = !shape.empty() && shape.size() <= sizes.size();
  Ints dims;
  for (size_t at = 0; fits && at < shape.size(); ++at) {
    fits = same_size(shape[at], sizes[sizes.size() - shape.size() + at]);
    dims.push_back(static_cast<int64_t>(sizes.size() - shape.size() + at));
  }
  TENON_CHECK(fits, "[layer_norm] expected the last dimensions of {} to be {}", input.description(), str(shape));
  for (const std::optional<Tensor>& each : {weight, bias})
    TENON_CHECK(!each || same_sizes(each->sym_sizes(), shape), "[layer_norm] expected a weight and bias of {}, got {}",
                str(shape), each->description());
  // Halves are computed in float32 and rounded once.
  Dtype wide = compute_dtype(input.dtype());
  Tensor x = input.to(wide), apart = x - mean(x, OptionalInts(dims), true);
  Tensor result = apart * rsqrt(mean(apart * apart, OptionalInts(dims), true) + eps);
  if (weight) result = result * weight->to(wide);
  if (bias) result = result + bias->to(wide);
  return result.to(input.dtype());
}

void check_probability(double p, std::string_view op_name) {
  TENON_CHECK(p >= 0 && p <= 1, "[{}] expected a probability from 0 to 1, got {}", op_name, p);
}

Tensor draws(const Tensor& like) {
  return rand(like.sym_sizes(), TensorOptions(like.dtype() == kFloat64 ? kFloat64 : kFloat32, like.device()));
}

// Of baddbmm: the product's sizes, to which self can be broadcast.
TensorMeta product_shape(const Arguments& arguments) {
  const Tensor &self = arguments.tensor("self"), &a = arguments.tensor("batch1"), &b = arguments.tensor("batch2");
  TENON_CHECK(self.defined() && a.defined() && b.defined(), "[baddbmm] expected a tensor, got an undefined one");
  bool fits = a.dim() == 3 && b.dim() == 3 && a.dtype() == b.dtype() && same_size(a.size(0), b.size(0)) &&
              same_size(a.size(2), b.size(1));
  TENON_CHECK(fits, "[baddbmm] {} and {} cannot be multiplied: expected two batches of matrices, as many, of one dtype",
              a.description(), b.description());
  TENON_CHECK_IMPLEMENTED(a.dtype() != kBool, "[baddbmm] expected tensors of numbers, got {} and {}", a.description(),
                          b.description());
  TENON_CHECK(self.dtype() == a.dtype(), "[baddbmm] expected self of {}, got {}", name(a.dtype()), self.description());
  SymInts sizes = self.sym_sizes(), result{a.size(0), a.size(1), b.size(2)};
  fits = sizes.size() <= 3;
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    fits = broadcasts_to(sizes[dim], result[3 - sizes.size() + dim]);
  TENON_CHECK(fits, "[baddbmm] self {} cannot be broadcast to {}", self.description(), str(result));
  return TensorMeta::contiguous(result, a.dtype(), a.device());
}

// A row for each product is added by the library on the way; other sums are loops, and fused with what follows.
bool adds_rows_by_library(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  return kernels::matmul_supports(self.dtype()) && self.dim() == 3 && self.size(1).maybe_constant() == 1;
}

Tensor times(const Tensor& tensor, const Scalar& factor) {
  return !factor.is_symbolic() && factor.to_double() == 1 ? tensor : tensor * factor;
}

}  // namespace

OPS(network) {
  op("layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
     "bool cudnn_enable=True) "
     "-> Tensor")
      .decompose(normalised);
  // Elements of each row of a table. The row `padding_idx` gets no gradient.
  op("embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
     "sparse=False) -> Tensor")
      .decompose([](const Tensor& weight, const Tensor& indices, const SymInt&, bool, bool sparse) {
        TENON_CHECK(weight.defined() && indices.defined(), "[embedding] expected a tensor, got an undefined one");
        TENON_CHECK(weight.dim() == 2, "[embedding] expected a table of two dimensions, got {}", weight.description());
        TENON_CHECK(indices.dtype() == kInt64 || indices.dtype() == kInt32,
                    "[embedding] expected indices of int64 or int32, got {}", indices.description());
        TENON_CHECK_IMPLEMENTED(!sparse, "[embedding] sparse gradients are not supported");
        SymInts sizes = indices.sym_sizes();
        sizes.push_back(weight.size(1));
        return view(index_select(weight, 0, reshape(indices, {-1})), sizes);
      })
      .grad("weight", saves("indices"), [](Grad& g) {
        SymInts sizes = g.sizes("weight");
        Tensor flat = reshape(g.saved("indices"), {-1});
        Tensor grad = reshape(g.grad(), SymInts{flat.numel(), sizes[1]});
        if (g.argument("scale_grad_by_freq").boolean()) {
          const TensorOptions like(grad.dtype(), grad.device());
          Tensor counts = index_add(zeros(SymInts{sizes[0]}, like), 0, flat, ones(SymInts{flat.numel()}, like));
          grad = grad / unsqueeze(index_select(counts, 0, flat), 1);
        }
        SymInt padding = g.argument("padding_idx").sym_int();
        if (bool(padding >= 0)) grad = masked_fill(grad, unsqueeze(flat == Scalar(padding), 1), 0);
        return index_add(zeros(sizes, TensorOptions(g.dtype("weight"), grad.device())), 0, flat, grad);
      });
  op("dropout(Tensor input, float p, bool train) -> Tensor").decompose([](const Tensor& input, double p, bool train) {
    TENON_CHECK(input.defined(), "[dropout] expected a tensor, got an undefined one");
    check_probability(p, "dropout");
    if (!train || p == 0) return input;
    TENON_CHECK(is_floating(input.dtype()), "[dropout] expected a floating point tensor, got {}", input.description());
    if (p == 1) return input * 0;
    return input * ((draws(input) >= p).to(input.dtype()) / (1 - p));
  });
  op("bernoulli(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    TENON_CHECK(self.defined() && is_floating(self.dtype()), "[bernoulli] expected a tensor of probabilities, got {}",
                self.defined() ? self.description() : "an undefined one");
    return (draws(self) < self).to(self.dtype());
  });
  op("bernoulli.p(Tensor self, float p) -> Tensor").decompose([](const Tensor& self, double p) {
    TENON_CHECK(self.defined(), "[bernoulli] expected a tensor, got an undefined one");
    check_probability(p, "bernoulli");
    return (draws(self) < p).to(self.dtype());
  });
  op("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .role(Role::AddedProduct)
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            kernels::MatmulEpilogue epilogue;
            epilogue.bias = &arguments.tensor("self");
            epilogue.alpha = arguments["alpha"].scalar().to_double();
            epilogue.beta = arguments["beta"].scalar().to_double();
            kernels::matmul(arguments.tensor("batch1"), arguments.tensor("batch2"), outputs[0], epilogue);
          },
          adds_rows_by_library)
      .decompose(
          [](const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
            Tensor product = times(bmm(batch1, batch2), alpha);
            // A beta of 0 ignores self, NaNs in it included.
            if (!beta.is_symbolic() && beta.to_double() == 0) return product;
            return product + times(expand(self, product.sym_sizes()), beta);
          })
      .shape([](const Arguments& arguments) { return std::vector{product_shape(arguments)}; })
      .grad("self", saves(),
            [](Grad& g) { return times(sum_to_size(g.grad(), g.sizes("self")), g.argument("beta").scalar()); })
      .grad("batch1", saves("batch2"),
            [](Grad& g) {
              return times(bmm(g.grad(), transpose(g.saved("batch2"), 1, 2)), g.argument("alpha").scalar());
            })
      .grad("batch2", saves("batch1"), [](Grad& g) {
        return times(bmm(transpose(g.saved("batch1"), 1, 2), g.grad()), g.argument("alpha").scalar());
      });
  op("type_as(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    TENON_CHECK(self.defined() && other.defined(), "[type_as] expected a tensor, got an undefined one");
    return self.to(other.dtype());
  });
  op("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& target, int64_t reduction) {
        TENON_CHECK(self.defined() && target.defined(), "[l1_loss] expected a tensor, got an undefined one");
        TENON_CHECK(reduction >= 0 && reduction <= 2,
                    "[l1_loss] expected a reduction of 0 (none), 1 (mean) or 2 (sum), got {}", reduction);
        Dtype result = promote(self.dtype(), target.dtype());
        TENON_CHECK(is_floating(result), "[l1_loss] expected floating point tensors, got {} and {}", self.description(),
                    target.description());
        Dtype wide = compute_dtype(result);
        Tensor loss = abs(self.to(wide) - target.to(wide));
        if (reduction == 1) loss = mean(loss);
        if (reduction == 2) loss = sum(loss);
        return loss.to(result);
      });
}

}  // namespace tenon::ops
