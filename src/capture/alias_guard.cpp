#include "alias_guard.h"

#include "pointer_table.h"
#include "segment.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon::capture {
namespace {

struct Bytes {
  int64_t begin = 0, end = 0;
};

Bytes reach_of(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  int64_t size = size_of(impl.dtype), count = core::reach(impl.sizes.span(), impl.strides.span());
  return {impl.offset * size, (impl.offset + count) * size};
}

// Whether two elements may lie at one place.
bool overlaps_itself(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  bool nested = true;  // as they stand, which they nearly always do
  int64_t reach = 1;
  for (size_t at = impl.sizes.size(); at-- > 0;) {
    if (impl.sizes[at] == 0) return false;
    if (impl.sizes[at] == 1) continue;
    nested &= impl.strides[at] >= reach;
    reach = impl.strides[at] * impl.sizes[at];
  }
  if (nested) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride and size
  for (size_t at = 0; at < impl.sizes.size(); ++at)
    if (impl.sizes[at] > 1) dims.emplace_back(impl.strides[at], impl.sizes[at]);
  std::sort(dims.begin(), dims.end());
  reach = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < reach) return true;
    reach = stride * size;
  }
  return false;
}

// What stands for the class of an input that is written and overlaps no other, but itself.
int32_t itself(size_t at) { return -1 - static_cast<int32_t>(at); }

// By tensor: the first of its class. `get(position)` gives a tensor.
template <typename Get>
std::vector<int32_t> classes_of(size_t count, const std::vector<bool>& written, Get get) {
  std::vector<int32_t> class_of(count);
  std::iota(class_of.begin(), class_of.end(), 0);
  std::map<const Storage*, std::vector<size_t>> by_storage;
  for (size_t at = 0; at < count; ++at) by_storage[get(at).impl()->storage.get()].push_back(at);
  for (auto& [storage, members] : by_storage) {
    if (std::none_of(members.begin(), members.end(), [&](size_t at) { return written[at]; })) continue;
    std::vector<std::pair<Bytes, size_t>> ranges;
    for (size_t at : members)
      if (Bytes bytes = reach_of(get(at)); bytes.begin < bytes.end) ranges.emplace_back(bytes, at);
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
    // A run of ranges that overlap is a class; its first member names it.
    for (size_t first = 0, last; first < ranges.size(); first = last) {
      int64_t end = ranges[first].first.end;
      auto name = static_cast<int32_t>(ranges[first].second);
      for (last = first + 1; last < ranges.size() && ranges[last].first.begin < end; ++last) {
        end = std::max(end, ranges[last].first.end);
        name = std::min(name, static_cast<int32_t>(ranges[last].second));
      }
      for (size_t at = first; at < last; ++at) class_of[ranges[at].second] = name;
      if (size_t only = ranges[first].second; last == first + 1 && written[only] && overlaps_itself(get(only)))
        class_of[only] = itself(only);
    }
  }
  return class_of;
}

}  // namespace

AliasGuard::AliasGuard(std::vector<InputRef> inputs, const std::vector<bool>& written, std::span<const Tensor> now)
    : written_(written) {
  for (size_t at = 0; at < written.size(); ++at)
    if (written[at]) writes_.push_back(at);
  if (writes_.empty()) return;
  inputs_ = std::move(inputs);
  class_of_ = classes_of(inputs_.size(), written_, [&](size_t at) -> const Tensor& { return now[at]; });
  for (size_t at = 0; at < class_of_.size(); ++at) any_overlap_ |= class_of_[at] != static_cast<int32_t>(at);
}

std::vector<int32_t> AliasGuard::classes_now(const Frame& frame) const {
  return classes_of(inputs_.size(), written_, [&](size_t at) -> const Tensor& { return frame.at(inputs_[at]); });
}

bool AliasGuard::check(const Frame& frame) const {
  if (inputs_.empty()) return true;
  // Nearly always no two inputs share a storage, of which one is written, and none overlaps itself: seen without
  // looking at ranges.
  bool shared = false;
  auto storage = [&](size_t at) { return frame.at(inputs_[at]).impl()->storage.get(); };
  for (size_t write : writes_) shared |= overlaps_itself(frame.at(inputs_[write]));
  constexpr size_t kFewWrites = 2;
  if (writes_.size() <= kFewWrites) {
    for (size_t write : writes_) {
      const Storage* its = storage(write);
      for (size_t at = 0; at < inputs_.size(); ++at) shared |= storage(at) == its && at != write;
    }
  } else {
    PointerTable table(inputs_.size());
    for (size_t at = 0; at < inputs_.size(); ++at)
      shared |= table.add(storage(at), static_cast<int32_t>(at)) != static_cast<int32_t>(at);
  }
  return shared ? classes_now(frame) == class_of_ : !any_overlap_;
}

std::optional<AliasGuard::Difference> AliasGuard::difference(const Frame& frame) const {
  if (inputs_.empty()) return std::nullopt;
  std::vector<int32_t> now = classes_now(frame);
  for (size_t at = 0; at < now.size(); ++at) {
    if (now[at] == class_of_[at]) continue;
    bool overlap_now = now[at] != static_cast<int32_t>(at);
    if (now[at] == itself(at) || class_of_[at] == itself(at)) return Difference{at, at, now[at] == itself(at)};
    return Difference{static_cast<size_t>(overlap_now ? now[at] : class_of_[at]), at, overlap_now};
  }
  return std::nullopt;
}

std::vector<std::vector<size_t>> AliasGuard::classes() const {
  std::map<int32_t, std::vector<size_t>> members;
  for (size_t at = 0; at < class_of_.size(); ++at) members[class_of_[at]].push_back(at);
  std::vector<std::vector<size_t>> lists;
  for (auto& [name, list] : members)
    if (list.size() > 1) lists.push_back(std::move(list));
  return lists;
}

}  // namespace tenon::capture
