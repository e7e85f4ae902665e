// Sums and products that run along a dimension, and searching in what runs upwards.
#include <tenon/kernels/cumulative.h>
#include <tenon/kernels/search.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

const Tensor& defined(const Tensor& self, std::string_view op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  return self;
}

std::vector<TensorMeta> product_shape(const Arguments& arguments) {
  const Tensor& self = defined(arguments.tensor("self"), "cumprod");
  arguments.dim("dim", self.dim());
  const dispatch::Value& dtype = arguments["dtype"];
  Dtype result = !dtype.is_none() ? dtype.dtype() : is_floating(self.dtype()) ? self.dtype() : kInt64;
  TENON_CHECK_IMPLEMENTED(result != kBool, "[cumprod] expected a dtype of numbers, got bool");
  return {TensorMeta::contiguous(self.sym_sizes(), result, self.device())};
}

Tensor backwards(const Tensor& self, int64_t dim) {
  return self.dim() == 0 ? self : flip(cumsum(flip(self, Ints{dim}), dim), Ints{dim});
}

// Before the first zero, each element is a factor of all products from it on. The first zero has those up to the second
// one, with a 1 in its place. What comes behind it changes nothing.
Tensor cumprod_grad(Grad& g) {
  int64_t dim = g.argument("dim").integer();
  Tensor x = g.saved("self").to(g.saved("result").dtype()), products = g.saved("result"), grad = g.grad();
  Tensor is_zero = x == 0, zeros_so_far = cumsum(is_zero, dim);
  Tensor before = zeros_so_far == 0, first = logical_and(is_zero, zeros_so_far == 1);
  Tensor none = zeros_like(grad);
  Tensor ordinary = backwards(where(before, grad * products, none), dim) / where(is_zero, ones_like(x), x);
  Tensor without_first = cumprod(where(first, ones_like(x), x), dim);
  Tensor behind = where(zeros_so_far == 1, grad * without_first, none);
  Tensor at_zero = x.dim() == 0 ? behind : sum(behind, Ints{dim}, true);
  return where(before, ordinary, where(first, at_zero + none, none)).to(g.dtype("self"));
}

// Each exponential has its share in the sums from it on: gradients above 0 and below it are added up apart, by their
// logarithms.
Tensor logcumsumexp_grad(Grad& g) {
  int64_t dim = g.argument("dim").integer();
  Tensor x = g.saved("self"), sums = g.saved("result"), one = ones_like(x);
  Tensor nearly_nothing = full_like(x, x.dtype() == kFloat16 ? -3e4 : -1e30);
  auto part = [&](const Tensor& grad) {
    Tensor counts = grad > 0, logs = where(counts, log(where(counts, grad, one)), nearly_nothing) - sums;
    if (x.dim() > 0) logs = flip(logcumsumexp(flip(logs, Ints{dim}), dim), Ints{dim});
    return exp(logs + x);
  };
  return part(g.grad()) - part(-g.grad());
}

std::vector<TensorMeta> search_shape(const Arguments& arguments) {
  const Tensor& sorted = defined(arguments.tensor("sorted_sequence"), "searchsorted");
  const Tensor& self = defined(arguments.tensor("self"), "searchsorted");
  TENON_CHECK(sorted.dim() > 0, "[searchsorted] expected a sequence of at least one dimension, got {}",
              sorted.description());
  if (sorted.dim() > 1) {
    TENON_CHECK(sorted.dim() == self.dim(), "[searchsorted] expected a sequence for each line of {}, got {}",
                self.description(), sorted.description());
    for (int64_t dim = 0; dim + 1 < sorted.dim(); ++dim)
      TENON_CHECK(same_size(sorted.size(dim), self.size(dim)),
                  "[searchsorted] expected a sequence for each line of {}, got {}", self.description(),
                  sorted.description());
  }
  if (const dispatch::Value& sorter = arguments["sorter"]; !sorter.is_none()) {
    bool fits = sorter.tensor().dim() == sorted.dim() && sorter.tensor().dtype() == kInt64;
    for (int64_t dim = 0; fits && dim < sorted.dim(); ++dim)
      fits = same_size(sorter.tensor().size(dim), sorted.size(dim));
    TENON_CHECK(fits, "[searchsorted] expected a sorter of int64 with the sizes of the sequence {}, got {}",
                sorted.description(), sorter.tensor().description());
  }
  const dispatch::Value& side = arguments["side"];
  TENON_CHECK(side.is_none() || side.string() == "left" || side.string() == "right",
              "[searchsorted] expected side to be 'left' or 'right', got '{}'", side.str());
  TENON_CHECK(side.is_none() || side.string() == "right" || !arguments.boolean("right"),
              "[searchsorted] side and right can't be set to opposites, got side of left while right was True");
  return {TensorMeta::contiguous(self.sym_sizes(), arguments.boolean("out_int32") ? kInt32 : kInt64, self.device())};
}

}  // namespace

OPS(running) {
  op("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::cumulative_product(self, arguments.dim("dim", self.dim()), outputs[0]);
      })
      .shape(product_shape)
      .grad("self", saves("self", "result"), cumprod_grad)
      .with_inplace();
  op("logcumsumexp(Tensor self, int dim) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::cumulative_log_sum_exp(self, arguments.dim("dim", self.dim()), outputs[0]);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = defined(arguments.tensor("self"), "logcumsumexp");
        arguments.dim("dim", self.dim());
        TENON_CHECK_IMPLEMENTED(is_floating(self.dtype()), "[logcumsumexp] expected a floating point tensor, got {}",
                                self.description());
        return std::vector{TensorMeta::contiguous(self.sym_sizes(), self.dtype(), self.device())};
      })
      .grad("self", saves("self", "result"), logcumsumexp_grad);
  // Where a value would have to be put: before its equals, or behind them (`right`).
  op("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
     "side=None, Tensor? sorter=None) -> Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const dispatch::Value& side = arguments["side"];
        bool right = arguments.boolean("right") || (!side.is_none() && side.string() == "right");
        const dispatch::Value& sorter = arguments["sorter"];
        kernels::search_sorted(arguments.tensor("sorted_sequence"), arguments.tensor("self"), right,
                               sorter.is_none() ? nullptr : &sorter.tensor(), outputs[0]);
      })
      .shape(search_shape);
  op("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
        TENON_CHECK(defined(boundaries, "bucketize").dim() == 1,
                    "[bucketize] expected boundaries of one dimension, got {}", boundaries.description());
        return searchsorted(boundaries, self, out_int32, right);
      });
}

}  // namespace tenon::ops
