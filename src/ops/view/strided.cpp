// Views that say their strides themselves, and what writes through them and their gradients are as values.
//
// The place of an element is its distance in memory from the first element of `self`. A view names places; values have
// none, so the rows that stand for a write or a gradient are told the strides that `self` had. From coordinates to a
// place is a sum of products. Back again needs strides that nest: each steps over everything that the dimensions
// further inside reach, so that divisions find the coordinates.
#include <tenon/ops/strided.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::ops {
namespace {

// Dimensions from the outermost in; nothing if the strides do not nest.
std::optional<Ints> nesting(const SymInts& sizes, const SymInts& strides) {
  Ints inward;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (is_one(sizes[dim])) continue;
    if (!decide_or(strides[dim] > 0, false)) return std::nullopt;
    auto at = inward.begin();
    while (at != inward.end() && !decide_or(strides[static_cast<size_t>(*at)] < strides[dim], false)) ++at;
    inward.insert(at, static_cast<int64_t>(dim));
  }
  SymInt reached = 0;
  for (size_t at = inward.size(); at-- > 0;) {
    auto dim = static_cast<size_t>(inward[at]);
    if (!decide_or(strides[dim] > reached, false)) return std::nullopt;
    reached = reached + (sizes[dim] - 1) * strides[dim];
  }
  return inward;
}

bool is_empty(const SymInts& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const SymInt& size) { return is_zero(size); });
}

Expr place_of(Element& e, size_t rank, const SymInts& strides, const SymInt& offset) {
  Expr place = e.integer(offset);
  for (size_t dim = 0; dim < rank; ++dim) place = place + e.index(dim) * e.integer(strides[dim]);
  return place;
}

// The element at a place: its coordinates, clamped to those that there are, and whether there is one.
struct Found {
  std::vector<Expr> index;
  Lane there;
};

Found find(Element& e, Expr place, const SymInts& sizes, const SymInts& strides, const Ints& order) {
  loop::Builder& b = e.builder();
  Expr zero = e.integer(0), rest = place;
  Found found{std::vector<Expr>(sizes.size(), zero), b.index(place) >= b.index(zero)};
  for (int64_t each : order) {
    auto dim = static_cast<size_t>(each);
    Expr stride = e.integer(strides[dim]), size = e.integer(sizes[dim]), at = floor_div(rest, stride);
    rest = mod(rest, stride);
    found.there = found.there & (b.index(at) < b.index(size));
    found.index[dim] = max(zero, min(size - 1, at));
  }
  if (!rest.is_constant(0)) found.there = found.there & (b.index(rest) == b.index(zero));
  return found;
}

// The place of every element, in row-major order.
Tensor places(const SymInts& sizes, const SymInts& strides, const SymInt& offset, Device device) {
  TensorOptions whole(kInt64, device);
  Tensor result = full(SymInts{}, Scalar(offset), whole);
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    SymInts shape;
    shape.resize(sizes.size() - dim, SymInt(1));
    shape[0] = sizes[dim];
    result = result + view(arange(Scalar(sizes[dim]), whole) * Scalar(strides[dim]), shape);
  }
  return reshape(expand(result, sizes), {-1});
}

// Places from 0 on; the last one collects all others.
struct Memory {
  SymInt reach;
  Memory(const SymInts& sizes, const SymInts& strides) : reach(1) {
    for (size_t dim = 0; dim < sizes.size(); ++dim) reach = reach + (sizes[dim] - 1) * strides[dim];
  }
  Tensor within(const Tensor& at) const {
    return where(logical_and(at >= Scalar(0), at < Scalar(reach)), at, full_like(at, Scalar(reach)));
  }
};

Tensor gathered(const Tensor& self, const SymInts& self_stride, const SymInts& size, const SymInts& stride,
                const SymInt& offset) {
  std::optional<Ints> order = nesting(self.sym_sizes(), self_stride);
  if (order) return _strided_gather(self, self_stride, size, stride, offset, *order);
  // Several elements lie at one place: any of them will do.
  SymInts own = self.sym_sizes();
  if (is_empty(own)) return zeros(size, TensorOptions(self.dtype(), self.device()));
  Memory memory(own, self_stride);
  Tensor whole = zeros(SymInts{memory.reach + 1}, TensorOptions(self.dtype(), self.device()));
  whole = scatter(whole, 0, places(own, self_stride, 0, self.device()), reshape(self, {-1}));
  Tensor at = memory.within(places(size, stride, offset, self.device()));
  return reshape(index_select(whole, 0, at), size);
}

Tensor scattered(const Tensor& self, const Tensor& src, const SymInts& self_stride, const SymInts& stride,
                 const SymInt& offset) {
  SymInts own = self.sym_sizes();
  if (is_empty(own) || is_empty(src.sym_sizes())) return clone(self);
  if (std::optional<Ints> order = nesting(src.sym_sizes(), stride))
    return _strided_scatter(self, src, self_stride, stride, offset, *order);
  // Which element of the source comes to lie at each place, or none.
  Memory memory(own, self_stride);
  TensorOptions whole(kInt64, self.device());
  Tensor from = memory.within(places(src.sym_sizes(), stride, offset, self.device()));
  Tensor writer =
      scatter(full(SymInts{memory.reach + 1}, Scalar(-1), whole), 0, from, arange(Scalar(src.numel()), whole));
  writer = index_select(writer, 0, places(own, self_stride, 0, self.device()));
  // (If it comes to nothing, there is still something to look at.)
  Tensor values = constant_pad_nd(reshape(src, {-1}), SymInts{0, 1});
  Tensor value = index_select(values, 0, clamp(writer, Scalar(0)));
  return reshape(where(writer >= Scalar(0), value, reshape(self, {-1})), own);
}

// What the views of a place say, summed.
Tensor folded(const Tensor& grad, const SymInts& self_size, const SymInts& self_stride, const SymInts& stride,
              const SymInt& offset) {
  TensorOptions like(grad.dtype(), grad.device());
  Tensor zero = zeros(self_size, like);
  if (is_empty(self_size) || is_empty(grad.sym_sizes())) return zero;
  bool own_places = nesting(self_size, self_stride).has_value();
  if (own_places && nesting(grad.sym_sizes(), stride)) return scattered(zero, grad, self_stride, stride, offset);
  Memory memory(self_size, self_stride);
  Tensor whole = zeros(SymInts{memory.reach + 1}, like);
  Tensor from = memory.within(places(grad.sym_sizes(), stride, offset, grad.device()));
  Tensor at = places(self_size, self_stride, 0, grad.device());
  Tensor sum = index_select(scatter_add(whole, 0, from, reshape(grad, {-1})), 0, at);
  // Elements of `self` that lie at one place share what is said of it.
  if (!own_places) sum = sum / index_select(scatter_add(whole, 0, at, ones_like(at, like)), 0, at);
  return reshape(sum, self_size);
}

// Places that the kernels below compute with, in 64 bits.
void check_places(std::string_view op_name, const SymInts& size, const SymInts& stride, const SymInt& offset) {
  TENON_CHECK(size.size() == stride.size(), "[{}] expected as many strides as sizes, got {} and {}", op_name,
              str(stride), str(size));
  constexpr int64_t kFar = int64_t{1} << 62;
  SymInt first = offset, last = offset;
  for (size_t dim = 0; dim < size.size(); ++dim) {
    if (is_one(size[dim]) || is_zero(size[dim])) continue;
    SymInt reach = (size[dim] - 1) * stride[dim];
    (decide_or(stride[dim] < 0, false) ? first : last) += reach;
  }
  TENON_CHECK(expect(last < kFar) && expect(first > -kFar),
              "[{}] expected places between -2^62 and 2^62, got sizes {} with strides {} from {}", op_name, str(size),
              str(stride), offset.str());
}

// `order` names each of its dimensions at most once.
void check_order(std::string_view op_name, const Ints& order, size_t rank) {
  std::vector<bool> named(rank);
  for (int64_t dim : order) {
    TENON_CHECK(dim >= 0 && dim < static_cast<int64_t>(rank) && !named[static_cast<size_t>(dim)],
                "[{}] expected an order of {} dimensions, each at most once, got [{}]", op_name, rank,
                fmt::join(order, ", "));
    named[static_cast<size_t>(dim)] = true;
  }
}

void check_strides(std::string_view op_name, const SymInts& size, const SymInts& stride) {
  TENON_CHECK(size.size() == stride.size(), "[{}] expected as many strides as sizes, got {} and {}", op_name,
              str(stride), str(size));
  for (size_t dim = 0; dim < size.size(); ++dim)
    TENON_CHECK(may_be_size(size[dim]) && may_be_size(stride[dim]),
                "[{}] expected sizes and strides of at least 0, got {} and {}", op_name, str(size), str(stride));
}

Geometry geometry_at(const Tensor& self, const SymInts& size, const SymInts& stride, const SymInt& from_first_element) {
  check_strides("as_strided", size, stride);
  SymInt offset = self.sym_storage_offset() + from_first_element;
  TENON_CHECK(expect(offset >= 0), "[as_strided] expected a storage offset of at least 0, got {}", offset.str());
  if (self.impl()->storage->has_data()) {
    SymInt last = offset.plain(), room = self.impl()->storage->bytes() / self.element_size();
    for (size_t dim = 0; dim < size.size(); ++dim) last += (SymInt(size[dim].plain()) - 1) * stride[dim].plain();
    TENON_CHECK(is_empty(size) || last.plain() < room.plain(),
                "[as_strided] sizes {} with strides {} from offset {} reach element {} of a storage that has {}",
                str(size), str(stride), offset.str(), last.str(), room.str());
  }
  return {size, stride, offset};
}

Geometry strided_geometry(const Arguments& arguments) {
  return geometry_at(arguments.tensor("self"), arguments["size"].sym_ints(), arguments["stride"].sym_ints(),
                     arguments["offset"].sym_int());
}

// Coordinates of what lies densely, from the places that a view names.
std::vector<Expr> index_at(ViewIndex& v, const SymInts& stride, const SymInt& offset) {
  const Tensor& self = v.arguments().tensor("self");
  SymInts sizes = self.sym_sizes(), strides = self.sym_strides();
  std::optional<Ints> order = dense_order(sizes, strides);
  TENON_ASSERT(order, "{} is not dense, and has no index of a place", self.description());
  Expr rest = v.integer(offset);
  for (size_t dim = 0; dim < stride.size(); ++dim) rest = rest + v.index[dim] * v.integer(stride[dim]);
  std::vector<Expr> index(sizes.size(), v.integer(0));
  for (int64_t each : *order) {
    auto dim = static_cast<size_t>(each);
    index[dim] = floor_div(rest, v.integer(strides[dim]));
    rest = mod(rest, v.integer(strides[dim]));
  }
  return index;
}

std::vector<Expr> strided_index(ViewIndex& v) {
  return index_at(v, v.arguments()["stride"].sym_ints(), v.arguments()["offset"].sym_int());
}

// Of a slice of a tensor like `src`: how far the tensor's first element lies from the slice's.
SymInt back_to_whole(const Arguments& arguments) {
  const Tensor& src = arguments.tensor("src");
  const dispatch::Value& start = arguments["start"];
  auto dim = static_cast<size_t>(arguments.dim("dim", src.dim()));
  TENON_CHECK(src.dim() > 0, "[slice_inverse] expected a tensor with dimensions, got {}", src.description());
  SymInt size = src.sym_sizes()[dim], first = start.is_none() ? SymInt(0) : start.sym_int();
  if (decide_or(first < 0, false)) first = first + size;
  TENON_CHECK(expect(first >= 0) && expect(first <= size),
              "[slice_inverse] expected a start within dimension {} of {}, got {}", dim, src.description(),
              start.str());
  return -(first * src.sym_strides()[dim]);
}

SymInt from_first(const Tensor& self, const std::optional<SymInt>& storage_offset) {
  return storage_offset ? *storage_offset - self.sym_storage_offset() : SymInt(0);
}

}  // namespace

OPS(strided) {
  // Example: as_strided(x, {2, 2}, {1, 2}, 1);
  op("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)")
      .decompose([](const Tensor& self, const SymInts& size, const SymInts& stride,
                    const std::optional<SymInt>& storage_offset) {
        return _strided_view(self, size, stride, from_first(self, storage_offset));
      })
      .captured_in_parts();
  // Example: as_strided_scatter(x, ones({2, 2}), {2, 2}, {1, 2}, 1);
  op("as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
     "Tensor")
      .decompose([](const Tensor& self, const Tensor& src, const SymInts& size, const SymInts& stride,
                    const std::optional<SymInt>& storage_offset) {
        check_strides("as_strided_scatter", size, stride);
        SymInts given = src.sym_sizes();
        bool fits = given.size() == size.size();
        for (size_t dim = 0; fits && dim < size.size(); ++dim) fits = same_size(given[dim], size[dim]);
        TENON_CHECK(fits && src.dtype() == self.dtype(), "[as_strided_scatter] expected a source of {}{}, got {}",
                    name(self.dtype()), str(size), src.description());
        return scattered(self, src, self.sym_strides(), stride, from_first(self, storage_offset));
      })
      .captured_in_parts();
  // `offset` counts from the first element of `self`, which stays right when another tensor takes its place.
  // Example: _strided_view(x, {2, 2}, {1, 2}, 1);
  op("_strided_view(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt offset) -> Tensor(a)")
      .view(strided_geometry, strided_index)
      .of_storage()
      .replay([](const Tensor& other, const Arguments& arguments) {
        return gathered(other, arguments.tensor("self").sym_strides(), arguments["size"].sym_ints(),
                        arguments["stride"].sym_ints(), arguments["offset"].sym_int());
      })
      .scatter([](const Tensor& base, const Tensor& updated, const Arguments& arguments) {
        return scattered(base, updated, arguments.tensor("self").sym_strides(), arguments["stride"].sym_ints(),
                         arguments["offset"].sym_int());
      })
      .grad("self", saves(), [](Grad& g) {
        return _strided_fold(g.grad(), g.sizes("self"), g.strides("self"), g.argument("stride").sym_ints(),
                             g.argument("offset").sym_int());
      });
  // What a slice was taken of: a tensor with the sizes and strides of `src`, in the memory of `self`.
  // Example: slice_inverse(slice(x, 1, 1, 3), x, 1, 1, 3);
  op("slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
     "Tensor(a)")
      .decompose([](const Tensor& self, const Tensor& src, int64_t dim, const std::optional<SymInt>& start,
                    const std::optional<SymInt>& end, const SymInt& step) {
        static const dispatch::Operator& inverse = dispatch::find_operator("aten::slice_inverse");
        const dispatch::Value args[] = {dispatch::Value(self),  dispatch::Value(src), dispatch::Value(dim),
                                        dispatch::Value(start), dispatch::Value(end), dispatch::Value(step)};
        return _strided_view(self, src.sym_sizes(), src.sym_strides(), back_to_whole(Arguments(inverse, args)));
      })
      .view(
          [](const Arguments& arguments) {
            const Tensor& src = arguments.tensor("src");
            TENON_CHECK(src.defined() && arguments.tensor("self").defined(),
                        "[slice_inverse] expected a tensor, got an undefined one");
            return geometry_at(arguments.tensor("self"), src.sym_sizes(), src.sym_strides(), back_to_whole(arguments));
          },
          [](ViewIndex& v) {
            return index_at(v, v.arguments().tensor("src").sym_strides(), back_to_whole(v.arguments()));
          })
      .of_storage()
      .captured_in_parts()
      .ignores("src")
      .replay([](const Tensor& other, const Arguments& arguments) {
        const Tensor& src = arguments.tensor("src");
        return gathered(other, arguments.tensor("self").sym_strides(), src.sym_sizes(), src.sym_strides(),
                        back_to_whole(arguments));
      })
      .scatter([](const Tensor& base, const Tensor& updated, const Arguments& arguments) {
        return scattered(base, updated, arguments.tensor("self").sym_strides(), arguments.tensor("src").sym_strides(),
                         back_to_whole(arguments));
      })
      .grad("self", saves(), [](Grad& g) {
        auto number = [&](const char* argument) {
          const dispatch::Value& value = g.argument(argument);
          return value.is_none() ? std::nullopt : std::optional(value.sym_int());
        };
        return slice(g.grad(), g.argument("dim").integer(), number("start"), number("end"),
                     g.argument("step").sym_int());
      });
  // The gradient of a view: elements of it that lie at one place are summed.
  // Example: _strided_fold(ones({2, 2}), {2, 3}, {3, 1}, {1, 2}, 1);
  op("_strided_fold(Tensor grad, SymInt[] self_size, SymInt[] self_stride, SymInt[] stride, SymInt offset) -> Tensor")
      .decompose(folded);
  // What lies at the places of a view of `self`, if `self` has these strides; 0 between its elements.
  // Example: _strided_gather(x, {3, 1}, {2, 2}, {1, 2}, 1, {0, 1});
  op("_strided_gather(Tensor self, SymInt[] self_stride, SymInt[] size, SymInt[] stride, SymInt offset, int[] order) "
     "-> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor& self = e.arguments().tensor("self");
        SymInts sizes = self.sym_sizes(), stride = e.arguments()["stride"].sym_ints();
        Lane nothing = e.builder().constant(int64_t{0}, e.dtype());
        if (is_empty(sizes)) return nothing;
        Expr place = place_of(e, stride.size(), stride, e.arguments()["offset"].sym_int());
        Found found = find(e, place, sizes, e.arguments()["self_stride"].sym_ints(), e.arguments()["order"].ints());
        return e.builder().choose(
            found.there, [&] { return cast(e.load(self, found.index), e.dtype()); }, [&] { return nothing; });
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        SymInts size = arguments["size"].sym_ints();
        check_places("_strided_gather", self.sym_sizes(), arguments["self_stride"].sym_ints(), 0);
        check_places("_strided_gather", size, arguments["stride"].sym_ints(), arguments["offset"].sym_int());
        check_order("_strided_gather", arguments["order"].ints(), static_cast<size_t>(self.dim()));
        return std::vector{TensorMeta::contiguous(size, self.dtype(), self.device())};
      })
      .grad("self", saves(), [](Grad& g) {
        return _strided_fold(g.grad(), g.sizes("self"), g.argument("self_stride").sym_ints(),
                             g.argument("stride").sym_ints(), g.argument("offset").sym_int());
      });
  // `self` with what lies at the places of a view replaced. `order`: how the view's strides nest.
  // Example: _strided_scatter(x, ones({2, 2}), {3, 1}, {1, 2}, 1, {1, 0});
  op("_strided_scatter(Tensor self, Tensor src, SymInt[] self_stride, SymInt[] stride, SymInt offset, int[] order) -> "
     "Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor &self = e.arguments().tensor("self"), &src = e.arguments().tensor("src");
        std::vector<Expr> index;
        for (size_t dim = 0; dim < static_cast<size_t>(self.dim()); ++dim) index.push_back(e.index(dim));
        if (is_empty(src.sym_sizes())) return e.load(self, index);
        SymInts self_stride = e.arguments()["self_stride"].sym_ints();
        Expr place = place_of(e, index.size(), self_stride, -e.arguments()["offset"].sym_int());
        Found found =
            find(e, place, src.sym_sizes(), e.arguments()["stride"].sym_ints(), e.arguments()["order"].ints());
        return e.builder().choose(
            found.there, [&] { return e.load(src, found.index); }, [&] { return e.load(self, index); });
      })
      .shape([](const Arguments& arguments) {
        const Tensor &self = arguments.tensor("self"), &src = arguments.tensor("src");
        SymInts sizes = self.sym_sizes();
        check_places("_strided_scatter", sizes, arguments["self_stride"].sym_ints(), -arguments["offset"].sym_int());
        check_places("_strided_scatter", src.sym_sizes(), arguments["stride"].sym_ints(), 0);
        check_order("_strided_scatter", arguments["order"].ints(), static_cast<size_t>(src.dim()));
        return std::vector{TensorMeta{sizes, pointwise_strides(sizes, {&self, 1}), self.dtype(), self.device()}};
      })
      .grad("self", saves(),
            [](Grad& g) {
              Tensor hole = zeros(g.sizes("src"), TensorOptions(g.dtype("self"), g.grad().device()));
              return scattered(g.grad(), hole, g.argument("self_stride").sym_ints(), g.argument("stride").sym_ints(),
                               g.argument("offset").sym_int());
            })
      .grad("src", saves(), [](Grad& g) {
        return gathered(g.grad(), g.argument("self_stride").sym_ints(), g.sizes("src"), g.argument("stride").sym_ints(),
                        g.argument("offset").sym_int());
      });
}

}  // namespace tenon::ops
