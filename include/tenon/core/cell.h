// `Cell<T>`: state that a compiled function may read. A bare variable that a captured function reads is baked into what
// was compiled; a cell is read again, and guarded, at every call.
//
//   Cell<bool> training(true);
//   auto f = compile([&](Tensor x) { return training.get() ? x * 2 : x; });
//   training = false;                  // f follows
//
// Tensors (a module's parameters), bool, int64_t and double can be cells. In a compiled function a number that was seen
// to change is a symbol: a new learning rate compiles nothing.
//
//   Cell<double> rate(0.1, "learning rate");   // the name is for messages
//   auto step = compile([&](Tensor w, Tensor g) { w.sub_(g * rate.get()); });
#pragma once

#include <tenon/core/tensor.h>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <variant>

namespace tenon {

using CellContent = std::variant<bool, int64_t, double, Tensor>;
// What reading a cell gives: numbers may be symbols.
using CellValue = std::variant<bool, SymInt, SymFloat, Tensor>;

// What a cell holds; shared by copies of the cell, so that a capture can watch it.
struct CellState final : public Counted {
  CellContent content;
  std::string name;
  std::function<Tensor()> computed;  // of a cell that is computed from others: what it is, at every read
  bool by_value = false;             // a number that stands for something else: guarded as it is, never a symbol
  explicit CellState(CellContent initial, std::string its_name = "")
      : content(std::move(initial)), name(std::move(its_name)) {}
};

namespace core {
// While set (by a capture, on this thread), every read of a cell passes through it. It may return a stand-in.
using CellReader = std::function<CellValue(const Ref<CellState>&)>;
CellValue plain_value(const CellContent& content);
CellValue read_cell(const Ref<CellState>& state);
void write_cell(const Ref<CellState>& state, CellContent content);

// While one lives, copies that this thread makes of cells are cells of their own, with tensors of their own: this is
// how a module is cloned by its copy constructor. Cells and tensors that were one stay one.
class CopyCells {
 public:
  CopyCells();
  ~CopyCells();
  CopyCells(const CopyCells&) = delete;
  CopyCells& operator=(const CopyCells&) = delete;
  static bool active();
  // The copy of a cell.
  static Ref<CellState> copy(const Ref<CellState>& state);
  // The copy of something else that cells are part of; made by `make` the first time.
  static std::shared_ptr<void> copy_once(const void* original, const std::function<std::shared_ptr<void>()>& make);
};

template <typename T>
struct CellRead {
  using type = T;
};
template <>
struct CellRead<int64_t> {
  using type = SymInt;
};
template <>
struct CellRead<double> {
  using type = SymFloat;
};
}  // namespace core

template <typename T>
class Cell {
 public:
  // int64_t is read as a SymInt, double as a SymFloat.
  using Read = typename core::CellRead<T>::type;

  Cell() : Cell(T{}) {}
  Cell(T initial, std::string name = "")
      : state_(make_ref<CellState>(CellContent(std::move(initial)), std::move(name))) {}
  Cell(const Cell& other) : state_(core::CopyCells::active() ? core::CopyCells::copy(other.state_) : other.state_) {}
  Cell(Cell&&) noexcept = default;
  Cell& operator=(const Cell&) = default;
  Cell& operator=(Cell&&) noexcept = default;
  ~Cell() = default;

  //   Cell<double> rate(0.1);
  //   rate.set(rate.get() / 2);
  //   double now = rate.get().plain();
  Read get() const { return std::get<Read>(core::read_cell(state_)); }
  operator Read() const { return get(); }
  void set(Read value) const { core::write_cell(state_, content(std::move(value))); }
  // A template, because a number becomes a cell as easily as what a cell reads.
  template <typename V>
    requires(std::convertible_to<V &&, Read> && !std::same_as<std::remove_cvref_t<V>, Cell>)
  Cell& operator=(V&& value) {
    set(std::forward<V>(value));
    return *this;
  }
  const Ref<CellState>& state() const { return state_; }

 private:
  static CellContent content(Read value) {
    if constexpr (std::is_same_v<Read, T>)
      return CellContent(std::move(value));
    else
      return CellContent(value.plain());
  }

  Ref<CellState> state_;
};

}  // namespace tenon
