// The few operators that a program has which runs functions from files and has no compiler: to make a tensor, to look
// into one, to lay one out otherwise. They do what the operators of those names do on tensors with memory; everything
// else is computed by what was compiled. Part of libtenon_runtime alone.
#include "kernels/wide_lines.h"

#include <tenon/core/tensor.h>
#include <tenon/generated/ops.h>
#include <tenon/kernels/item.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

void need(const Tensor& tensor, const char* what) {
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", what);
}

Ints plain(const SymInts& list) {
  Ints numbers;
  for (const SymInt& each : list) numbers.push_back(each.plain());
  return numbers;
}

Tensor dense(const Ints& sizes, Dtype dtype) {
  return core::allocate(sizes.span(), core::contiguous_strides(sizes.span()).span(), dtype, kCPU);
}

Tensor filled(const Ints& sizes, const Scalar& value, const TensorOptions& options) {
  Tensor result = dense(sizes, options.dtype.value_or(kFloat32));
  const Tensor one = dense({}, value.is_real() ? kFloat64 : kInt64);
  if (value.is_real())
    *one.data<double>() = value.to_double();
  else
    *one.data<int64_t>() = value.to_int();
  Ints none;
  none.resize(sizes.size(), 0);
  kernels::copy_elements(core::make_view(one, SymInts(sizes.span()), SymInts(none.span()), 0), result);
  return result;
}

int64_t dimension(int64_t dim, int64_t dims, const char* what) {
  TENON_CHECK_INDEX(dim >= -dims && dim < dims, "[{}] expected a dimension from {} to {}, got {}", what, -dims,
                    dims - 1, dim);
  return dim < 0 ? dim + dims : dim;
}

}  // namespace

Tensor empty(const SymInts& size, const TensorOptions& options, std::optional<MemoryFormat>) {
  return dense(plain(size), options.dtype.value_or(kFloat32));
}

Tensor empty_like(const Tensor& self, const TensorOptions& options, std::optional<MemoryFormat>) {
  need(self, "empty_like");
  return dense(Ints(self.sizes()), options.dtype.value_or(self.dtype()));
}

Tensor zeros(const SymInts& size, const TensorOptions& options) { return filled(plain(size), 0, options); }
Tensor ones(const SymInts& size, const TensorOptions& options) { return filled(plain(size), 1, options); }
Tensor full(const SymInts& size, const Scalar& value, const TensorOptions& options) {
  Dtype dtype = value.kind() == Scalar::Kind::Bool ? kBool : value.is_real() ? kFloat32 : kInt64;
  return filled(plain(size), value, options.dtype ? options : TensorOptions(dtype, kCPU));
}

Tensor Tensor::copy_(const Tensor& from, bool) const {
  need(*this, "copy_");
  need(from, "copy_");
  TENON_CHECK(std::ranges::equal(sizes(), from.sizes()), "[copy_] expected a tensor of the same sizes as {}, got {}",
              description(), from.description());
  kernels::copy_elements(from, *this);
  if (impl()->version) ++impl()->version->count;
  return *this;
}

Tensor Tensor::to(Dtype dtype, bool, bool copy, std::optional<MemoryFormat>) const {
  need(*this, "to");
  if (dtype == this->dtype() && !copy) return *this;
  Tensor result = dense(Ints(sizes()), dtype);
  kernels::copy_elements(*this, result);
  return result;
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat>) { return self.to(self.dtype(), false, true); }
Tensor Tensor::clone(std::optional<MemoryFormat> format) const { return tenon::clone(*this, format); }

Tensor contiguous(const Tensor& self, MemoryFormat) {
  need(self, "contiguous");
  return self.is_contiguous() ? self : clone(self);
}
Tensor Tensor::contiguous(MemoryFormat format) const { return tenon::contiguous(*this, format); }

Tensor reshape(const Tensor& self, const SymInts& shape) {
  need(self, "reshape");
  Ints sizes = plain(shape);
  int64_t known = 1, open = -1;
  for (size_t at = 0; at < sizes.size(); ++at)
    if (sizes[at] == -1 && open < 0)
      open = static_cast<int64_t>(at);
    else
      known *= sizes[at];
  const int64_t count = self.numel().plain();
  if (open >= 0 && known > 0) sizes[static_cast<size_t>(open)] = count / known, known *= count / known;
  TENON_CHECK(known == count, "[reshape] expected sizes for the elements of {}, got {}", self.description(),
              tenon::str(shape));
  Tensor flat = tenon::contiguous(self);
  return core::make_view(flat, SymInts(sizes.span()), SymInts(core::contiguous_strides(sizes.span()).span()),
                         flat.storage_offset());
}
Tensor Tensor::reshape(const SymInts& shape) const { return tenon::reshape(*this, shape); }

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  need(self, "unsqueeze");
  const auto at = dimension(dim, self.dim() + 1, "unsqueeze");
  SymInts sizes = self.sym_sizes(), strides = self.sym_strides();
  SymInt stride = at < self.dim() ? sizes[static_cast<size_t>(at)] * strides[static_cast<size_t>(at)] : SymInt(1);
  sizes.insert(sizes.begin() + at, SymInt(1));
  strides.insert(strides.begin() + at, stride);
  return core::make_view(self, sizes, strides, self.storage_offset());
}
Tensor Tensor::unsqueeze(int64_t dim) const { return tenon::unsqueeze(*this, dim); }

Tensor narrow(const Tensor& self, int64_t dim, const SymInt& start, const SymInt& length) {
  need(self, "narrow");
  const auto at = static_cast<size_t>(dimension(dim, self.dim(), "narrow"));
  const int64_t first = start.plain(), count = length.plain(), size = self.sizes()[at];
  TENON_CHECK_INDEX(first >= 0 && count >= 0 && first <= size && count <= size - first,
                    "[narrow] expected a part of {} elements, got {} from {} on", size, count, first);
  SymInts sizes = self.sym_sizes();
  sizes[at] = count;
  return core::make_view(self, sizes, self.sym_strides(), self.storage_offset() + first * self.strides()[at]);
}
Tensor Tensor::narrow(int64_t dim, const SymInt& start, const SymInt& length) const {
  return tenon::narrow(*this, dim, start, length);
}

Tensor select(const Tensor& self, int64_t dim, const SymInt& index) {
  need(self, "select");
  const auto at = static_cast<size_t>(dimension(dim, self.dim(), "select"));
  const int64_t size = self.sizes()[at], place = index.plain() < 0 ? index.plain() + size : index.plain();
  TENON_CHECK_INDEX(place >= 0 && place < size, "[select] index {} is out of range for {} elements", index.plain(),
                    size);
  SymInts sizes = self.sym_sizes(), strides = self.sym_strides();
  const int64_t offset = place * self.strides()[at];
  sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(at));
  strides.erase(strides.begin() + static_cast<ptrdiff_t>(at));
  return core::make_view(self, sizes, strides, self.storage_offset() + offset);
}
Tensor Tensor::select(int64_t dim, const SymInt& index) const { return tenon::select(*this, dim, index); }
Tensor Tensor::operator[](int64_t index) const { return tenon::select(*this, 0, index); }

Scalar Tensor::item() const { return kernels::item(*this); }

std::vector<Scalar> Tensor::tolist() const {
  TENON_CHECK(defined() && dim() == 1, "[tolist] expected a tensor of one dimension, got {}",
              defined() ? description() : "an undefined one");
  std::vector<Scalar> numbers;
  for (int64_t at = 0; at < sizes()[0]; ++at) numbers.push_back((*this)[at].item());
  return numbers;
}

// There are no gradients.
bool Tensor::requires_grad() const { return false; }
const Tensor& Tensor::set_requires_grad(bool value) const {
  TENON_CHECK_IMPLEMENTED(!value, "[set_requires_grad] a program with libtenon_runtime alone has no gradients");
  return *this;
}

}  // namespace tenon
