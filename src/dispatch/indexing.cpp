// An index is numbers and slices, which give a view, and then masks and positions, which pick from that view.
#include <tenon/core/indexing.h>
#include <tenon/generated/ops.h>

namespace tenon {
namespace {

bool is_mask(const Tensor& index) { return index.dtype() == kBool || index.dtype() == kUInt8; }

// How many dimensions of the tensor an index stands for.
int64_t dims_of(const TensorIndex& index) {
  if (std::holds_alternative<NoneIndex>(index.choice()) || std::holds_alternative<EllipsisIndex>(index.choice()))
    return 0;
  const Tensor* tensor = std::get_if<Tensor>(&index.choice());
  return tensor && tensor->defined() && is_mask(*tensor) ? tensor->dim() : 1;
}

struct Picked {
  Tensor view;
  std::vector<std::optional<Tensor>> picks;  // by dimension of the view; empty: the view is all
};

Picked apply(const Tensor& self, std::span<const TensorIndex> indices) {
  TENON_CHECK(self.defined(), "[index] expected a tensor, got an undefined one");
  int64_t named = 0, rests = 0;
  for (const TensorIndex& index : indices) {
    named += dims_of(index);
    rests += std::holds_alternative<EllipsisIndex>(index.choice()) ? 1 : 0;
  }
  TENON_CHECK_INDEX(named <= self.dim(), "[index] expected indices for at most {} dimensions of {}, got {}", self.dim(),
                    self.description(), named);
  TENON_CHECK_INDEX(rests <= 1, "[index] expected at most one Ellipsis, got {}", rests);
  Picked result{self, {}};
  int64_t dim = 0;
  auto pick = [&](Tensor tensor, int64_t dims) {
    result.picks.resize(static_cast<size_t>(dim));
    result.picks.emplace_back(std::move(tensor));
    dim += dims;
  };
  for (const TensorIndex& index : indices) {
    if (std::holds_alternative<NoneIndex>(index.choice())) {
      result.view = unsqueeze(result.view, dim++);
    } else if (std::holds_alternative<EllipsisIndex>(index.choice())) {
      dim += self.dim() - named;
    } else if (const auto* position = std::get_if<SymInt>(&index.choice())) {
      result.view = select(result.view, dim, *position);
    } else if (const auto* part = std::get_if<Slice>(&index.choice())) {
      bool whole = !part->start() && !part->stop() && statically_true(part->step() == 1);
      if (!whole) result.view = slice(result.view, dim, part->start(), part->stop(), part->step());
      ++dim;
    } else {
      const Tensor& tensor = std::get<Tensor>(index.choice());
      TENON_CHECK(tensor.defined(), "[index] expected a tensor as an index, got an undefined one");
      if (is_mask(tensor) && tensor.dim() == 0) {
        // Of a new dimension of one element: it stays or goes.
        result.view = unsqueeze(result.view, dim);
        pick(unsqueeze(tensor, 0), 1);
      } else {
        pick(tensor, is_mask(tensor) ? tensor.dim() : 1);
      }
    }
  }
  return result;
}

// Values that are to be written into something of fewer dimensions may begin with dimensions of one element.
Tensor without_leading_ones(Tensor values, int64_t dims) {
  while (values.dim() > dims && bool(values.size(0) == 1)) values = squeeze(values, 0);
  return values;
}

}  // namespace

Tensor Tensor::index(std::span<const TensorIndex> indices) const {
  Picked picked = apply(*this, indices);
  return picked.picks.empty() ? picked.view : tenon::index(picked.view, picked.picks);
}

Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(std::span<const TensorIndex>(indices.begin(), indices.size()));
}

const Tensor& Tensor::index_put_(std::span<const TensorIndex> indices, const Tensor& values) const {
  TENON_CHECK(values.defined(), "[index_put_] expected a tensor of values, got an undefined one");
  Picked picked = apply(*this, indices);
  if (picked.picks.empty())
    tenon::copy_(picked.view, without_leading_ones(values, picked.view.dim()));
  else
    tenon::index_put_(picked.view, picked.picks, values);
  return *this;
}

const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) const {
  return index_put_(std::span<const TensorIndex>(indices.begin(), indices.size()), values);
}

const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const {
  TENON_CHECK(defined(), "[index_put_] expected a tensor, got an undefined one");
  return index_put_(indices, scalar_tensor(value, TensorOptions(dtype(), device())));
}

}  // namespace tenon
