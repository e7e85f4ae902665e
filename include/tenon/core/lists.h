// Lists of plain numbers as operators take them, and lists that may be left out.
//
//   Tensor turned = x.permute({1, 0}), sums = x.sum(1), total = x.sum({0, 1});
//   Ints dims = {0, 1};
//   OptionalInts all, some = dims;
//   bool right = !all.has_value() && some.optional()->size() == 2;
#pragma once

#include <tenon/support/small_vector.h>

#include <concepts>
#include <optional>
#include <vector>

namespace tenon {

class Ints : public SmallVector<int64_t, 5> {
 public:
  using Base = SmallVector<int64_t, 5>;
  Ints() = default;
  Ints(std::initializer_list<int64_t> items) : Base(items) {}
  Ints(std::span<const int64_t> items) : Base(items) {}
  Ints(const std::vector<int64_t>& items) : Base(items.begin(), items.end()) {}
  template <std::integral T>
  Ints(T single) : Base{static_cast<int64_t>(single)} {}
  template <typename It>
  Ints(It first, It last) : Base(first, last) {}
};

class OptionalInts {
 public:
  OptionalInts() = default;
  OptionalInts(std::nullopt_t) {}
  OptionalInts(std::initializer_list<int64_t> items) : list_(Ints(items)) {}
  OptionalInts(Ints items) : list_(std::move(items)) {}
  OptionalInts(const std::vector<int64_t>& items) : list_(Ints(items)) {}
  OptionalInts(std::optional<Ints> items) : list_(std::move(items)) {}
  template <std::integral T>
  OptionalInts(T single) : list_(Ints(single)) {}

  bool has_value() const { return list_.has_value(); }
  const Ints& operator*() const { return *list_; }
  const Ints* operator->() const { return &*list_; }
  const std::optional<Ints>& optional() const { return list_; }

 private:
  std::optional<Ints> list_;
};

}  // namespace tenon
