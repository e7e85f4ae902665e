// What stands between the brackets of an index: numbers, slices, new dimensions, "the rest", masks and tensors of
// positions.
//
//   Tensor first = x.index({0});                              // [3]
//   Tensor ends = x.index({Slice(), Slice(0, None, 2)});      // [2, 2]: every second column
//   Tensor last = x.index({Ellipsis, -1});                    // [2]
//   Tensor deeper = x.index({None, 0, Slice(1)});             // [1, 2]
//   Tensor large = x.index({x > 0.5});                        // as many as there are
//   x.index_put_({Slice(), 1}, 7.0);
//   x.index_put_({zeros({1}, kInt64)}, ones({3}));
//
// Numbers and slices give views, as in PyTorch; masks and positions give copies.
#pragma once

#include <tenon/core/tensor.h>

#include <variant>

namespace tenon {

// In a namespace of their own, so that enumerations may have a `None` too.
namespace indexing {
struct NoneIndex {};
struct EllipsisIndex {};
// A dimension of one element; as an end of a slice: no end.
inline constexpr NoneIndex None;
// As many whole dimensions as are left.
inline constexpr EllipsisIndex Ellipsis;
}  // namespace indexing
using namespace indexing;

// From `start` up to, but without, `stop`, by steps of `step`; negative ends count from the back.
class Slice {
 public:
  // An end of a slice: a number, or none.
  struct End {
    std::optional<SymInt> at;
    End(NoneIndex) {}
    template <std::integral T>
    End(T position) : at(SymInt(position)) {}
    End(SymInt position) : at(std::move(position)) {}
  };

  Slice(End start = None, End stop = None, SymInt step = 1)
      : start_(std::move(start.at)), stop_(std::move(stop.at)), step_(std::move(step)) {}

  //   Slice rows(1, -1);
  //   bool bounded = rows.start().has_value() && rows.stop().has_value() && rows.step().plain() == 1;
  const std::optional<SymInt>& start() const { return start_; }
  const std::optional<SymInt>& stop() const { return stop_; }
  const SymInt& step() const { return step_; }

 private:
  std::optional<SymInt> start_, stop_;
  SymInt step_;
};

// One of them.
//
//   std::vector<TensorIndex> where = {Slice(1), 2};
//   Tensor picked = x.index(std::span<const TensorIndex>(where));
class TensorIndex {
 public:
  using Choice = std::variant<NoneIndex, EllipsisIndex, SymInt, Slice, Tensor>;

  TensorIndex(NoneIndex none) : choice_(none) {}
  TensorIndex(EllipsisIndex rest) : choice_(rest) {}
  template <PlainInteger T>
  TensorIndex(T position) : choice_(SymInt(position)) {}
  TensorIndex(SymInt position) : choice_(std::move(position)) {}
  TensorIndex(Slice slice) : choice_(std::move(slice)) {}
  // A mask (bool), or positions.
  TensorIndex(Tensor tensor) : choice_(std::move(tensor)) {}

  //   bool number = std::holds_alternative<SymInt>(TensorIndex(3).choice());
  const Choice& choice() const { return choice_; }

 private:
  Choice choice_;
};

}  // namespace tenon
