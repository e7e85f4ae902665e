#include <tenon/autograd/meta.h>
#include <tenon/autograd/view_func.h>
#include <tenon/generated/ops.h>

#include "autograd/recorded_call.h"
#include "autograd/row_node.h"

namespace tenon::autograd {
namespace {

const ViewInfo& info_of(const Tensor& view, const char* what) {
  TENON_CHECK(view.defined(), "[{}] expected a view, got an undefined tensor", what);
  const AutogradMeta* meta = meta_of(view);
  TENON_CHECK(meta && meta->view, "[{}] expected a view that autograd follows, got {}, which is none", what,
              view.description());
  return *meta->view;
}

dispatch::Value visited(const dispatch::Value& value, const schema::Type& type, const ViewVisitors& visitors) {
  const schema::Type& element = type.is_list() || type.is_optional() ? type.element[0] : type;
  if (!visitors.number || value.is_none() || element.kind != schema::Kind::SymInt) return value;
  if (!type.is_list()) return dispatch::Value(visitors.number(value.sym_int())).own();
  SymInts numbers = value.sym_ints();
  for (SymInt& number : numbers) number = visitors.number(number);
  return dispatch::Value(numbers).own();
}

// One step, of another tensor: the operator itself, so that the result is a view of it.
Tensor made_again(const RecordedCall& call, const Tensor& self, const ViewVisitors& visitors) {
  const ArgumentShape& own = call.shapes[0];
  bool fits = same_sizes(self.sym_sizes(), own.sizes) && self.dtype() == own.dtype;
  if (call.row->view.of_storage) fits = fits && same_sizes(self.sym_strides(), own.strides);
  TENON_CHECK(fits, "[view_func] {} was a view of {}{}{}, got {} with strides {}", call.row->schema.name,
              name(own.dtype), str(own.sizes), own.strides.empty() ? "" : " with strides " + str(own.strides),
              self.description(), str(self.sym_strides()));
  dispatch::Values values{dispatch::Value(self)};
  for (size_t at = 1; at < call.arguments.size(); ++at) {
    if (!call.shapes[at].given) {
      values.push_back(visited(call.arguments[at], call.row->schema.arguments[at].type, visitors));
      continue;
    }
    const ArgumentShape& shape = call.shapes[at];
    Tensor tensor = core::make_without_data(shape.sizes, shape.strides, shape.dtype, kMeta, {});
    values.push_back(dispatch::Value(visitors.tensor ? visitors.tensor(tensor) : tensor).own());
  }
  return dispatch::call_boxed(*call.row->op, values)[0].take_tensor();
}

}  // namespace

Tensor base_of(const Tensor& tensor) {
  const AutogradMeta* meta = tensor.defined() ? meta_of(tensor) : nullptr;
  return meta && meta->view ? meta->view->base : Tensor();
}

Tensor view_func(const Tensor& view, const Tensor& new_base, const ViewVisitors& visitors) {
  (void)info_of(view, "view_func");
  TENON_CHECK(new_base.defined(), "[view_func] expected a tensor to view, got an undefined one");
  Ref<ViewStep> chain = chain_of(view);
  Tensor made = new_base;
  for (const ViewStep* step : steps_of(chain.get())) made = made_again(*step->call, made, visitors);
  return made;
}

Tensor reverse_view_func(const Tensor& view, const Tensor& new_view) {
  const Tensor& base = info_of(view, "reverse_view_func").base;
  TENON_CHECK(new_view.defined() && new_view.dtype() == view.dtype() &&
                  same_sizes(new_view.sym_sizes(), view.sym_sizes()) &&
                  same_sizes(new_view.sym_strides(), view.sym_strides()),
              "[reverse_view_func] expected a tensor like the view, {} with strides {}, got {}{}", view.description(),
              str(view.sym_strides()), new_view.description(),
              new_view.defined() ? " with strides " + str(new_view.sym_strides()) : "");
  return _strided_view(new_view, base.sym_sizes(), base.sym_strides(),
                       base.sym_storage_offset() - view.sym_storage_offset());
}

}  // namespace tenon::autograd
