// The same elements under another geometry.
#include "sym/divide_up.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::ops {
namespace {

Geometry geometry_of(const Tensor& self) { return {self.sym_sizes(), self.sym_strides(), self.sym_storage_offset()}; }

// Fills in the one size that may be -1.
SymInts complete_shape(const SymInts& shape, const SymInt& numel, std::string_view op_name) {
  SymInts complete = shape;
  SymInt known = 1;
  std::optional<size_t> unknown;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (is_left_open(shape[dim])) {
      TENON_CHECK(!unknown, "[{}] only one size can be -1, got {}", op_name, str(shape));
      unknown = dim;
    } else {
      TENON_CHECK(may_be_size(shape[dim]), "[{}] expected sizes of at least 0 or -1, got {}", op_name, str(shape));
      known *= shape[dim];
    }
  }
  if (unknown) {
    TENON_CHECK(!is_zero(known) && expect(known != 0) && expect(numel % known == 0),
                "[{}] {} elements do not fit the shape {}", op_name, numel.str(), str(shape));
    complete[*unknown] = numel / known;
  } else {
    TENON_CHECK(same_size(known, numel), "[{}] {} elements do not fit the shape {}", op_name, numel.str(), str(shape));
  }
  return complete;
}

// Whether a size that is computed from others comes to 1 (which sizes of inputs do not).
bool comes_to_one(const SymInt& size) { return is_one(size) || decide_or(size == 1, false); }

bool is_known_same(const SymInt& a, const SymInt& b) { return a.same(b) || statically_true(a == b); }

// Strides of `shape` over the same memory, if there are any. Of what is computed from symbols nothing is supposed: it
// may be 1, or 0.
std::optional<SymInts> strides_over(const SymInts& sizes, const SymInts& strides, const SymInts& shape) {
  SymInts result;
  result.resize(shape.size());
  if (sizes.empty()) {
    for (SymInt& stride : result) stride = 1;
    return result;
  }
  for (const SymInt& size : sizes)
    if (is_zero(size)) return core::contiguous_strides(shape.span());
  // Walk from the inside; a chunk is a run of dimensions that lie densely in memory.
  int64_t target = static_cast<int64_t>(shape.size()) - 1;
  SymInt base = strides.back(), chunk = 1, covered = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    chunk *= sizes[dim];
    bool ends = dim == 0 || (!is_one(sizes[dim - 1]) && !strides[dim - 1].same(chunk * base) &&
                             !decide_or(strides[dim - 1] == chunk * base, false) && !comes_to_one(sizes[dim - 1]));
    if (!ends) continue;
    while (target >= 0) {
      const SymInt& size = shape[static_cast<size_t>(target)];
      // Asked as little as possible: a chunk that is full takes in nothing but ones, and one that this size fills, it.
      bool full = is_known_same(covered, chunk);
      bool fills = !full && is_known_same(covered * size, chunk);
      bool takes =
          is_one(size) || fills || (!full && decide_likely(covered < chunk, true)) || (dim == 0 && comes_to_one(size));
      if (!takes) break;
      result[static_cast<size_t>(target)] = covered * base;
      covered *= size;
      --target;
    }
    if (!covered.same(chunk) && !decide_or(covered == chunk, false)) return std::nullopt;
    if (dim > 0) {
      base = strides[dim - 1];
      chunk = covered = 1;
    }
  }
  if (target != -1) return std::nullopt;
  return result;
}

std::optional<SymInts> view_strides(const SymInts& sizes, const SymInts& strides, const SymInts& shape) {
  if (std::optional<SymInts> result = strides_over(sizes, strides, shape)) return result;
  for (const SymInt& size : sizes)
    if (decide_or(size == 0, false)) return core::contiguous_strides(shape.span());
  return std::nullopt;
}

Geometry view_geometry(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  SymInts shape = complete_shape(arguments["size"].sym_ints(), self.numel(), "view");
  std::optional<SymInts> strides = view_strides(self.sym_sizes(), self.sym_strides(), shape);
  if (!strides && std::any_of(shape.begin(), shape.end(), [](const SymInt& size) { return !size.hint(); }))
    throw DataDependentError(
        fmt::format("[view] whether {} with strides {} can be viewed as {} depends on data: use reshape",
                    self.description(), str(self.sym_strides()), str(shape)));
  TENON_CHECK(strides, "[view] {} with strides {} cannot be viewed as {}: use reshape", self.description(),
              str(self.sym_strides()), str(shape));
  return {shape, *strides, self.sym_storage_offset()};
}

// Coordinates through the row-major position; of dimensions that are the same at either end, the coordinate itself.
std::vector<Expr> reshape_index(ViewIndex& v, const SymInts& from, const SymInts& to) {
  size_t lead = 0, rear = 0, shorter = std::min(from.size(), to.size());
  while (lead < shorter && from[lead].same(to[lead])) ++lead;
  while (lead + rear < shorter && from[from.size() - 1 - rear].same(to[to.size() - 1 - rear])) ++rear;
  std::vector<Expr> index(from.size());
  for (size_t dim = 0; dim < lead; ++dim) index[dim] = v.index[dim];
  for (size_t dim = 1; dim <= rear; ++dim) index[from.size() - dim] = v.index[to.size() - dim];
  Expr position = v.integer(0);
  for (size_t dim = lead; dim < to.size() - rear; ++dim) position = position * v.integer(to[dim]) + v.index[dim];
  for (size_t dim = from.size() - rear; dim-- > lead;) {
    Expr size = v.integer(from[dim]);
    index[dim] = dim == lead ? position : mod(position, size);
    position = floor_div(position, size);
  }
  return index;
}

Geometry expand_geometry(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  SymInts shape = arguments["size"].sym_ints(), sizes = self.sym_sizes(), strides = self.sym_strides();
  TENON_CHECK(shape.size() >= sizes.size(), "[expand] {} cannot be expanded to fewer dimensions: {}",
              self.description(), str(shape));
  SymInts result;
  result.resize(shape.size(), SymInt(0));
  size_t lead = shape.size() - sizes.size();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    bool keep = is_left_open(shape[dim]);
    TENON_CHECK(!keep || dim >= lead, "[expand] -1 is not allowed for the new dimension {}", dim);
    TENON_CHECK(keep || may_be_size(shape[dim]), "[expand] expected sizes of at least 0 or -1, got {}", str(shape));
    if (dim < lead) continue;
    const SymInt& size = sizes[dim - lead];
    if (keep) shape[dim] = size;
    if (shape[dim].same(size) || (!is_stretched(size, shape[dim]) && same_size(shape[dim], size))) {
      result[dim] = strides[dim - lead];
    } else {
      TENON_CHECK(is_one(size) || decide_or(size == 1, false),
                  "[expand] {} cannot be expanded to {}: dimension {} is {}", self.description(), str(shape), dim,
                  size.str());
    }
  }
  return {shape, result, self.sym_storage_offset()};
}

Ints permutation(const Arguments& arguments) {
  int64_t rank = arguments.tensor("self").dim();
  Ints dims = arguments["dims"].ints();
  TENON_CHECK(static_cast<int64_t>(dims.size()) == rank, "[permute] expected {} dimensions, got [{}]", rank,
              fmt::join(dims, ", "));
  std::vector<bool> seen(dims.size());
  for (int64_t& dim : dims) {
    dim = wrap_dim(dim, rank, "permute");
    TENON_CHECK(!seen[static_cast<size_t>(dim)], "[permute] dimension {} appears twice", dim);
    seen[static_cast<size_t>(dim)] = true;
  }
  return dims;
}

Ints inverse(const Ints& dims) {
  Ints result;
  result.resize(dims.size());
  for (size_t at = 0; at < dims.size(); ++at) result[static_cast<size_t>(dims[at])] = static_cast<int64_t>(at);
  return result;
}

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

std::vector<bool> squeezed(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  std::vector<bool> gone(static_cast<size_t>(self.dim()));
  SymInts sizes = self.sym_sizes();
  if (arguments.has("dim")) {
    auto dim = static_cast<size_t>(arguments.dim("dim", self.dim()));
    if (self.dim() > 0) gone[dim] = bool(sizes[dim] == 1);
  } else {
    // Asked, also of sizes from data: the rank of the result depends on it.
    for (size_t dim = 0; dim < gone.size(); ++dim) gone[dim] = bool(sizes[dim] == 1);
  }
  return gone;
}

Geometry squeeze_geometry(const Arguments& arguments) {
  Geometry from = geometry_of(arguments.tensor("self")), to;
  std::vector<bool> gone = squeezed(arguments);
  for (size_t dim = 0; dim < gone.size(); ++dim)
    if (!gone[dim]) {
      to.sizes.push_back(from.sizes[dim]);
      to.strides.push_back(from.strides[dim]);
    }
  to.offset = from.offset;
  return to;
}

std::vector<Expr> squeeze_index(ViewIndex& v) {
  std::vector<Expr> index;
  size_t at = 0;
  for (bool gone : squeezed(v.arguments())) index.push_back(gone ? v.integer(0) : v.index[at++]);
  return index;
}

std::vector<Expr> same_index(ViewIndex& v) { return v.index; }

Tensor restore_shape(const Tensor& base, const Tensor& updated, const Arguments&) {
  return reshape(updated, base.sym_sizes());
}

std::optional<SymInt> optional_number(const dispatch::Value& value) {
  return value.is_none() ? std::nullopt : std::optional<SymInt>(value.sym_int());
}

SymInts unsqueezed_sizes(const Grad& g) { return g.sizes("self"); }

constexpr size_t kPiecesOfOneKernel = 32;  // of a list: each is text of the kernel, and a comparison for an element

// Batches are joined, then what they give.
Tensor joined_in_batches(const std::vector<Tensor>& tensors, int64_t dim) {
  int64_t rank = 0;
  std::optional<Dtype> dtype;
  for (const Tensor& tensor : tensors) {
    rank = std::max(rank, tensor.dim());
    dtype = dtype ? promote(*dtype, tensor.dtype()) : tensor.dtype();
  }
  std::vector<Tensor> pieces;
  for (const Tensor& tensor : tensors)
    if (tensor.dim() == rank) pieces.push_back(tensor.to(*dtype));  // others are empty
  while (pieces.size() > kPiecesOfOneKernel) {
    std::vector<Tensor> joined;
    for (size_t at = 0; at < pieces.size(); at += kPiecesOfOneKernel) {
      const size_t count = std::min(kPiecesOfOneKernel, pieces.size() - at);
      const auto begin = pieces.begin() + static_cast<std::ptrdiff_t>(at);
      joined.push_back(cat(std::vector<Tensor>(begin, begin + static_cast<std::ptrdiff_t>(count)), dim));
    }
    pieces = std::move(joined);
  }
  return cat(pieces, dim);
}

}  // namespace

OPS(view) {
  op("view(Tensor(a) self, SymInt[] size) -> Tensor(a)")
      .role(Role::Reshape)
      .view(view_geometry,
            [](ViewIndex& v) {
              const Tensor& self = v.arguments().tensor("self");
              SymInts from = self.sym_sizes();
              return reshape_index(v, from, complete_shape(v.arguments()["size"].sym_ints(), self.numel(), "view"));
            })
      .scatter(restore_shape)
      // What the strides of `self` allowed, those of another may not.
      .replay(
          [](const Tensor& other, const Arguments& arguments) { return reshape(other, arguments["size"].sym_ints()); })
      .grad("self", saves(), [](Grad& g) { return reshape(g.grad(), g.sizes("self")); });
  op("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)").decompose([](const Tensor& self, const SymInts& shape) {
    SymInts complete = complete_shape(shape, self.numel(), "reshape");
    if (view_strides(self.sym_sizes(), self.sym_strides(), complete)) return view(self, complete);
    return view(clone(self, MemoryFormat::Contiguous), complete);
  });
  op("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
      .decompose([](const Tensor& self, int64_t start_dim, int64_t end_dim) {
        int64_t start = wrap_dim(start_dim, self.dim(), "flatten"), end = wrap_dim(end_dim, self.dim(), "flatten");
        TENON_CHECK(start <= end, "[flatten] start_dim {} is after end_dim {}", start_dim, end_dim);
        if (self.dim() == 0) return reshape(self, {1});
        if (start == end) return self;
        SymInts sizes = self.sym_sizes(), shape;
        SymInt product = 1;
        for (int64_t dim = 0; dim < self.dim(); ++dim) {
          const SymInt& size = sizes[static_cast<size_t>(dim)];
          if (dim < start || dim > end) shape.push_back(size);
          if (dim >= start && dim <= end) product *= size;
          if (dim == end) shape.push_back(product);
        }
        return reshape(self, shape);
      });
  op("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)")
      .role(Role::Expand)
      .view(expand_geometry,
            [](ViewIndex& v) {
              SymInts sizes = v.arguments().tensor("self").sym_sizes();
              size_t lead = v.index.size() - sizes.size();
              std::vector<Expr> index;
              for (size_t dim = 0; dim < sizes.size(); ++dim)
                index.push_back(is_one(sizes[dim]) ? v.integer(0) : v.index[lead + dim]);
              return index;
            })
      .grad("self", saves(), [](Grad& g) { return sum_to_size(g.grad(), g.sizes("self")); });
  op("sum_to_size(Tensor self, SymInt[] size) -> Tensor").decompose([](const Tensor& self, const SymInts& size) {
    SymInts sizes = self.sym_sizes();
    TENON_CHECK(size.size() <= sizes.size(), "[sum_to_size] {} cannot be summed to {}", self.description(), str(size));
    size_t lead = sizes.size() - size.size();
    Ints dims;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      if (dim < lead || (is_one(size[dim - lead]) && !is_one(sizes[dim]))) dims.push_back(static_cast<int64_t>(dim));
    Tensor result = dims.empty() ? self : sum(self, dims, true, self.dtype());
    return lead == 0 ? result : view(result, size);
  });
  op("permute(Tensor(a) self, int[] dims) -> Tensor(a)")
      .role(Role::Permute)
      .view(
          [](const Arguments& arguments) {
            Geometry from = geometry_of(arguments.tensor("self")), to{{}, {}, from.offset};
            for (int64_t dim : permutation(arguments)) {
              to.sizes.push_back(from.sizes[static_cast<size_t>(dim)]);
              to.strides.push_back(from.strides[static_cast<size_t>(dim)]);
            }
            return to;
          },
          [](ViewIndex& v) {
            std::vector<Expr> index(v.index.size());
            Ints dims = permutation(v.arguments());
            for (size_t at = 0; at < dims.size(); ++at) index[static_cast<size_t>(dims[at])] = v.index[at];
            return index;
          })
      .scatter([](const Tensor&, const Tensor& updated, const Arguments& arguments) {
        return permute(updated, inverse(permutation(arguments)));
      })
      .grad("self", saves(), [](Grad& g) {
        Ints dims = g.argument("dims").ints();
        for (int64_t& dim : dims) dim = wrap_dim(dim, static_cast<int64_t>(dims.size()), "permute");
        return permute(g.grad(), inverse(dims));
      });
  op("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
      .decompose([](const Tensor& self, int64_t dim0, int64_t dim1) {
        int64_t a = wrap_dim(dim0, self.dim(), "transpose"), b = wrap_dim(dim1, self.dim(), "transpose");
        Ints dims;
        for (int64_t dim = 0; dim < self.dim(); ++dim) dims.push_back(dim == a ? b : dim == b ? a : dim);
        return permute(self, dims);
      });
  op("t(Tensor(a) self) -> Tensor(a)").decompose([](const Tensor& self) {
    TENON_CHECK(self.dim() <= 2, "[t] expected at most 2 dimensions, got {}", self.description());
    return self.dim() < 2 ? alias(self) : permute(self, {1, 0});
  });
  op("squeeze(Tensor(a) self) -> Tensor(a)")
      .view(squeeze_geometry, squeeze_index)
      .scatter(restore_shape)
      .grad("self", saves(), [](Grad& g) { return view(g.grad(), unsqueezed_sizes(g)); });
  op("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
      .view(squeeze_geometry, squeeze_index)
      .scatter(restore_shape)
      .grad("self", saves(), [](Grad& g) { return reshape(g.grad(), unsqueezed_sizes(g)); });
  op("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
      .view(
          [](const Arguments& arguments) {
            const Tensor& self = arguments.tensor("self");
            Geometry g = geometry_of(self);
            auto dim = static_cast<size_t>(wrap_dim(arguments.integer("dim"), self.dim() + 1, "unsqueeze"));
            SymInt stride = dim < g.sizes.size() ? g.sizes[dim] * g.strides[dim] : SymInt(1);
            g.sizes.insert(g.sizes.begin() + dim, SymInt(1));
            g.strides.insert(g.strides.begin() + dim, stride);
            return g;
          },
          [](ViewIndex& v) {
            std::vector<Expr> index = v.index;
            index.erase(index.begin() +
                        wrap_dim(v.arguments().integer("dim"), static_cast<int64_t>(index.size()), "unsqueeze"));
            return index;
          })
      .scatter(restore_shape)
      .grad("self", saves(), [](Grad& g) { return reshape(g.grad(), g.sizes("self")); });
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
  op("alias(Tensor(a) self) -> Tensor(a)")
      .view([](const Arguments& arguments) { return geometry_of(arguments.tensor("self")); }, same_index)
      .scatter([](const Tensor&, const Tensor& updated, const Arguments&) { return updated; })
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  // The same data, cut off from autograd.
  op("detach(Tensor(a) self) -> Tensor(a)")
      .view([](const Arguments& arguments) { return geometry_of(arguments.tensor("self")); }, same_index)
      .scatter([](const Tensor&, const Tensor& updated, const Arguments&) { return updated; });

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
  op("cat(Tensor[] tensors, int dim=0) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        std::span<const Tensor> tensors = e.arguments()["tensors"].tensors();
        int64_t rank = 0;
        for (const Tensor& tensor : tensors) rank = std::max(rank, tensor.dim());
        auto dim = static_cast<size_t>(e.arguments().dim("dim", rank));
        loop::Builder& builder = e.builder();
        Expr zero = builder.pool().constant(0), start = zero;
        // Each piece is asked only where no earlier one is; coordinates outside are clamped into it.
        std::vector<std::pair<Expr, const Tensor*>> pieces;
        for (const Tensor& tensor : tensors) {
          if (tensor.dim() == 1 && rank > 1) continue;  // an empty piece, as PyTorch allows
          if (statically_true(tensor.size(static_cast<int64_t>(dim)) == 0)) continue;
          pieces.emplace_back(start, &tensor);
          start = start + e.integer(tensor.size(static_cast<int64_t>(dim)));
        }
        if (pieces.empty()) return builder.constant(int64_t{0}, e.dtype());
        std::function<Lane(size_t)> from = [&](size_t at) {
          auto [begin, tensor] = pieces[at];
          Expr size = e.integer(tensor->size(static_cast<int64_t>(dim))), first = begin;
          auto piece = [&] {
            std::vector<Expr> index;
            for (size_t d = 0; d < static_cast<size_t>(rank); ++d) index.push_back(e.index(d));
            if (pieces.size() > 1) index[dim] = max(zero, min(size - 1, index[dim] - first));
            return cast(e.load(*pieces[at].second, index), e.dtype());
          };
          if (at + 1 == pieces.size()) return piece();
          Lane here = builder.index(e.index(dim)) < builder.index(begin + size);
          return builder.choose(here, piece, [&] { return from(at + 1); });
        };
        return from(0);
      })
      .in_parts([](const Arguments& arguments) { return arguments["tensors"].tensors().size() <= kPiecesOfOneKernel; },
                joined_in_batches)
      .shape([](const Arguments& arguments) {
        std::span<const Tensor> tensors = arguments["tensors"].tensors();
        TENON_CHECK_VALUE(!tensors.empty(), "[cat] expected at least one tensor");
        const Tensor* first = nullptr;
        std::optional<Dtype> dtype;
        for (const Tensor& tensor : tensors) {
          TENON_CHECK(tensor.defined(), "[cat] expected tensors, got an undefined one");
          dtype = dtype ? promote(*dtype, tensor.dtype()) : tensor.dtype();
          if (!first || tensor.dim() > first->dim()) first = &tensor;
        }
        TENON_CHECK(first->dim() > 0, "[cat] 0-d tensors cannot be concatenated");
        int64_t dim = arguments.dim("dim", first->dim());
        SymInts sizes = first->sym_sizes();
        SymInt total = 0;
        for (const Tensor& tensor : tensors) {
          if (tensor.dim() == 1 && first->dim() > 1) {
            TENON_CHECK(expect(tensor.size(0) == 0), "[cat] expected tensors of {} dimensions, got {}", first->dim(),
                        tensor.description());
            continue;
          }
          TENON_CHECK(tensor.dim() == first->dim(), "[cat] expected tensors of {} dimensions, got {}", first->dim(),
                      tensor.description());
          for (int64_t each = 0; each < tensor.dim(); ++each)
            TENON_CHECK(each == dim || same_size(tensor.size(each), first->size(each)),
                        "[cat] {} and {} differ in dimension {}, which is not the one joined ({})",
                        first->description(), tensor.description(), each, dim);
          total += tensor.size(dim);
        }
        sizes[static_cast<size_t>(dim)] = total;
        // With the channels last where they are last in all pieces.
        bool agree = std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
          return (tensor.dim() == 1 && first->dim() > 1) || tensor.suggested_format() == first->suggested_format();
        });
        return std::vector{agree ? TensorMeta::in_order_of(*first, sizes, *dtype)
                                 : TensorMeta::contiguous(sizes, *dtype, first->device())};
      })
      .grad("tensors", saves(), [](Grad& g) {
        std::vector<Tensor> pieces;
        SymInt start = 0;
        int64_t dim = g.argument("dim").integer();
        for (const SymInts& sizes : g.list_sizes("tensors")) {
          if (sizes.size() == 1 && g.grad().dim() > 1) {
            pieces.push_back(zeros(sizes, TensorOptions(g.grad().dtype(), g.grad().device())));
            continue;
          }
          SymInt length = sizes[static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(sizes.size()), "cat"))];
          pieces.push_back(slice(g.grad(), dim, start, start + length, 1));
          start += length;
        }
        return pieces;
      });
  // Elements picked along one dimension by an index tensor of the same rank.
  op("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor &self = e.arguments().tensor("self"), &index = e.arguments().tensor("index");
        auto dim = static_cast<size_t>(e.arguments().dim("dim", self.dim()));
        std::vector<Expr> at;
        for (size_t d = 0; d < static_cast<size_t>(index.dim()); ++d) at.push_back(e.index(d));
        loop::Builder& builder = e.builder();
        Lane picked = cast(e.load(index, at), kInt64);
        Lane size = builder.index(e.integer(self.dim() > 0 ? self.size(static_cast<int64_t>(dim)) : SymInt(1)));
        Lane zero = builder.constant(int64_t{0}, kInt64);
        builder.check((picked >= zero) & (picked < size), "[gather] an index is out of range");
        Expr bound = builder.bind_index(maximum(zero, minimum(picked, size - 1.0)));
        at.resize(static_cast<size_t>(self.dim()));  // one may be a list and the other a number
        if (self.dim() > 0) at[dim] = bound;
        return e.load(self, at);
      })
      .shape([](const Arguments& arguments) {
        const Tensor &self = arguments.tensor("self"), &index = arguments.tensor("index");
        // Of an empty index nobody reads the numbers.
        TENON_CHECK(index.dtype() == kInt64 || index.dtype() == kInt32 ||
                        (!is_floating(index.dtype()) && decide_or(index.numel() == 0, false)),
                    "[gather] expected an index of int64 or int32, got {}", index.description());
        const bool alike = index.dim() == self.dim(), lists = index.dim() <= 1 && self.dim() <= 1;
        TENON_CHECK(alike || lists || decide_or(index.numel() == 0, false),
                    "[gather] expected an index of {} dimensions, got {}", self.dim(), index.description());
        int64_t dim = arguments.dim("dim", self.dim());
        for (int64_t d = 0; alike && d < self.dim(); ++d)
          TENON_CHECK(d == dim || index.size(d).same(self.size(d)) || expect(index.size(d) <= self.size(d)),
                      "[gather] index {} does not fit {} in dimension {}", index.description(), self.description(), d);
        return std::vector{TensorMeta::contiguous(index.sym_sizes(), self.dtype(), self.device())};
      })
      .grad("self", saves("index"), [](Grad& g) {
        const SymInts& sizes = g.sizes("self");
        Tensor base = zeros(sizes, TensorOptions(g.dtype("self"), g.grad().device())), index = g.saved("index");
        if (index.dim() == base.dim()) return scatter_add(base, g.argument("dim").integer(), index, g.grad());
        if (decide_or(index.numel() == 0, false)) return base;
        return reshape(scatter_add(reshape(base, {-1}), 0, reshape(index, {-1}), reshape(g.grad(), {-1})), sizes);
      });
}

}  // namespace tenon::ops
