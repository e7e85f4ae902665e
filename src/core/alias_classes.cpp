#include "core/pointer_table.h"

#include <tenon/core/alias_classes.h>
#include <tenon/core/tensor.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon::core {
namespace {

struct Bytes {
  int64_t begin = 0, end = 0;
};

Bytes reach_of(const TensorImpl& impl) {
  int64_t size = size_of(impl.dtype), count = core::reach(impl.sizes.span(), impl.strides.span());
  return {impl.offset * size, (impl.offset + count) * size};
}

// Whether two elements may lie at one place.
bool overlaps_itself(const TensorImpl& impl) {
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

// What stands for the class of a tensor that is written and overlaps no other, but itself.
int32_t itself(size_t at) { return -1 - static_cast<int32_t>(at); }

// By tensor: the first of its class.
std::vector<int32_t> classes_of(AliasClasses::Tensors tensors, const std::vector<bool>& written) {
  std::vector<int32_t> class_of(tensors.size());
  std::iota(class_of.begin(), class_of.end(), 0);
  std::map<const Storage*, std::vector<size_t>> by_storage;
  for (size_t at = 0; at < tensors.size(); ++at) by_storage[tensors[at]->storage.get()].push_back(at);
  for (auto& [storage, members] : by_storage) {
    if (std::none_of(members.begin(), members.end(), [&](size_t at) { return written[at]; })) continue;
    std::vector<std::pair<Bytes, size_t>> ranges;
    for (size_t at : members)
      if (Bytes bytes = reach_of(*tensors[at]); bytes.begin < bytes.end) ranges.emplace_back(bytes, at);
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
      if (size_t only = ranges[first].second; last == first + 1 && written[only] && overlaps_itself(*tensors[only]))
        class_of[only] = itself(only);
    }
  }
  return class_of;
}

}  // namespace

AliasClasses::AliasClasses(std::vector<bool> written, Tensors now) : written_(std::move(written)) {
  if (std::none_of(written_.begin(), written_.end(), [](bool each) { return each; })) return;
  class_of_ = classes_of(now, written_);
  note();
}

AliasClasses::AliasClasses(std::vector<bool> written, std::vector<int32_t> class_of)
    : written_(std::move(written)), class_of_(std::move(class_of)) {
  note();
}

void AliasClasses::note() {
  for (size_t at = 0; at < written_.size(); ++at)
    if (written_[at]) writes_.push_back(at);
  for (size_t at = 0; at < class_of_.size(); ++at) any_overlap_ |= class_of_[at] != static_cast<int32_t>(at);
}

bool AliasClasses::check(Tensors tensors) const {
  if (empty()) return true;
  // Nearly always no two tensors share a storage, of which one is written, and none overlaps itself: seen without
  // looking at ranges.
  bool shared = false;
  for (size_t write : writes_) shared |= overlaps_itself(*tensors[write]);
  constexpr size_t kFewWrites = 2;
  if (writes_.size() <= kFewWrites) {
    for (size_t write : writes_) {
      const Storage* its = tensors[write]->storage.get();
      for (size_t at = 0; at < tensors.size(); ++at) shared |= tensors[at]->storage.get() == its && at != write;
    }
  } else {
    PointerTable table(tensors.size());
    for (size_t at = 0; at < tensors.size(); ++at)
      shared |= table.add(tensors[at]->storage.get(), static_cast<int32_t>(at)) != static_cast<int32_t>(at);
  }
  return shared ? classes_of(tensors, written_) == class_of_ : !any_overlap_;
}

std::optional<AliasClasses::Difference> AliasClasses::difference(Tensors tensors) const {
  if (empty()) return std::nullopt;
  std::vector<int32_t> now = classes_of(tensors, written_);
  for (size_t at = 0; at < now.size(); ++at) {
    if (now[at] == class_of_[at]) continue;
    bool overlap_now = now[at] != static_cast<int32_t>(at);
    if (now[at] == itself(at) || class_of_[at] == itself(at)) return Difference{at, at, now[at] == itself(at)};
    return Difference{static_cast<size_t>(overlap_now ? now[at] : class_of_[at]), at, overlap_now};
  }
  return std::nullopt;
}

std::vector<std::vector<size_t>> AliasClasses::classes() const {
  std::map<int32_t, std::vector<size_t>> members;
  for (size_t at = 0; at < class_of_.size(); ++at) members[class_of_[at]].push_back(at);
  std::vector<std::vector<size_t>> lists;
  for (auto& [name, list] : members)
    if (list.size() > 1) lists.push_back(std::move(list));
  return lists;
}

}  // namespace tenon::core
