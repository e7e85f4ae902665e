#include "alias_guard.h"

#include "segment.h"

namespace tenon::capture {
namespace {

SmallVector<const TensorImpl*, 16> impls_of(std::span<const Tensor> tensors) {
  SmallVector<const TensorImpl*, 16> impls;
  for (const Tensor& each : tensors) impls.push_back(each.impl());
  return impls;
}

}  // namespace

AliasGuard::AliasGuard(std::vector<InputRef> inputs, const std::vector<bool>& written, std::span<const Tensor> now)
    : classes_(written, impls_of(now).span()) {
  if (!classes_.empty()) inputs_ = std::move(inputs);
}

SmallVector<const TensorImpl*, 16> AliasGuard::inputs_of(const Frame& frame) const {
  SmallVector<const TensorImpl*, 16> impls;
  impls.reserve(inputs_.size());
  for (const InputRef& input : inputs_) impls.push_back(frame.at(input).impl());
  return impls;
}

bool AliasGuard::check(const Frame& frame) const { return inputs_.empty() || classes_.check(inputs_of(frame).span()); }

std::optional<core::AliasClasses::Difference> AliasGuard::difference(const Frame& frame) const {
  if (inputs_.empty()) return std::nullopt;
  return classes_.difference(inputs_of(frame).span());
}

}  // namespace tenon::capture
