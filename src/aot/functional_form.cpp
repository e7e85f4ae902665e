#include "functional_form.h"
#include "support/at_fork.h"

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

schema::Schema aliased_form_of(const schema::Schema& schema) {
  schema::Schema form = schema;
  form.ns += "_functional";
  form.overload += form.overload.empty() ? "aliased" : "_aliased";
  for (schema::Argument& argument : form.arguments) argument.alias.reset();
  schema::Argument bases, places, result;
  bases.name = "bases";
  bases.type = {schema::Kind::List, {{schema::Kind::Tensor, {}, {}}}, {}};
  places.name = "places";
  places.type = {schema::Kind::List, {{schema::Kind::SymInt, {}, {}}}, {}};
  result.type = bases.type;
  form.arguments.push_back(std::move(bases));
  form.arguments.push_back(std::move(places));
  form.returns.push_back(std::move(result));
  for (schema::Argument& each : form.returns) each.name.clear();
  return form;
}

void run_on_bases(const dispatch::Operator& op, dispatch::Call& call) {
  dispatch::ExcludeKeys below(kLayers);
  const size_t own = op.schema().arguments.size();
  SymInts places = call.args[own + 1].sym_ints();
  size_t next = 0;
  std::vector<Tensor> bases;
  for (const Tensor& base : call.args[own].tensors()) {
    SymInts strides;
    for (int64_t dim = 0; dim < base.dim(); ++dim) strides.push_back(places[next++]);
    bases.push_back(empty_strided(base.sym_sizes(), strides, TensorOptions(base.dtype(), base.device())));
    bases.back().copy_(base);
  }
  dispatch::Values args;
  for (const dispatch::Value& arg : call.args.first(own))
    args.push_back(arg.map_tensors([&](const Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      Place place = take_place(places, next);
      if (place.base < 0) return tensor;
      return core::make_view(bases[static_cast<size_t>(place.base)], place.sizes, place.strides, place.offset);
    }));
  call.results = dispatch::call_boxed(op, args);
  call.results.push_back(dispatch::Value(bases).own());
}

// The form keeps the operator, so the operator only remembers it. `Which` tells forms apart.
template <typename Which>
dispatch::OperatorRef form_made_by(const dispatch::Operator& op, schema::Schema (*schema)(const schema::Schema&),
                                   void (*run)(const dispatch::Operator&, dispatch::Call&)) {
  struct Form {
    support::ForkSafe<std::mutex> mutex;
    WeakRef<dispatch::Operator> op;
    Which* which = nullptr;
  };
  Form& form = op.derived<Form>([] { return std::make_shared<Form>(); });
  std::lock_guard lock(form.mutex);
  if (Ref<dispatch::Operator> known = form.op.lock()) return known.get();
  Ref<dispatch::Operator> made = dispatch::make_operator(schema(op.schema()));
  dispatch::register_scoped(*made, dispatch::KernelKey::CompositeExplicitAutograd,
                            [held = dispatch::OperatorRef(op), run](dispatch::Call& call) { run(*held, call); })
      .keep();
  form.op = WeakRef<dispatch::Operator>(made);
  return made.get();
}

struct OnCopies;
struct OnBases;

}  // namespace

dispatch::OperatorRef functional_form(const dispatch::Operator& op) {
  return form_made_by<OnCopies>(op, form_of, run_on_copies);
}

dispatch::OperatorRef aliased_form(const dispatch::Operator& op) {
  return form_made_by<OnBases>(op, aliased_form_of, run_on_bases);
}

void append(SymInts& places, const Place& place) {
  places.push_back(place.base);
  if (place.base < 0) return;
  places.push_back(static_cast<int64_t>(place.sizes.size()));
  for (const SymInt& size : place.sizes) places.push_back(size);
  for (const SymInt& stride : place.strides) places.push_back(stride);
  places.push_back(place.offset);
}

Place take_place(const SymInts& places, size_t& at) {
  Place place;
  place.base = places[at++].plain();
  if (place.base < 0) return place;
  const int64_t rank = places[at++].plain();
  for (int64_t dim = 0; dim < rank; ++dim) place.sizes.push_back(places[at++]);
  for (int64_t dim = 0; dim < rank; ++dim) place.strides.push_back(places[at++]);
  place.offset = places[at++];
  return place;
}

}  // namespace tenon::aot
