// Slices of a dimension and single positions of it, as views, and tensors with these replaced.
#include "ops/view/views.h"
#include "sym/divide_up.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <limits>

namespace tenon::ops {
namespace {

struct Bounds {
  int64_t dim;
  SymInt start, end, step, length;
};

// The bounds of a slice, clamped as Python does.
Bounds slice_bounds(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK_INDEX(self.dim() > 0, "[slice] a 0-d tensor cannot be sliced");
  Bounds b;
  b.dim = arguments.dim("dim", self.dim());
  SymInt size = self.size(b.dim);
  b.step = arguments["step"].sym_int();
  TENON_CHECK(expect(b.step > 0), "[slice] expected a step of at least 1, got {}", b.step.str());
  auto within = [&](const dispatch::Value& value, const SymInt& standard) {
    if (value.is_none()) return standard;
    SymInt bound = value.sym_int();
    if (bound.same(size)) return bound;
    if (!bound.is_symbolic() && bound.plain() == std::numeric_limits<int64_t>::max()) return size;
    return clamp(from_the_end(bound, size), 0, size);
  };
  b.start = within(arguments["start"], 0);
  b.end = within(arguments["end"], size);
  if (!b.end.same(size)) b.end = clamp(b.end, b.start, size);
  b.length = is_one(b.step) ? b.end - b.start : divide_up(b.end - b.start, b.step);
  return b;
}

SymInt select_index(const Arguments& arguments, int64_t dim) {
  const Tensor& self = arguments.tensor("self");
  SymInt index = arguments["index"].sym_int(), size = self.size(dim);
  TENON_CHECK_INDEX(expect(index >= -size) && expect(index < size),
                    "[select] index {} is out of range for dimension {} of {}", index.str(), dim, self.description());
  return from_the_end(index, size);
}

std::optional<SymInt> optional_number(const dispatch::Value& value) {
  return value.is_none() ? std::nullopt : std::optional<SymInt>(value.sym_int());
}

}  // namespace

OPS(slicing) {
  op("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)")
      .view(
          [](const Arguments& arguments) {
            Bounds b = slice_bounds(arguments);
            Geometry g = geometry_of(arguments.tensor("self"));
            auto dim = static_cast<size_t>(b.dim);
            g.offset = g.offset + b.start * g.strides[dim];
            g.sizes[dim] = b.length;
            g.strides[dim] = g.strides[dim] * b.step;
            return g;
          },
          [](ViewIndex& v) {
            Bounds b = slice_bounds(v.arguments());
            std::vector<Expr> index = v.index;
            Expr& at = index[static_cast<size_t>(b.dim)];
            at = v.integer(b.start) + at * v.integer(b.step);
            return index;
          })
      .scatter([](const Tensor& base, const Tensor& updated, const Arguments& arguments) {
        Bounds b = slice_bounds(arguments);
        return slice_scatter(base, updated, b.dim, b.start, b.end, b.step);
      })
      .grad("self", saves(), [](Grad& g) {
        const dispatch::Value &start = g.argument("start"), &end = g.argument("end");
        Tensor base = zeros(g.sizes("self"), TensorOptions(g.dtype("self"), g.grad().device()));
        return slice_scatter(base, g.grad(), g.argument("dim").integer(), optional_number(start), optional_number(end),
                             g.argument("step").sym_int());
      });
  op("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
      .view(
          [](const Arguments& arguments) {
            const Tensor& self = arguments.tensor("self");
            TENON_CHECK_INDEX(self.dim() > 0, "[select] a 0-d tensor has nothing to select from");
            int64_t dim = arguments.dim("dim", self.dim());
            Geometry g = geometry_of(self);
            g.offset = g.offset + select_index(arguments, dim) * g.strides[static_cast<size_t>(dim)];
            g.sizes.erase(g.sizes.begin() + dim);
            g.strides.erase(g.strides.begin() + dim);
            return g;
          },
          [](ViewIndex& v) {
            int64_t dim = v.arguments().dim("dim", v.arguments().tensor("self").dim());
            std::vector<Expr> index = v.index;
            index.insert(index.begin() + dim, v.integer(select_index(v.arguments(), dim)));
            return index;
          })
      .scatter([](const Tensor& base, const Tensor& updated, const Arguments& arguments) {
        int64_t dim = arguments.dim("dim", base.dim());
        return select_scatter(base, updated, dim, select_index(arguments, dim));
      })
      .grad("self", saves(), [](Grad& g) {
        Tensor base = zeros(g.sizes("self"), TensorOptions(g.dtype("self"), g.grad().device()));
        return select_scatter(base, g.grad(), g.argument("dim").integer(), g.argument("index").sym_int());
      });

  // Copies that rearrange: what a mutation through a view, or a slice's gradient, becomes.
  op("slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        Bounds b = slice_bounds(e.arguments());
        const Tensor &self = e.arguments().tensor("self"), &src = e.arguments().tensor("src");
        std::vector<Expr> index, inside;
        for (size_t dim = 0; dim < static_cast<size_t>(self.dim()); ++dim) index.push_back(e.index(dim));
        inside = index;
        auto dim = static_cast<size_t>(b.dim);
        loop::Builder& builder = e.builder();
        Expr start = e.integer(b.start), step = e.integer(b.step), length = e.integer(b.length);
        Expr offset = index[dim] - start;
        // Coordinates outside the slice are clamped into it, and nothing is read there.
        inside[dim] = max(builder.pool().constant(0), min(length - 1, floor_div(offset, step)));
        Lane position = builder.index(offset);
        Lane covered =
            (position >= builder.index(builder.pool().constant(0))) & (position < builder.index(step * length));
        if (!is_one(b.step))
          covered = covered & (builder.index(mod(offset, step)) == builder.index(builder.pool().constant(0)));
        if (is_zero(b.length)) return e.load(self, index);
        // A source of another dtype is converted.
        auto from_source = [&] {
          Lane loaded = e.load(src, inside);
          return src.dtype() == self.dtype() ? loaded : cast(loaded, self.dtype());
        };
        return builder.choose(covered, from_source, [&] { return e.load(self, index); });
      })
      .writes([](const Tensor& whole, const Arguments& arguments) {
        Bounds b = slice_bounds(arguments);
        return slice(whole, b.dim, b.start, b.end, b.step);
      })
      .shape([](const Arguments& arguments) {
        const Tensor &self = arguments.tensor("self"), &src = arguments.tensor("src");
        Bounds b = slice_bounds(arguments);
        SymInts expected = self.sym_sizes(), given = src.sym_sizes();
        expected[static_cast<size_t>(b.dim)] = b.length;
        bool fits = expected.size() == given.size();
        for (size_t dim = 0; fits && dim < given.size(); ++dim) fits = same_size(expected[dim], given[dim]);
        TENON_CHECK(fits, "[slice_scatter] expected a source of {}{}, got {}", name(self.dtype()), str(expected),
                    src.description());
        SymInts sizes = self.sym_sizes();
        return std::vector{TensorMeta{sizes, pointwise_strides(sizes, {&self, 1}), self.dtype(), self.device()}};
      })
      .grad("self", saves(),
            [](Grad& g) {
              Tensor hole = zeros(g.sizes("src"), TensorOptions(g.dtype("self"), g.grad().device()));
              return slice_scatter(g.grad(), hole, g.argument("dim").integer(), optional_number(g.argument("start")),
                                   optional_number(g.argument("end")), g.argument("step").sym_int());
            })
      .grad("src", saves(), [](Grad& g) {
        return slice(g.grad(), g.argument("dim").integer(), optional_number(g.argument("start")),
                     optional_number(g.argument("end")), g.argument("step").sym_int())
            .to(g.dtype("src"));
      });
  op("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& src, int64_t dim, const SymInt& index) {
        int64_t wrapped = wrap_dim(dim, self.dim(), "select_scatter");
        SymInt at = from_the_end(index, self.size(wrapped));
        return slice_scatter(self, unsqueeze(src, wrapped), wrapped, at, at + 1, 1);
      });
}

}  // namespace tenon::ops
