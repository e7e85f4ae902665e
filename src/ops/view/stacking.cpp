// Tensors put together and taken apart by other names: stacks, grids, splits.
#include "ops/by_name.h"

#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

using Tensors = std::vector<Tensor>;

// Of at least `rank` dimensions. The second new one of three stands in front, the third behind, as in NumPy.
Tensor at_least(const Tensor& self, int64_t rank, const char* op_name) {
  if (given(self, op_name).dim() >= rank) return self;
  if (self.dim() == 0) return reshape(self, SymInts(static_cast<size_t>(rank), SymInt(1)));
  Tensor result = self.dim() == 1 ? unsqueeze(self, 0) : self;
  return result.dim() < rank ? unsqueeze(result, -1) : result;
}

auto each_at_least(int64_t rank, const char* op_name) {
  return [rank, op_name](const Tensors& tensors) {
    Tensors result;
    for (const Tensor& each : tensors) result.push_back(at_least(each, rank, op_name));
    return result;
  };
}

Tensors raised(const Tensors& tensors, int64_t rank, const char* op_name) {
  TENON_CHECK(!tensors.empty(), "[{}] expected at least one tensor, got none", op_name);
  return each_at_least(rank, op_name)(tensors);
}

Tensor by_columns(const Tensors& tensors) {
  TENON_CHECK(!tensors.empty(), "[column_stack] expected at least one tensor, got none");
  Tensors columns;
  for (const Tensor& each : tensors)
    columns.push_back(given(each, "column_stack").dim() <= 1 ? reshape(each, SymInts{each.numel(), 1}) : each);
  return cat(columns, 1);
}

// Matrices along a diagonal, zeros elsewhere.
Tensor along_diagonal(const Tensors& tensors) {
  if (tensors.empty()) return zeros(SymInts{1, 0});
  Dtype dtype = given(tensors[0], "block_diag").dtype();
  SymInt width = 0, before = 0;
  Tensors blocks, rows;
  for (const Tensor& each : tensors) {
    TENON_CHECK(given(each, "block_diag").dim() <= 2, "[block_diag] expected tensors of at most 2 dimensions, got {}",
                each.description());
    blocks.push_back(each.dim() == 2 ? each : reshape(each, SymInts{1, each.numel()}));
    dtype = promote(dtype, each.dtype());
    width += blocks.back().size(1);
  }
  for (const Tensor& block : blocks) {
    rows.push_back(constant_pad_nd(block.to(dtype), SymInts{before, width - before - block.size(1)}));
    before += block.size(1);
  }
  return cat(rows, 0);
}

Tensors broadcast_all(const Tensors& tensors, const char* op_name) {
  std::vector<SymInts> shapes;
  for (const Tensor& each : tensors) shapes.push_back(given(each, op_name).sym_sizes());
  if (shapes.empty()) return {};
  const SymInts sizes = broadcast(shapes, op_name);
  Tensors result;
  for (const Tensor& each : tensors) result.push_back(expand(each, sizes));
  return result;
}

Tensors grids(const Tensors& tensors, std::string_view indexing) {
  TENON_CHECK(indexing == "ij" || indexing == "xy", "[meshgrid] expected indexing to be 'ij' or 'xy', got '{}'",
              indexing);
  TENON_CHECK(!tensors.empty(), "[meshgrid] expected at least one tensor, got none");
  SymInts sizes;
  for (const Tensor& each : tensors) {
    TENON_CHECK(given(each, "meshgrid").dim() <= 1, "[meshgrid] expected vectors, got {}", each.description());
    TENON_CHECK(each.dtype() == tensors[0].dtype(), "[meshgrid] expected vectors of {}, got {}",
                name(tensors[0].dtype()), each.description());
    sizes.push_back(each.numel());
  }
  Tensors result;
  for (size_t at = 0; at < tensors.size(); ++at) {
    SymInts shape(tensors.size(), SymInt(1));
    shape[at] = sizes[at];
    result.push_back(expand(view(tensors[at], shape), sizes));
  }
  if (indexing == "xy" && result.size() > 1)
    for (Tensor& each : result) each = transpose(each, 0, 1);
  return result;
}

Tensor all_combinations(const Tensors& tensors) {
  TENON_CHECK(!tensors.empty(), "[cartesian_prod] expected at least one tensor, got none");
  for (const Tensor& each : tensors)
    TENON_CHECK(given(each, "cartesian_prod").dim() == 1, "[cartesian_prod] expected vectors, got {}",
                each.description());
  if (tensors.size() == 1) return tensors[0];
  Tensors flat;
  for (const Tensor& each : grids(tensors, "ij")) flat.push_back(reshape(each, {-1}));
  return stack(flat, 1);
}

// Pieces between the given places, those behind the end empty.
Tensors between(const Tensor& self, const SymInts& places, int64_t given_dim, const char* op_name) {
  TENON_CHECK(given(self, op_name).dim() > 0, "[{}] expected a tensor with dimensions, got {}", op_name,
              self.description());
  const int64_t dim = wrap_dim(given_dim, self.dim(), op_name);
  Tensors pieces;
  SymInt before = 0;
  for (const SymInt& place : places) {
    pieces.push_back(slice(self, dim, before, place));
    before = place;
  }
  pieces.push_back(slice(self, dim, before, self.size(dim)));
  return pieces;
}

// As many pieces of as equal sizes as can be, the larger ones first.
Tensors evenly(const Tensor& self, const SymInt& sections, int64_t given_dim, const char* op_name) {
  TENON_CHECK(given(self, op_name).dim() > 0, "[{}] expected a tensor with dimensions, got {}", op_name,
              self.description());
  TENON_CHECK(sections > 0, "[{}] expected at least one section, got {}", op_name, sections.str());
  const int64_t dim = wrap_dim(given_dim, self.dim(), op_name), count = sections;
  TENON_CHECK(count <= int64_t{1} << 24, "[{}] expected at most 2^24 sections, got {}", op_name, count);
  Tensors pieces;
  SymInt at = 0;
  for (int64_t piece = 0; piece < count; ++piece) {
    const SymInt length = (self.size(dim) + (count - 1 - piece)) / count;
    pieces.push_back(narrow(self, dim, at, length));
    at += length;
  }
  return pieces;
}

// hsplit and its kin: the dimension that each cuts, and pieces that must be equal.
struct Cut {
  const char* op_name;
  int64_t least;  // dimensions
  int64_t dim;
  int64_t along(const Tensor& self) const {
    TENON_CHECK(given(self, op_name).dim() >= least, "[{}] expected a tensor of at least {} dimensions, got {}",
                op_name, least, self.description());
    return self.dim() == 1 ? 0 : dim;
  }
  Tensors equal(const Tensor& self, int64_t sections) const {
    const int64_t where = along(self);
    TENON_CHECK(sections > 0 && expect(self.size(where) % sections == 0),
                "[{}] expected sections that divide dimension {} of {}, got {}", op_name, where, self.description(),
                sections);
    return evenly(self, sections, where, op_name);
  }
  Tensors at(const Tensor& self, const Ints& indices) const {
    SymInts places;
    for (int64_t each : indices) places.push_back(each);
    return between(self, places, along(self), op_name);
  }
};
constexpr Cut kHorizontal{"hsplit", 1, 1}, kVertical{"vsplit", 2, 0}, kDeep{"dsplit", 3, 2};

Tensors copies(const Tensors& views) {
  Tensors result;
  for (const Tensor& each : views) result.push_back(clone(each, MemoryFormat::Contiguous));
  return result;
}

}  // namespace

OPS(stacking) {
  op("atleast_1d(Tensor self) -> Tensor").decompose([](const Tensor& self) { return at_least(self, 1, "atleast_1d"); });
  op("atleast_2d(Tensor self) -> Tensor").decompose([](const Tensor& self) { return at_least(self, 2, "atleast_2d"); });
  op("atleast_3d(Tensor self) -> Tensor").decompose([](const Tensor& self) { return at_least(self, 3, "atleast_3d"); });
  op("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]").decompose([](const Tensors& tensors) {
    return each_at_least(1, "atleast_1d")(tensors);
  });
  op("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]").decompose([](const Tensors& tensors) {
    return each_at_least(2, "atleast_2d")(tensors);
  });
  op("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]").decompose([](const Tensors& tensors) {
    return each_at_least(3, "atleast_3d")(tensors);
  });
  op("hstack(Tensor[] tensors) -> Tensor").decompose([](const Tensors& tensors) {
    Tensors parts = raised(tensors, 1, "hstack");
    return cat(parts, parts[0].dim() == 1 ? 0 : 1);
  });
  op("vstack(Tensor[] tensors) -> Tensor").decompose([](const Tensors& tensors) {
    return cat(raised(tensors, 2, "vstack"), 0);
  });
  op("dstack(Tensor[] tensors) -> Tensor").decompose([](const Tensors& tensors) {
    return cat(raised(tensors, 3, "dstack"), 2);
  });
  op("column_stack(Tensor[] tensors) -> Tensor").decompose(by_columns);
  op("block_diag(Tensor[] tensors) -> Tensor").decompose(along_diagonal);
  // Example: cartesian_prod({arange(2), arange(3)});
  op("cartesian_prod(Tensor[] tensors) -> Tensor").decompose(all_combinations);
  op("broadcast_tensors(Tensor[] tensors) -> Tensor[]").decompose([](const Tensors& tensors) {
    return broadcast_all(tensors, "broadcast_tensors");
  });
  op("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)").decompose([](const Tensor& self, const SymInts& size) {
    return expand(given(self, "broadcast_to"), size);
  });
  // Example: meshgrid({arange(2), arange(3)}, "ij");
  op("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]").decompose(grids);
}

OPS(splitting) {
  op("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const SymInt& sections, int64_t dim) {
        return evenly(self, sections, dim, "tensor_split");
      });
  // Example: tensor_split(x, {1, 2}, 1);
  op("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const SymInts& indices, int64_t dim) {
        return between(self, indices, dim, "tensor_split");
      });
  op("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .decompose([](const Tensor& self, int64_t sections) { return kHorizontal.equal(self, sections); });
  // Example: hsplit(x, {1, 2});
  op("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const Ints& indices) { return kHorizontal.at(self, indices); });
  op("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .decompose([](const Tensor& self, int64_t sections) { return kVertical.equal(self, sections); });
  // Example: vsplit(x, {1});
  op("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const Ints& indices) { return kVertical.at(self, indices); });
  // Example: dsplit(ones({1, 2, 4}), 2);
  op("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .decompose([](const Tensor& self, int64_t sections) { return kDeep.equal(self, sections); });
  // Example: dsplit(ones({1, 2, 4}), {1, 3});
  op("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .decompose([](const Tensor& self, const Ints& indices) { return kDeep.at(self, indices); });
  // Pieces that promise to be looked at alone: here they are copies.
  op("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
      .decompose([](const Tensor& self, const SymInt& size, int64_t dim) { return copies(split(self, size, dim)); });
  op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
      .decompose([](const Tensor& self, int64_t chunks, int64_t dim) {
        constexpr int64_t kFar = int64_t{1} << 31;
        TENON_CHECK(chunks > 0 && chunks < kFar, "[unsafe_chunk] expected from 1 to 2^31 chunks, got {}", chunks);
        return copies(chunk(self, chunks, dim));
      });
  // For graphs alone.
  op("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
      .decompose([](const Tensor& self, const SymInts& sizes, int64_t dim) {
        return copies(split_with_sizes(self, sizes, dim));
      });
  // For graphs alone.
  op("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]").decompose([](const Tensor& self, int64_t dim) {
    return copies(unbind(self, dim));
  });
}

}  // namespace tenon::ops
