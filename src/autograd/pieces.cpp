// Rows that give a list of views (`unbind`, `split`): the pieces share one step of backward.
#include "autograd/operation.h"
#include "autograd/row_node.h"

#include <tenon/autograd/meta.h>
#include <tenon/dispatch/operator.h>

namespace tenon::autograd {
namespace {

void make_pieces(const ops::Row& row, dispatch::Call& call) {
  Tensor self = call.args[0].tensor();
  bool is_recorded = grad_enabled() && self.defined() && self.is_floating_point() &&
                     !dispatch::thread_keys().exclude.has(DispatchKey::Autograd);
  if (!is_recorded) return row.decomposition(call);
  // Where views have become values, gradients piece by piece join the graph's other arithmetic.
  bool by_piece = self.impl()->keys.has(DispatchKey::Functionalize);
  Operation numbered;
  Ref<RowNode> node;
  if (!by_piece && self.requires_grad()) {
    node = make_ref<RowNode>(make_ref<RecordedCall>(row, call.args));
    node->connect(call.args);
  }
  {
    SetGradMode mode(by_piece);
    row.decomposition(call);
  }
  for (const Tensor& piece : call.results[0].tensors()) {
    AutogradMeta* meta = meta_of(piece);
    if (piece.is(self) || !meta || !meta->view) continue;
    meta->creation = Creation::OneOfSeveral;
    if (node) set_history(piece, node);
  }
}

[[maybe_unused]] const bool registered = [] {
  ops::set_piece_maker(make_pieces);
  return true;
}();

}  // namespace
}  // namespace tenon::autograd
