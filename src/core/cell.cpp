#include "support/thread_context.h"

#include <tenon/core/cell.h>

namespace tenon::core {
namespace {

const CellReader* cell_reader() {
  return support::thread_context.get<const CellReader>(support::ContextSlot::CellReader);
}

}  // namespace

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
