#include "erased.h"
#include "support/thread_context.h"

#include <tenon/core/cell.h>

#include <cstring>
#include <unordered_map>

namespace tenon::core {
namespace {

const CellReader* cell_reader() {
  return support::thread_context.get<const CellReader>(support::ContextSlot::CellReader);
}

}  // namespace

CellValue plain_value(const CellContent& content) {
  return std::visit(
      []<typename T>(const T& value) -> CellValue {
        if constexpr (std::is_same_v<T, int64_t>)
          return SymInt(value);
        else if constexpr (std::is_same_v<T, double>)
          return SymFloat(value);
        else
          return value;
      },
      content);
}

namespace {

struct Copies {
  std::unordered_map<const CellState*, Ref<CellState>> cells;
  std::unordered_map<const TensorImpl*, Tensor> tensors;
  std::unordered_map<const void*, std::shared_ptr<void>> others;
};
thread_local Copies* current_copies = nullptr;

// The same values in memory of its own.
Tensor copy_tensor(const Tensor& tensor) {
  Tensor copy = allocate(tensor.sizes(), tensor.strides(), tensor.dtype(), tensor.device());
  int64_t bytes = reach(tensor.sizes(), tensor.strides()) * tensor.element_size();
  if (bytes > 0) std::memcpy(copy.raw_data(), tensor.raw_data(), static_cast<size_t>(bytes));
  if (tensor.requires_grad()) copy.set_requires_grad();
  return copy;
}

}  // namespace

CopyCells::CopyCells() {
  TENON_CHECK(!current_copies, "[clone] a clone within a clone");
  TENON_CHECK(!cell_reader(), "[clone] a captured function clones a module: clone it outside");
  current_copies = new Copies;
}
CopyCells::~CopyCells() { delete std::exchange(current_copies, nullptr); }
bool CopyCells::active() { return current_copies != nullptr; }

Ref<CellState> CopyCells::copy(const Ref<CellState>& state) {
  Ref<CellState>& made = current_copies->cells[state.get()];
  if (made) return made;
  CellContent content = state->content;
  if (Tensor* tensor = std::get_if<Tensor>(&content); tensor && tensor->defined()) {
    Tensor& copied = current_copies->tensors[tensor->impl()];
    if (!copied.defined()) copied = copy_tensor(*tensor);
    content = copied;
  }
  made = make_ref<CellState>(std::move(content), state->name);
  made->computed = state->computed;  // cells that it reads are copied with it
  made->by_value = state->by_value;
  // What is copied now is as good as an original: a copy of the copy is the same cell.
  current_copies->cells[made.get()] = made;
  return made;
}

std::shared_ptr<void> CopyCells::copy_once(const void* original, const std::function<std::shared_ptr<void>()>& make) {
  auto found = current_copies->others.find(original);
  if (found != current_copies->others.end()) return found->second;
  std::shared_ptr<void> made = make();
  current_copies->others[original] = made;
  current_copies->others[made.get()] = made;
  return made;
}

CellValue read_cell(const Ref<CellState>& state) {
  if (state->computed) return state->computed();
  if (const CellReader* reader = cell_reader()) return (*reader)(state);
  if (const auto* tensor = std::get_if<Tensor>(&state->content); tensor && tensor->defined() && is_erased(*tensor))
    refuse_erased(state->name);
  return plain_value(state->content);
}

// No device computes on it: of what has only sizes, fakes and tensors of the device meta are the others.
Tensor erased(const Tensor& tensor) {
  Tensor made = make_without_data(tensor.sym_sizes(), tensor.sym_strides(), tensor.dtype(), tensor.device(),
                                  KeySet{DispatchKey::Meta});
  if (tensor.requires_grad()) made.set_requires_grad();
  return made;
}

bool is_erased(const TensorBase& tensor) {
  return tensor.impl()->keys.has(DispatchKey::Meta) && tensor.device().type == DeviceType::CPU;
}

void refuse_erased(const std::string& name) {
  throw RuntimeError(
      fmt::format("[Cell] Trying to run Pytorch Eager Module after Dynamo Freezing: '{}' was given up when a function "
                  "that reads it was frozen (discard_parameters); call that function, give the cell another tensor, or "
                  "freeze without discarding",
                  name));
}

void write_cell(const Ref<CellState>& state, CellContent content) {
  TENON_CHECK(!cell_reader(),
              "[Cell] a captured function wrote to the cell '{}': write to cells outside compiled functions",
              state->name);
  TENON_CHECK(!state->computed, "[Cell] '{}' is computed from others, and cannot be written", state->name);
  state->content = std::move(content);
}

}  // namespace tenon::core
