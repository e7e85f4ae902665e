// The same elements under another geometry.
#include "ops/by_name.h"
#include "ops/view/views.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::ops {
namespace {

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

SymInts unsqueezed_sizes(const Grad& g) { return g.sizes("self"); }

Tensor squeezed_in_turn(const Tensor& self, const Ints& dims) {
  std::vector<int64_t> order;
  for (int64_t dim : dims) order.push_back(dim < 0 ? dim + std::max<int64_t>(1, given(self, "squeeze").dim()) : dim);
  std::sort(order.rbegin(), order.rend());
  TENON_CHECK(std::adjacent_find(order.begin(), order.end()) == order.end(),
              "[squeeze] a dimension appears twice in the list [{}]", fmt::join(dims.begin(), dims.end(), ", "));
  Tensor result = given(self, "squeeze");
  for (int64_t dim : order) result = squeeze(result, dim);
  return result;
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
  op("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)").decompose(squeezed_in_turn);
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
  op("alias(Tensor(a) self) -> Tensor(a)")
      .view([](const Arguments& arguments) { return geometry_of(arguments.tensor("self")); }, same_index)
      .scatter([](const Tensor&, const Tensor& updated, const Arguments&) { return updated; })
      .grad("self", saves(), [](Grad& g) { return g.grad(); });
  // The same data, cut off from autograd.
  op("detach(Tensor(a) self) -> Tensor(a)")
      .view([](const Arguments& arguments) { return geometry_of(arguments.tensor("self")); }, same_index)
      .scatter([](const Tensor&, const Tensor& updated, const Arguments&) { return updated; });
}

}  // namespace tenon::ops
