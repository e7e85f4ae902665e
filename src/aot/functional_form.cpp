#include "functional_form.h"

#include <tenon/dispatch/registration.h>
#include <tenon/generated/ops.h>

#include <map>
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

const dispatch::Operator& functional_form(const dispatch::Operator& op) {
  static std::mutex mutex;
  struct Form {
    const dispatch::Operator* op;
    dispatch::Registration definition, kernel;
  };
  static auto* forms = new std::map<const dispatch::Operator*, Form>;
  std::lock_guard lock(mutex);
  if (auto found = forms->find(&op); found != forms->end()) return *found->second.op;
  // Forms of operators that are gone make room for another operator of the same name.
  std::erase_if(*forms, [](const auto& entry) { return !dispatch::is_defined(*entry.first); });
  dispatch::Defined defined = dispatch::define_scoped(form_of(op.schema()));
  dispatch::Registration kernel = dispatch::register_scoped(defined.op, dispatch::KernelKey::CompositeExplicitAutograd,
                                                            [&op](dispatch::Call& call) { run_on_copies(op, call); });
  return *forms->emplace(&op, Form{&defined.op, std::move(defined.registration), std::move(kernel)}).first->second.op;
}

}  // namespace tenon::aot
