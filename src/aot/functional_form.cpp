#include "functional_form.h"

#include <tenon/dispatch/registration.h>
#include <tenon/generated/ops.h>

#include <mutex>

namespace tenon::aot {
namespace {

constexpr KeySet kLayers{DispatchKey::Trace,    DispatchKey::Functionalize, DispatchKey::ADInplaceOrView,
                         DispatchKey::Autograd, DispatchKey::Autocast,      DispatchKey::Capture};

schema::Schema form_of(const schema::Schema& schema) {
  schema::Schema form = schema;
  form.ns += "_functional";
  for (schema::Argument& argument : form.arguments) argument.alias.reset();
  for (int at : schema.mutated_arguments()) {
    schema::Argument result;
    result.type = schema.arguments[static_cast<size_t>(at)].type;
    form.returns.push_back(std::move(result));
  }
  for (schema::Argument& result : form.returns) result.name.clear();
  return form;
}

void run_on_copies(const dispatch::Operator& op, dispatch::Call& call) {
  dispatch::ExcludeKeys below(kLayers);
  std::vector<int> mutated = op.schema().mutated_arguments();
  dispatch::Values args;
  for (size_t at = 0; at < call.args.size(); ++at) {
    bool written = std::find(mutated.begin(), mutated.end(), static_cast<int>(at)) != mutated.end();
    args.push_back(written ? call.args[at].map_tensors([](const Tensor& tensor) { return clone(tensor); })
                           : call.args[at]);
  }
  call.results = dispatch::call_boxed(op, args);
  for (int at : mutated) call.results.push_back(args[static_cast<size_t>(at)].own());
}

}  // namespace

dispatch::OperatorRef functional_form(const dispatch::Operator& op) {
  // The form keeps the operator, so the operator only remembers it.
  struct Form {
    std::mutex mutex;
    WeakRef<dispatch::Operator> op;
  };
  Form& form = op.derived<Form>([] { return std::make_shared<Form>(); });
  std::lock_guard lock(form.mutex);
  if (Ref<dispatch::Operator> known = form.op.lock()) return known.get();
  Ref<dispatch::Operator> made = dispatch::make_operator(form_of(op.schema()));
  dispatch::register_scoped(*made, dispatch::KernelKey::CompositeExplicitAutograd,
                            [held = dispatch::OperatorRef(op)](dispatch::Call& call) { run_on_copies(*held, call); })
      .keep();
  form.op = WeakRef<dispatch::Operator>(made);
  return made.get();
}

}  // namespace tenon::aot
