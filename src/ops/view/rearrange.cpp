// Repetitions and other orders of elements, and triangles: copies that fuse.
#include "ops/view/views.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

// Sizes with ones in front, so that there are `rank`.
SymInts padded(const SymInts& sizes, size_t rank) {
  SymInts result;
  result.resize(rank - sizes.size(), SymInt(1));
  for (const SymInt& size : sizes) result.push_back(size);
  return result;
}

SymInts repeated_sizes(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  SymInts repeats = arguments["repeats"].sym_ints();
  TENON_CHECK(static_cast<int64_t>(repeats.size()) >= self.dim(), "[repeat] expected at least {} numbers, got {}",
              self.dim(), str(repeats));
  SymInts sizes = padded(self.sym_sizes(), repeats.size());
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    TENON_CHECK(expect(repeats[dim] >= 0), "[repeat] expected numbers of at least 0, got {}", str(repeats));
    sizes[dim] *= repeats[dim];
  }
  return sizes;
}

// Each repetition a dimension of its own, then summed.
Tensor repeat_grad(Grad& g) {
  SymInts repeats = g.argument("repeats").sym_ints(), own = g.sizes("self"), sizes = padded(own, repeats.size()), apart;
  Ints dims;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    dims.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back(repeats[dim]);
    apart.push_back(sizes[dim]);
  }
  if (apart.empty()) return g.grad();
  for (const SymInt& repeat : repeats)
    if (statically_true(repeat == 0)) return zeros(own, TensorOptions(g.dtype("self"), g.grad().device()));
  return reshape(sum(reshape(g.grad(), apart), OptionalInts(dims)), own);
}

std::vector<bool> chosen_dims(const Arguments& arguments) {
  int64_t rank = arguments.tensor("self").dim();
  std::vector<bool> chosen(static_cast<size_t>(rank));
  for (int64_t dim : arguments["dims"].ints()) {
    auto at = static_cast<size_t>(wrap_dim(dim, rank, arguments.op().brief_name()));
    if (rank == 0) continue;
    TENON_CHECK(!chosen[at], "[{}] dimension {} appears twice", arguments.op().brief_name(), at);
    chosen[at] = true;
  }
  return chosen;
}

std::vector<TensorMeta> like_self(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", arguments.op().brief_name());
  return {TensorMeta::contiguous(self.sym_sizes(), self.dtype(), self.device())};
}

// Keeps one side of a diagonal of the last two dimensions, both included.
Lane triangle(Element& e, bool lower) {
  const Tensor& self = e.arguments().tensor("self");
  auto rank = static_cast<size_t>(self.dim());
  std::vector<Expr> at;
  for (size_t dim = 0; dim < rank; ++dim) at.push_back(e.index(dim));
  loop::Builder& b = e.builder();
  Lane distance = b.index(at[rank - 1] - at[rank - 2]), limit = b.constant(e.arguments().integer("diagonal"), kInt64);
  Lane x = e.load(self, at);
  return select(lower ? distance <= limit : distance >= limit, x, x.dtype() == kBool ? x ^ x : number(x, 0));
}

std::vector<TensorMeta> triangle_shape(const Arguments& arguments) {
  TENON_CHECK(arguments.tensor("self").defined() && arguments.tensor("self").dim() >= 2,
              "[{}] expected a tensor of at least two dimensions", arguments.op().brief_name());
  return like_self(arguments);
}

}  // namespace

OPS(rearrangement) {
  op("repeat(Tensor self, SymInt[] repeats) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor& self = e.arguments().tensor("self");
        SymInts sizes = self.sym_sizes(), repeats = e.arguments()["repeats"].sym_ints();
        size_t lead = repeats.size() - sizes.size();
        std::vector<Expr> at;
        for (size_t dim = 0; dim < sizes.size(); ++dim) {
          Expr index = e.index(lead + dim);
          bool whole = statically_true(repeats[lead + dim] == 1) || statically_true(sizes[dim] == 0);
          at.push_back(whole                              ? index
                       : statically_true(sizes[dim] == 1) ? e.integer(0)
                                                          : mod(index, e.integer(sizes[dim])));
        }
        return e.load(self, at);
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        TENON_CHECK(self.defined(), "[repeat] expected a tensor, got an undefined one");
        return std::vector{TensorMeta::contiguous(repeated_sizes(arguments), self.dtype(), self.device())};
      })
      .grad("self", saves(), repeat_grad);
  op("tile(Tensor self, SymInt[] dims) -> Tensor").decompose([](const Tensor& self, const SymInts& dims) {
    return repeat(self, padded(dims, std::max(dims.size(), static_cast<size_t>(self.dim()))));
  });
  op("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
      .decompose([](const Tensor& self, const SymInt& repeats, std::optional<int64_t> dim,
                    const std::optional<SymInt>&) {
        TENON_CHECK(expect(repeats >= 0), "[repeat_interleave] expected a number of at least 0, got {}", repeats.str());
        Tensor x = dim && self.dim() > 0 ? self : reshape(self, {-1});
        int64_t along = wrap_dim(dim && self.dim() > 0 ? *dim : 0, x.dim(), "repeat_interleave");
        SymInts apart = x.sym_sizes(), shape = x.sym_sizes();
        apart.insert(apart.begin() + along + 1, repeats);
        shape[static_cast<size_t>(along)] *= repeats;
        return reshape(clone(expand(unsqueeze(x, along + 1), apart), MemoryFormat::Contiguous), shape);
      });
  op("flip(Tensor self, int[] dims) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor& self = e.arguments().tensor("self");
        std::vector<bool> flipped = chosen_dims(e.arguments());
        std::vector<Expr> at;
        for (size_t dim = 0; dim < flipped.size(); ++dim)
          at.push_back(flipped[dim] ? e.integer(self.size(static_cast<int64_t>(dim))) - 1 - e.index(dim)
                                    : e.index(dim));
        return e.load(self, at);
      })
      .shape([](const Arguments& arguments) {
        chosen_dims(arguments);
        const Tensor& self = arguments.tensor("self");
        SymInts sizes = self.sym_sizes();
        return std::vector{TensorMeta{sizes, pointwise_strides(sizes, {&self, 1}), self.dtype(), self.device()}};
      })
      .grad("self", saves(), [](Grad& g) { return flip(g.grad(), g.argument("dims").ints()); });
  op("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
      .decompose([](const Tensor& self, const SymInts& shifts, const Ints& dims) {
        if (dims.empty()) {
          TENON_CHECK(shifts.size() == 1, "[roll] expected one shift without dimensions, got {}", str(shifts));
          return reshape(roll(reshape(self, {-1}), shifts, Ints{0}), self.sym_sizes());
        }
        TENON_CHECK(shifts.size() == dims.size(), "[roll] expected a shift for each dimension, got {} for {}",
                    shifts.size(), dims.size());
        Tensor result = self;
        for (size_t at = 0; at < dims.size(); ++at)
          result = _roll(result, shifts[at], wrap_dim(dims[at], dimensioned(self, "roll").dim(), "roll"));
        return result;
      });
  op("_roll(Tensor self, SymInt shift, int dim) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        const Tensor& self = e.arguments().tensor("self");
        auto dim = static_cast<size_t>(e.arguments().dim("dim", self.dim()));
        SymInt size = self.size(static_cast<int64_t>(dim)), shift = e.arguments()["shift"].sym_int();
        std::vector<Expr> at;
        for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) at.push_back(e.index(d));
        if (!statically_true(size == 0))
          at[dim] = mod(at[dim] + e.integer(size - shift % max(size, SymInt(1))), e.integer(size));
        return e.load(self, at);
      })
      .shape([](const Arguments& arguments) {
        dimensioned(arguments.tensor("self"), "roll");
        arguments.dim("dim", arguments.tensor("self").dim());
        // Where an element comes from is computed from its place and the shift, in 64 bits.
        constexpr int64_t kFar = int64_t{1} << 62;
        SymInt shift = arguments["shift"].sym_int();
        TENON_CHECK(expect(shift < kFar) && expect(shift > -kFar),
                    "[roll] expected a shift between -2^62 and 2^62, got {}", shift.str());
        return like_self(arguments);
      })
      .grad("self", saves(),
            [](Grad& g) { return _roll(g.grad(), -g.argument("shift").sym_int(), g.argument("dim").integer()); });
  op("tril(Tensor self, int diagonal=0) -> Tensor")
      .moves_elements()
      .element([](Element& e) { return triangle(e, true); })
      .shape(triangle_shape)
      .with_inplace()
      .grad("self", saves(), [](Grad& g) { return tril(g.grad(), g.argument("diagonal").integer()); });
  op("triu(Tensor self, int diagonal=0) -> Tensor")
      .moves_elements()
      .element([](Element& e) { return triangle(e, false); })
      .shape(triangle_shape)
      .with_inplace()
      .grad("self", saves(), [](Grad& g) { return triu(g.grad(), g.argument("diagonal").integer()); });
}

}  // namespace tenon::ops
