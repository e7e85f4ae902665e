// Windows as dimensions, and convolutions as matrix products over them.
#include "support/checked.h"

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
  TENON_CHECK(u.step < int64_t{1} << 31, "[unfold] expected a step below 2**31, got {}", u.step);
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

Ints pair(const SymInts& numbers, std::string_view what) {
  TENON_CHECK(numbers.size() == 1 || numbers.size() == 2, "[conv2d] expected a {} of one or two numbers, got {}", what,
              str(numbers));
  return {int64_t(numbers[0]), int64_t(numbers[numbers.size() - 1])};
}

// The numbers of a convolution, and the sizes of its weight.
struct Convolution {
  Ints step, border, apart;
  int64_t groups;
  int64_t kernel_rows, kernel_columns;
  SymInt inner, outer;  // of the matrix that a group multiplies by: elements of a window, channels out
  static int64_t span(int64_t kernel, int64_t apart) { return checked::add(checked::multiply(kernel - 1, apart), 1); }
  // How much of the image a window covers.
  int64_t span_rows() const { return span(kernel_rows, apart[0]); }
  int64_t span_columns() const { return span(kernel_columns, apart[1]); }
};

Convolution convolution_of(const SymInts& weight, const SymInts& stride, const SymInts& padding,
                           const SymInts& dilation, const SymInt& groups) {
  Convolution c{pair(stride, "stride"),
                pair(padding, "padding"),
                pair(dilation, "dilation"),
                int64_t(groups),
                int64_t(weight[2]),
                int64_t(weight[3]),
                0,
                0};
  for (size_t at = 0; at < 2; ++at)
    TENON_CHECK(c.step[at] > 0 && c.apart[at] > 0 && c.border[at] >= 0,
                "[conv2d] expected a stride and dilation of at least 1 and a padding of at least 0, got {}, {} and {}",
                str(stride), str(dilation), str(padding));
  // What lies further apart than any image reaches has no windows to speak of, and positions that do not fit 64 bits.
  constexpr int64_t kFar = int64_t{1} << 31;
  for (size_t at = 0; at < 2; ++at)
    TENON_CHECK(c.step[at] < kFar && c.apart[at] < kFar && c.border[at] < kFar,
                "[conv2d] expected a stride, dilation and padding below 2^31, got {}, {} and {}", str(stride),
                str(dilation), str(padding));
  c.inner = weight[1] * (SymInt(c.kernel_rows) * c.kernel_columns);
  if (c.groups > 0) c.outer = weight[0] / SymInt(c.groups);
  return c;
}

// The windows of all images, one column each: [N * groups, inner, rows * columns].
Tensor windows_of(const Tensor& input, const Convolution& c) {
  Tensor x = input;
  if (c.border[0] > 0 || c.border[1] > 0)
    x = constant_pad_nd(x, SymInts{c.border[1], c.border[1], c.border[0], c.border[0]});
  // [N, C, rows, columns, kernel rows, kernel columns], all of it in place.
  x = unfold(x, 2, c.span_rows(), c.step[0]);
  x = unfold(x, 3, c.span_columns(), c.step[1]);
  if (c.apart[0] > 1) x = slice(x, 4, std::nullopt, std::nullopt, c.apart[0]);
  if (c.apart[1] > 1) x = slice(x, 5, std::nullopt, std::nullopt, c.apart[1]);
  return reshape(permute(x, {0, 1, 4, 5, 2, 3}), SymInts{x.size(0) * c.groups, c.inner, x.size(2) * x.size(3)});
}

// The weight for every image and group: [N * groups, outer, inner].
Tensor filters_of(const Tensor& weight, const SymInt& batch, const Convolution& c) {
  Tensor filters =
      expand(reshape(weight, SymInts{1, c.groups, c.outer, c.inner}), SymInts{batch, c.groups, c.outer, c.inner});
  return c.groups == 1 ? squeeze(filters, 1) : reshape(filters, SymInts{batch * c.groups, c.outer, c.inner});
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
  Convolution c = convolution_of(weight.sym_sizes(), stride, padding, dilation, groups);
  TENON_CHECK(c.groups > 0 && same_size(input.size(1), weight.size(1) * c.groups) &&
                  expect(weight.size(0) % SymInt(c.groups) == 0),
              "[conv2d] input {} and weight {} do not fit with {} groups", input.description(), weight.description(),
              c.groups);
  TENON_CHECK(!bias || (bias->dim() == 1 && same_size(bias->size(0), weight.size(0))),
              "[conv2d] expected a bias of {} elements, got {}", weight.size(0).str(), bias->description());
  SymInt batch = input.size(0);
  SymInt rows = (input.size(2) + SymInt(c.border[0]) * 2 - c.span_rows()) / SymInt(c.step[0]) + 1;
  SymInt columns = (input.size(3) + SymInt(c.border[1]) * 2 - c.span_columns()) / SymInt(c.step[1]) + 1;
  Tensor result =
      view(bmm(filters_of(weight, batch, c), windows_of(input, c)), SymInts{batch, weight.size(0), rows, columns});
  return bias ? result + view(*bias, SymInts{1, weight.size(0), 1, 1}) : result;
}

Convolution convolution_of(const Grad& g) {
  return convolution_of(g.sizes("weight"), g.argument("stride").sym_ints(), g.argument("padding").sym_ints(),
                        g.argument("dilation").sym_ints(), g.argument("groups").sym_int());
}

// One matrix for each image and group: [N * groups, outer, rows * columns].
Tensor gradient_matrices(const Tensor& grad, const Convolution& c) {
  SymInts sizes = grad.sym_sizes();
  size_t lead = sizes.size() - 3;
  SymInt batch = lead > 0 ? sizes[0] : SymInt(1);
  return reshape(grad, SymInts{batch * c.groups, c.outer, sizes[lead + 1] * sizes[lead + 2]});
}

Tensor input_gradient(Grad& g) {
  Convolution c = convolution_of(g);
  SymInts sizes = g.sizes("input"), out = g.grad().sym_sizes();
  size_t lead = sizes.size() - 3;
  SymInt batch = lead > 0 ? sizes[0] : SymInt(1), channels = sizes[lead];
  SymInt height = sizes[lead + 1] + SymInt(c.border[0]) * 2, width = sizes[lead + 2] + SymInt(c.border[1]) * 2;
  SymInt rows = out[lead + 1], columns = out[lead + 2];
  Tensor windows = bmm(transpose(filters_of(g.saved("weight"), batch, c), 1, 2), gradient_matrices(g.grad(), c));
  Tensor x = permute(view(windows, SymInts{batch, channels, c.kernel_rows, c.kernel_columns, rows, columns}),
                     {0, 1, 4, 5, 2, 3});
  // What lies between the elements of a window that are apart gets nothing.
  auto spread = [&](int64_t dim, int64_t span, int64_t apart) {
    if (apart == 1) return;
    SymInts whole = x.sym_sizes();
    whole[static_cast<size_t>(dim)] = span;
    x = slice_scatter(zeros(whole, TensorOptions(x.dtype(), x.device())), x, dim, std::nullopt, std::nullopt, apart);
  };
  spread(4, c.span_rows(), c.apart[0]);
  spread(5, c.span_columns(), c.apart[1]);
  x = unfold_backward(x, SymInts{batch, channels, rows, width, c.span_rows()}, 3, c.span_columns(), c.step[1]);
  x = unfold_backward(x, SymInts{batch, channels, height, width}, 2, c.span_rows(), c.step[0]);
  if (c.border[0] > 0) x = slice(x, 2, c.border[0], height - c.border[0]);
  if (c.border[1] > 0) x = slice(x, 3, c.border[1], width - c.border[1]);
  return lead > 0 ? x : squeeze(x, 0);
}

Tensor weight_gradient(Grad& g) {
  Convolution c = convolution_of(g);
  Tensor input = g.saved("input");
  if (input.dim() == 3) input = unsqueeze(input, 0);
  Tensor each = bmm(gradient_matrices(g.grad(), c), transpose(windows_of(input, c), 1, 2));
  return view(sum(view(each, SymInts{input.size(0), c.groups, c.outer, c.inner}), 0), g.sizes("weight"));
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
      .decompose(convolved)
      .grad("input", saves("weight"), input_gradient)
      .grad("weight", saves("input"), weight_gradient)
      .grad("bias", saves(), [](Grad& g) {
        return sum(g.grad(), g.grad().dim() == 4 ? Ints{0, 2, 3} : Ints{1, 2}, false, g.dtype("bias"));
      });
}

}  // namespace tenon::ops
