// Windows as dimensions, and convolutions as matrix products over them.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

struct Unfolding {
  size_t dim;
  int64_t size, step;
  SymInt count;
};

Unfolding unfolding(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.dim() > 0, "[unfold] a 0-d tensor has no windows");
  int64_t dim = arguments.dim("dimension", self.dim());
  Unfolding u{static_cast<size_t>(dim), arguments.integer("size"), arguments.integer("step"), {}};
  TENON_CHECK(u.size >= 0 && u.step > 0,
              "[unfold] expected a size of at least 0 and a step of at least 1, got {} and {}", u.size, u.step);
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
  for (int64_t back = 0; back < (size + step - 1) / step; ++back) {
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

Ints pair(const SymInts& numbers, std::string_view what) {
  TENON_CHECK(numbers.size() == 1 || numbers.size() == 2, "[conv2d] expected a {} of one or two numbers, got {}", what,
              str(numbers));
  return {int64_t(numbers[0]), int64_t(numbers[numbers.size() - 1])};
}

Tensor convolved(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, const SymInts& stride,
                 const SymInts& padding, const SymInts& dilation, const SymInt& groups) {
  TENON_CHECK(input.defined() && weight.defined(), "[conv2d] expected a tensor, got an undefined one");
  TENON_CHECK((input.dim() == 3 || input.dim() == 4) && weight.dim() == 4,
              "[conv2d] expected an input of 3 or 4 dimensions and a weight of 4, got {} and {}", input.description(),
              weight.description());
  TENON_CHECK(input.dtype() == weight.dtype() && is_floating(input.dtype()),
              "[conv2d] expected floating point tensors of one dtype, got {} and {}", input.description(),
              weight.description());
  if (input.dim() == 3)
    return squeeze(convolved(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0);
  Ints step = pair(stride, "stride"), border = pair(padding, "padding"), apart = pair(dilation, "dilation");
  auto shares = int64_t(groups);
  TENON_CHECK(
      shares > 0 && same_size(input.size(1), weight.size(1) * shares) && expect(weight.size(0) % SymInt(shares) == 0),
      "[conv2d] input {} and weight {} do not fit with {} groups", input.description(), weight.description(), shares);
  TENON_CHECK(!bias || (bias->dim() == 1 && same_size(bias->size(0), weight.size(0))),
              "[conv2d] expected a bias of {} elements, got {}", weight.size(0).str(), bias->description());
  Tensor x = input;
  for (int64_t at = 0; at < 2; ++at)
    TENON_CHECK(
        step[static_cast<size_t>(at)] > 0 && apart[static_cast<size_t>(at)] > 0 && border[static_cast<size_t>(at)] >= 0,
        "[conv2d] expected a stride and dilation of at least 1 and a padding of at least 0, got {}, {} and {}",
        str(stride), str(dilation), str(padding));
  if (border[0] > 0 || border[1] > 0) x = constant_pad_nd(x, SymInts{border[1], border[1], border[0], border[0]});
  // [N, C, rows, columns, kernel rows, kernel columns], all of it in place.
  auto kernel_rows = int64_t(weight.size(2)), kernel_columns = int64_t(weight.size(3));
  x = unfold(x, 2, (kernel_rows - 1) * apart[0] + 1, step[0]);
  x = unfold(x, 3, (kernel_columns - 1) * apart[1] + 1, step[1]);
  if (apart[0] > 1) x = slice(x, 4, std::nullopt, std::nullopt, apart[0]);
  if (apart[1] > 1) x = slice(x, 5, std::nullopt, std::nullopt, apart[1]);
  SymInt batch = x.size(0), rows = x.size(2), columns = x.size(3),
         inner = weight.size(1) * (kernel_rows * kernel_columns), outer = weight.size(0) / SymInt(shares);
  // A product for each image and group: [outer, inner] by [inner, rows * columns].
  Tensor windows = reshape(permute(x, {0, 1, 4, 5, 2, 3}), SymInts{batch * shares, inner, rows * columns});
  Tensor filters = expand(reshape(weight, SymInts{1, groups, outer, inner}), SymInts{batch, groups, outer, inner});
  filters = shares == 1 ? squeeze(filters, 1) : reshape(filters, SymInts{batch * shares, outer, inner});
  Tensor result = view(bmm(filters, windows), SymInts{batch, weight.size(0), rows, columns});
  return bias ? result + view(*bias, SymInts{1, weight.size(0), 1, 1}) : result;
}

}  // namespace

OPS(convolution) {
  // Windows along one dimension; their elements are a new last one.
  op("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
      .view(
          [](const Arguments& arguments) {
            const Tensor& self = arguments.tensor("self");
            Unfolding u = unfolding(arguments);
            Geometry g{self.sym_sizes(), self.sym_strides(), self.sym_storage_offset()};
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
            index[u.dim] = index[u.dim] * u.step + v.index.back();
            return index;
          })
      .grad("self", saves(), [](Grad& g) {
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
  op("conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
     "SymInt[2] dilation=[1, 1], "
     "SymInt groups=1) -> Tensor")
      .decompose(convolved);
}

}  // namespace tenon::ops
