// The survey: the group is lowered once over its plain domain, one loop per dimension, to see every access.
#include "nest.h"

#include "lowering.h"
#include "work.h"

#include <algorithm>
#include <charconv>

namespace tenon::schedule {

size_t Nest::kept_count() const {
  return static_cast<size_t>(
      std::count_if(axes.begin(), axes.end(), [](const NestAxis& axis) { return !axis.reduced; }));
}

namespace {

constexpr int64_t kUnknownSize = 1024;  // of an extent that comes from data

bool is_ordered(loop::ReduceKind kind, Dtype dtype) {
  return is_floating(dtype) && (kind == loop::ReduceKind::Sum || kind == loop::ReduceKind::Product);
}

// An access as the survey meets it.
struct Seen {
  const loop::Op* op;
  std::vector<Expr> coordinates;  // of the stage
};

class Survey {
 public:
  Survey(const Schedule& schedule, const Group& group) : lowering_(schedule, group, "survey"), group_(group) {}

  Nest run() {
    lowering_.surveying = true;
    for (Expr size : group_.domain) lowering_.to_kernel(size);
    for (int stage = 0, last = lowering_.last_level(); stage <= last; ++stage) survey_stage(stage);
    while (lowering_.open_loops() > 0) lowering_.close();
    // Accesses are taken down at the end: a scope's operations move while it grows.
    for (size_t stage = 0; stage < stages_.size(); ++stage) collect(stage);
    for (const auto& each : reused_) nest_.reused.push_back(each.value);
    order_dimensions();
    merge_dimensions();
    nest_.pool = lowering_.builder().kernel().pool;
    nest_.integers = lowering_.integers();
    nest_.symbols = lowering_.builder().kernel().integers;
    nest_.may_fail = !lowering_.builder().kernel().checks.empty();
    return std::move(nest_);
  }

 private:
  struct StageSurvey {
    std::vector<Expr> coordinates;
    std::vector<ValueId> kept_stores;
    size_t begin = 0, end = 0;  // statements of the kernel's body
  };

  void survey_stage(int stage) {
    StageSurvey& survey = stages_.emplace_back();
    Stage& made = nest_.stages.emplace_back();
    lowering_.stage = stage;
    survey.begin = lowering_.builder().kernel().body.size();
    lowering_.coordinates.clear();
    for (Expr size : group_.domain) lowering_.coordinates.push_back(lowering_.open(lowering_.to_kernel(size), {}));
    survey.coordinates = lowering_.coordinates;
    for (ValueId root : group_.roots) {
      if (!is_reused(root, stage)) continue;
      const int32_t begin = lowering_.builder().kernel().value_count;
      lowering_.emit_body(root, lowering_.own_index(root));
      reused_.push_back({{root, stage, 0}, begin, lowering_.builder().kernel().value_count});
    }
    for (ValueId root : group_.roots) {
      if (lowering_.level(root) != stage) continue;
      if (lowering_.is_reduction(root)) {
        lowering_.emit(lowering_.reduction_source(root), lowering_.coordinates);
        ++made.reductions;
        made.ordered += is_ordered(lowering_.reduce_kind(root), lowering_.lane_dtype(root)) ? 1 : 0;
        lowering_.store(root, lowering_.builder().constant(int64_t{0}, lowering_.lane_dtype(root)));
      } else {
        lowering_.store(root, lowering_.emit_body(root, lowering_.own_index(root)));
      }
      if (lowering_.over_full_domain(root) || lowering_.is_reduction(root)) made.full = true;
      if (!lowering_.over_full_domain(root)) survey.kept_stores.push_back(root);
    }
    for (size_t dim = 0; dim < group_.domain.size(); ++dim) lowering_.close();
    survey.end = lowering_.builder().kernel().body.size();
  }

  // Whether a root of this stage, without memory of its own, is read by a later one.
  bool is_reused(ValueId id, int stage) {
    if (!group_.has_reduction() || lowering_.level(id) != stage || !lowering_.over_full_domain(id) ||
        lowering_.schedule().state(id).stored)
      return false;
    return std::any_of(group_.roots.begin(), group_.roots.end(), [&](ValueId other) {
      return lowering_.level(other) > stage && (lowering_.over_full_domain(other) || lowering_.is_reduction(other)) &&
             reads(other, id);
    });
  }
  bool reads(ValueId from, ValueId wanted) const {
    const ValueState& state = lowering_.schedule().state(from);
    bool found = false;
    if (!state.node) return false;
    graph::each_reference(*state.node, [&](ValueId input) {
      const ValueState& given = lowering_.schedule().state(input);
      // What another root reads, that one keeps for itself.
      found |= input == wanted || (!lowering_.schedule().is_input(given.base) && !given.root && reads(input, wanted));
    });
    return found;
  }

  void collect(size_t stage) {
    const loop::Block& body = lowering_.builder().kernel().body;
    indirect_.clear();
    for (size_t at = stages_[stage].begin; at < stages_[stage].end; ++at) collect(stage, body[at]);
  }

  void collect(size_t stage, const loop::Statement& statement) {
    if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement)) {
      for (const loop::Statement& each : (*inner)->body) collect(stage, each);
      return;
    }
    const loop::Op& op = std::get<loop::Op>(statement);
    nest_.stages[stage].work += instructions(op);
    for (auto& [reused, begin, end] : reused_)
      if (op.result >= begin && op.result < end) reused.work += instructions(op);
    if (op.code == loop::OpCode::BindIndex) indirect_.insert(op.index.symbol_id());
    if (op.code != loop::OpCode::Load && op.code != loop::OpCode::Store) return;
    Access access;
    access.value = lowering_.buffer_values()[static_cast<size_t>(op.buffer)];
    access.dtype = lowering_.builder().kernel().buffers[static_cast<size_t>(op.buffer)].dtype;
    access.store = op.code == loop::OpCode::Store;
    access.stage = static_cast<int>(stage);
    const std::vector<ValueId>& kept = stages_[stage].kept_stores;
    access.kept_only = access.store && std::find(kept.begin(), kept.end(), access.value) != kept.end();
    for (int32_t symbol : sym::symbols_of(op.index)) access.indirect |= indirect_.contains(symbol);
    // By dimension for now; by axis once they are merged.
    sym::ExprPool& pool = lowering_.pool();
    std::unordered_map<int32_t, Expr> first_stage;
    for (size_t dim = 0; stage > 0 && dim < stages_[stage].coordinates.size(); ++dim)
      first_stage[stages_[stage].coordinates[dim].symbol_id()] = stages_[0].coordinates[dim];
    access.index = pool.substitute(op.index, first_stage);
    for (const Expr& coordinate : stages_[stage].coordinates) {
      Expr next = pool.substitute(op.index, {{coordinate.symbol_id(), coordinate + 1}});
      Expr step = next - op.index;
      bool linear = true;
      for (int32_t symbol : sym::symbols_of(step))
        for (const Expr& other : stages_[stage].coordinates) linear &= symbol != other.symbol_id();
      access.stride.push_back(linear ? step : Expr());
      std::optional<int64_t> known = linear ? lowering_.hint(step) : std::nullopt;
      access.step.push_back(known.value_or(Access::kScattered));
    }
    nest_.accesses.push_back(std::move(access));
  }

  // Of two dimensions, whether the first belongs outside: accesses are asked in turn, stores first where they see both.
  bool belongs_outside(size_t a, size_t b) const {
    for (bool stores : {true, false})
      for (const Access& access : nest_.accesses) {
        if (access.store != stores || (group_.reduced[a] && access.kept_only)) continue;
        const int64_t first = access.step[a], second = access.step[b];
        if (first == Access::kScattered || second == Access::kScattered || first == 0 || second == 0) continue;
        if (std::abs(first) != std::abs(second)) return std::abs(first) > std::abs(second);
      }
    return false;
  }

  void order_dimensions() {
    for (bool reduced : {false, true}) {
      size_t begin = order_.size();
      for (size_t dim = 0; dim < group_.domain.size(); ++dim)
        if (!group_.domain[dim].is_constant(1) && group_.reduced[dim] == reduced) order_.push_back(dim);
      // Not every pair can be told apart, so this is an insertion by neighbours rather than a sort.
      for (size_t at = begin + 1; at < order_.size(); ++at)
        for (size_t to = at; to > begin && belongs_outside(order_[to], order_[to - 1]); --to)
          std::swap(order_[to], order_[to - 1]);
    }
  }

  bool mergeable(size_t outer, size_t inner) {
    for (const Access& access : nest_.accesses) {
      const Expr &a = access.stride[outer], &b = access.stride[inner];
      if (!a.defined() || !b.defined() || a != b * lowering_.to_kernel(group_.domain[inner])) return false;
    }
    return true;
  }

  void merge_dimensions() {
    for (size_t dim : order_) {
      Expr extent = lowering_.to_kernel(group_.domain[dim]);
      const bool reduced = group_.reduced[dim];
      if (!nest_.axes.empty() && nest_.axes.back().reduced == reduced &&
          mergeable(nest_.axes.back().dims.back(), dim)) {
        nest_.axes.back().dims.push_back(dim);
        nest_.axes.back().extent = nest_.axes.back().extent * extent;
      } else {
        nest_.axes.push_back({{dim}, extent, reduced, 0});
      }
    }
    for (NestAxis& axis : nest_.axes) axis.size = lowering_.hint(axis.extent).value_or(kUnknownSize);
    for (Access& access : nest_.accesses) {
      std::vector<Expr> stride;
      std::vector<int64_t> step;
      for (const NestAxis& axis : nest_.axes) {
        stride.push_back(access.stride[axis.dims.back()]);
        step.push_back(access.step[axis.dims.back()]);
      }
      access.stride = std::move(stride);
      access.step = std::move(step);
    }
  }

  Lowering lowering_;
  const Group& group_;
  Nest nest_;
  std::vector<StageSurvey> stages_;
  struct Measured {
    Reused value;
    int32_t begin, end;  // values of the kernel that were made for it
  };
  std::vector<Measured> reused_;
  std::set<int32_t> indirect_;  // symbols that are bound to data
  std::vector<size_t> order_;
};

}  // namespace

Nest make_nest(const Schedule& schedule, const Group& group) { return Survey(schedule, group).run(); }

// Text ----------------------------------------------------------------------------------------------------------------

std::string to_string(const Nest& nest) {
  std::vector<std::string> symbols;
  for (const Expr& symbol : nest.symbols) symbols.push_back(symbol.name());
  std::string text = fmt::format("nest({})\n", fmt::join(symbols, ", "));
  auto with_hint = [](const Expr& expr, int64_t hint) {
    return expr.is_constant() ? expr.str() : fmt::format("{} = {}", expr.str(), hint);
  };
  for (size_t at = 0; at < nest.axes.size(); ++at)
    text += fmt::format("  axis a{} {} {}\n", at, nest.axes[at].reduced ? "reduced" : "kept",
                        with_hint(nest.axes[at].extent, nest.axes[at].size));
  for (size_t at = 0; at < nest.stages.size(); ++at) {
    const Stage& stage = nest.stages[at];
    text += fmt::format("  stage {}{} work {} reductions {} ordered {}\n", at, stage.full ? " full" : "", stage.work,
                        stage.reductions, stage.ordered);
  }
  for (const Access& access : nest.accesses) {
    std::vector<std::string> strides;
    for (size_t at = 0; at < access.stride.size(); ++at)
      strides.push_back(access.stride[at].defined() ? with_hint(access.stride[at], access.step[at]) : "?");
    text += fmt::format("  {} v{} {} stage {}{}{} [{}]\n", access.store ? "store" : "load", access.value,
                        traits(access.dtype).brief, access.stage, access.kept_only ? " kept" : "",
                        access.indirect ? " indirect" : "", fmt::join(strides, ", "));
  }
  for (const Reused& reused : nest.reused)
    text += fmt::format("  reused v{} stage {} work {}\n", reused.value, reused.stage, reused.work);
  return text;
}

namespace {

// Words of one line, and what stands between brackets.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) { skip(); }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    if (rest_.size() > word.size() && std::isalnum(static_cast<unsigned char>(rest_[word.size()])) &&
        std::isalnum(static_cast<unsigned char>(word.back())))
      return false;
    rest_.remove_prefix(word.size());
    skip();
    return true;
  }
  void expect(std::string_view word) { TENON_CHECK(take(word), "[parse_nest] expected '{}' before '{}'", word, rest_); }
  int64_t integer() {
    int64_t value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    TENON_CHECK(error == std::errc(), "[parse_nest] expected a number before '{}'", rest_);
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    skip();
    return value;
  }
  // "v12", of which it gives the number.
  int64_t numbered(char letter) {
    TENON_CHECK(rest_.starts_with(letter), "[parse_nest] expected {} and a number before '{}'", letter, rest_);
    rest_.remove_prefix(1);
    return integer();
  }
  std::string_view word() {
    size_t length = 0;
    auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (length < rest_.size() && plain(rest_[length])) ++length;
    std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    skip();
    return taken;
  }

 private:
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// "n" with its value, or "s0*4 = 12".
std::pair<Expr, int64_t> sized(sym::ExprPool& pool, std::string_view text) {
  if (size_t at = text.find(" = "); at != std::string_view::npos)
    return {pool.parse(text.substr(0, at)), Line(text.substr(at + 3)).integer()};
  Expr expr = pool.parse(text);
  TENON_CHECK(expr.is_constant(), "[parse_nest] expected '{} = ' and its value", text);
  return {expr, expr.constant()};
}

}  // namespace

Nest parse_nest(std::string_view text) {
  Nest nest;
  nest.pool = std::make_shared<sym::ExprPool>();
  bool first = true;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (std::exchange(first, false)) {
      line.expect("nest");
      line.expect("(");
      while (!line.take(")")) {
        nest.symbols.push_back(nest.pool->symbol(std::string(line.word())));
        line.take(",");
      }
    } else if (line.take("axis")) {
      line.expect(fmt::format("a{}", nest.axes.size()));
      NestAxis axis;
      axis.reduced = line.take("reduced");
      if (!axis.reduced) line.expect("kept");
      axis.dims = {nest.axes.size()};
      std::tie(axis.extent, axis.size) = sized(*nest.pool, line.rest());
      nest.axes.push_back(std::move(axis));
    } else if (line.take("reused")) {
      Reused reused;
      reused.value = static_cast<ValueId>(line.numbered('v'));
      line.expect("stage");
      reused.stage = static_cast<int>(line.integer());
      line.expect("work");
      reused.work = static_cast<int>(line.integer());
      nest.reused.push_back(reused);
    } else if (line.take("stage")) {
      Stage stage;
      line.integer();
      stage.full = line.take("full");
      line.expect("work");
      stage.work = static_cast<int>(line.integer());
      line.expect("reductions");
      stage.reductions = static_cast<int>(line.integer());
      line.expect("ordered");
      stage.ordered = static_cast<int>(line.integer());
      nest.stages.push_back(stage);
    } else {
      Access access;
      access.store = line.take("store");
      if (!access.store) line.expect("load");
      access.value = static_cast<ValueId>(line.numbered('v'));
      std::string_view brief = line.word();
      for (int at = 0; at < kDtypeCount; ++at)
        if (traits(static_cast<Dtype>(at)).brief == brief) access.dtype = static_cast<Dtype>(at);
      line.expect("stage");
      access.stage = static_cast<int>(line.integer());
      access.kept_only = line.take("kept");
      access.indirect = line.take("indirect");
      line.expect("[");
      std::string_view list = line.rest().substr(0, line.rest().rfind(']'));
      int depth = 0;
      for (size_t begin = 0, at = 0; at <= list.size() && !list.empty(); ++at) {
        if (at < list.size() && list[at] == '(') ++depth;
        if (at < list.size() && list[at] == ')') --depth;
        if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
        Line item(list.substr(begin, at - begin));
        begin = at + 1;
        auto [stride, step] = item.take("?") ? std::pair(Expr(), Access::kScattered) : sized(*nest.pool, item.rest());
        access.stride.push_back(stride);
        access.step.push_back(step);
      }
      nest.accesses.push_back(std::move(access));
    }
  }
  return nest;
}

}  // namespace tenon::schedule
