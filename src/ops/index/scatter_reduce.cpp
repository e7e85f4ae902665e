// Writes at the places of an index that are combined with what is there, and with each other.
#include "ops/by_name.h"
#include "ops/index/scattering.h"

#include <tenon/kernels/scatter.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

using kernels::Combine;

Combine combine_of(std::string_view reduce) {
  constexpr std::pair<std::string_view, Combine> names[] = {{"sum", Combine::Sum},
                                                            {"prod", Combine::Product},
                                                            {"mean", Combine::Mean},
                                                            {"amax", Combine::Largest},
                                                            {"amin", Combine::Smallest}};
  for (const auto& [each, combine] : names)
    if (each == reduce) return combine;
  fail("[scatter_reduce] expected reduce to be 'sum', 'prod', 'mean', 'amax' or 'amin', got '{}'", reduce);
}

// The older operator's words for two of them.
std::string_view newer_name(std::string_view reduce) {
  TENON_CHECK(reduce == "add" || reduce == "multiply", "[scatter] expected reduce to be 'add' or 'multiply', got '{}'",
              reduce);
  return reduce == "add" ? "sum" : "prod";
}

// Backward needs self as it was, and the in-place form writes over it.
Tensor kept(const Tensor& self, bool differentiable) { return differentiable ? clone(self) : self; }

// What a gradient is made of: `index` and `dim`, and sums over all that is written to a place.
struct Written {
  Grad& g;
  Tensor index;
  int64_t dim;
  bool include_self;
  explicit Written(Grad& grad)
      : g(grad),
        index(grad.saved("index")),
        dim(grad.argument("dim").integer()),
        include_self(grad.argument("include_self").boolean()) {}

  // Of what `src` has where the index says.
  Tensor used(const Tensor& src) const {
    Tensor part = src;
    SymInts sizes = index.sym_sizes();
    for (size_t d = 0; d < sizes.size(); ++d) part = slice(part, static_cast<int64_t>(d), SymInt(0), sizes[d], 1);
    return part;
  }
  Tensor pick(const Tensor& places) const { return gather(places, dim, index); }
  // At each place the sum of what is written there, with `of_self` if that counts.
  Tensor total(const Tensor& of_self, const Tensor& of_src) const {
    return scatter_add(include_self ? of_self : scatter(of_self, dim, index, 0), dim, index, of_src);
  }
  // Self has no part in what was written over.
  Tensor for_self(const Tensor& gradient) const { return include_self ? gradient : scatter(gradient, dim, index, 0); }
};

// By how many a mean divides; 1 where nothing was written.
Tensor mean_counts(const Written& w, const Tensor& grad) {
  return clamp_min(w.total(ones_like(grad), ones(w.index.sym_sizes(), TensorOptions(grad.dtype(), grad.device()))), 1);
}

// The largest share the gradient among them.
struct Extremes {
  Tensor of_self, of_src, share;
  explicit Extremes(const Written& w) {
    Grad& g = w.g;
    Tensor result = g.saved("result"), self = g.saved("self"), src = w.used(g.saved("src"));
    of_self = w.for_self((self == result).to(g.grad().dtype()));
    of_src = (src == w.pick(result)).to(g.grad().dtype());
    share = g.grad() / clamp_min(scatter_add(of_self, w.dim, w.index, of_src), 1);
  }
};

// A product's derivative by one factor is the product of the others, which a quotient gives where no factor is 0.
struct Factors {
  Tensor zeros_at, others;  // how many factors are 0 at each place, and the product of those that are not
  static Tensor without_zeros(const Tensor& x) { return where(x == 0, ones_like(x), x); }
  Factors(const Written& w, const Tensor& self, const Tensor& src) {
    Dtype dtype = self.dtype();
    zeros_at = w.total((self == 0).to(dtype), (src == 0).to(dtype));
    others = dispatch::call_by_name("aten::scatter_reduce.two",
                                    {without_zeros(self), w.dim, w.index, without_zeros(src), "prod"},
                                    {{"include_self", w.include_self}})[0]
                 .tensor();
  }
  static Tensor slope(const Tensor& factor, const Tensor& zero_count, const Tensor& product) {
    Tensor none = zeros_like(product);
    return where(factor == 0, where(zero_count == 1, product, none),
                 where(zero_count == 0, product / without_zeros(factor), none));
  }
};

Tensor self_gradient(Grad& g) {
  Written w(g);
  switch (combine_of(g.argument("reduce").string())) {
    case Combine::Sum: return w.for_self(g.grad());
    case Combine::Mean: return w.for_self(g.grad() / mean_counts(w, g.grad()));
    case Combine::Largest:
    case Combine::Smallest: {
      Extremes e(w);
      return e.share * e.of_self;
    }
    case Combine::Product: {
      Tensor self = g.saved("self");
      Factors f(w, self, w.used(g.saved("src")));
      return w.for_self(g.grad() * Factors::slope(self, f.zeros_at, f.others));
    }
  }
  return {};
}

Tensor src_gradient(Grad& g) {
  Written w(g);
  switch (combine_of(g.argument("reduce").string())) {
    case Combine::Sum: return as_source(g, w.pick(g.grad()));
    case Combine::Mean: return as_source(g, w.pick(g.grad() / mean_counts(w, g.grad())));
    case Combine::Largest:
    case Combine::Smallest: {
      Extremes e(w);
      return as_source(g, w.pick(e.share) * e.of_src);
    }
    case Combine::Product: {
      Tensor src = w.used(g.saved("src"));
      Factors f(w, g.saved("self"), src);
      return as_source(g, w.pick(g.grad()) * Factors::slope(src, w.pick(f.zeros_at), w.pick(f.others)));
    }
  }
  return {};
}

}  // namespace

OPS(scatter_reduce) {
  op("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
     "Tensor")
      .kernel([](const Arguments& arguments, std::span<Tensor> outputs) {
        const Tensor& self = arguments.tensor("self");
        kernels::scatter_reduce(self, arguments.dim("dim", self.dim()), arguments.tensor("index"),
                                arguments.tensor("src"), combine_of(arguments["reduce"].string()),
                                arguments.boolean("include_self"), outputs[0]);
      })
      .shape([](const Arguments& arguments) {
        std::vector<TensorMeta> result = scatter_shape(arguments);
        TENON_CHECK_IMPLEMENTED(combine_of(arguments["reduce"].string()) != Combine::Mean || result[0].dtype != kBool,
                                "[scatter_reduce] there is no mean of bools");
        return result;
      })
      .with_inplace()
      .grad("self", saves("self", "index", "src", "result"), self_gradient)
      .grad("src", saves("self", "index", "src", "result"), src_gradient);
  // Example: scatter(x, 0, zeros({2, 3}, kInt64), y, "add");
  op("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
        return call("aten::scatter_reduce.two",
                    {kept(self, self.requires_grad() || src.requires_grad()), dim, index, src, newer_name(reduce)});
      })
      .with_inplace();
  // Example: scatter(x, 0, zeros({2, 3}, kInt64), 2, "multiply");
  op("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor")
      .decompose([](const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                    std::string_view reduce) {
        TENON_CHECK(self.defined() && index.defined(), "[scatter] expected a tensor, got an undefined one");
        Tensor one = full(SymInts{}, value, TensorOptions(self.dtype(), self.device()));
        return call("aten::scatter_reduce.two",
                    {kept(self, self.requires_grad()), dim, index, expand(one, index.sym_sizes()), newer_name(reduce)});
      })
      .with_inplace();
  // Example: index_reduce(x, 0, arange(2), y, "amax");
  op("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor")
      .decompose([](const Tensor& self, int64_t given_dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
        TENON_CHECK(given(index, "index_reduce").dim() <= 1 && (index.dtype() == kInt64 || index.dtype() == kInt32),
                    "[index_reduce] expected a list of int64 or int32 as the index, got {}", index.description());
        TENON_CHECK(
            given(self, "index_reduce").dtype() == given(source, "index_reduce").dtype() && self.dim() == source.dim(),
            "[index_reduce] expected a source of as many dimensions and the dtype of {}, got {}", self.description(),
            source.description());
        TENON_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
                    "[index_reduce] expected reduce to be prod, mean, amax or amin, got '{}'", reduce);
        const int64_t dim = wrap_dim(given_dim, self.dim(), "index_reduce");
        const SymInt count = source.dim() == 0 ? SymInt(1) : source.size(dim);
        TENON_CHECK(same_size(index.numel(), count), "[index_reduce] expected {} positions, got {}", count.str(),
                    index.description());
        SymInts shape(static_cast<size_t>(self.dim()), SymInt(1));
        if (self.dim() > 0) shape[static_cast<size_t>(dim)] = count;
        Tensor place = expand(reshape(index.to(kInt64), shape), source.sym_sizes());
        return call_in_order("aten::scatter_reduce.two", {self, dim, place, source, reduce, include_self});
      })
      .with_inplace();
}

}  // namespace tenon::ops
