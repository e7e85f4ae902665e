#include <tenon/core/cell.h>

namespace tenon::core {

const CellReader*& cell_reader() {
  thread_local const CellReader* reader = nullptr;
  return reader;
}

CellContent read_cell(const Ref<CellState>& state) {
  if (const CellReader* reader = cell_reader()) return (*reader)(state);
  return state->content;
}

void write_cell(const Ref<CellState>& state, CellContent content) {
  TENON_CHECK(!cell_reader(),
              "[Cell] a captured function wrote to the cell '{}': write to cells outside compiled functions",
              state->name);
  state->content = std::move(content);
}

}  // namespace tenon::core
