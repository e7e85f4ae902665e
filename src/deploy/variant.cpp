#include "variant.h"

#include <tenon/aot/export.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/schedule/schedule.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tenon::deploy {
namespace {

using package::Place;
using package::ResultRule;
using package::Variant;

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw NotSaved{fmt::format(text, std::forward<Args>(args)...)};
}
template <typename... Args>
[[noreturn]] void refuse_all(fmt::format_string<Args...> text, Args&&... args) {
  throw NotSaved{fmt::format(text, std::forward<Args>(args)...), true};
}

int64_t bits_of(const CellContent& content) {
  if (const auto* real = std::get_if<double>(&content)) return std::bit_cast<int64_t>(*real);
  if (const auto* flag = std::get_if<bool>(&content)) return *flag;
  return std::get<int64_t>(content);
}

bool same_number(const CellContent& a, const CellContent& b) {
  return a.index() == b.index() && !std::holds_alternative<Tensor>(a) && bits_of(a) == bits_of(b);
}

// What was compiled of a graph that computes nothing: which of its inputs its results are.
aot::Compiled traced(const graph::Graph& passed_on) { return aot::compile(passed_on, {}, false, aot::interpreted); }

class Maker {
 public:
  Maker(const capture::Segment& root, FileTensors& tensors)
      : root_(root), guards_(root.guards.parts()), file_(tensors), compiled_(root.compiled) {}

  Variant make() {
    see_end();
    if (root_.passed_on) compiled_ = traced(*root_.passed_on);
    if (!compiled_.traced)
      refuse_all(
          "its graph is run operator by operator: it was compiled by a backend of the user's, or inputs that it "
          "writes to overlap in memory");
    if (!compiled_.traced->tangents.empty())
      refuse("it computes gradients: call it under NoGrad, or with tensors that do not require grad");
    if (!compiled_.program->hoisted.empty()) refuse("a result is a view that gradients pass");
    see_cells();
    see_same_tensors();
    takes_part();
    see_plan();
    see_sizes();
    see_aliases();
    see_arguments();
    see_results();
    return std::move(made_);
  }

 private:
  const graph::Graph& forward() const { return *compiled_.forward; }
  sym::ShapeEnv& env() const { return *forward().env; }
  sym::Expr expr(const SymInt& number) const { return env().pool().simplify(number.to_expr(env())); }

  void see_end() const {
    if (root_.eager) refuse_all("it cannot be captured: {}", root_.why);
    const auto* returned = std::get_if<capture::Return>(&root_.end);
    if (!returned) {
      std::string line = root_.site.str();
      refuse_all("it is captured as more than one graph: {}{}{}", root_.why, line.empty() ? "" : " at ", line);
    }
    if (returned->grad_mode) refuse_all("it leaves another grad mode behind");
    if (root_.register_count > 0) refuse_all("it is captured as more than one graph");
  }

  // A function that read a cell is saved as it is for what the cell holds now.
  void see_cells() {
    for (const capture::CellFact& fact : guards_.cells) {
      const CellContent& now = fact.cell->content;
      if (fact.is_symbol)
        made_.own_numbers.push_back(bits_of(now));
      else if (!same_number(now, fact.content))
        refuse("it was compiled for another content of cell '{}'", fact.name);
    }
  }

  void see_same_tensors() const {
    for (const capture::SameTensor& fact : guards_.same_tensors)
      if (argument_of(fact.input) >= 0)
        refuse("it was given as '{}' a tensor that it also reaches by itself", fact.name);
  }

  // -1: the function reaches it by itself.
  int32_t argument_of(const capture::InputRef& ref) const {
    const auto* argument = std::get_if<capture::Argument>(&guards_.sources[static_cast<size_t>(ref.index)]);
    return argument ? argument->position : -1;
  }

  Tensor own_tensor(size_t source) const {
    if (const auto* cell = std::get_if<Ref<CellState>>(&guards_.sources[source])) {
      const auto* content = std::get_if<Tensor>(&(*cell)->content);
      if (!content || !content->defined()) refuse("cell '{}' is empty by now", guards_.tensors[source].name);
      return *content;
    }
    const auto& closure = std::get<capture::ClosureTensor>(guards_.sources[source]);
    Ref<TensorImpl> alive = closure.tensor.lock();
    if (!alive || closure.rebound(*alive)) refuse("tensor '{}' is gone by now", guards_.tensors[source].name);
    return Tensor(std::move(alive));
  }

  // The place of an input of the guards. A tensor that the function reaches by itself goes into the file.
  Place place_of(size_t source) {
    Place& place = made_.inputs[source];
    if (place.kind == Place::Kind::Nowhere) {
      Tensor tensor = own_tensor(source);
      const capture::TensorGuard& guard = guards_.tensors[source];
      if (tensor.dtype() != guard.dtype || tensor.dim() != guard.rank)
        refuse("'{}' is another tensor by now", guard.name);
      const auto* cell = std::get_if<Ref<CellState>>(&guards_.sources[source]);
      place = file_.add(tensor, cell && !(*cell)->name.empty() ? (*cell)->name : guard.name);
    }
    return place;
  }
  Place place_of_input(size_t input) { return place_of(static_cast<size_t>(root_.inputs[input].index)); }

  void takes_part() {
    made_.inputs.resize(guards_.sources.size());
    for (size_t at = 0; at < guards_.sources.size(); ++at)
      if (const auto* argument = std::get_if<capture::Argument>(&guards_.sources[at]))
        made_.inputs[at] = {Place::Kind::Argument, argument->position};
  }

  void see_plan() {
    if (!root_.frozen) {
      for (size_t at = 0; at < root_.inputs.size(); ++at) made_.plan_inputs.push_back(place_of_input(at));
      made_.plan = *schedule::compile_graph(forward());
    } else {
      freezing::ConstantsRef constants = root_.frozen->current();
      if (!constants) refuse("it was not called since it was compiled");
      size_t number = 0;
      for (const freezing::Frozen::Taken& each : root_.frozen->takes(*constants)) {
        if (const auto* input = std::get_if<int32_t>(&each))
          made_.plan_inputs.push_back(place_of_input(static_cast<size_t>(*input)));
        else
          made_.plan_inputs.push_back(file_.add(std::get<Tensor>(each), fmt::format("constant{}", number++)));
      }
      made_.plan = *schedule::compile_graph(root_.frozen->graph());
    }
    make_final(made_.plan);
    made_.bound = compiled_.bound;
    const aot::JointGraph& joint = *compiled_.traced;
    for (const aot::RandomEvent& event : joint.random)
      made_.seeds.push_back(event.seed ? std::optional(expr(event.seed->sym_int())) : std::nullopt);
    for (size_t at = 0; at < joint.mutated.size(); ++at)
      made_.written.push_back({static_cast<int32_t>(at), place_of_input(static_cast<size_t>(joint.mutated[at]))});
  }

  // Nothing is compiled after loading: bodies of loops and branches become what was compiled of them. One that never
  // ran (the branch that was not taken) is compiled now.
  void make_final(runtime::Plan& plan) const {
    for (runtime::Step& step : plan.steps) {
      if (const auto* call = std::get_if<runtime::CallStep>(&step))
        if (dispatch::find_operator_or_null(call->op->name()) != call->op.get())
          refuse_all("it calls {}, which is no registered operator: it was removed", call->op->name());
      if (auto* inside = std::get_if<runtime::BodyStep>(&step)) inside->bodies = final_bodies(*inside->bodies);
    }
  }
  runtime::BodiesRef final_bodies(const runtime::Bodies& bodies) const {
    auto made = std::make_shared<runtime::Bodies>(bodies);
    for (runtime::BodyRef& body : made->bodies) {
      if (body->plans().empty()) {
        const Ref<sym::ShapeEnv>& env = body->shape().env;
        std::vector<int64_t> numbers;
        for (int32_t id = 0; id < env->pool().symbol_count(); ++id)
          numbers.push_back(env->hint(env->pool().symbol(id)).value_or(0));
        (void)body->find(numbers);
      }
      std::vector<runtime::BodyPlanRef> plans;
      for (const runtime::BodyPlanRef& each : body->plans()) {
        auto copy = std::make_shared<runtime::BodyPlan>(*each);
        auto plan = std::make_shared<runtime::Plan>(*each->plan);
        make_final(*plan);
        copy->plan = std::move(plan);
        plans.push_back(std::move(copy));
      }
      body = std::make_shared<runtime::SavedBody>(body->shape(), std::move(plans));
    }
    return made;
  }

  // Of what lies in the file, sizes and strides never change, and where it begins is another place than it was.
  void see_sizes() {
    core::SizeGuards::Parts parts = guards_.sizes.parts();
    for (const core::SymbolSource& source : parts.sources)
      if (source.kind != core::SymbolSource::Kind::None && source.kind != core::SymbolSource::Kind::Number)
        (void)place_of(static_cast<size_t>(source.input));
    std::erase_if(parts.expected, [&](const core::SizeGuards::Expectation& each) {
      const Place& place = made_.inputs[static_cast<size_t>(each.input)];
      return place.kind == Place::Kind::Nowhere ||
             (place.kind == Place::Kind::File &&
              (each.value.is_constant() || each.dim == core::SizeGuards::Expectation::kOffset));
    });
    made_.sizes = core::SizeGuards(std::move(parts));
  }

  // Tensors of the file lie apart from everything, whatever they shared memory with.
  void see_aliases() {
    const capture::AliasGuard& guard = root_.guards.aliases();
    const core::AliasClasses& classes = guard.classes();
    if (classes.empty()) return;
    std::vector<bool> written;
    std::vector<int32_t> class_of;
    std::map<int32_t, int32_t> first;  // by class as it was: among arguments
    for (size_t at = 0; at < classes.size(); ++at) {
      const int32_t of = classes.class_of()[at];
      const Place& place = made_.inputs[static_cast<size_t>(guard.input(at).index)];
      if (place.kind == Place::Kind::Nowhere) continue;
      const auto now = static_cast<int32_t>(made_.aliased.size());
      made_.aliased.push_back(place);
      written.push_back(classes.written()[at]);
      class_of.push_back(of < 0 ? -1 - now : now);
      if (place.kind == Place::Kind::Argument && of >= 0) class_of.back() = first.try_emplace(of, now).first->second;
    }
    for (const std::vector<size_t>& members : classes.classes()) {
      bool given = false, own = false;
      for (size_t each : members) (argument_of(guard.input(each)) >= 0 ? given : own) = true;
      if (given && own) refuse("it was given a tensor that shares memory with one that it reaches by itself");
    }
    made_.aliases = core::AliasClasses(std::move(written), std::move(class_of));
  }

  void see_arguments() {
    made_.constants = guards_.constants;
    made_.same_as = guards_.same_as;
    made_.arguments.resize(guards_.argument_names.size());
    for (size_t at = 0; at < made_.arguments.size(); ++at) made_.arguments[at].name = guards_.argument_names[at];
    std::vector<bool> known(made_.arguments.size());
    for (size_t at = 0; at < guards_.sources.size(); ++at)
      if (const auto* argument = std::get_if<capture::Argument>(&guards_.sources[at])) {
        auto position = static_cast<size_t>(argument->position);
        made_.arguments[position].dtype = guards_.tensors[at].dtype;
        made_.arguments[position].rank = guards_.tensors[at].rank;
        known[position] = true;
      }
    // The same tensor as an earlier argument is one input with it.
    for (size_t at = 0; at < known.size(); ++at) {
      auto first = static_cast<size_t>(made_.same_as[at]);
      if (!known[at] && !known[first]) refuse("an argument ('{}') is no tensor", made_.arguments[at].name);
      made_.arguments[at].dtype = made_.arguments[first].dtype;
      made_.arguments[at].rank = made_.arguments[first].rank;
    }
  }

  // ---- Results ----

  // `link` applied to a fake: where it looks is what counts.
  static Tensor follow(const aot::ViewLink& link, const Tensor& from) {
    dispatch::Values args;
    args.push_back(dispatch::Value(from));
    for (size_t at = 1; at < link.args.size(); ++at) args.push_back(link.args[at]);
    return dispatch::call_boxed(*link.op, args)[0].take_tensor();
  }
  static Tensor follow(const std::vector<aot::ViewLink>& chain, Tensor from) {
    for (const aot::ViewLink& link : chain) from = follow(link, from);
    return from;
  }

  void look_so(ResultRule& rule, const Tensor& view, const Tensor& base) const {
    for (const SymInt& each : view.sym_sizes()) rule.sizes.push_back(expr(each));
    for (const SymInt& each : view.sym_strides()) rule.strides.push_back(expr(each));
    rule.offset = expr(view.sym_storage_offset() - base.sym_storage_offset());
  }

  // What a remade view looks into, and itself, as fakes.
  struct Remade {
    Tensor base, view;
    int32_t output = -1, input = -1;  // what the base is
  };
  Remade remade(size_t at) const {
    const aot::RemadeView& view = compiled_.traced->remade[at];
    Remade found;
    if (view.output >= 0) {
      found.output = view.output;
      found.base = found.view =
          forward().meta(std::get<graph::ValueId>(forward().outputs[static_cast<size_t>(view.output)]));
    } else if (view.input >= 0) {
      found.input = view.input;
      found.base = input_meta(view.input);
      found.view = follow(view.chain, found.base);
    } else {
      found = remade(static_cast<size_t>(view.parent));
      found.view = follow(view.link, found.view);
    }
    return found;
  }
  const Tensor& input_meta(int32_t input) const { return forward().meta(forward().inputs[static_cast<size_t>(input)]); }

  void see_results() {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Functionalize, DispatchKey::ADInplaceOrView, DispatchKey::Autograd,
                                       DispatchKey::Autocast, DispatchKey::Capture});
    autograd::SetGradMode off(false);
    sym::ShapeEnv::SuppressGuards asked_before(env());
    const auto& returned = std::get<capture::Return>(root_.end).results;
    const std::vector<aot::OutputPlan>& outputs = compiled_.traced->outputs;
    std::vector<int32_t> place(outputs.size());  // among all results
    size_t next = 0;
    auto add = [&] {
      place[next] = static_cast<int32_t>(made_.results.size());
      made_.results.push_back(rule_of(outputs[next], place));
      ++next;
    };
    for (const std::optional<dispatch::Value>& constant : returned) {
      if (constant)
        made_.results.push_back({.kind = ResultRule::Kind::Constant, .constant = constant->own()});
      else
        add();
    }
    // The last outputs are the values of symbols.
    if (returned.empty())
      while (next < outputs.size() - root_.bound.size()) add();
  }

  ResultRule rule_of(const aot::OutputPlan& plan, const std::vector<int32_t>& place) {
    using Kind = ResultRule::Kind;
    if (plan.same_as >= 0) return {.kind = Kind::SameAsAnother, .index = place[static_cast<size_t>(plan.same_as)]};
    switch (plan.kind) {
      case aot::OutputPlan::Kind::Value: return {.kind = Kind::Output, .index = plan.index};
      case aot::OutputPlan::Kind::Input:
        return {.kind = Kind::Tensor, .place = place_of_input(static_cast<size_t>(plan.index))};
      case aot::OutputPlan::Kind::ViewOfInput: {
        ResultRule rule{.kind = Kind::ViewOfTensor, .place = place_of_input(static_cast<size_t>(plan.index))};
        const Tensor& base = input_meta(plan.index);
        look_so(rule, follow(plan.chain, base), base);
        return rule;
      }
      case aot::OutputPlan::Kind::ViewOfOutput: {
        Remade found = remade(static_cast<size_t>(plan.index));
        ResultRule rule{.kind = found.output >= 0 ? Kind::ViewOfOutput : Kind::ViewOfTensor, .index = found.output};
        if (found.input >= 0) rule.place = place_of_input(static_cast<size_t>(found.input));
        look_so(rule, found.view, found.base);
        return rule;
      }
      case aot::OutputPlan::Kind::Number: break;
    }
    const dispatch::Value& number = plan.number;
    using Tag = dispatch::Value::Tag;
    if (number.tag() == Tag::Int && number.sym_int().is_symbolic())
      return {.kind = Kind::Number, .number = expr(number.sym_int())};
    if (number.tag() == Tag::Real && number.sym_float().is_symbolic())
      return {.kind = Kind::Number, .number = number.sym_float().expr()};
    if (number.tag() == Tag::Bool && number.sym_bool().is_symbolic())
      return {.kind = Kind::Number, .number = number.sym_bool().expr()};
    return {.kind = Kind::Constant, .constant = number.own()};
  }

  const capture::Segment& root_;
  const capture::Guards::Parts guards_;
  FileTensors& file_;
  aot::Compiled compiled_;
  Variant made_;
};

}  // namespace

Place FileTensors::add(const Tensor& tensor, const std::string& name) {
  auto [found, is_new] = known_.try_emplace(tensor.impl(), static_cast<int32_t>(function_.tensors.size()));
  if (is_new) {
    int count = names_[name]++;
    function_.tensors.push_back(tensor);
    function_.tensor_names.push_back(count == 0 ? name : fmt::format("{}#{}", name, count));
  }
  return {Place::Kind::File, found->second};
}

Variant make_variant(const capture::Segment& root, FileTensors& tensors) { return Maker(root, tensors).make(); }

}  // namespace tenon::deploy
