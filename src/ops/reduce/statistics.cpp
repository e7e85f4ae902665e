// Reductions that are more than one pass: extrema with their places, moments, norms, running sums.
#include <tenon/kernels/cumulative.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <cmath>

namespace tenon::ops {
namespace {

const Tensor& defined(const Tensor& self, std::string_view op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  return self;
}

// Positions along `dim`, of a shape that broadcasts with `self`.
Tensor positions_along(const Tensor& self, int64_t dim) {
  SymInts shape;
  shape.resize(static_cast<size_t>(self.dim()), SymInt(1));
  shape[static_cast<size_t>(dim)] = self.size(dim);
  return view(arange(Scalar(self.size(dim)), TensorOptions(kInt64, self.device())), shape);
}

// The first position of the largest (or smallest) element along `dim`; a NaN counts as both.
Tensor first_extremum(const Tensor& self, int64_t dim, bool keepdim, bool largest, std::string_view op_name) {
  if (self.dim() == 0) return zeros(SymInts{}, TensorOptions(kInt64, self.device()));
  TENON_CHECK_INDEX(expect(self.size(dim) > 0),
                    "[{}] expected a dimension of at least one element, got {} at dimension {}", op_name,
                    self.description(), dim);
  Tensor extremum = largest ? amax(self, dim, true) : amin(self, dim, true);
  Tensor hit = self == extremum;
  if (is_floating(self.dtype())) hit = logical_or(hit, isnan(self));
  Tensor beyond = full(SymInts{}, Scalar(self.size(dim)), TensorOptions(kInt64, self.device()));
  return amin(where(hit, positions_along(self, dim), beyond), dim, keepdim);
}

Tensor arg_extremum(const Tensor& self, std::optional<int64_t> dim, bool keepdim, bool largest,
                    std::string_view op_name) {
  defined(self, op_name);
  if (dim) return first_extremum(self, wrap_dim(*dim, self.dim(), op_name), keepdim, largest, op_name);
  Tensor place = first_extremum(reshape(self, {-1}), 0, false, largest, op_name);
  if (!keepdim) return place;
  SymInts ones;
  ones.resize(static_cast<size_t>(self.dim()), SymInt(1));
  return reshape(place, ones);
}

std::tuple<Tensor, Tensor> extremum_with_place(const Tensor& self, int64_t dim, bool keepdim, bool largest,
                                               std::string_view op_name) {
  int64_t along = wrap_dim(dim, defined(self, op_name).dim(), op_name);
  Tensor place = first_extremum(self, along, keepdim, largest, op_name);
  return {largest ? amax(self, along, keepdim) : amin(self, along, keepdim), place};
}

// To the element that was chosen, by comparing positions: it fuses, a scatter would not.
Tensor chosen_grad(Grad& g) {
  SymInts sizes = g.sizes("self");
  if (sizes.empty()) return g.grad();
  int64_t dim = wrap_dim(g.argument("dim").integer(), static_cast<int64_t>(sizes.size()), "max");
  Tensor place = g.saved("indices"), grad = g.grad();
  if (!g.argument("keepdim").boolean()) {
    place = unsqueeze(place, dim);
    grad = unsqueeze(grad, dim);
  }
  SymInts shape;
  shape.resize(sizes.size(), SymInt(1));
  shape[static_cast<size_t>(dim)] = sizes[static_cast<size_t>(dim)];
  Tensor positions = view(arange(Scalar(sizes[static_cast<size_t>(dim)]), TensorOptions(kInt64, grad.device())), shape);
  return where(positions == place, grad, zeros(SymInts{}, TensorOptions(grad.dtype(), grad.device())));
}

Dtype product_dtype(Dtype dtype) { return is_floating(dtype) ? dtype : kInt64; }

// The sizes with the reduced dimensions as ones.
SymInts kept_sizes(const SymInts& sizes, const OptionalInts& dim, std::string_view op_name) {
  SymInts kept = sizes;
  if (!dim.has_value() || dim->empty())
    for (SymInt& size : kept) size = 1;
  else
    for (int64_t each : *dim) {
      int64_t at = wrap_dim(each, static_cast<int64_t>(sizes.size()), op_name);
      if (!sizes.empty()) kept[static_cast<size_t>(at)] = 1;
    }
  return kept;
}

SymInt count_of(const SymInts& sizes, const OptionalInts& dim, std::string_view op_name) {
  SymInts kept = kept_sizes(sizes, dim, op_name);
  SymInt count = 1;
  for (size_t at = 0; at < sizes.size(); ++at)
    if (!kept[at].same(sizes[at])) count *= sizes[at];
  return count;
}

OptionalInts dims_of(const dispatch::Value& value) {
  return value.is_none() ? OptionalInts() : OptionalInts(value.ints());
}

Tensor with_kept_dims(const Tensor& reduced, const Grad& g, std::string_view op_name) {
  return reshape(reduced, kept_sizes(g.sizes("self"), dims_of(g.argument("dim")), op_name));
}

// Where a line has one zero, only that element has a slope; where it has more, none.
Tensor product_grad(Grad& g) {
  Tensor x = g.saved("self"), zero = x == 0, one = ones(SymInts{}, TensorOptions(x.dtype(), x.device()));
  OptionalInts dim = dims_of(g.argument("dim"));
  Tensor zeros_there = sum(zero.to(kInt64), dim, true), others = _prod(where(zero, one, x), dim, true);
  Tensor none = zeros(SymInts{}, TensorOptions(x.dtype(), x.device()));
  Tensor slope =
      where(zero, where(zeros_there == 1, others, none), where(zeros_there == 0, others / where(zero, one, x), none));
  return (with_kept_dims(g.grad(), g, "prod").to(x.dtype()) * slope);
}

// How many elements a variance divides by, where that is no whole number; fewer than none are none.
Tensor freedom(const Tensor& like, const SymInt& count, double less) {
  return clamp_min(full(SymInts{}, Scalar(count), TensorOptions(like.dtype(), like.device())) - less, 0);
}

double correction_of(const std::optional<Scalar>& correction) { return correction ? correction->to_double() : 1; }
// Whether it is a number of elements: whole, and of a size that counts of elements are.
bool is_count(double number) { return number == std::floor(number) && std::fabs(number) < 0x1p62; }

// Halves are computed in float32.
Tensor wide_variance(const Tensor& self, const OptionalInts& dim, const std::optional<Scalar>& correction, bool keepdim,
                     std::string_view op_name) {
  defined(self, op_name);
  TENON_CHECK(is_floating(self.dtype()), "[{}] expected a floating point tensor, got {}", op_name, self.description());
  Tensor x = self.to(compute_dtype(self.dtype()));
  SymInt count = count_of(self.sym_sizes(), dim, op_name);
  Tensor apart = x - sum(x, dim, true) / Scalar(count);
  Tensor total = sum(apart * apart, dim, keepdim);
  double less = correction_of(correction);
  // Of fewer elements than the correction takes away there is no variance: 0 / 0.
  if (less == 0) return total / Scalar(count);
  if (is_count(less)) return total / Scalar(max(count - SymInt(static_cast<int64_t>(less)), SymInt(0)));
  return total / freedom(total, count, less);
}

// (2 / (count - correction)) (x - mean): what a gradient of the variance is multiplied by.
Tensor variance_slope(Grad& g, const Tensor& x) {
  OptionalInts dim = dims_of(g.argument("dim"));
  SymInt count = count_of(g.sizes("self"), dim, "var");
  const dispatch::Value& correction = g.argument("correction");
  double less = correction.is_none() ? 1 : correction.scalar().to_double();
  Tensor apart = (x - sum(x, dim, true) / Scalar(count)) * 2.0;
  if (is_count(less)) return apart / Scalar(max(count - SymInt(static_cast<int64_t>(less)), SymInt(0)));
  return apart / freedom(apart, count, less);
}

Tensor zero_of(const Tensor& like) { return zeros(SymInts{}, TensorOptions(like.dtype(), like.device())); }

// The gradient of the variance, of which the first result is the root; none where that is 0.
Tensor variance_grad(Grad& g, const Tensor& root, Dtype wide) {
  Tensor deviation = with_kept_dims(root, g, "std").to(wide);
  Tensor grad = with_kept_dims(g.grad(), g, "std").to(wide) / (deviation * 2.0);
  return where(deviation == 0, zero_of(grad), grad);
}

// What the gradient of the second result, the mean, gives each element.
Tensor mean_slope(Grad& g, Dtype wide) {
  SymInt count = count_of(g.sizes("self"), dims_of(g.argument("dim")), "mean");
  return with_kept_dims(g.grad(1), g, "mean").to(wide) / Scalar(count);
}

Tensor vector_norm(const Tensor& self, const Scalar& ord, const OptionalInts& dim, bool keepdim,
                   std::optional<Dtype> dtype) {
  defined(self, "norm");
  Dtype result = dtype.value_or(self.dtype());
  TENON_CHECK(is_floating(result), "[norm] expected a floating point dtype, got {}", name(result));
  Tensor x = abs(self.to(compute_dtype(result)));
  double p = ord.to_double();
  Ints dims = dim.has_value() ? *dim : Ints{};
  Tensor total;
  if (std::isinf(p))
    total = p > 0 ? amax(x, dims, keepdim) : amin(x, dims, keepdim);
  else if (p == 0)
    total = sum((x != 0).to(x.dtype()), dim, keepdim);
  else if (p == 1)
    total = sum(x, dim, keepdim);
  else if (p == 2)
    total = sqrt(sum(x * x, dim, keepdim));
  else
    total = pow(sum(pow(x, p), dim, keepdim), 1 / p);
  return total.to(result);
}

Tensor vector_norm_grad(Grad& g) {
  Dtype wide = compute_dtype(g.grad().dtype());
  Tensor x = g.saved("self").to(wide), norm = with_kept_dims(g.saved("result"), g, "norm").to(wide),
         grad = with_kept_dims(g.grad(), g, "norm").to(wide);
  double p = g.argument("ord").scalar().to_double();
  Tensor result;
  if (p == 0) {
    result = zeros_like(x);
  } else if (std::isinf(p)) {
    Tensor hit = (abs(x) == norm).to(wide);
    result = sign(x) * hit * (grad / sum(hit, dims_of(g.argument("dim")), true));
  } else if (p == 1) {
    result = sign(x) * grad;
  } else {
    // At a norm of zero there is no direction.
    Tensor unit = p == 2 ? x / norm : sign(x) * pow(abs(x) / norm, p - 1);
    result = where(norm == 0, zero_of(x), unit * grad);
  }
  return result.to(g.dtype("self"));
}

Tensor log_sum_exp(const Tensor& self, const Ints& dim, bool keepdim) {
  // Integers are computed with, and given, as float32.
  Dtype result = is_floating(defined(self, "logsumexp").dtype()) ? self.dtype() : kFloat32;
  Tensor x = self.to(compute_dtype(result));
  for (const SymInt& size : self.sym_sizes())
    if (decide_or(size == 0, false)) return log(sum(exp(x), OptionalInts(dim), keepdim)).to(result);
  Tensor largest = amax(x, dim, true);
  // An infinite shift would make a NaN of it.
  Tensor shift = where(isfinite(largest), largest, zero_of(x));
  Tensor total = log(sum(exp(x - shift), OptionalInts(dim), true)) + shift;
  if (!keepdim) total = reshape(total, sum(self, OptionalInts(dim), false).sym_sizes());
  return total.to(result);
}

std::vector<TensorMeta> cumulative_shape(const Arguments& arguments) {
  const Tensor& self = defined(arguments.tensor("self"), "cumsum");
  arguments.dim("dim", self.dim());
  const dispatch::Value& dtype = arguments["dtype"];
  Dtype result = dtype.is_none() ? product_dtype(self.dtype()) : dtype.dtype();
  TENON_CHECK_IMPLEMENTED(result != kBool, "[cumsum] expected a dtype of numbers, got bool");
  return {TensorMeta::contiguous(self.sym_sizes(), result, self.device())};
}

Ints one_dim(int64_t dim) { return Ints{dim}; }

}  // namespace

OPS(extremum) {
  op("max(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return amax(defined(self, "max"), Ints{}, false);
  });
  op("min(Tensor self) -> Tensor").decompose([](const Tensor& self) {
    return amin(defined(self, "min"), Ints{}, false);
  });
  op("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
        return arg_extremum(self, dim, keepdim, true, "argmax");
      })
      .not_differentiable("result");
  op("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
        return arg_extremum(self, dim, keepdim, false, "argmin");
      })
      .not_differentiable("result");
  op("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return extremum_with_place(self, dim, keepdim, true, "max");
      })
      .grad("self", saves("indices"), chosen_grad)
      .not_differentiable("indices");
  op("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim) {
        return extremum_with_place(self, dim, keepdim, false, "min");
      })
      .grad("self", saves("indices"), chosen_grad)
      .not_differentiable("indices");
  op("max.other(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    return maximum(self, other);
  });
  op("min.other(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    return minimum(self, other);
  });
}

OPS(statistics) {
  op("_prod(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .reduce(loop::ReduceKind::Product, product_dtype)
      .grad("self", saves("self"), product_grad);
  op("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .decompose(
          [](const Tensor& self, std::optional<Dtype> dtype) { return _prod(self, OptionalInts(), false, dtype); });
  op("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, bool keepdim, std::optional<Dtype> dtype) {
        return _prod(self, OptionalInts(one_dim(dim)), keepdim, dtype);
      });
  op("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, const OptionalInts& dim, const std::optional<Scalar>& correction,
                    bool keepdim) { return wide_variance(self, dim, correction, keepdim, "var").to(self.dtype()); })
      .grad("self", saves("self"), [](Grad& g) {
        Dtype wide = compute_dtype(g.dtype("self"));
        return (with_kept_dims(g.grad(), g, "var").to(wide) * variance_slope(g, g.saved("self").to(wide)))
            .to(g.dtype("self"));
      });
  op("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .decompose(
          [](const Tensor& self, const OptionalInts& dim, const std::optional<Scalar>& correction, bool keepdim) {
            return sqrt(wide_variance(self, dim, correction, keepdim, "std")).to(self.dtype());
          })
      .grad("self", saves("self", "result"), [](Grad& g) {
        Dtype wide = compute_dtype(g.dtype("self"));
        Tensor of_variance = variance_grad(g, g.saved("result"), wide);
        return (of_variance * variance_slope(g, g.saved("self").to(wide))).to(g.dtype("self"));
      });
  op("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
     "Tensor)")
      .decompose([](const Tensor& self, const OptionalInts& dim, const std::optional<Scalar>& correction,
                    bool keepdim) { return std::tuple(var(self, dim, correction, keepdim), mean(self, dim, keepdim)); })
      .grad("self", saves("self"), [](Grad& g) {
        Dtype wide = compute_dtype(g.dtype("self"));
        Tensor of_variance = with_kept_dims(g.grad(0), g, "var_mean").to(wide);
        return (of_variance * variance_slope(g, g.saved("self").to(wide)) + mean_slope(g, wide)).to(g.dtype("self"));
      });
  op("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
     "Tensor)")
      .decompose(
          [](const Tensor& self, const OptionalInts& dim, const std::optional<Scalar>& correction, bool keepdim) {
            return std::tuple(tenon::std(self, dim, correction, keepdim), mean(self, dim, keepdim));
          })
      .grad("self", saves("self", "result0"), [](Grad& g) {
        Dtype wide = compute_dtype(g.dtype("self"));
        Tensor of_variance = variance_grad(g, g.saved("result0"), wide);
        return (of_variance * variance_slope(g, g.saved("self").to(wide)) + mean_slope(g, wide)).to(g.dtype("self"));
      });
  op("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
      .decompose(log_sum_exp)
      .grad("self", saves("self", "result"), [](Grad& g) {
        Dtype wide = compute_dtype(g.dtype("self"));
        Tensor total = with_kept_dims(g.saved("result"), g, "logsumexp").to(wide);
        return (with_kept_dims(g.grad(), g, "logsumexp").to(wide) * exp(g.saved("self").to(wide) - total))
            .to(g.dtype("self"));
      });
  op("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
     "-> Tensor")
      .decompose(vector_norm)
      .grad("self", saves("self", "result"), vector_norm_grad);
  op("norm.Scalar(Tensor self, Scalar p=2) -> Tensor").decompose([](const Tensor& self, const Scalar& p) {
    return linalg_vector_norm(self, p, OptionalInts(), false);
  });
  op("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor")
      .decompose([](const Tensor& self, const std::optional<Scalar>& p, const Ints& dim, bool keepdim) {
        return linalg_vector_norm(self, p.value_or(Scalar(2)), OptionalInts(dim), keepdim);
      });
  op("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::cumulative_sum(self, arguments.dim("dim", self.dim()), outputs[0]);
      })
      .shape(cumulative_shape)
      .grad("self", saves(),
            [](Grad& g) {
              Tensor grad = g.grad();
              if (grad.dim() == 0) return grad.to(g.dtype("self"));
              int64_t dim = g.argument("dim").integer();
              return flip(cumsum(flip(grad, one_dim(dim)), dim), one_dim(dim)).to(g.dtype("self"));
            })
      .with_inplace();
}

}  // namespace tenon::ops
