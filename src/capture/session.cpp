#include "session.h"

#include "autograd/recorded_call.h"
#include "dispatch/inside_kernel.h"
#include "outside.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/dispatch/registration.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/ops/row.h>

#include <algorithm>

namespace tenon::capture {
namespace {

using dispatch::Value;

bool is_item(const dispatch::Operator& op) { return op.brief_name() == "_local_scalar_dense"; }

bool is_number(const schema::Type& type) {
  return type.kind == schema::Kind::Int || type.kind == schema::Kind::SymInt || type.kind == schema::Kind::Float ||
         type.kind == schema::Kind::Bool;
}

// A custom operator becomes a node if everything that it does shows in its tensors and numbers.
std::optional<std::string> cannot_be_recorded(const dispatch::Operator& op) {
  for (const schema::Argument& result : op.schema().returns)
    if (!result.type.is_tensor_like() && !is_number(result.type))
      return fmt::format("{} returns a {}, which cannot be recorded", op.name(), result.type.str());
  if (op.schema().returns.empty() && !op.schema().is_mutable())
    return fmt::format("{} returns nothing and writes to nothing, so that it can only have side effects", op.name());
  return std::nullopt;
}

// The same with numbers that are known: what was a symbol is guarded to be what it is.
Value pinned(const Value& value) {
  if (value.tag() == Value::Tag::SymInts) return Value(value.ints()).own();
  if (!value.is_symbolic()) return value.own();
  if (value.tag() == Value::Tag::Real) return Value(value.real());
  return value.tag() == Value::Tag::Bool ? Value(value.boolean()) : Value(value.integer());
}

Tensor as_tensor(const Scalar& number) {
  if (number.is_real()) return tensor(number.to_double(), kFloat64);
  return number.kind() == Scalar::Kind::Bool ? tensor(number.to_bool()) : tensor(number.to_int());
}

// A piece of a tensor (`split`), or a view of one: once that was written to, it refuses to tell its history.
bool is_one_of_several(const Tensor& fake) {
  const autograd::AutogradMeta* meta = autograd::meta_of(fake);
  return meta && meta->creation == autograd::Creation::OneOfSeveral;
}

// A view that autograd does not see as one (`detach`), written with something that requires grad.
bool has_own_history(const Tensor& fake) {
  const autograd::AutogradMeta* meta = autograd::meta_of(fake);
  return meta && meta->grad_fn && !meta->follows_base();
}

void capture_call(dispatch::Call& call) {
  Session* session = Session::current();
  TENON_ASSERT(session, "{} reached the Capture key outside a capture", call.op.name());
  // Casts are part of the graph: they are recorded, and then the operator on what they give.
  if (call.keys.has(DispatchKey::Autocast))
    if (const dispatch::KernelFunction* casts = call.op.kernel(DispatchKey::Autocast)) {
      dispatch::ExcludeKeys once(KeySet{DispatchKey::Autocast});
      return (*casts)(call);
    }
  session->record_call(call);
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::Capture, capture_call);
  return true;
}();

}  // namespace

bool is_capturing() { return Session::current() != nullptr; }

Session* Session::current() { return support::thread_context.get<Session>(support::ContextSlot::Session); }

Session::Session(InputPolicies policies, CellPolicies cell_policies, Options options, Frame& frame)
    : policies_(std::move(policies)),
      cell_policies_(std::move(cell_policies)),
      options_(std::move(options)),
      frame_(frame),
      env_(make_ref<sym::ShapeEnv>()),
      inputs_(env_) {
  start_recorder();
  if (!options_.fullgraph) env_->set_resolver([this](sym::Expr expr) { return resolve(expr); });
}

Session::~Session() { env_->set_resolver(nullptr); }

void Session::start_recorder() {
  recorder_ = std::make_unique<graph::Recorder>(env_);
  graph_inputs_.clear();
  written_.clear();
  calls_.clear();
  made_before_ = made_.size();
  used_.clear();
  recorder_->unknown = [this](const Tensor& tensor) {
    know(tensor);
    return recorder_->find(tensor);
  };
}

Progress Session::progress() const {
  return {reals.size(),        cells.size(),      register_facts.size(),
          same_tensors.size(), aftermaths.size(), inputs_.progress()};
}

// What can be recorded in no way, nor done between two segments.
void Session::refuse(std::string why) const {
  if (apart_ > 0) throw NotApart{std::move(why)};
  throw GraphBreak(std::move(why));
}

// ---- Calls --------------------------------------------------------------------------------------------------------

void Session::record_call(dispatch::Call& call) {
  break_early();
  calls_.push_back(recorder_->graph().nodes.size());
  if (is_item(call.op)) {
    call.results.push_back(Value(read_item(call.args[0].tensor())).own());
    return;
  }
  if (const ops::Row* row = ops::row_of(call.op); row && row->captured_in_parts) return record_parts(*row, call);
  if (dispatch::has_tag(call.op, dispatch::Tag::inplace_view))
    refuse(fmt::format("{} moves a tensor to other memory or another shape", call.op.name()));
  const bool is_row = ops::row_of(call.op) || call.op.is_composite_implicit();
  if (!is_row) {
    if (std::optional<std::string> why = cannot_be_recorded(call.op)) return call_between(std::move(*why), call);
    if (const auto& known = called_between[std::min(segment_, called_between.size() - 1)])
      if (auto found = known->find(call.op.name()); found != known->end()) return call_between(found->second, call);
  }
  dispatch::Values args;
  for (const Value& arg : call.args)
    args.push_back(arg.map_tensors([&](const Tensor& tensor) { return stand_in(tensor); }));
  {
    std::optional<dispatch::InsideKernel> kernel;
    if (!is_row) kernel.emplace();
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Capture});
    try {
      call.results = dispatch::call_boxed(call.op, args);
    } catch (const fake::DynamicOutputShape&) {
      (void)env_->take_fresh();
      call.results.clear();
      return call_between(
          fmt::format("dynamic shape operator: {}; with capture_dynamic_output_shape_ops it would be captured",
                      call.op.name()),
          call);
    } catch (const fake::NeedsData&) {
      if (is_row || (options_.scalar_outputs && apart_ == 0)) throw;
      (void)env_->take_fresh();
      call.results.clear();
      return call_between(
          fmt::format("{} gives a number; with capture_scalar_outputs it would be a symbol", call.op.name()), call);
    }
  }
  graph::Node& node =
      recorder_->record(call.op, args, call.results, [](const Tensor& tensor) { return fake::like(tensor); });
  node.grad_enabled = autograd::grad_enabled();
  remember_views(call.op, args, call.results);
  for (const Value& arg : args)
    arg.each_tensor([&](const Tensor& tensor) {
      if (tensor.defined() && recipes_.contains(tensor.impl())) used_.insert(tensor.impl());
    });
  for (const Value& result : call.results)
    result.each_tensor([&](const Tensor& tensor) {
      if (tensor.defined()) made_.emplace_back(WeakRef<TensorImpl>(tensor.ref()), call.op.name());
    });
  writes |= call.op.schema().is_mutable();
  bool concerns_others = false;
  for (int at : call.op.schema().mutated_arguments())
    args[static_cast<size_t>(at)].each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      written_.insert(tensor.impl()->storage.get());
      concerns_others |= gives_others_a_history(tensor);
    });
  if (concerns_others)
    act(
        "a view of a tensor outside is written with what requires grad, and other views of it come to require grad", {},
        [](std::span<const Tensor>) { return std::vector<Tensor>(); }, Keep::Operands, true);
}

// Whether a write gave the tensor a history, and with it, in eager, others that the function was given: they and the
// tensor are views of one that lies outside, of which the fakes know nothing.
bool Session::gives_others_a_history(const Tensor& written) {
  if (!written.requires_grad() || options_.fullgraph) return false;
  const autograd::AutogradMeta* meta = autograd::meta_of(written);
  const Tensor& input = meta && meta->view ? meta->view->base : written;
  auto origin = origins_.find(input.impl());
  if (origin == origins_.end()) return false;
  auto base_of = [](const Tensor& real) {
    const autograd::AutogradMeta* of = autograd::meta_of(real);
    return of && of->follows_base() ? of->view->base.impl() : real.impl();
  };
  const TensorImpl* base = base_of(real_at(origin->second.second));
  bool any = false, related = false;
  for (const auto& [impl, other] : origins_) {
    const Tensor& fake = other.first;
    if (fake.is(input) || !fake.is_same_storage(input) || fake.requires_grad() || !fake.is_floating_point()) continue;
    any |= others_with_histories_.insert(impl).second;
    related |= base_of(real_at(other.second)) == base;
  }
  // Another call may be given tensors that are related otherwise, and must come here all the same.
  return any && choose(related);
}

// The row's parts are recorded. Where the user counts from the beginning of a storage: fakes of inputs begin theirs,
// the real ones may lie further on.
void Session::record_parts(const ops::Row& row, dispatch::Call& call) {
  dispatch::Values args;
  for (const Value& arg : call.args)
    args.push_back(arg.map_tensors([&](const Tensor& tensor) { return stand_in(tensor); }));
  int counted = row.schema.argument_index("storage_offset");
  if (counted >= 0 && !args[static_cast<size_t>(counted)].is_none())
    for (const auto& [impl, origin] : origins_) {
      const auto& [fake, ref] = origin;
      if (ref.is_register || !fake.is_same_storage(args[0].tensor()) || fake.sym_storage_offset().is_symbolic())
        continue;
      int64_t begins = reals[static_cast<size_t>(ref.index)].storage_offset();
      inputs_.fix_offset(ref.index, begins);
      Value& offset = args[static_cast<size_t>(counted)];
      offset = Value(offset.sym_int() - begins + fake.sym_storage_offset()).own();
      break;
    }
  dispatch::Call parts{call.op, call.keys, args, {}};
  row.decomposition(parts);
  call.results = std::move(parts.results);
}

void Session::remember_views(const dispatch::Operator& op, const dispatch::Values& args,
                             const dispatch::Results& results) {
  std::vector<Tensor> given, made;
  for (const Value& arg : args) arg.each_tensor([&](const Tensor& tensor) { given.push_back(tensor); });
  for (const Value& result : results) result.each_tensor([&](const Tensor& tensor) { made.push_back(tensor); });
  for (size_t at = 0; at < made.size(); ++at) {
    auto source = std::find_if(given.begin(), given.end(), [&](const Tensor& each) {
      return each.defined() && made[at].defined() && each.is_same_storage(made[at]);
    });
    if (source == given.end() ||
        std::any_of(given.begin(), given.end(), [&](const Tensor& each) { return each.is(made[at]); }))
      continue;
    Recipe recipe{dispatch::OperatorRef(op), {}, *source, {}, at, autograd::grad_enabled()};
    for (const Value& arg : args) recipe.args.push_back(arg.own());
    for (const Tensor& each : made) recipe.metas.push_back(fake::like(each));
    for (const Tensor& each : given)
      if (each.defined()) ++held_[each.impl()];
    ++held_[source->impl()];
    recipes_.emplace(made[at].impl(), std::move(recipe));
  }
}

// Whether a tensor from before the break can be had: it is an input, or made again from one.
bool Session::is_left(const Tensor& fake) const {
  for (const Tensor* at = &fake;;) {
    if (origins_.contains(at->impl())) return true;
    auto recipe = recipes_.find(at->impl());
    if (recipe == recipes_.end()) return false;
    at = &recipe->second.source;
  }
}

// Memory of a tensor from before the break, without its history.
Tensor Session::record_place(const Tensor& fake) {
  static const dispatch::Operator& strided = dispatch::find_operator("aten::_strided_view");
  Tensor root = fake;
  for (auto recipe = recipes_.find(root.impl()); recipe != recipes_.end(); recipe = recipes_.find(root.impl())) {
    if (origins_.contains(root.impl())) break;
    root = recipe->second.source;
  }
  know(root);
  if (root.is(fake)) return root;
  Tensor place = core::make_view(root, fake.sym_sizes(), fake.sym_strides(), fake.sym_storage_offset());
  const Value args[] = {Value(root), Value(place.sym_sizes()).own(), Value(place.sym_strides()).own(),
                        Value(place.sym_storage_offset() - root.sym_storage_offset()).own()};
  const Value result(place);
  recorder_->record(strided, args, {&result, 1}, [](const Tensor& tensor) { return fake::like(tensor); }).grad_enabled =
      false;
  return place;
}

void Session::derive(const Tensor& fake, const Recipe& recipe) {
  // What has no history (`detach`) asks nothing of the history of what it was made of, which may refuse to tell it.
  if (!fake.requires_grad() && recipe.metas.size() == 1 && recipe.grad_enabled && recipe.source.requires_grad() &&
      is_one_of_several(recipe.source)) {
    Tensor place = record_place(recipe.source);
    dispatch::Values args;
    for (const Value& arg : recipe.args)
      args.push_back(arg.map_tensors([&](const Tensor& tensor) { return tensor.is(recipe.source) ? place : tensor; }));
    const Value result(fake);
    recorder_->record(*recipe.op, args, {&result, 1}, [](const Tensor& tensor) { return fake::like(tensor); })
        .grad_enabled = false;
    return;
  }
  for (const Value& arg : recipe.args)
    arg.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      if (tensor.is(recipe.source) || is_left(tensor))
        know(tensor);
      else if (recorder_->find(tensor) == graph::kNoValue)
        record_without_contents(tensor);
    });
  std::vector<Tensor> results;
  for (size_t at = 0; at < recipe.metas.size(); ++at) results.push_back(at == recipe.output ? fake : recipe.metas[at]);
  Value list = Value(results).own();
  graph::Node& node =
      recorder_->record(*recipe.op, recipe.args, {&list, 1}, [](const Tensor& tensor) { return fake::like(tensor); });
  // Made before its source came to require grad, it does not.
  node.grad_enabled = recipe.grad_enabled && (fake.requires_grad() || !recipe.source.requires_grad());
}

// Of what a view only takes the sizes from (`view_as`), nothing is left behind a break but those.
void Session::record_without_contents(const Tensor& fake) {
  static const dispatch::Operator& empty = dispatch::find_operator("aten::empty_strided");
  const Value args[] = {Value(fake.sym_sizes()).own(), Value(fake.sym_strides()).own(),
                        Value(fake.dtype()),           Value(),
                        Value(fake.device()),          Value()};
  const Value result(fake);
  recorder_->record(empty, args, {&result, 1}, [](const Tensor& tensor) { return fake::like(tensor); });
}

// ---- Values that are read -----------------------------------------------------------------------------------------

Scalar Session::read_item(const Tensor& given) {
  Tensor tensor = stand_in(given);
  if (auto known = items_.find(tensor.impl()); known != items_.end())
    if (const Item& item = known->second; !item.tensor.expired() && item.version == tensor.version()) return item.value;
  Scalar value;
  if (options_.scalar_outputs && apart_ == 0) {
    static const dispatch::Operator& op = dispatch::find_operator("aten::_local_scalar_dense");
    const Value args[] = {Value(tensor)};
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Capture});
    dispatch::Results results = dispatch::call_boxed(op, args);
    recorder_->record(op, args, results);
    value = results[0].scalar();
  } else {
    // The break needs a tensor of one element; a fake of more is refused here and not after what comes before has run.
    check(tensor.numel() == 1, fmt::format("[item] expected a tensor of one element, got {}", tensor.description()));
    std::string why =
        fmt::format("item() reads the value of a tensor ({}); with capture_scalar_outputs it would be a symbol",
                    tensor.description());
    const Tensor wanted[] = {tensor};
    finish(Read{}, wanted, std::move(why));
    value = next_number(tensor.dtype());
  }
  items_.insert_or_assign(tensor.impl(), Item{WeakRef<TensorImpl>(tensor.ref()), tensor.version(), value});
  return value;
}

Scalar Session::next_number(Dtype dtype) {
  if (dtype == kBool) return add_number(Value(false)).scalar();
  return add_number(is_floating(dtype) ? Value(0.0) : Value(int64_t{0})).scalar();
}

bool Session::resolve(sym::Expr expr) {
  // Only what this capture has bound can be known by running it.
  for (int32_t id : sym::symbols_of(expr)) {
    if (env_->is_backed(id)) continue;
    bool bound = false;
    for (const graph::Node& node : recorder_->graph().nodes)
      for (const graph::Binding& binding : node.binds)
        bound |= binding.symbol == id && binding.kind != graph::Binding::Kind::Hidden;
    if (!bound) return false;
  }
  finish(Resume{}, {}, fmt::format("the function asks for {}, which depends on data", expr.str()));
  return true;
}

// ---- Breaks -------------------------------------------------------------------------------------------------------

// What is held by somebody else than this session, by what owns its memory. Of views, the tensor that they look into.
std::vector<Tensor> Session::live_bases(std::span<const Tensor> kept) {
  std::vector<std::pair<graph::ValueId, Tensor>> bases;
  auto add = [&](const Tensor& base) {
    graph::ValueId id = recorder_->find(base);
    if (std::none_of(bases.begin(), bases.end(), [&](const auto& each) { return each.first == id; }))
      bases.emplace_back(id, base);
  };
  recorder_->each_tensor([&](const Tensor& tensor, graph::ValueId) {
    auto held = held_.find(tensor.impl());
    uint32_t ours = 1 + (held == held_.end() ? 0 : held->second);
    if (origins_.contains(tensor.impl()) || tensor.impl()->use_count() <= ours) return;
    Tensor base = tensor;
    for (auto recipe = recipes_.find(base.impl()); recipe != recipes_.end() && !has_own_history(base);
         recipe = recipes_.find(base.impl()))
      base = recipe->second.source;
    if (!origins_.contains(base.impl())) add(base);
    // A view that was made before its base changed its nature must not be made anew, nor one that others were computed
    // from: a gradient with respect to it leads through it.
    if ((tensor.requires_grad() && used_.contains(tensor.impl())) ||
        std::any_of(kept.begin(), kept.end(), [&](const Tensor& each) { return each.is_same_storage(tensor); }))
      add(tensor);
  });
  std::sort(bases.begin(), bases.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Tensor> tensors;
  for (auto& [id, tensor] : bases) tensors.push_back(std::move(tensor));
  return tensors;
}

// A view that was made before its base changed its nature must not be made anew afterwards: one from before the last
// break is made now.
void Session::remake_views(std::span<const Tensor> bases) {
  if (bases.empty()) return;
  for (const auto& [made, op] : made_) {
    Ref<TensorImpl> alive = made.lock();
    if (!alive || origins_.contains(alive.get()) || !recipes_.contains(alive.get())) continue;
    auto held = held_.find(alive.get());
    if (alive->use_count() <= 1 + (held == held_.end() ? 0 : held->second)) continue;
    Tensor view(std::move(alive));
    if (std::any_of(bases.begin(), bases.end(), [&](const Tensor& base) { return base.is_same_storage(view); }))
      know(view);
  }
}

void Session::check_may_end(const std::string& why) const {
  if (apart_ > 0) throw NotApart{why};
  TENON_CHECK(!options_.fullgraph, "[compile] the function cannot be captured as one graph (fullgraph): {}", why);
}

size_t Session::finish(End end, std::span<const Tensor> operands, std::string why, Keep keep) {
  check_may_end(why);
  const std::span<const Tensor> kept = keep == Keep::AndTheirViews ? operands : std::span<const Tensor>();
  remake_views(kept);
  std::vector<Tensor> bases = live_bases(kept), wanted;
  auto register_of = [&](const Tensor& tensor) -> Operand {
    if (auto origin = origins_.find(tensor.impl()); origin != origins_.end()) return origin->second.second;
    for (size_t at = 0; at < bases.size(); ++at)
      if (bases[at].is(tensor)) return InputRef{true, static_cast<int32_t>(next_register_ + at)};
    return std::nullopt;
  };
  for (const Tensor& tensor : operands)
    if (keep != Keep::Nothing && !register_of(tensor)) bases.push_back(tensor);
  for (const Tensor& tensor : operands) {
    Operand known = register_of(tensor);
    if (!known) wanted.push_back(tensor);
    if (auto* act = std::get_if<Act>(&end)) act->operands.push_back(known);
    if (auto* read = std::get_if<Read>(&end)) read->operand = known;
  }
  for (const Tensor& base : bases) recorder_->graph().outputs.push_back(recorder_->to_argument(Value(base)));
  for (const Tensor& tensor : wanted) recorder_->graph().outputs.push_back(recorder_->to_argument(Value(tensor)));
  size_t added = hand_over(std::move(end), bases.size(), wanted.size(), std::move(why));
  for (size_t at = 0; at < bases.size(); ++at) {
    Tensor& base = bases[at];
    auto index = static_cast<int32_t>(next_register_ + at);
    fakes_.insert_or_assign(frame_.registers[static_cast<size_t>(index)].impl(), base);
    origins_.insert_or_assign(base.impl(), std::pair(base, InputRef{true, index}));
  }
  next_register_ += bases.size();
  return added;
}

// By input of the segment: a result of its graph shares memory with it.
std::vector<bool> Session::shown_inputs() const {
  std::set<graph::ValueId> results;
  for (const graph::Argument& output : recorder_->graph().outputs)
    graph::each_reference(output, [&](graph::ValueId id) { results.insert(id); });
  std::set<const Storage*> memory;
  recorder_->each_tensor([&](const Tensor& fake, graph::ValueId id) {
    if (results.contains(id)) memory.insert(fake.impl()->storage.get());
  });
  std::vector<bool> shown(graph_inputs_.size());
  for (const auto& [impl, origin] : origins_)
    for (size_t at = 0; at < graph_inputs_.size(); ++at)
      if (origin.second == graph_inputs_[at]) shown[at] = memory.contains(impl->storage.get());
  return shown;
}

// Gives the piece to the owner and starts the next one.
size_t Session::hand_over(End end, size_t registers, size_t tensors, std::string why) {
  Piece piece;
  piece.inputs = graph_inputs_;
  piece.register_count = registers;
  piece.tensor_count = tensors;
  for (const graph::Node& node : recorder_->graph().nodes)
    for (const graph::Binding& binding : node.binds)
      if (binding.kind != graph::Binding::Kind::Hidden) {
        piece.bound.push_back(binding.symbol);
        sym::Expr symbol = env_->pool().symbol(binding.symbol);
        recorder_->graph().outputs.push_back(symbol.is_real() ? Value(SymFloat(symbol, env_)).own()
                                                              : Value(SymInt(symbol, env_)).own());
      }
  // Of the tensors themselves, which the piece has not run on yet: a fake may have come to require grad in it.
  std::vector<bool> written(graph_inputs_.size());
  std::vector<Tensor> given;
  for (const InputRef& ref : graph_inputs_) {
    given.push_back(real_at(ref));
    piece.requires_grad.push_back(given.back().requires_grad());
    piece.leaves.push_back(given.back().is_leaf());
  }
  for (const auto& [impl, origin] : origins_)
    for (size_t at = 0; at < graph_inputs_.size(); ++at)
      if (origin.second == graph_inputs_[at]) written[at] = written_.contains(impl->storage.get());
  piece.aliases = AliasGuard(graph_inputs_, written, given);
  piece.written = written;
  piece.shown = shown_inputs();
  recorder_->graph().symbols = inputs_.sources();
  piece.graph = std::move(recorder_->graph());
  graph::verify(piece.graph);
  piece.end = std::move(end);
  if (!why.empty()) piece.site = CallSite::here();
  piece.why = std::move(why);
  std::vector<int32_t> bound = piece.bound;
  ++segment_;
  start_recorder();
  size_t added = 0;
  {
    Outside outside(*this);
    added = finish_piece(std::move(piece));
  }
  broke = true;
  // What was unknown is known now.
  for (int32_t id : bound) env_->give_hint(id, frame_.symbols[static_cast<size_t>(id)]);
  return added;
}

// A segment is compiled as a whole: between two of its values there is no history that autograd could walk, and a view
// of an input is made anew, with a history that leads past everything else. Where somebody looks at the gradient of a
// value, all that was computed from it so far should have been another segment.
void Session::separate(const Tensor& fake) const {
  const bool is_input = origins_.contains(fake.impl());
  if (!fake.requires_grad() || (is_input && !written_.contains(fake.impl()->storage.get()))) return;
  if (apart_ > 0) throw NotApart{"it looks at the gradient of a value"};
  if (recorder_->find(fake) == graph::kNoValue) return;
  size_t made = 0;
  while (made < made_.size() && made_[made].first.address() != fake.impl()) ++made;
  if (is_input)
    made = EarlyBreak::kInput;
  else if (made == made_.size())
    return;
  const graph::Graph& graph = recorder_->graph();
  std::vector<bool> shows(graph.values.size());  // by value: whether it shares memory with the tensor
  recorder_->each_tensor([&](const Tensor& tensor, graph::ValueId id) {
    if (tensor.is_same_storage(fake)) shows[static_cast<size_t>(id)] = true;
  });
  // Behind the last node that gave it its value; a view that is older than the segment: before its first use.
  std::optional<size_t> first, last;
  std::vector<size_t> uses;
  for (size_t at = 0; at < graph.nodes.size(); ++at) {
    const graph::Node& node = graph.nodes[at];
    auto reads = [&](const graph::Argument& argument) {
      bool found = false;
      graph::each_reference(argument, [&](graph::ValueId id) { found |= shows[static_cast<size_t>(id)]; });
      return found;
    };
    if (std::any_of(node.args.begin(), node.args.end(), reads)) uses.push_back(at);
    bool gives = made >= made_before_ &&
                 std::find(node.outputs.begin(), node.outputs.end(), recorder_->find(fake)) != node.outputs.end();
    for (int mutated : node.op->schema().mutated_arguments()) gives |= reads(node.args[static_cast<size_t>(mutated)]);
    if (gives) last = at;
    if (!first && std::find(node.outputs.begin(), node.outputs.end(), recorder_->find(fake)) != node.outputs.end())
      first = at;
  }
  size_t boundary = 0;
  for (size_t begin : calls_)
    if (last ? boundary <= *last : begin <= first.value_or(0)) boundary = begin;
  bool needed = boundary > last.value_or(0) || !last;
  if (needed && std::any_of(uses.begin(), uses.end(), [&](size_t use) { return use >= boundary; }))
    throw EarlyBreakNeeded{{boundary, made}};
}

void Session::break_early() {
  if (apart_ > 0) return;  // what is recorded apart is the same at every attempt
  // What comes behind a break may begin with another.
  while (segment_ < early_breaks.size() && early_breaks[segment_]) {
    const EarlyBreak& early = *early_breaks[segment_];
    const bool is_input = early.made == EarlyBreak::kInput;
    if (recorder_->graph().nodes.size() != early.nodes || (!is_input && made_.size() <= early.made)) return;
    std::vector<Tensor> value;
    if (!is_input) {
      Ref<TensorImpl> alive = made_[early.made].first.lock();
      TENON_CHECK(alive,
                  "[compile] the function no longer does what was captured: a value whose gradient it looked at");
      value.emplace_back(std::move(alive));
    }
    finish(Resume{}, value, "the gradient of a value is looked at from which others were computed", Keep::Operands);
  }
}

void Session::break_here(std::string why) { finish(Resume{}, {}, std::move(why)); }

std::vector<Tensor> Session::act_on(std::string why, std::span<const Tensor> tensors, decltype(Act::run) action) {
  // It may give back what it was given: then that is the same tensor to the function, too.
  return act(std::move(why), tensors, std::move(action), Keep::Operands, true);
}

// Views of a view are, like it, views of what it looks into: what becomes of it does not concern them. An argument that
// is a view has a fake that is none, and the views that the function made of it look into that.
void Session::set_views_free(const Tensor& fake) const {
  auto origin = origins_.find(fake.impl());
  if (origin == origins_.end()) return;
  const autograd::AutogradMeta* real = autograd::meta_of(real_at(origin->second.second));
  if (!real || !real->view) return;
  for (const auto& [made, op] : made_)
    if (Ref<TensorImpl> alive = made.lock()) {
      autograd::AutogradMeta* meta = autograd::meta_of(Tensor(std::move(alive)));
      if (meta && meta->view && meta->view->base.is(fake)) meta->view.reset();
    }
}

std::vector<Tensor> Session::effect(core::Effect effect) {
  if (effect.watches_gradients)
    for (const Tensor& tensor : effect.tensors) separate(tensor);
  if (effect.spares_views)
    for (const Tensor& tensor : effect.tensors) set_views_free(stand_in(tensor));
  return act(effect.why, effect.tensors, std::move(effect.action),
             effect.spares_views ? Keep::AndTheirViews : Keep::Operands);
}

void Session::follow(const Standing& standing) {
  for (const auto& [impl, origin] : origins_) {
    const auto& [fake, ref] = origin;
    if (!(ref == standing.tensor)) continue;
    if (fake.requires_grad() == standing.requires_grad && fake.is_leaf() == standing.is_leaf) return;
    if (standing.is_leaf) {
      set_views_free(fake);
      autograd::AutogradMeta& meta = autograd::ensure_meta(fake);
      meta.requires_grad = standing.requires_grad;
      meta.grad_fn = {};
    } else {
      Tensor leaf = core::make_view(fake, fake.sym_sizes(), fake.sym_strides(), fake.sym_storage_offset());
      autograd::ensure_meta(leaf).requires_grad = true;
      autograd::pass_on(fake, leaf);
    }
    return;
  }
}

std::vector<Tensor> Session::act(std::string why, std::span<const Tensor> tensors, decltype(Act::run) action, Keep keep,
                                 bool watched) {
  std::vector<Tensor> operands;
  for (const Tensor& tensor : tensors) operands.push_back(stand_in(tensor));
  size_t added = finish(Act{std::move(action), autograd::grad_enabled(), watched}, operands, std::move(why), keep);
  items_.clear();  // it may have written to anything
  aftermaths.push_back(frame_.aftermaths[aftermaths.size()]);
  autograd::set_grad_enabled(aftermaths.back().grad_enabled);
  for (const Standing& standing : aftermaths.back().changed) follow(standing);
  std::vector<Tensor> results;
  for (size_t at = 0; at < added; ++at) {
    auto index = static_cast<int32_t>(next_register_++);
    const Tensor& real = frame_.registers[static_cast<size_t>(index)];
    if (!real.defined()) {
      register_facts.push_back({index, std::nullopt});
      results.emplace_back();
    } else if (auto found = fakes_.find(real.impl()); found != fakes_.end()) {
      register_facts.push_back({index, origins_.at(found->second.impl()).second});
      results.push_back(found->second);
    } else {
      results.push_back(add_input(real, fmt::format("computed{}", index), Register{index}));
    }
  }
  return results;
}

// An operator that cannot be a node runs between two segments.
void Session::call_between(std::string why, dispatch::Call& call) {
  std::vector<Tensor> given;
  std::vector<Value> args;
  for (const Value& arg : call.args) {
    arg.each_tensor([&](const Tensor& tensor) {
      if (tensor.defined()) given.push_back(stand_in(tensor));
    });
    // What is kept must not keep the capture's fakes, nor its symbols.
    args.push_back(
        pinned(arg.map_tensors([](const Tensor& tensor) { return tensor.defined() ? fake::like(tensor) : tensor; })));
  }
  int lists = 0;
  for (const schema::Argument& result : call.op.schema().returns) {
    if (!result.type.is_tensor_like() && !is_number(result.type)) refuse(std::move(why));
    lists += result.type.is_list() ? 1 : 0;
  }
  if (lists > 1) refuse(std::move(why));
  std::vector<Tensor> results =
      act_on(std::move(why), given, [op = dispatch::OperatorRef(call.op), args](std::span<const Tensor> tensors) {
        dispatch::Values real;
        size_t next = 0;
        for (const Value& arg : args)
          real.push_back(
              arg.map_tensors([&](const Tensor& tensor) { return tensor.defined() ? tensors[next++] : tensor; }));
        std::vector<Tensor> made;
        for (const Value& result : dispatch::call_boxed(*op, real)) {
          result.each_tensor([&](const Tensor& tensor) { made.push_back(tensor); });
          if (result.is_number()) made.push_back(as_tensor(result.scalar()));
        }
        return made;
      });
  // All that is not a single tensor belongs to the list, of which there is one at most.
  size_t next = 0, in_list = results.size() - (call.op.schema().returns.size() - static_cast<size_t>(lists));
  for (const schema::Argument& result : call.op.schema().returns) {
    if (is_number(result.type)) {
      call.results.push_back(Value(read_item(results[next++])).own());
      continue;
    }
    if (!result.type.is_list()) {
      call.results.push_back(Tensor(results[next++]));
      continue;
    }
    std::vector<Tensor> list(results.begin() + static_cast<ptrdiff_t>(next),
                             results.begin() + static_cast<ptrdiff_t>(next + in_list));
    call.results.push_back(Value(list).own());
    next += in_list;
  }
}

std::vector<Tensor> Session::run_walk(const autograd::Walk& walk) {
  auto find = [&](const std::vector<autograd::Edge>& edges, const std::vector<Tensor>& tensors, size_t at) {
    const autograd::Edge& edge = edges[at];
    Tensor found;
    auto look = [&](const Tensor& tensor) {
      if (found.defined() || !tensor.requires_grad()) return;
      autograd::Edge own = autograd::gradient_edge(tensor);
      if (own.node == edge.node && own.input_nr == edge.input_nr) found = tensor;
    };
    for (const auto& [impl, origin] : origins_) look(origin.first);
    // The function may hold a tensor from outside itself.
    for (const auto& [impl, origin] : origins_)
      if (!found.defined() && real_at(origin.second).requires_grad()) {
        autograd::Edge own = autograd::gradient_edge(real_at(origin.second));
        if (own.node == edge.node && own.input_nr == edge.input_nr) found = origin.first;
      }
    recorder_->each_tensor([&](const Tensor& tensor, graph::ValueId) { look(tensor); });
    // A view that was made before the last break is known by how it was made.
    for (const auto& [made, op] : made_)
      if (Ref<TensorImpl> alive = made.lock()) look(Tensor(std::move(alive)));
    // One from outside that nothing has looked at so far.
    if (!found.defined() && at < tensors.size() && tensors[at].defined() && !tensors[at].is_fake())
      found = stand_in(tensors[at]);
    if (!found.defined()) refuse("backward() starts from, or asks for, a tensor that the capture does not know");
    return found;
  };
  std::vector<Tensor> given;
  for (size_t at = 0; at < walk.roots.size(); ++at) given.push_back(find(walk.roots, walk.started_from, at));
  for (const Tensor& gradient : walk.gradients) given.push_back(stand_in(gradient));
  for (size_t at = 0; at < walk.captures.size(); ++at) {
    given.push_back(find(walk.captures, walk.asked_for, at));
    if (recipes_.contains(given.back().impl()) || origins_.contains(given.back().impl())) separate(given.back());
  }
  size_t roots = walk.roots.size();
  bool accumulate = walk.accumulate, retain_graph = walk.retain_graph, create_graph = walk.create_graph;
  auto run = [=](std::span<const Tensor> tensors) {
    autograd::Walk real;
    real.accumulate = accumulate;
    real.retain_graph = retain_graph;
    real.create_graph = create_graph;
    for (size_t at = 0; at < roots; ++at) {
      real.roots.push_back(autograd::gradient_edge(tensors[at]));
      real.gradients.push_back(tensors[roots + at]);
    }
    for (size_t at = 2 * roots; at < tensors.size(); ++at)
      real.captures.push_back(autograd::gradient_edge(tensors[at]));
    return autograd::start_walk(real);
  };
  return act("backward() runs the autograd engine", given, run, Keep::Operands);
}

// ---- The run ------------------------------------------------------------------------------------------------------

void Session::run(std::span<const Tensor> fakes, std::span<const Value> numbers, Body body) {
  Inside inside(*this);
  fake::DynamicSizes sizes(env_, options_.scalar_outputs, options_.dynamic_shape_ops);
  Return end;
  {
    std::vector<Value> results = body(fakes, numbers);
    support::OwnCode looking;
    for (Value& result : results) {
      graph::Argument argument =
          recorder_->to_argument(result.map_tensors([&](const Tensor& tensor) { return stand_in(tensor); }));
      result.each_tensor([&](const Tensor& tensor) {
        Tensor shown = tensor.defined() ? stand_in(tensor) : tensor;
        for (const auto& [impl, origin] : origins_)
          if (shown.defined() && !origin.second.is_register && origin.first.is_same_storage(shown))
            returned_.insert(static_cast<size_t>(origin.second.index));
      });
      bool computed = std::holds_alternative<graph::ValueId>(argument);
      graph::each_symbol(argument, [&](int32_t) { computed = true; });
      end.results.push_back(computed ? std::nullopt : std::optional(result.own()));
      if (computed) recorder_->graph().outputs.push_back(std::move(argument));
    }
  }
  support::OwnCode own;
  if (bool mode = autograd::grad_enabled(); mode != context_of_call_.grad_enabled) end.grad_mode = mode;
  // Nothing but what the graph gives: no list to merge at every call.
  if (std::none_of(end.results.begin(), end.results.end(), [](const auto& constant) { return constant.has_value(); }))
    end.results.clear();
  check_marks();
  hand_over(std::move(end), 0, 0, "");
}

void Session::check_marks() const {
  for (const Marked& mark : marks_)
    if (std::optional<int64_t> value = mark.size.maybe_constant()) {
      std::string because;
      for (const sym::Guard& guard : env_->guards()) {
        std::vector<int32_t> symbols = sym::symbols_of(guard.condition);
        if (mark.size.is_symbolic() &&
            std::find(symbols.begin(), symbols.end(), mark.size.expr().symbol_id()) != symbols.end())
          because += fmt::format("\n  {} (asked by {})", guard.condition.str(), guard.asked_by());
      }
      fail("[mark_dynamic] size {} of {} was marked dynamic, but the function fixes it to {}:{}", mark.dim, mark.name,
           *value, because);
    }
}

void Session::check_nothing_escaped() {
  // Histories of fakes are of no use any more, and may hold one another in a ring.
  for (const auto& [made, op] : made_)
    if (Ref<TensorImpl> alive = made.lock()) alive->autograd.reset();
  for (const auto& [impl, origin] : origins_) origin.first.impl()->autograd.reset();
  recorder_.reset();
  recipes_.clear();
  origins_.clear();
  fakes_.clear();
  closures_.clear();
  cell_inputs_.clear();
  items_.clear();
  for (const auto& [fake, op] : made_)
    TENON_CHECK(
        fake.expired(),
        "[compile] a result of {} is still held after the capture: results of a captured function must be returned, "
        "not kept aside",
        op);
}

}  // namespace tenon::capture
