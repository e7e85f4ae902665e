// `Cell<T>`: state that a compiled function may read. A bare variable that a captured function reads is baked into what
// was compiled; a cell is read again, and guarded, at every call.
//
//   Cell<bool> training(true);
//   auto f = compile([&](Tensor x) { return training.get() ? x * 2 : x; });
//   training = false;                  // f follows
//
// Tensors (a module's parameters), bool, int64_t and double can be cells.
#pragma once

#include <tenon/core/tensor.h>

#include <functional>
#include <variant>

namespace tenon {

using CellContent = std::variant<bool, int64_t, double, Tensor>;

// What a cell holds; shared by copies of the cell, so that a capture can watch it.
struct CellState final : public Counted {
  CellContent content;
  std::string name;
  explicit CellState(CellContent initial) : content(std::move(initial)) {}
};

namespace core {
// While set (by a capture, on this thread), every read of a cell passes through it. It may return a stand-in.
using CellReader = std::function<CellContent(const Ref<CellState>&)>;
CellContent read_cell(const Ref<CellState>& state);
void write_cell(const Ref<CellState>& state, CellContent content);
}  // namespace core

template <typename T>
class Cell {
 public:
  Cell() : state_(make_ref<CellState>(CellContent(T{}))) {}
  Cell(T initial) : state_(make_ref<CellState>(CellContent(std::move(initial)))) {}

  //   Cell<double> rate(0.1);
  //   rate.set(rate.get() / 2);
  T get() const { return std::get<T>(core::read_cell(state_)); }
  operator T() const { return get(); }
  void set(T value) const { core::write_cell(state_, CellContent(std::move(value))); }
  Cell& operator=(T value) {
    set(std::move(value));
    return *this;
  }
  const Ref<CellState>& state() const { return state_; }

 private:
  Ref<CellState> state_;
};

}  // namespace tenon
