#include <tenon/capture/marks.h>
#include <tenon/ops/arguments.h>

#include <algorithm>
#include <vector>

namespace tenon {
namespace capture {
namespace {

struct Marks final : public TensorSlot {
  std::vector<DimMark> dims;
};

DimMark& mark_at(const Tensor& tensor, int64_t dim, std::string_view function) {
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", function);
  TENON_CHECK(tensor.dim() > 0, "[{}] expected a tensor with dimensions, got {}", function, tensor.description());
  dim = ops::wrap_dim(dim, tensor.dim(), function);
  std::unique_ptr<TensorSlot>& slot = tensor.impl()->marks;
  if (!slot) slot = std::make_unique<Marks>();
  auto& dims = static_cast<Marks&>(*slot).dims;
  dims.resize(static_cast<size_t>(tensor.dim()));
  return dims[static_cast<size_t>(dim)];
}

}  // namespace

DimMark mark_of(const Tensor& tensor, int64_t dim) {
  const auto* marks = static_cast<const Marks*>(tensor.impl()->marks.get());
  if (!marks || static_cast<size_t>(dim) >= marks->dims.size()) return {};
  return marks->dims[static_cast<size_t>(dim)];
}

}  // namespace capture

void mark_dynamic(const Tensor& tensor, int64_t dim, int64_t min, int64_t max) {
  TENON_CHECK(min >= 0 && min <= max, "[mark_dynamic] expected 0 <= min <= max, got min={}, max={}", min, max);
  capture::DimMark& mark = capture::mark_at(tensor, dim, "mark_dynamic");
  mark = {capture::Mark::Dynamic, std::max<int64_t>(min, 2), max};
}
void maybe_mark_dynamic(const Tensor& tensor, int64_t dim) {
  capture::mark_at(tensor, dim, "maybe_mark_dynamic") = {capture::Mark::MaybeDynamic};
}
void mark_static(const Tensor& tensor, int64_t dim) {
  capture::mark_at(tensor, dim, "mark_static") = {capture::Mark::Static};
}
void mark_unbacked(const Tensor& tensor, int64_t dim) {
  capture::mark_at(tensor, dim, "mark_unbacked") = {capture::Mark::Unbacked, 0};
}

}  // namespace tenon
