#include "in_place.h"

#include "ops/index/scattering.h"
#include "schedule_loops.h"

#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/ops/strided.h>

#include <map>
#include <set>

namespace tenon::schedule {
namespace {

bool equal(const SymInt& a, const SymInt& b) { return a.same(b) || statically_true(a == b); }

bool equal(const SymInts& a, const SymInts& b) {
  if (a.size() != b.size()) return false;
  for (size_t at = 0; at < a.size(); ++at)
    if (!equal(a[at], b[at])) return false;
  return true;
}

// How a value that an input becomes came about.
class WriteFinder {
 public:
  explicit WriteFinder(const Graph& graph) : graph_(graph), producer_(graph.values.size()) {
    for (const Node& node : graph.nodes)
      for (ValueId id : node.outputs) producer_[static_cast<size_t>(id)] = &node;
  }

  const Node* producer(ValueId id) const { return producer_[static_cast<size_t>(id)]; }

  // The value whose memory a value shows.
  ValueId base_of(ValueId id) const {
    for (const Node* node = producer(id); node && row_for(*node->op).kind == ops::Kind::View; node = producer(id))
      id = std::get<ValueId>(node->args[0]);
    return id;
  }

  // What has to go where in the memory of the input, so that `value` lies at `place`.
  std::vector<Write> writes(ValueId input, ValueId value, const Tensor& place) const {
    Found found{input, place, {}};
    write(value, place, found);
    return std::move(found.writes);
  }

  // Where in the input's memory the value lies whose memory `value` shows; undefined if that is no view of it.
  Tensor place_of_base(ValueId value, Tensor place) const {
    for (const Node* node = producer(value); node && row_for(*node->op).kind == ops::Kind::View && place.defined();
         node = producer(value)) {
      place = place_of_viewed(*node, place);
      value = std::get<ValueId>(node->args[0]);
    }
    return place;
  }

 private:
  bool has_sizes_of(const Tensor& place, ValueId id) const {
    return equal(place.sym_sizes(), graph_.meta(id).sym_sizes());
  }

  // Of a view that shows every element of what it looks into, and lies at `place`: where that lies.
  Tensor place_of_viewed(const Node& node, const Tensor& place) const {
    const ops::Row& row = row_for(*node.op);
    const auto viewed = std::get<ValueId>(node.args[0]);
    if (!row.view.scatter || row.view.of_storage) return {};
    dispatch::Values values = node_values(graph_, node);
    Tensor whole = row.view.scatter(graph_.meta(viewed), place, ops::Arguments(*node.op, values));
    return whole.is_same_storage(place) && has_sizes_of(whole, viewed) ? whole : Tensor();
  }

  // The input's memory as far as it has been followed: after these writes it holds `whole`.
  struct Found {
    ValueId whole;
    Tensor whole_place;
    std::vector<Write> writes;
  };

  // Whether `value` is what lies at `place`, but for some parts, whose writes are added.
  bool is_there(ValueId value, const Tensor& place, Found& found) const {
    if (base_of(value) == found.whole && has_geometry(graph_.meta(value), place)) return true;
    const Node* node = producer(value);
    if (!node) return false;
    const ops::Row& row = row_for(*node->op);
    if (row.kind == ops::Kind::View) {
      Tensor whole = place_of_viewed(*node, place);
      return whole.defined() && is_there(std::get<ValueId>(node->args[0]), whole, found);
    }
    if (row.kind != ops::Kind::Element || !row.element.place) return false;
    auto argument = [&](std::string_view name) {
      return std::get<ValueId>(node->args[static_cast<size_t>(node->op->schema().argument_index(name))]);
    };
    if (!is_there(argument("self"), place, found)) return false;
    // What `src` looks into is now `self`, if that is the whole and lies as the whole does.
    if (has_geometry(place, found.whole_place) && has_geometry(graph_.meta(argument("self")), place))
      found.whole = base_of(argument("self"));
    dispatch::Values values = node_values(graph_, *node);
    Tensor part = row.element.place(place, ops::Arguments(*node->op, values));
    if (!part.is_same_storage(place) || !has_sizes_of(part, argument("src"))) return false;
    write(argument("src"), part, found);
    return true;
  }

  void write(ValueId value, const Tensor& place, Found& found) const {
    const Found before = found;
    if (is_there(value, place, found)) return;
    found = before;
    if (const Node* node = producer(value); node && row_for(*node->op).kind == ops::Kind::View)
      if (Tensor whole = place_of_viewed(*node, place); whole.defined())
        return write(std::get<ValueId>(node->args[0]), whole, found);
    found.writes.push_back({value, place});
  }

  const Graph& graph_;
  std::vector<const Node*> producer_;  // by value; null: an input
};

bool is_computed_in_loops(const Node* node) {
  if (!node) return false;
  const ops::Kind kind = row_for(*node->op).kind;
  return kind == ops::Kind::Pointwise || kind == ops::Kind::Element || kind == ops::Kind::Reduction;
}

// Whether the library may compute the value in the memory of the input: it gives what is there but for some elements,
// and looks into that memory for nothing else.
bool is_computed_over(const Graph& graph, const WriteFinder& finder, ValueId value, ValueId input) {
  const Node* node = finder.producer(value);
  if (!node || node->outputs.size() != 1 || !ops::begins_as_self(row_for(*node->op))) return false;
  const ValueId self = std::get<ValueId>(node->args[0]);
  int looks = 0;
  graph::each_reference(*node, [&](ValueId id) { looks += finder.base_of(id) == input; });
  return looks == 1 && finder.base_of(self) == input && has_geometry(graph.meta(self), graph.meta(input)) &&
         equal(graph.meta(value).sym_sizes(), graph.meta(input).sym_sizes()) &&
         equal(graph.meta(value).sym_strides(), graph.meta(input).sym_strides());
}

class Updater {
 public:
  Updater(const Graph& graph, std::vector<Decision>& decisions) : source_(graph), decisions_(decisions) {}

  InPlace run() {
    result_.graph = source_;
    for (size_t at = 0; at < source_.written.size(); ++at)
      if (decisions_[at]) decisions_[at] = plan(at);
    if (result_.updates.empty()) return std::move(result_);
    drop_what_was_for_the_outputs();
    // What cannot be done is seen one after the other: a later refusal keeps values alive that an earlier update read.
    for (const Update& update : result_.updates)
      if (decisions_[update.written]) decisions_[update.written] = finish(update);
    if (std::any_of(result_.updates.begin(), result_.updates.end(),
                    [&](const Update& update) { return !decisions_[update.written]; }))
      return Updater(source_, decisions_).run();
    result_.updates = std::move(finished_);
    return std::move(result_);
  }

 private:
  // The writes that lead to the new value.
  Decision plan(size_t at) {
    const graph::Written& written = source_.written[at];
    const auto* value = std::get_if<ValueId>(&source_.outputs[static_cast<size_t>(written.output)]);
    const ValueId input = source_.inputs[static_cast<size_t>(written.input)];
    if (!value || *value == graph::kNoValue) return Decision::forbid("it becomes a number");
    if (*value == input) return Decision::forbid("it stays as it is");
    const Tensor& meta = source_.meta(input);
    if (ops::may_overlap(meta.sym_sizes(), meta.sym_strides()))
      return Decision::forbid("two of its elements may lie at one place");
    const WriteFinder finder(source_);
    const ValueId base = finder.base_of(*value);
    bool is_returned = false;
    for (size_t output = 0; output < source_.outputs.size(); ++output)
      if (static_cast<int32_t>(output) != written.output)
        graph::each_reference(source_.outputs[output], [&](ValueId id) {
          is_returned |= finder.base_of(id) == input || finder.base_of(id) == base;
        });
    if (is_returned) return Decision::forbid("its old or its new value is a result, or is kept for backward");
    Update update;
    update.written = at;
    update.input = input;
    update.writes = finder.writes(input, *value, meta);
    update.result = base;
    if (update.writes.empty()) return Decision::forbid("what is written to it is there already");
    result_.updates.push_back(std::move(update));
    return Decision::allow();
  }

  // The outputs are the inputs, and what only they needed goes.
  void drop_what_was_for_the_outputs() {
    Graph& graph = result_.graph;
    for (const Update& update : result_.updates)
      graph.outputs[static_cast<size_t>(source_.written[update.written].output)] = update.input;
    const size_t outputs = graph.outputs.size();
    for (const Update& update : result_.updates)
      for (const Write& write : update.writes) graph.outputs.emplace_back(write.value);
    graph::remove_dead_code(graph);
    graph.outputs.resize(outputs);
  }

  // Which values are stored as they are, which are copied, and what is read again.
  // A value that goes to several places lies in none of them, from where it would be read as it lies by itself.
  bool is_written_once(ValueId value) const {
    int writes = 0;
    for (const Update& update : result_.updates)
      for (const Write& write : update.writes) writes += write.value == value;
    return writes == 1;
  }

  Decision finish(const Update& planned) {
    const Graph& graph = result_.graph;
    const std::vector<std::vector<int32_t>> users = graph::users_of(graph);
    const WriteFinder finder(graph);
    Update update = planned;
    const Node* result = finder.producer(planned.result);
    const bool is_read = result && !users[static_cast<size_t>(planned.result)].empty();
    if (update.writes.size() == 1 && update.writes[0].value == planned.result &&
        has_geometry(update.writes[0].place, graph.meta(planned.input)) &&
        is_computed_over(graph, finder, planned.result, planned.input) && taken_.insert(planned.result).second) {
      finished_.push_back(std::move(update));
      return Decision::allow();
    }
    std::vector<Write*> copied;
    for (Write& write : update.writes) {
      const bool is_result = write.value == planned.result;
      const bool alone = users[static_cast<size_t>(write.value)].empty();
      if (is_computed_in_loops(finder.producer(write.value)) && (alone || is_result) && is_written_once(write.value) &&
          taken_.insert(write.value).second)
        continue;
      if (is_result && is_read) return Decision::forbid("a library computes it, or another input becomes the same");
      copied.push_back(&write);
    }
    if (is_read) {
      const graph::Written& written = source_.written[planned.written];
      const auto value = std::get<ValueId>(source_.outputs[static_cast<size_t>(written.output)]);
      const Tensor place = WriteFinder(source_).place_of_base(value, source_.meta(planned.input));
      if (!place.defined() || !equal(place.sym_strides(), graph.meta(planned.result).sym_strides()) ||
          !equal(place.sym_storage_offset(), source_.meta(planned.input).sym_storage_offset()))
        return Decision::forbid("its new value is read again, and lies otherwise");
    } else {
      update.result = graph::kNoValue;
    }
    // Copies stand before whoever reads the whole, or at the end.
    ptrdiff_t at = is_read ? result - graph.nodes.data() : static_cast<ptrdiff_t>(graph.nodes.size());
    for (Write* write : copied) write->value = copy_before(at++, write->value);
    finished_.push_back(std::move(update));
    return Decision::allow();
  }

  ValueId copy_before(ptrdiff_t at, ValueId value) {
    Graph& graph = result_.graph;
    static const dispatch::Operator& clone = dispatch::find_operator("aten::clone");
    const Tensor meta = graph.meta(value);
    const SymInts sizes = meta.sym_sizes();
    Node copy;
    copy.op = &clone;
    copy.args = {value, dispatch::Value()};
    copy.outputs = {
        graph.add_value(std::to_string(graph.values.size()),
                        fake::make(sizes, core::contiguous_strides(sizes.span()), meta.dtype(), meta.device()))};
    const ValueId made = copy.outputs[0];
    graph.nodes.insert(graph.nodes.begin() + at, std::move(copy));
    return made;
  }

  const Graph& source_;
  std::vector<Decision>& decisions_;
  InPlace result_;
  std::vector<Update> finished_;
  std::set<ValueId> taken_;  // values that are stored as they are
};

}  // namespace

bool has_geometry(const Tensor& a, const Tensor& b) {
  return equal(a.sym_sizes(), b.sym_sizes()) && equal(a.sym_strides(), b.sym_strides()) &&
         equal(a.sym_storage_offset(), b.sym_storage_offset());
}

InPlace update_in_place(const Graph& graph, std::vector<Decision>& decisions) {
  TENON_ASSERT(decisions.size() == graph.written.size(), "{} decisions for {} written inputs", decisions.size(),
               graph.written.size());
  if (graph.written.empty()) return {graph, {}};
  dispatch::ExcludeKeys below_autograd(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView,
                                              DispatchKey::Functionalize, DispatchKey::Capture, DispatchKey::Autocast});
  fake::DynamicSizes sizes(graph.env);
  return Updater(graph, decisions).run();
}

Decision reads_where_it_writes(const Nest& nest, ValueId input) {
  const bool writes = std::any_of(nest.accesses.begin(), nest.accesses.end(),
                                  [&](const Access& access) { return access.store && access.value == input; });
  if (!writes) return Decision::allow();
  if (nest.may_fail) return Decision::forbid("the kernel that writes it may fail half-way");
  for (const Access& load : nest.accesses) {
    if (load.store || load.value != input) continue;
    const bool alike = std::any_of(nest.accesses.begin(), nest.accesses.end(), [&](const Access& store) {
      return store.store && store.value == input && load.stage <= store.stage && load.index == store.index;
    });
    if (!alike) return Decision::forbid("the kernel that writes it reads other elements of it than it stores");
  }
  return Decision::allow();
}

bool refuse_late_reads(const Schedule& schedule, const std::vector<GroupLoops>& groups,
                       std::vector<Decision>& decisions) {
  bool any = false;
  std::map<const Node*, size_t> order;
  for (const Node& node : schedule.graph.nodes) order.emplace(&node, order.size());
  auto judge = [&](const Update& update) {
    int first = Lifetimes::kForever;
    for (const Write& write : update.writes) first = std::min(first, schedule.state(write.value).step);
    for (size_t at = 0; at < groups.size(); ++at) {
      const int step = static_cast<int>(at);
      if (const Node* call = schedule.groups[at].call; call && step > first) {
        bool reads = false;
        graph::each_reference(*call, [&](ValueId id) { reads |= schedule.state(id).base == update.input; });
        if (reads) return Decision::forbid("{} reads its old value later", call->op->name());
        // In the order of the program a write that comes after a failure does not happen.
        for (const Write& write : update.writes)
          if (schedule.state(write.value).step < step && order[call] < order[schedule.state(write.value).node])
            return Decision::forbid("{} comes first in the program, and may fail", call->op->name());
      }
      if (!groups[at].nest || step < first) continue;
      const Nest& nest = *groups[at].nest;
      if (step == first)
        if (Decision alike = reads_where_it_writes(nest, update.input); !alike) return alike;
      if (nest.may_fail) return Decision::forbid("a kernel that runs later may fail");
      if (step > first && std::any_of(nest.accesses.begin(), nest.accesses.end(), [&](const Access& access) {
            return !access.store && access.value == update.input;
          }))
        return Decision::forbid("a kernel that runs later reads its old value");
    }
    return Decision::allow();
  };
  for (const Update& update : schedule.updates) {
    decisions[update.written] = judge(update);
    any |= !decisions[update.written];
  }
  return any;
}

}  // namespace tenon::schedule
