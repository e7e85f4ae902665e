// Views of parts: pieces of a dimension and diagonals; and views with the sizes of another tensor or dimensions
// elsewhere.
#include "ops/view/views.h"
#include "sym/divide_up.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <limits>

namespace tenon::ops {
namespace {

std::vector<Tensor> split_by(const Tensor& self, const SymInts& sizes, int64_t dim) {
  std::vector<Tensor> pieces;
  SymInt start = 0;
  for (size_t at = 0; at < sizes.size(); ++at) {
    // The last piece ends where the tensor does, which needs no question about the sum.
    SymInt end = at + 1 == sizes.size() ? self.size(dim) : start + sizes[at];
    TENON_CHECK(holds(end <= self.size(dim), "[split_with_sizes] a piece goes beyond the tensor"),
                "[split_with_sizes] sizes {} go beyond dimension {} of {}", str(sizes), dim, self.description());
    pieces.push_back(slice(self, dim, start, end, 1));
    start = end;
  }
  return pieces;
}

std::vector<Tensor> split_evenly(const Tensor& self, const SymInt& split_size, int64_t dim, std::string_view op_name) {
  int64_t along = wrap_dim(dim, dimensioned(self, op_name).dim(), op_name);
  SymInt size = self.size(along);
  TENON_CHECK(expect(split_size >= 0), "[{}] expected a size of at least 0, got {}", op_name, split_size.str());
  if (bool(split_size == 0)) {
    TENON_CHECK(expect(size == 0), "[{}] pieces of no elements cannot make up dimension {} of {}", op_name, along,
                self.description());
    return {slice(self, along, SymInt(0), SymInt(0), 1)};
  }
  auto count = std::max<int64_t>(1, int64_t(divide_up(size, split_size)));
  std::vector<Tensor> pieces;
  for (int64_t at = 0; at < count; ++at)
    pieces.push_back(slice(self, along, split_size * at, at + 1 == count ? size : split_size * (at + 1), 1));
  return pieces;
}

// The gradients of all pieces.
std::vector<Tensor> gradients_of(Grad& g) {
  std::vector<Tensor> all;
  for (size_t at = 0; at < g.outputs(); ++at) all.push_back(g.grad(at));
  return all;
}

Tensor joined(Grad& g) { return cat(gradients_of(g), g.argument("dim").integer()); }

Ints moved(int64_t rank, const Ints& source, const Ints& destination) {
  TENON_CHECK(source.size() == destination.size(), "[movedim] expected as many sources as destinations, got {} and {}",
              source.size(), destination.size());
  Ints order;
  order.resize(static_cast<size_t>(rank), -1);
  std::vector<bool> taken(static_cast<size_t>(rank));
  for (size_t at = 0; at < source.size(); ++at) {
    int64_t from = wrap_dim(source[at], rank, "movedim"), to = wrap_dim(destination[at], rank, "movedim");
    if (rank == 0) continue;
    TENON_CHECK(!taken[static_cast<size_t>(from)] && order[static_cast<size_t>(to)] < 0,
                "[movedim] a dimension appears twice");
    taken[static_cast<size_t>(from)] = true;
    order[static_cast<size_t>(to)] = from;
  }
  int64_t next = 0;
  for (int64_t& place : order) {
    if (place >= 0) continue;
    while (taken[static_cast<size_t>(next)]) ++next;
    place = next++;
  }
  return order;
}

// Above (`offset` > 0) or below the main diagonal of two dimensions.
struct Diagonal {
  size_t row, column;
  int64_t offset;
  SymInt length;
};

Diagonal diagonal_of(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  std::string_view op_name = arguments.op().brief_name();
  TENON_CHECK(self.dim() >= 2, "[{}] expected a tensor of at least two dimensions, got {}", op_name,
              self.description());
  int64_t a = arguments.dim("dim1", self.dim()), b = arguments.dim("dim2", self.dim());
  TENON_CHECK(a != b, "[{}] expected two dimensions, got {} twice", op_name, a);
  // Beyond every tensor one offset is as good as another, and this one can be negated.
  int64_t offset = std::max(arguments.integer("offset"), -std::numeric_limits<int64_t>::max());
  Diagonal d{static_cast<size_t>(a), static_cast<size_t>(b), offset, {}};
  SymInt rows = self.size(a), columns = self.size(b);
  if (d.offset >= 0)
    columns = columns - d.offset;
  else
    rows = rows + d.offset;
  SymInt shorter = rows.same(columns) || bool(rows <= columns) ? rows : columns;
  d.length = bool(shorter > 0) ? shorter : SymInt(0);
  return d;
}

SymInts diagonal_sizes(const SymInts& sizes, const Diagonal& d) {
  SymInts result;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (dim != d.row && dim != d.column) result.push_back(sizes[dim]);
  result.push_back(d.length);
  return result;
}

int64_t first_row(const Diagonal& d) { return d.offset < 0 ? -d.offset : 0; }
int64_t first_column(const Diagonal& d) { return d.offset > 0 ? d.offset : 0; }

}  // namespace

OPS(pieces) {
  op("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const SymInt& split_size, int64_t dim) {
        return split_evenly(self, split_size, dim, "split");
      })
      .pieces()
      .grad("self", saves(), joined);
  op("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const SymInts& split_sizes, int64_t dim) {
        int64_t along = wrap_dim(dim, dimensioned(self, "split_with_sizes").dim(), "split_with_sizes");
        SymInt total = 0;
        for (const SymInt& size : split_sizes) {
          TENON_CHECK(expect(size >= 0), "[split_with_sizes] expected sizes of at least 0, got {}", str(split_sizes));
          total += size;
        }
        TENON_CHECK(
            total.same(self.size(along)) || holds(total == self.size(along), "[split_with_sizes] sizes do not add up"),
            "[split_with_sizes] sizes {} do not add up to dimension {} of {}", str(split_sizes), along,
            self.description());
        return split_by(self, split_sizes, along);
      })
      .pieces()
      .grad("self", saves(), joined);
  op("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const SymInts& split_size, int64_t dim) {
        return split_with_sizes(self, split_size, dim);
      });
  op("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
      .decompose([](const Tensor& self, int64_t chunks, int64_t dim) {
        TENON_CHECK(chunks > 0, "[chunk] expected a number of at least 1, got {}", chunks);
        SymInt size = dimensioned(self, "chunk").size(wrap_dim(dim, self.dim(), "chunk"));
        SymInt each = divide_up(size, chunks);
        if (bool(size == 0))
          return split_with_sizes(self, SymInts(std::vector<int64_t>(static_cast<size_t>(chunks), 0)), dim);
        return split(self, each, dim);
      });
  op("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
      .decompose([](const Tensor& self, int64_t dim) {
        int64_t along = wrap_dim(dim, dimensioned(self, "unbind").dim(), "unbind");
        std::vector<Tensor> pieces;
        auto count = int64_t(self.size(along));
        for (int64_t at = 0; at < count; ++at) pieces.push_back(select(self, along, at));
        return pieces;
      })
      .pieces()
      .grad("self", saves(), [](Grad& g) { return stack(gradients_of(g), g.argument("dim").integer()); });
  op("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
      .decompose([](const Tensor& self, int64_t dim, const SymInt& start, const SymInt& length) {
        int64_t along = wrap_dim(dim, dimensioned(self, "narrow").dim(), "narrow");
        SymInt size = self.size(along);
        TENON_CHECK(expect(length >= 0), "[narrow] expected a length of at least 0, got {}", length.str());
        TENON_CHECK_INDEX(expect(start >= -size) && expect(start <= size),
                          "[narrow] start {} is out of range for dimension {} of {}", start.str(), along,
                          self.description());
        SymInt first = bool(start < 0) ? start + size : start;
        TENON_CHECK(expect(length <= size - first), "[narrow] start {} and length {} go beyond dimension {} of {}",
                    start.str(), length.str(), along, self.description());
        return slice(self, along, first, first + length, 1);
      });
  op("view_as(Tensor(a) self, Tensor other) -> Tensor(a)").decompose([](const Tensor& self, const Tensor& other) {
    return view(self, other.sym_sizes());
  });
  op("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)").decompose([](const Tensor& self, const Tensor& other) {
    return reshape(self, other.sym_sizes());
  });
  op("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)").decompose([](const Tensor& self, const Tensor& other) {
    return expand(self, other.sym_sizes());
  });
  op("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
      .decompose([](const Tensor& self, int64_t dim, const SymInts& sizes) {
        auto along = static_cast<size_t>(wrap_dim(dim, dimensioned(self, "unflatten").dim(), "unflatten"));
        SymInts shape, own = self.sym_sizes();
        SymInt known = 1;
        std::optional<size_t> unknown;
        for (size_t at = 0; at < own.size(); ++at) {
          if (at != along) {
            shape.push_back(own[at]);
            continue;
          }
          for (const SymInt& size : sizes) {
            if (!size.is_symbolic() && size.plain() == -1) {
              TENON_CHECK(!unknown, "[unflatten] only one size can be -1, got {}", str(sizes));
              unknown = shape.size();
            } else {
              known *= size;
            }
            shape.push_back(size);
          }
        }
        TENON_CHECK(unknown ? expect(known > 0) && expect(own[along] % known == 0) : same_size(known, own[along]),
                    "[unflatten] sizes {} do not make up dimension {} of {}", str(sizes), along, self.description());
        if (unknown) shape[*unknown] = own[along] / known;
        return view(self, shape);
      });
  op("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
      .decompose([](const Tensor& self, const Ints& source, const Ints& destination) {
        return permute(self, moved(self.dim(), source, destination));
      });
  op("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)")
      .decompose([](const Tensor& self, int64_t source, int64_t destination) {
        return permute(self, moved(self.dim(), Ints{source}, Ints{destination}));
      });
  op("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
      .view(
          [](const Arguments& arguments) {
            const Tensor& self = arguments.tensor("self");
            Diagonal d = diagonal_of(arguments);
            SymInts strides = self.sym_strides();
            Geometry g;
            g.sizes = diagonal_sizes(self.sym_sizes(), d);
            for (size_t dim = 0; dim < strides.size(); ++dim)
              if (dim != d.row && dim != d.column) g.strides.push_back(strides[dim]);
            g.strides.push_back(strides[d.row] + strides[d.column]);
            g.offset = self.sym_storage_offset();
            // An empty one stays at the start: the corner may lie outside.
            if (!statically_true(d.length == 0))
              g.offset = g.offset + strides[d.row] * first_row(d) + strides[d.column] * first_column(d);
            return g;
          },
          [](ViewIndex& v) {
            Diagonal d = diagonal_of(v.arguments());
            std::vector<Expr> index;
            size_t next = 0;
            for (size_t dim = 0; dim <= v.index.size(); ++dim) {
              if (dim == d.row)
                index.push_back(v.index.back() + first_row(d));
              else if (dim == d.column)
                index.push_back(v.index.back() + first_column(d));
              else
                index.push_back(v.index[next++]);
            }
            return index;
          })
      .scatter([](const Tensor& base, const Tensor& updated, const Arguments& arguments) {
        return diagonal_scatter(base, updated, arguments.integer("offset"), arguments.integer("dim1"),
                                arguments.integer("dim2"));
      })
      .grad("self", saves(), [](Grad& g) {
        Tensor base = zeros(g.sizes("self"), TensorOptions(g.dtype("self"), g.grad().device()));
        return diagonal_scatter(base, g.grad(), g.argument("offset").integer(), g.argument("dim1").integer(),
                                g.argument("dim2").integer());
      });
  op("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor &self = e.arguments().tensor("self"), &src = e.arguments().tensor("src");
        Diagonal d = diagonal_of(e.arguments());
        std::vector<Expr> at, inside;
        for (size_t dim = 0; dim < static_cast<size_t>(self.dim()); ++dim) {
          at.push_back(e.index(dim));
          if (dim != d.row && dim != d.column) inside.push_back(at.back());
        }
        if (statically_true(d.length == 0)) return e.load(self, at);
        // Coordinates beside the diagonal are clamped onto it, and nothing is read there.
        Expr along = at[d.row] - first_row(d), zero = e.integer(0);
        inside.push_back(max(zero, min(e.integer(d.length) - 1, along)));
        loop::Builder& b = e.builder();
        Lane on = b.index(at[d.column] - at[d.row]) == b.constant(d.offset, kInt64);
        return b.choose(on, [&] { return e.load(src, inside); }, [&] { return e.load(self, at); });
      })
      .writes([](const Tensor& whole, const Arguments& arguments) {
        return diagonal(whole, arguments.integer("offset"), arguments.integer("dim1"), arguments.integer("dim2"));
      })
      .shape([](const Arguments& arguments) {
        const Tensor &self = arguments.tensor("self"), &src = arguments.tensor("src");
        SymInts expected = diagonal_sizes(self.sym_sizes(), diagonal_of(arguments)), given = src.sym_sizes();
        bool fits = expected.size() == given.size();
        for (size_t dim = 0; fits && dim < given.size(); ++dim) fits = same_size(expected[dim], given[dim]);
        TENON_CHECK(fits && src.dtype() == self.dtype(), "[diagonal_scatter] expected a source of {}{}, got {}",
                    name(self.dtype()), str(expected), src.description());
        SymInts sizes = self.sym_sizes();
        return std::vector{TensorMeta{sizes, pointwise_strides(sizes, {&self, 1}), self.dtype(), self.device()}};
      })
      .grad("self", saves(),
            [](Grad& g) {
              Tensor hole = zeros(g.sizes("src"), TensorOptions(g.dtype("self"), g.grad().device()));
              return diagonal_scatter(g.grad(), hole, g.argument("offset").integer(), g.argument("dim1").integer(),
                                      g.argument("dim2").integer());
            })
      .grad("src", saves(), [](Grad& g) {
        return diagonal(g.grad(), g.argument("offset").integer(), g.argument("dim1").integer(),
                        g.argument("dim2").integer());
      });
}

}  // namespace tenon::ops
