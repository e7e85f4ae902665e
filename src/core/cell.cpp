#include "support/thread_context.h"

#include <tenon/core/cell.h>

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

CellValue read_cell(const Ref<CellState>& state) {
  if (const CellReader* reader = cell_reader()) return (*reader)(state);
  return plain_value(state->content);
}

void write_cell(const Ref<CellState>& state, CellContent content) {
  TENON_CHECK(!cell_reader(),
              "[Cell] a captured function wrote to the cell '{}': write to cells outside compiled functions",
              state->name);
  state->content = std::move(content);
}

}  // namespace tenon::core
