// Windows as a dimension.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

struct Unfolding {
  size_t dim;
  int64_t size, step;
  SymInt count;
};

Unfolding unfolding(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  int64_t dim = arguments.dim("dimension", self.dim());
  Unfolding u{static_cast<size_t>(dim), arguments.integer("size"), arguments.integer("step"), {}};
  TENON_CHECK(u.size >= 0 && u.step > 0,
              "[unfold] expected a size of at least 0 and a step of at least 1, got {} and {}", u.size, u.step);
  TENON_CHECK(u.step < int64_t{1} << 31, "[unfold] expected a step below 2**31, got {}", u.step);
  if (self.dim() == 0) {  // a number is a window of one
    TENON_CHECK(u.size <= 1, "[unfold] windows of {} do not fit into {}", u.size, self.description());
    return u;
  }
  TENON_CHECK(expect(self.size(dim) >= u.size), "[unfold] windows of {} do not fit into dimension {} of {}", u.size,
              dim, self.description());
  u.count = (self.size(dim) - u.size) / SymInt(u.step) + 1;
  return u;
}

// A gradient of windows, added up where they lie on each other: each element sums what the windows over it say.
Lane folded(Element& e) {
  const Tensor& grad = e.arguments().tensor("grad_in");
  int64_t size = e.arguments().integer("size"), step = e.arguments().integer("step");
  auto dim = static_cast<size_t>(e.arguments().dim("dim", grad.dim() - 1));
  SymInt count = grad.size(static_cast<int64_t>(dim));
  loop::Builder& b = e.builder();
  Lane total = b.constant(int64_t{0}, e.dtype()), zero = b.constant(int64_t{0}, kInt64);
  if (statically_true(count == 0) || size == 0) return total;
  std::vector<Expr> at;
  for (size_t d = 0; d + 1 < static_cast<size_t>(grad.dim()); ++d) at.push_back(e.index(d));
  Expr place = at[dim], last = floor_div(place, e.integer(step));
  at.emplace_back();
  // The windows that may cover a place: the one that starts last before it, and those before that.
  for (int64_t back = 0; back <= (size - 1) / step; ++back) {
    Expr window = last - back, inside = place - window * step;
    Lane w = b.index(window), i = b.index(inside);
    Lane covers = (w >= zero) & (w < b.index(e.integer(count))) & (i < b.constant(size, kInt64));
    // Coordinates outside are clamped, and nothing is read there.
    at[dim] = max(e.integer(0), min(e.integer(count) - 1, window));
    at.back() = min(e.integer(size - 1), inside);
    Lane nothing = b.constant(int64_t{0}, e.dtype());
    total = total + b.choose(covers, [&] { return cast(e.load(grad, at), e.dtype()); }, [&] { return nothing; });
  }
  return total;
}

}  // namespace

OPS(unfold) {
  // Windows along one dimension; their elements are a new last one.
  op("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
      .view(
          [](const Arguments& arguments) {
            const Tensor& self = arguments.tensor("self");
            Unfolding u = unfolding(arguments);
            Geometry g{self.sym_sizes(), self.sym_strides(), self.sym_storage_offset()};
            if (self.dim() == 0) return Geometry{SymInts{u.size}, SymInts{1}, self.sym_storage_offset()};
            SymInt stride = g.strides[u.dim];
            g.sizes[u.dim] = u.count;
            g.strides[u.dim] = stride * u.step;
            g.sizes.push_back(u.size);
            g.strides.push_back(stride);
            return g;
          },
          [](ViewIndex& v) {
            Unfolding u = unfolding(v.arguments());
            std::vector<Expr> index(v.index.begin(), v.index.end() - 1);
            if (index.empty()) return index;
            index[u.dim] = index[u.dim] * u.step + v.index.back();
            return index;
          })
      .grad("self", saves(), [](Grad& g) {
        if (g.sizes("self").empty()) return sum(g.grad());
        return unfold_backward(g.grad(), g.sizes("self"), g.argument("dimension").integer(),
                               g.argument("size").integer(), g.argument("step").integer());
      });
  op("unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor")
      .element(folded)
      .shape([](const Arguments& arguments) {
        const Tensor& grad = arguments.tensor("grad_in");
        SymInts sizes = arguments["input_sizes"].sym_ints();
        TENON_CHECK(grad.defined() && grad.dim() == static_cast<int64_t>(sizes.size()) + 1 && grad.dim() > 1,
                    "[unfold_backward] expected a gradient of {} dimensions", sizes.size() + 1);
        TENON_CHECK(grad.dtype() != kBool, "[unfold_backward] expected a gradient of numbers, got {}",
                    grad.description());
        auto dim = static_cast<size_t>(arguments.dim("dim", static_cast<int64_t>(sizes.size())));
        int64_t size = arguments.integer("size"), step = arguments.integer("step");
        TENON_CHECK(size >= 0 && step > 0,
                    "[unfold_backward] expected a size of at least 0 and a step of at least 1, got {} and {}", size,
                    step);
        SymInts expected = sizes, given = grad.sym_sizes();
        expected.push_back(size);
        bool fits = bool(sizes[dim] >= size);
        if (fits) expected[dim] = (sizes[dim] - size) / SymInt(step) + 1;
        for (size_t d = 0; fits && d < given.size(); ++d) fits = same_size(expected[d], given[d]);
        TENON_CHECK(fits, "[unfold_backward] {} are no windows of {} at every {} of dimension {} of {}",
                    grad.description(), size, step, dim, str(sizes));
        return std::vector{TensorMeta::contiguous(sizes, grad.dtype(), grad.device())};
      })
      .grad("grad_in", saves(), [](Grad& g) {
        return unfold(g.grad(), g.argument("dim").integer(), g.argument("size").integer(),
                      g.argument("step").integer());
      });
}

}  // namespace tenon::ops
