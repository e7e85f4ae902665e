#include "cpu/choose.h"
#include "in_place.h"
#include "lowering.h"
#include "survey.h"
#include "work.h"

#include <tenon/ops/strided.h>
#include <tenon/support/log.h>

#include <algorithm>
#include <set>
#include <unordered_set>

namespace tenon::schedule {

const ops::Row& row_for(const dispatch::Operator& op) {
  if (const ops::Row* row = ops::row_of(op)) return *row;
  return op.derived<ops::Row>([&] {
    auto opaque = std::make_shared<ops::Row>();
    opaque->schema = op.schema();
    opaque->kind = ops::Kind::Opaque;
    opaque->op = &op;
    return opaque;
  });
}

Expr to_expr(const Graph& graph, const SymInt& number) { return number.to_expr(*graph.env); }

std::vector<Expr> size_exprs(const Graph& graph, ValueId id) {
  std::vector<Expr> sizes;
  for (const SymInt& size : graph.meta(id).sym_sizes())
    sizes.push_back(graph.env->pool().simplify(to_expr(graph, size)));
  return sizes;
}

dispatch::Values node_values(const Graph& graph, const Node& node) {
  dispatch::Values values;
  for (const graph::Argument& argument : node.args) {
    if (const auto* id = std::get_if<ValueId>(&argument)) {
      values.push_back(*id == graph::kNoValue ? dispatch::Value() : dispatch::Value(Tensor(graph.meta(*id))));
    } else if (const auto* list = std::get_if<graph::ValueList>(&argument)) {
      if (list->optional) {
        std::vector<std::optional<Tensor>> metas;
        for (ValueId each : list->ids)
          metas.push_back(each == graph::kNoValue ? std::nullopt : std::optional<Tensor>(graph.meta(each)));
        values.push_back(dispatch::Value(metas).own());
        continue;
      }
      std::vector<Tensor> metas;
      for (ValueId each : list->ids) metas.push_back(graph.meta(each));
      values.push_back(dispatch::Value(metas).own());
    } else {
      values.push_back(std::get<dispatch::Value>(argument));
    }
  }
  return values;
}

bool needs_memory(const Schedule& schedule, ValueId view) {
  const ValueState& state = schedule.state(view);
  if (!state.row || !state.row->view.of_storage) return false;
  const Tensor& viewed = schedule.graph.meta(state.source);
  return state.source != state.base || !ops::dense_order(viewed.sym_sizes(), viewed.sym_strides());
}

Schedule::Schedule(const Graph& source, const Options& chosen, std::vector<Update> updated)
    : graph(source), options(chosen), updates(std::move(updated)) {
  for (size_t update = 0; update < updates.size(); ++update)
    for (size_t write = 0; write < updates[update].writes.size(); ++write)
      places_.try_emplace(updates[update].writes[write].value, update, write);
}

std::optional<Schedule::Place> Schedule::place_of(ValueId root) const {
  auto found = places_.find(root);
  if (found == places_.end()) return std::nullopt;
  const auto [update, write] = found->second;
  return Place{updates[update].input, &updates[update].writes[write].place};
}

bool Schedule::is_written_by(const Group& group, ValueId input) const {
  return std::any_of(group.roots.begin(), group.roots.end(), [&](ValueId root) {
    std::optional<Place> found = place_of(root);
    return found && found->input == input;
  });
}

namespace {

constexpr size_t kMaxRoots = 24;  // of one kernel: more would spill registers and slow the compiler
// Of one element of a kernel, in instructions: beside so much work another trip through memory is nothing, and LLVM's
// time grows faster than the kernel.
constexpr int kMaxWork = 320;
// Steps that a root is held against in vain before it becomes a step of its own. Of values that all fit in nowhere,
// each would else be tried with every one before it.
constexpr int kMostRefusals = 16;

class Fuser {
 public:
  Fuser(const Graph& graph, const Options& options, std::vector<Update> updates)
      : schedule_(graph, options, std::move(updates)), graph_(graph), users_(graph::users_of(graph)) {}

  Schedule run() {
    describe_values();
    choose_roots();
    bound_work();
    for (const Node& node : graph_.nodes) place(node);
    place_last_writes();
    drop_unread_memory();
    return std::move(schedule_);
  }

 private:
  void describe_values() {
    schedule_.values.resize(graph_.values.size());
    for (ValueId id : graph_.inputs) schedule_.state(id).base = id;
    for (const Node& node : graph_.nodes) {
      const ops::Row* row = &row_for(*node.op);
      for (ValueId id : node.outputs) {
        ValueState& state = schedule_.state(id);
        state.node = &node;
        state.row = row;
        state.base = id;
        if (row->kind == ops::Kind::View) {
          state.source = std::get<ValueId>(node.args[0]);
          state.base = schedule_.state(state.source).base;
        }
      }
    }
  }

  // Whether a value has several readers, views looked through.
  bool is_read_again(ValueId id) const {
    int count = 0;
    std::vector<ValueId> seen_through{id};
    while (!seen_through.empty()) {
      const ValueId at = seen_through.back();
      seen_through.pop_back();
      for (int32_t user : users_[static_cast<size_t>(at)]) {
        const Node& node = graph_.nodes[static_cast<size_t>(user)];
        if (row_for(*node.op).kind == ops::Kind::View)
          seen_through.push_back(node.outputs[0]);
        else if (++count > 1)
          return true;
      }
    }
    return false;
  }

  // Recomputing it costs no more than reading it.
  bool is_trivial(ValueId id) const {
    const ValueState& state = schedule_.state(id);
    if (state.row->kind != ops::Kind::Element && state.row->kind != ops::Kind::Pointwise) return false;
    if (state.row->kind == ops::Kind::Element && state.row->element.random) return false;
    bool reads = false;
    for (size_t at = 0; at < state.node->args.size(); ++at)
      if (!state.row->ignores(state.row->schema.arguments[at].name))
        graph::each_reference(state.node->args[at], [&](ValueId) { reads = true; });
    return !reads;
  }

  void make_root(ValueId id) {
    ValueId base = schedule_.state(id).base;
    if (!schedule_.is_input(base)) schedule_.state(base).root = schedule_.state(base).stored = true;
  }

  void choose_roots() {
    for (const graph::Argument& output : graph_.outputs)
      graph::each_reference(output, [&](ValueId id) {
        make_root(id);
        outputs_.insert(schedule_.state(id).base);
      });
    for (const Update& update : schedule_.updates) {
      for (const Write& write : update.writes) make_root(write.value);
      if (update.result == graph::kNoValue) continue;
      make_root(update.result);
      schedule_.state(update.result).memory = update.input;
    }
    for (const Node& node : graph_.nodes) {
      const ops::Row* row = &row_for(*node.op);
      bool opaque = row->kind == ops::Kind::Opaque;  // also: not in the table
      if (opaque) graph::each_reference(node, [&](ValueId id) { make_root(id); });
      for (ValueId id : node.outputs) {
        if (needs_memory(schedule_, id)) make_root(id);
        if (opaque || row->kind == ops::Kind::Reduction || !schedule_.options.fuse ||
            (row->kind != ops::Kind::View && is_read_again(id) && !is_trivial(id)))
          make_root(id);
      }
    }
  }

  // Long chains are cut: what an element takes, from the roots on, stays within one kernel's limit.
  void bound_work() {
    std::map<std::tuple<const ops::Row*, Dtype, size_t>, int> known;  // by row, dtype and number of tensors
    work_.assign(graph_.values.size(), 0);
    for (const Node& node : graph_.nodes) {
      const ops::Row* row = &row_for(*node.op);
      if (row->kind == ops::Kind::Opaque || node.outputs.empty()) continue;
      if (row->kind == ops::Kind::View) {
        for (ValueId id : node.outputs) work_of(id) = work_of(schedule_.state(id).source);
        continue;
      }
      std::set<ValueId> inputs;  // that are computed where they are read
      size_t tensors = 0;
      graph::each_reference(node, [&](ValueId) { ++tensors; });
      for (size_t at = 0; at < node.args.size(); ++at)
        if (!row->ignores(row->schema.arguments[at].name))
          graph::each_reference(node.args[at], [&](ValueId id) {
            if (!is_in_memory(id)) inputs.insert(id);
          });
      auto [own, first] = known.try_emplace({row, graph_.meta(node.outputs[0]).dtype(), tensors}, 0);
      if (first) own->second = schedule::work_of(graph_, node);
      int all = own->second;
      for (ValueId id : inputs) all += work_of(id);
      while (all > kMaxWork && !inputs.empty()) {
        auto most = std::max_element(inputs.begin(), inputs.end(),
                                     [&](ValueId a, ValueId b) { return work_of(a) < work_of(b); });
        if (work_of(*most) == 0) break;
        all -= work_of(*most);
        make_root(*most);
        inputs.erase(most);
      }
      for (ValueId id : node.outputs) work_of(id) = all;
    }
  }

  int& work_of(ValueId id) { return work_[static_cast<size_t>(id)]; }
  bool is_in_memory(ValueId id) const {
    ValueId base = schedule_.state(id).base;
    return schedule_.is_input(base) || schedule_.state(base).root;
  }

  // The roots that computing a value reads, virtual ones looked through.
  void collect_dependencies(ValueId id, std::set<ValueId>& reads, std::set<ValueId>& seen) const {
    if (!seen.insert(id).second) return;
    const ValueState& state = schedule_.state(id);
    auto visit = [&](ValueId input) {
      ValueId base = schedule_.state(input).base;
      if (schedule_.is_input(base)) return;
      if (schedule_.state(base).root)
        reads.insert(base);
      else
        collect_dependencies(input, reads, seen);
    };
    for (size_t at = 0; at < state.node->args.size(); ++at) {
      if (state.row->ignores(state.row->schema.arguments[at].name)) continue;
      graph::each_reference(state.node->args[at], visit);
    }
  }

  void place(const Node& node) {
    const ops::Row* row = &row_for(*node.op);
    if (row->kind == ops::Kind::Opaque) {
      place_call(node);
      return;
    }
    for (ValueId id : node.outputs) {
      ValueState& state = schedule_.state(id);
      if (!state.root || state.step >= 0) continue;
      if (state.memory != graph::kNoValue)
        place_update(state.memory, id);
      else if (!schedule_.place_of(id))
        place_root(id);
    }
  }

  // The writes to an input, in their order; then what it becomes is there.
  void place_update(ValueId input, ValueId result) {
    for (const Update& update : schedule_.updates)
      if (update.input == input)
        for (const Write& write : update.writes) place_root(write.value);
    if (!schedule_.place_of(result)) schedule_.state(result).step = last_write_to(input);
  }

  // Writes that nobody waits for come last: by then all has been read that they write over. Of several, an input that
  // another one's writes read comes after that one.
  void place_last_writes() {
    struct Left {
      const Update* update;
      std::set<ValueId> reads;  // inputs of others
    };
    std::vector<Left> left;
    std::map<ValueId, int> readers;  // of an input, among those left
    for (const Update& update : schedule_.updates) {
      if (update.result != graph::kNoValue) continue;
      Left& one = left.emplace_back(Left{&update, {}});
      std::set<ValueId> seen;
      for (const Write& write : update.writes) collect_inputs(write.value, one.reads, seen);
      one.reads.erase(update.input);
      for (ValueId read : one.reads) ++readers[read];
    }
    while (!left.empty()) {
      auto next =
          std::find_if(left.begin(), left.end(), [&](const Left& one) { return readers[one.update->input] == 0; });
      if (next == left.end()) next = left.begin();
      place_update(next->update->input, next->update->writes.back().value);
      for (ValueId read : next->reads) --readers[read];
      left.erase(next);
    }
  }

  int last_write_to(ValueId input) const {
    int step = -1;
    for (const Update& update : schedule_.updates)
      if (update.input == input)
        for (const Write& write : update.writes) step = std::max(step, schedule_.state(write.value).step);
    return step;
  }

  // The first step that may write there: reads of what was there before, and earlier writes, come first.
  int free_to_write(ValueId input) const {
    auto read = last_read_.find(input);
    return std::max(last_write_to(input) + 1, read == last_read_.end() ? 0 : read->second);
  }

  // A group that reads an input may write it as well, if it is the one kernel that can (`fits`); a call may not.
  void note_reads(const Group& group, ValueId root, int step) {
    if (schedule_.updates.empty()) return;
    std::set<ValueId> inputs, seen;
    if (group.call)
      graph::each_reference(*group.call, [&](ValueId read) { inputs.insert(schedule_.state(read).base); });
    else
      collect_inputs(root, inputs, seen);
    for (ValueId input : inputs) {
      int& last = last_read_.try_emplace(input, 0).first->second;
      last = std::max(last, step + (group.call ? 1 : 0));
    }
  }

  void collect_inputs(ValueId id, std::set<ValueId>& inputs, std::set<ValueId>& seen) const {
    if (!seen.insert(id).second) return;
    const ValueState& state = schedule_.state(id);
    for (size_t at = 0; at < state.node->args.size(); ++at) {
      if (state.row->ignores(state.row->schema.arguments[at].name)) continue;
      graph::each_reference(state.node->args[at], [&](ValueId read) {
        ValueId base = schedule_.state(read).base;
        if (schedule_.is_input(base))
          inputs.insert(base);
        else if (!schedule_.state(base).root)
          collect_inputs(read, inputs, seen);
      });
    }
  }

  void place_call(const Node& node) {
    Group group;
    group.call = &node;
    group.roots = node.outputs;
    // What is done to each element of a result that nobody else reads, the library's kernel may do on the way.
    ValueId result = node.outputs.empty() ? graph::kNoValue : node.outputs[0];
    const dispatch::OpaqueKernel* kernel = dispatch::opaque_kernel_of(*node.op);
    if (schedule_.options.fuse && kernel && kernel->fill_with && users_[static_cast<size_t>(result)].size() == 1 &&
        !outputs_.contains(result)) {
      const Node& user = graph_.nodes[static_cast<size_t>(users_[static_cast<size_t>(result)][0])];
      dispatch::Epilogue epilogue = row_for(*user.op).pointwise.epilogue;
      if (kernel->takes(epilogue)) {
        group.epilogue = epilogue;
        group.roots = user.outputs;
        schedule_.state(result).stored = false;
        make_root(user.outputs[0]);
      }
    }
    for (ValueId id : group.roots) schedule_.state(id).step = static_cast<int>(schedule_.groups.size());
    for (const graph::Binding& binding : node.binds)
      symbol_step_[binding.symbol] = static_cast<int>(schedule_.groups.size());
    note_reads(group, result, static_cast<int>(schedule_.groups.size()));
    schedule_.groups.push_back(std::move(group));
  }

  // The step after which every symbol in these values and their arguments is known.
  int symbols_known(const std::set<ValueId>& values) const {
    int step = 0;
    if (symbol_step_.empty()) return step;
    auto use = [&](int32_t symbol) {
      if (auto found = symbol_step_.find(symbol); found != symbol_step_.end()) step = std::max(step, found->second);
    };
    for (ValueId id : values) {
      graph::each_symbol(graph_.meta(id), use);
      if (const Node* node = schedule_.state(id).node)
        for (const graph::Argument& argument : node->args) {
          graph::each_symbol(argument, use);
          graph::each_reference(argument, [&](ValueId input) { graph::each_symbol(graph_.meta(input), use); });
        }
    }
    return step;
  }

  Group group_of(ValueId id) const {
    const ValueState& state = schedule_.state(id);
    Group group;
    group.roots = {id};
    if (state.row->kind == ops::Kind::Reduction) {
      auto self = std::get<ValueId>(state.node->args[0]);
      group.domain = size_exprs(graph_, self);
      group.reduced.assign(group.domain.size(), false);
      dispatch::Values values = node_values(graph_, *state.node);
      ops::Arguments arguments(*state.node->op, values);
      for (int64_t dim : arguments.dims_or_all("dim", static_cast<int64_t>(group.domain.size())))
        group.reduced[static_cast<size_t>(dim)] = true;
    } else {
      group.domain = size_exprs(graph_, id);
      group.reduced.assign(group.domain.size(), false);
    }
    return group;
  }

  // The group with the root added, if their iteration spaces fit.
  static std::optional<Group> join(const Group& group, const Group& single) {
    if (group.call || group.roots.size() >= kMaxRoots) return std::nullopt;
    auto with_root = [&](const std::vector<bool>& reduced) {
      Group joined = group;
      joined.roots.push_back(single.roots[0]);
      joined.reduced = reduced;
      return joined;
    };
    if (group.domain == single.domain) {
      if (!single.has_reduction() || single.reduced == group.reduced) return with_root(group.reduced);
      if (group.has_reduction()) return std::nullopt;
      return with_root(single.reduced);
    }
    if (!group.has_reduction() || single.has_reduction()) return std::nullopt;
    // A pointwise root over what the reduction leaves: the kept dimensions, with or without ones in place of the
    // reduced.
    std::vector<Expr> kept, with_ones;
    for (size_t dim = 0; dim < group.domain.size(); ++dim) {
      if (!group.reduced[dim]) kept.push_back(group.domain[dim]);
      with_ones.push_back(group.reduced[dim] ? group.domain[dim].pool().constant(1) : group.domain[dim]);
    }
    if (single.domain == kept || single.domain == with_ones) return with_root(group.reduced);
    return std::nullopt;
  }

  // The survey of a step's group with a root added. The one that grew last is kept: it is likely to grow again.
  Survey& survey(int step, const Group& joined) {
    if (growing_ && growing_step_ == step) {
      // What throws leaves nothing to go on with.
      std::unique_ptr<Survey> before = std::move(growing_);
      if (before->grow(joined)) growing_ = std::move(before);
    } else {
      growing_.reset();
    }
    if (!growing_) growing_ = std::make_unique<Survey>(schedule_, joined);
    growing_step_ = step;
    return *growing_;
  }

  // Whether one loop nest can compute them all, and would not be slower than two.
  Decision fits(int step, const Group& joined, const Group& single) {
    try {
      const Survey& seen = survey(step, joined);
      // Of a kernel that writes to an input, what it reads there matters.
      if (std::any_of(joined.roots.begin(), joined.roots.end(), [&](ValueId id) { return schedule_.place_of(id); })) {
        const Nest nest = make_nest(schedule_, joined);
        for (const Update& update : schedule_.updates)
          if (Decision alike = reads_where_it_writes(nest, update.input); !alike) return alike;
      }
      int work = 0;
      for (const Stage& stage : seen.stages()) work += stage.work;
      if (work > kMaxWork) return Decision::forbid("{} instructions for an element: at most {}", work, kMaxWork);
      if (std::optional<Nest> outline = seen.outline(); outline && !cpu::may_lack_threads(*outline))
        return Decision::allow();
      const Nest nest = make_nest(schedule_, joined);
      if (!cpu::may_lack_threads(nest)) return Decision::allow();
      const double together = cpu::cost(nest, cpu::choose(nest)).total();
      const Nest first = make_nest(schedule_, schedule_.groups[static_cast<size_t>(step)]),
                 second = make_nest(schedule_, single);
      const double apart =
          cpu::cost(first, cpu::choose(first)).total() + cpu::cost(second, cpu::choose(second)).total();
      if (together <= apart) return Decision::allow();
      return Decision::forbid("a sum that others wait for cannot be split over threads: {:.0f} cycles, {:.0f} in two",
                              together, apart);
    } catch (const Refused& refused) {
      return Decision::forbid("{}", refused.why);
    }
  }

  void place_root(ValueId id) {
    Group single = group_of(id);
    std::set<ValueId> reads, seen;
    collect_dependencies(id, reads, seen);
    int earliest = symbols_known(seen);
    for (ValueId read : reads) earliest = std::max(earliest, schedule_.state(read).step);
    if (std::optional<Schedule::Place> written = schedule_.place_of(id))
      earliest = std::max(earliest, free_to_write(written->input));
    int refused = 0;
    if (schedule_.options.fuse)
      for (int at = static_cast<int>(schedule_.groups.size()) - 1; at >= earliest && refused < kMostRefusals; --at) {
        std::optional<Group> joined = join(schedule_.groups[static_cast<size_t>(at)], single);
        if (!joined) continue;
        schedule_.state(id).step = at;
        Decision decision = fits(at, *joined, single);
        if (decision) {
          schedule_.groups[static_cast<size_t>(at)] = std::move(*joined);
          note_reads(single, id, at);
          return;
        }
        ++refused;
        growing_.reset();
        TENON_LOG(Fusion, "%{} not fused with step {}: {}", graph_.values[static_cast<size_t>(id)].name, at,
                  decision.why());
        schedule_.refusals.push_back(std::move(decision));
      }
    schedule_.state(id).step = static_cast<int>(schedule_.groups.size());
    note_reads(single, id, schedule_.state(id).step);
    schedule_.groups.push_back(std::move(single));
  }

  // A root needs memory only if another step, or the caller, reads it.
  void drop_unread_memory() {
    std::set<ValueId> needed;
    for (const graph::Argument& output : graph_.outputs)
      graph::each_reference(output, [&](ValueId id) { needed.insert(schedule_.state(id).base); });
    for (const Update& update : schedule_.updates) {
      for (const Write& write : update.writes) needed.insert(write.value);
      if (update.result != graph::kNoValue) needed.insert(update.result);
    }
    for (size_t at = 0; at < schedule_.groups.size(); ++at) {
      const Group& group = schedule_.groups[at];
      if (group.call) {
        graph::each_reference(*group.call, [&](ValueId id) { needed.insert(schedule_.state(id).base); });
        for (ValueId id : group.roots) needed.insert(id);
        continue;
      }
      for (ValueId root : group.roots) {
        std::set<ValueId> reads, seen;
        collect_dependencies(root, reads, seen);
        for (ValueId read : reads)
          if (schedule_.state(read).step != static_cast<int>(at)) needed.insert(read);
      }
    }
    for (size_t id = 0; id < schedule_.values.size(); ++id)
      if (schedule_.values[id].root && !needed.contains(static_cast<ValueId>(id))) schedule_.values[id].stored = false;
  }

  Schedule schedule_;
  const Graph& graph_;
  std::vector<std::vector<int32_t>> users_;
  std::unordered_set<ValueId> outputs_;           // what the results show
  std::unordered_map<int32_t, int> symbol_step_;  // unbacked symbols: the step that binds them
  std::unordered_map<ValueId, int> last_read_;    // inputs that somebody writes: the first step that may
  std::vector<int> work_;                         // by value: what an element takes, from the roots on
  std::unique_ptr<Survey> growing_;               // of the step that a root was put into last
  int growing_step_ = -1;
};

}  // namespace

Schedule fuse(const Graph& graph, const Options& options, std::vector<Update> updates) {
  return Fuser(graph, options, std::move(updates)).run();
}

}  // namespace tenon::schedule
