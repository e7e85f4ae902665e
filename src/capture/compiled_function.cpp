#include "backends.h"
#include "core/erased.h"
#include "freeze_piece.h"
#include "outside.h"
#include "session.h"
#include "support/out_of_memory.h"
#include "support/reworded.h"

#include <tenon/autograd/forward_ad.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/capture/compile.h>
#include <tenon/capture/marks.h>
#include <tenon/capture/verify.h>
#include <tenon/dispatch/autocast.h>
#include <tenon/fake/fake.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>

namespace tenon {

namespace {

std::atomic<Stance> current_stance{Stance::Default};

}  // namespace

SetStance::SetStance(Stance stance) : before_(current_stance.exchange(stance)) {}
SetStance::~SetStance() { current_stance.store(before_); }

void graph_break(const std::string& why) {
  if (capture::Session* session = capture::Session::current()) session->break_here(why);
}

namespace capture {

using dispatch::Value;
using SegmentRef = std::shared_ptr<const Segment>;

namespace {

std::atomic<WalkCompiler> walk_compiler{nullptr};

}  // namespace

void set_walk_compiler(WalkCompiler compiler) { walk_compiler.store(compiler); }

std::vector<Tensor> run_disabled(std::span<const Tensor> tensors,
                                 std::function<std::vector<Tensor>(std::span<const Tensor>)> action) {
  Session* session = Session::current();
  TENON_ASSERT(session, "a disabled function asked for a break outside of a capture");
  std::vector<Tensor> fakes;
  for (const Tensor& tensor : tensors) fakes.push_back(session->stand_in(tensor));
  return session->act_on("a function marked disable() was called", fakes, std::move(action));
}

namespace {

constexpr size_t kMostChildren = 8;
constexpr size_t kDeepest = 64;

// What the symbols that an error mentions stood for: " (with s0 = 3)".
std::string symbols_in(const std::string& text, sym::ShapeEnv& env) {
  std::vector<std::string> words;
  for (int32_t id = 0; id < env.pool().symbol_count(); ++id) {
    sym::Expr symbol = env.pool().symbol(id);
    std::optional<int64_t> hint = symbol.is_real() ? std::nullopt : env.hint(symbol);
    size_t at = text.find(symbol.name());
    if (!hint || at == std::string::npos) continue;
    size_t end = at + symbol.name().size();
    bool whole = (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]))) &&
                 (end == text.size() || !std::isalnum(static_cast<unsigned char>(text[end])));
    if (whole) words.push_back(fmt::format("{} = {}", symbol.name(), *hint));
  }
  return words.empty() ? "" : fmt::format(" (with {})", fmt::join(words, ", "));
}

std::atomic<bool> verifies{[] {
  const char* value = std::getenv("TENON_VERIFY_CAPTURE");
  return value && *value && std::string_view(value) != "0";
}()};

// The first line in which two graphs differ, from each.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  size_t from = 0;
  for (;;) {
    size_t end_a = a.find('\n', from), end_b = b.find('\n', from);
    std::string line_a = a.substr(from, end_a - from), line_b = b.substr(from, end_b - from);
    if (line_a != line_b || end_a == std::string::npos) return {line_a, line_b};
    from = end_a + 1;
  }
}

}  // namespace

bool set_verify_captures(bool on) { return verifies.exchange(on); }

struct CompiledFunction::State {
  CompileOptions options;
  mutable std::shared_mutex tree_mutex;  // guards `roots`, all children, and what follows
  Siblings roots;
  std::vector<Reason> recompiles;
  std::vector<std::string> breaks;
  int64_t compiles = 0;
  bool gave_up = false;                // past the recompile limit
  std::recursive_mutex compile_mutex;  // one capture at a time; a disabled function may call its caller
  // A function may be destroyed in the middle of its capture: by itself, or by an `exit` that it calls, after which
  // other static objects still compute inside of that capture. The capture then owns what it works on.
  std::atomic<int> captures{0};
  std::atomic<bool> orphaned{false};
  struct UnderWay {
    explicit UnderWay(State& of) : state(of) { ++state.captures; }
    UnderWay(const UnderWay&) = delete;
    ~UnderWay() {
      if (--state.captures == 0 && state.orphaned) delete &state;
    }
    State& state;
  };
  // Sizes and strides seen at the last capture, and the dimensions in which they have been seen to change, by input.
  struct History {
    Ints sizes, strides;
    std::vector<bool> dynamic, dynamic_stride;
  };
  std::map<std::string, History> history;
  // The same of numbers in cells. (A cell that took the place of another one is at worst taken for one that changed.)
  struct CellHistory {
    CellContent last;
    bool changed = false;
  };
  std::map<const CellState*, CellHistory> cell_history;
  // How often the function was traced again, in vain, because a variable that held a closure tensor got another one.
  int false_alarms = 0;
  static constexpr int kMostFalseAlarms = 8;
  bool alarmed = false;  // the capture that runs comes from such an alarm
  bool watches_closures() const { return false_alarms + (alarmed ? 1 : 0) < kMostFalseAlarms; }
  // For warnings that are said once for each function.
  const int64_t serial = [] {
    static std::atomic<int64_t> count{0};
    return count++;
  }();
  // What was compiled, by the text of the graph: segments that do the same share it.
  struct Plan {
    aot::Compiled compiled;
    std::shared_ptr<freezing::Frozen> frozen;
  };
  std::map<std::string, Plan> plans;
  std::atomic<bool> gave_up_parameters{false};

  std::vector<graph::DimPolicy> policies(const std::string& name, const Tensor& tensor);
  bool number_changes(const Ref<CellState>& cell);
  void note_break(const std::string& why);
  // Runs the segments behind one that has run with these results.
  std::vector<Value> go_on(SegmentRef segment, std::vector<Value> results, Frame& frame, std::span<const Value> numbers,
                           Body body);
  // Goes on where nothing that was compiled fits: `path` was run, and none of `level` comes next.
  std::vector<Value> capture_from(std::vector<SegmentRef> path, const Siblings* level, Frame& frame,
                                  std::span<const Value> numbers, Body body);
  // Calls `visit` for each segment that was captured.
  void each_segment(const std::function<void(const Segment&)>& visit) const;
  // Why no root fits the call; no text if there is none yet.
  // `alarm`: the line of a closure tensor that may have been replaced.
  Reason why_new(const Frame& frame, std::optional<CallSite>& alarm);

  // A segment of these whose guards hold for the frame; null, and the frame as it was, if there is none. The one that
  // was found last comes first: calls come in runs.
  SegmentRef find(const Siblings& siblings, Frame& frame) const {
    std::shared_lock lock(tree_mutex);
    size_t inputs = frame.inputs.size(), symbols = frame.symbols.size(), numbers = frame.numbers.size();
    size_t count = siblings.segments.size();
    size_t last = siblings.last_found.load(std::memory_order_relaxed);
    for (size_t step = 0; step < count; ++step) {
      // The last one, then the others in order.
      size_t at = last >= count ? step : step == 0 ? last : step <= last ? step - 1 : step;
      const SegmentRef& segment = siblings.segments[at];
      if (segment->guards.check(frame)) {
        if (at != last) siblings.last_found.store(at, std::memory_order_relaxed);
        return segment;
      }
      frame.inputs.resize(inputs);
      frame.inputs_are_arguments = false;
      frame.symbols.resize(symbols);
      frame.numbers.resize(numbers);
    }
    return nullptr;
  }
};

// One run of the user's function on fakes: all of it is new, or a path through the tree that was taken before and goes
// on from there.
class Capture {
 public:
  Capture(CompiledFunction::State& state, Frame& frame, std::span<const Value> numbers, std::vector<SegmentRef> path,
          Body body, std::string why = "")
      : state_(state), frame_(frame), numbers_(numbers), path_(std::move(path)), body_(body), why_(std::move(why)) {}

  // `verify`: the whole path is known; an Error if the function does something else now.
  std::vector<Value> run(bool verify = false) {
    verify_ = verify;
    std::optional<std::pair<size_t, EarlyBreak>> before;
    for (;;) {
      std::optional<EarlyBreak> early;
      std::vector<Value> results = attempt(early);
      if (!early) return results;
      begin_anew(*early);
      std::pair<size_t, EarlyBreak> now{path_.size(), *early};
      TENON_CHECK(before != now,
                  "[compile] the function looks at the gradient of a value from which others were computed, and its "
                  "graph cannot be cut behind the value: call graph_break() there, or look at a copy of it");
      before = now;
    }
  }

 private:
  // Up to its end, or until a segment is found that should have ended earlier.
  std::vector<Value> attempt(std::optional<EarlyBreak>& early) {
    Session::Options options;
    options.scalar_outputs = state_.options.capture_scalar_outputs;
    options.dynamic_shape_ops = state_.options.capture_dynamic_output_shape_ops;
    options.fullgraph = state_.options.fullgraph;
    options.argument_names = state_.options.argument_names;
    options.why = why_;
    for (const SegmentRef& segment : path_)
      known_policies_.insert(known_policies_.end(), segment->policies.begin(), segment->policies.end());
    for (const SegmentRef& segment : path_)
      known_cells_.insert(known_cells_.end(), segment->cell_symbols.begin(), segment->cell_symbols.end());
    Session session([this](size_t input, const std::string& name,
                           const Tensor& tensor) -> InputPolicy& { return policy(input, name, tensor); },
                    [this](size_t position, const Ref<CellState>& cell) { return cell_is_symbol(position, cell); },
                    std::move(options), frame_);
    session_ = &session;
    session.finish_piece = [this](Piece piece) { return finish(std::move(piece)); };
    for (const SegmentRef& segment : path_) {
      session.early_breaks.push_back(segment->early);
      const std::vector<InputSource>& sources = segment->guards.sources();
      session.expected_sources.insert(session.expected_sources.end(), sources.begin(), sources.end());
    }
    session.early_breaks.push_back(early_);
    std::vector<Tensor> fakes;
    for (size_t at = 0; at < frame_.arguments.size(); ++at)
      fakes.push_back(session.add_argument(frame_.arguments[at], static_cast<int32_t>(at)));
    std::vector<Value> numbers;
    for (const Value& number : numbers_)
      numbers.push_back(state_.options.dynamic == Dynamic::Off ? number : session.add_number(number));
    std::string broken;
    try {
      session.run(fakes, numbers, body_);
    } catch (const EarlyBreakNeeded& needed) {
      early = needed.where;
      return {};
    } catch (const GraphBreak& graph_break) {
      broken = graph_break.what();
    } catch (const fake::NeedsData& needs_data) {
      broken = needs_data.what();
    } catch (const DataDependentError& data_dependent) {
      if (state_.options.fullgraph) throw;
      broken = data_dependent.what();
    } catch (const Error& error) {
      std::string meaning = symbols_in(error.what(), *session.env());
      if (meaning.empty()) throw;
      support::raise_reworded(error, error.what() + meaning);
    }
    if (!broken.empty()) return run_eagerly(std::move(broken));
    fakes.clear();
    session.check_nothing_escaped();
    {
      std::unique_lock lock(state_.tree_mutex);
      for (const std::shared_ptr<Segment>& segment : made_)
        segment->guards.settle_closures(session, state_.watches_closures());
    }
    if (state_.options.freeze == Freeze::On && state_.options.discard_parameters && !verify_) discard();
    if (!verify_) made_.back()->leave();
    return std::move(results_);
  }

  void discard() {
    std::vector<SegmentRef> whole(path_.begin(),
                                  path_.begin() + static_cast<ptrdiff_t>(std::min(path_.size(), depth_)));
    for (size_t at = made_before_; at < made_.size(); ++at) whole.push_back(made_[at]);
    // Calls that look for a segment read cells.
    std::unique_lock lock(state_.tree_mutex);
    if (give_up_parameters(whole, *session_)) state_.gave_up_parameters = true;
  }

  // What was captured so far has run already: it is the path to follow.
  void begin_anew(const EarlyBreak& early) {
    path_.resize(std::min(path_.size(), depth_));
    for (size_t at = made_before_; at < made_.size(); ++at) path_.push_back(made_[at]);
    made_before_ = made_.size();
    early_ = early;
    depth_ = 0;
    parent_ = nullptr;
    from_ = {};
    known_policies_.clear();
    new_policies_.clear();
    known_cells_.clear();
    new_cells_.clear();
  }

  InputPolicy& policy(size_t input, const std::string& name, const Tensor& tensor) {
    if (input < known_policies_.size()) return known_policies_[input];
    InputPolicy& made = new_policies_.emplace_back(InputPolicy{state_.policies(name, tensor), {}});
    if (state_.options.freeze == Freeze::Off || frame_.grad_enabled) return made;
    // Constants are computed for parameters of known sizes. Arguments come first.
    using Kind = graph::DimPolicy::Kind;
    bool is_argument = input < frame_.arguments.size();
    for (graph::DimPolicy& dim : made.dims) {
      if (!is_argument)
        dim = {};
      else if (state_.options.discard_parameters && state_.options.dynamic != Dynamic::Off && dim.kind == Kind::Static)
        dim.kind = Kind::Dynamic;
      dim.alone = is_argument && state_.options.discard_parameters;
    }
    return made;
  }

  bool cell_is_symbol(size_t position, const Ref<CellState>& cell) {
    if (position < known_cells_.size()) return known_cells_[position];
    new_cells_.push_back(state_.number_changes(cell));
    return new_cells_.back();
  }

  size_t finish(Piece piece) {
    std::string captured = graph::to_string(piece.graph);
    if (depth_ < path_.size()) return follow(*path_[depth_], piece, captured);
    TENON_CHECK(
        !verify_,
        "[compile] TENON_VERIFY_CAPTURE: the function goes on with{}\n  where it ended when it was captured: {}",
        captured, kAdvice);
    auto segment = std::make_shared<Segment>();
    segment->captured = std::move(captured);
    TENON_LOG(Graph, "captured:\n{}", segment->captured);
    segment->inputs = std::move(piece.inputs);
    segment->takes_all_inputs = segment->inputs.size() == session_->reals.size();
    for (size_t at = 0; at < segment->inputs.size(); ++at)
      segment->takes_all_inputs &= segment->inputs[at] == InputRef{false, static_cast<int32_t>(at)};
    segment->register_count = piece.register_count;
    segment->tensor_count = piece.tensor_count;
    segment->bound = std::move(piece.bound);
    segment->end = std::move(piece.end);
    segment->why = piece.why;
    segment->site = piece.site;
    segment->early = std::exchange(early_, std::nullopt);
    segment->policies = std::exchange(new_policies_, {});
    segment->cell_symbols = std::exchange(new_cells_, {});
    segment->guards = Guards(*session_, from_, depth_ == 0 ? &frame_ : nullptr);
    segment->guards.set_aliases(std::move(piece.aliases));
    if (segment->returns()) segment->guards.end_here();
    bool shared = false;
    {
      // The casts are nodes of the graph.
      dispatch::ExcludeKeys cast_already(KeySet{DispatchKey::Autocast});
      shared = compile(*segment, piece);
    }
    // Compiling may have asked more of the sizes.
    segment->guards.set_sizes(*session_, from_);
    bool writes = std::find(piece.written.begin(), piece.written.end(), true) != piece.written.end();
    if (segment->frozen && segment->returns() && !writes) segment->guards.let_stand(segment->frozen, segment->inputs);
    from_ = session_->progress();
    TENON_ASSERT(segment->guards.check(frame_), "a new graph refuses its own arguments: {}",
                 segment->guards.explain(frame_).str());
    for (const std::string& line : segment->guards.describe()) TENON_LOG(Guards, "{}", line);
    attach(segment, shared);
    made_.push_back(segment);
    ++depth_;
    results_ = segment->run(frame_);
    return segment->returns() ? 0 : static_cast<size_t>(segment->end_registers.load(std::memory_order_relaxed));
  }

  // Known already: the function must do what it did. The frame holds what came of it.
  size_t follow(const Segment& known, const Piece& piece, const std::string& captured) {
    if (captured != known.captured || piece.end.index() != known.end.index()) {
      auto [before, now] = first_difference(known.captured, captured);
      fail("[compile] {}the function no longer does what was captured:\n  captured: {}\n  now:      {}\n  {}",
           verify_ ? "TENON_VERIFY_CAPTURE: " : "", before, now, kAdvice);
    }
    from_ = session_->progress();
    parent_ = path_[depth_++];
    if (known.returns()) return 0;
    int64_t added = known.end_registers.load(std::memory_order_relaxed);
    TENON_ASSERT(added >= 0, "a segment was followed whose end has not run");
    return static_cast<size_t>(added);
  }

  // Whether it was compiled before.
  bool compile(Segment& segment, const Piece& piece) {
    const graph::Graph& graph = piece.graph;
    if (graph.nodes.empty() && graph.seeds.empty()) {
      segment.compiled = {pass_on_inputs(graph), {}, {}, {}};
      return depth_ > 0;
    }
    if (segment.guards.aliases().any_overlap()) {
      // One after the other, on tensors that overlap as they do, the operators do what they do in eager.
      TENON_LOG(Breaks, "run operator by operator: inputs that the function writes to overlap in memory");
      segment.compiled = {replay_graph(graph), {}, {}, {}};
      return false;
    }
    // The function may turn recording on and off as it likes; a node says whether it was on.
    bool records =
        std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& node) { return node.grad_enabled; });
    Decision freezes = Decision::forbid("");
    if (state_.options.freeze == Freeze::On) freezes = can_be_frozen(state_.options.backend, records);
    segment.not_frozen = freezes.why();
    freezing::Parameters parameters;
    std::vector<bool> may_hold;
    if (freezes) {
      parameters = parameters_of(segment.inputs, piece, *session_);
      may_hold = in_cells(segment.inputs, *session_);
    }
    std::string key = plan_key(segment.captured, piece);
    for (size_t at = 0; at < parameters.size(); ++at) key += !parameters[at] ? '-' : may_hold[at] ? 'h' : 'p';
    if (auto found = state_.plans.find(key); found != state_.plans.end()) {
      segment.compiled = found->second.compiled;
      segment.frozen = found->second.frozen;
      return true;
    }
    size_t guards = session_->env()->guards().size(), checks = session_->env()->deferred_checks().size();
    try {
      aot::Options options{piece.leaves, state_.options.double_backward == DoubleBackward::Refuse};
      segment.compiled =
          freezes ? compile_frozen(state_.options.backend, piece, parameters, may_hold, options, segment.frozen)
                  : compile_with(state_.options.backend, graph, piece.requires_grad, records, options);
    } catch (const autograd::NoDerivative& error) {
      // As in eager, that matters only to those who ask for the gradient.
      TENON_LOG(Breaks, "run operator by operator: {}", error.what());
      segment.compiled = {replay_graph(graph), {}, {}, {}};
      return false;
    } catch (const std::exception& error) {
      if (!state_.options.backend.custom()) throw;
      if (state_.options.eager_on_backend_error) {
        warn_once(fmt::format("backend {}", state_.serial),
                  fmt::format("a backend failed ({}): the graph is interpreted", error.what()));
        segment.compiled = {replay_graph(graph), {}, {}, {}};
        return false;
      }
      throw RuntimeError(
          fmt::format("[compile] the backend failed: {}\n  its graph is in {}", error.what(), write_graph(graph)));
    }
    // What lowering asked of the sizes stands in the guards of this segment alone.
    bool asked = session_->env()->guards().size() != guards || session_->env()->deferred_checks().size() != checks;
    if (!asked) state_.plans.emplace(std::move(key), CompiledFunction::State::Plan{segment.compiled, segment.frozen});
    return false;
  }

  // Equal keys mean that one plan serves both: the same operators on the same values, and the same known of every
  // symbol that they use.
  std::string plan_key(const std::string& captured, const Piece& piece) const {
    const graph::Graph& graph = piece.graph;
    sym::ShapeEnv& env = *graph.env;
    std::string key = captured;
    for (size_t at = 0; at < piece.requires_grad.size(); ++at)
      key += !piece.requires_grad[at] ? '0' : piece.leaves[at] ? 'l' : '1';
    for (const graph::Node& node : graph.nodes) key += fmt::format(" {}", static_cast<const void*>(node.op.get()));
    std::set<int32_t> symbols;
    auto use = [&](int32_t id) { symbols.insert(id); };
    for (const graph::ValueInfo& value : graph.values) graph::each_symbol(value.meta, use);
    for (const graph::Node& node : graph.nodes)
      for (const graph::Argument& argument : node.args) graph::each_symbol(argument, use);
    for (const graph::Argument& output : graph.outputs) graph::each_symbol(output, use);
    // A fact about a symbol that is used says something of the other symbols in it, and they of others.
    std::vector<sym::Guard> facts = env.guards();
    facts.insert(facts.end(), env.deferred_checks().begin(), env.deferred_checks().end());
    std::vector<bool> told(facts.size());
    for (bool more = true; std::exchange(more, false);)
      for (size_t at = 0; at < facts.size(); ++at) {
        std::vector<int32_t> ids = sym::symbols_of(facts[at].condition);
        if (told[at] || std::none_of(ids.begin(), ids.end(), [&](int32_t id) { return symbols.contains(id); }))
          continue;
        told[at] = more = true;
        symbols.insert(ids.begin(), ids.end());
      }
    for (int32_t id : symbols) {
      sym::Expr symbol = env.pool().symbol(id);
      sym::Range range = symbol.is_real() ? sym::Range{} : env.pool().range(symbol);
      key += fmt::format(" {}={} {}..{}", symbol.name(), id, range.min, range.max);
    }
    for (size_t at = 0; at < facts.size(); ++at)
      if (told[at]) key += " " + facts[at].condition.str();
    return key;
  }

  void attach(const SegmentRef& segment, bool shared) {
    std::unique_lock lock(state_.tree_mutex);
    if (!shared) {
      ++state_.compiles;
      counter("compiles").add();
    }
    if (!segment->why.empty()) {
      state_.breaks.push_back(segment->why);
      counter("graph_breaks").add();
      TENON_LOG(Breaks, "{}", segment->why);
    }
    bool fits = !detached_ && depth_ < kDeepest && (!parent_ || parent_->children.segments.size() < kMostChildren);
    if (!fits) {
      if (!std::exchange(detached_, true)) say_not_kept();
    } else if (parent_) {
      parent_->children.segments.push_back(segment);
    } else {
      state_.roots.segments.push_back(segment);
    }
    parent_ = segment;
  }

  // What follows the break before this segment is compiled at every call: that is slow, and somebody should know.
  void say_not_kept() const {
    std::string line = parent_ ? parent_->site.str() : "";
    std::string place = line.empty() ? "" : " at " + line;
    std::string text =
        depth_ >= kDeepest
            ? fmt::format(
                  "a compiled function breaks more than {} times in one call (last{}): what follows is compiled "
                  "anew at every call; write the loop over tensors, or leave it out of compile()",
                  kDeepest, place)
            : fmt::format(
                  "a compiled function went on in more than {} ways after a break{} ({}): others are compiled "
                  "anew at every call; read item<SymFloat>() or item<SymInt>() instead of a plain number, so "
                  "that only what is decided by it matters, or choose with where()",
                  kMostChildren, place, parent_->why);
    TENON_LOG(Breaks, "not kept: {}", text);
    warn_once(fmt::format("not kept {} {}", state_.serial, place), text);
  }

  // Something that can neither be recorded nor done between two graphs.
  std::vector<Value> run_eagerly(std::string why) {
    TENON_CHECK(!state_.options.fullgraph, "[compile] the function cannot be captured as one graph (fullgraph): {}",
                why);
    TENON_CHECK(!session_->broke, "[compile] the function cannot go on after a graph break: {}", why);
    auto segment = std::make_shared<Segment>();
    segment->guards = Guards(*session_, from_, &frame_);
    segment->eager = true;
    segment->why = why;
    state_.note_break(why);
    {
      std::unique_lock lock(state_.tree_mutex);
      state_.roots.segments.push_back(segment);
    }
    return body_(frame_.arguments, numbers_);
  }

  static constexpr const char* kAdvice = "state that a compiled function reads must be an argument or a Cell";

  CompiledFunction::State& state_;
  Frame& frame_;
  std::span<const Value> numbers_;
  std::vector<SegmentRef> path_;  // taken before; the frame holds what came of it
  Body body_;
  std::string why_;  // nothing that was captured fits
  Session* session_ = nullptr;
  Progress from_;
  SegmentRef parent_;
  std::vector<std::shared_ptr<Segment>> made_;
  size_t made_before_ = 0;           // of them, in attempts that did not reach the end
  std::optional<EarlyBreak> early_;  // of the first segment that is new
  size_t depth_ = 0;
  bool detached_ = false;  // what follows is not kept
  bool verify_ = false;
  std::vector<InputPolicy> known_policies_, new_policies_;
  std::vector<bool> known_cells_, new_cells_;  // by cell that holds no tensor: whether it is a symbol
  std::vector<Value> results_;
};

CompiledFunction::CompiledFunction(CompileOptions options) try : state_(std::make_unique<State>()) {
  TENON_CHECK(options.recompile_limit > 0, "[compile] expected a recompile_limit of at least 1, got {}",
              options.recompile_limit);
  TENON_CHECK(!options.discard_parameters || options.freeze == Freeze::On,
              "[compile] discard_parameters gives up what constants were computed from: expected freeze = Freeze::On");
  state_->options = std::move(options);
} catch (const std::bad_alloc&) {
  support::raise_out_of_memory("compile");
}

CompiledFunction::~CompiledFunction() {
  if (state_->captures == 0) return;
  state_->orphaned = true;
  (void)state_.release();
}

std::vector<graph::DimPolicy> CompiledFunction::State::policies(const std::string& name, const Tensor& tensor) {
  using Kind = graph::DimPolicy::Kind;
  auto rank = static_cast<size_t>(tensor.dim());
  std::vector<graph::DimPolicy> dims(rank);
  History& seen = history[name];
  if (seen.sizes.size() != rank || seen.dynamic.size() != rank)
    seen = {Ints(tensor.sizes()), Ints(tensor.strides()), std::vector<bool>(rank), std::vector<bool>(rank)};
  for (size_t dim = 0; dim < rank; ++dim) {
    if (seen.sizes[dim] != tensor.sizes()[dim]) seen.dynamic[dim] = true;
    if (seen.strides[dim] != tensor.strides()[dim]) seen.dynamic_stride[dim] = true;
    dims[dim].dynamic_stride =
        options.dynamic == Dynamic::On || (options.dynamic == Dynamic::Auto && seen.dynamic_stride[dim]);
    bool dynamic = options.dynamic == Dynamic::On || (options.dynamic == Dynamic::Auto && seen.dynamic[dim]);
    DimMark mark = mark_of(tensor, static_cast<int64_t>(dim));
    switch (mark.mark) {
      case Mark::None: break;
      case Mark::Dynamic:
        dynamic = tensor.sizes()[dim] >= mark.min && tensor.sizes()[dim] <= mark.max;
        dims[dim].range = {mark.min, mark.max};
        break;
      case Mark::MaybeDynamic: dynamic = true; break;
      case Mark::Static: dynamic = false; break;
      case Mark::Unbacked: break;
    }
    dims[dim].kind = mark.mark == Mark::Unbacked ? Kind::Unbacked : dynamic ? Kind::Dynamic : Kind::Static;
  }
  seen.sizes = Ints(tensor.sizes());
  seen.strides = Ints(tensor.strides());
  return dims;
}

void CompiledFunction::foresee(std::span<const Tensor> tensors, FunctionRef<bool(int64_t size)> changes) {
  for (size_t at = 0; at < tensors.size(); ++at) {
    const Tensor& tensor = tensors[at];
    auto rank = static_cast<size_t>(tensor.dim());
    State::History seen{Ints(tensor.sizes()), Ints(tensor.strides()), std::vector<bool>(rank), std::vector<bool>(rank)};
    for (size_t dim = 0; dim < rank; ++dim) seen.dynamic[dim] = changes(tensor.sizes()[dim]);
    const std::vector<std::string>& names = state_->options.argument_names;
    state_->history[at < names.size() ? names[at] : fmt::format("arg{}", at)] = std::move(seen);
  }
}

bool CompiledFunction::State::number_changes(const Ref<CellState>& cell) {
  bool is_number = std::holds_alternative<double>(cell->content) || std::holds_alternative<int64_t>(cell->content);
  if (!is_number || options.dynamic == Dynamic::Off) return false;
  auto [seen, first] = cell_history.try_emplace(cell.get(), CellHistory{cell->content});
  auto number = [](const CellContent& content) {
    const auto* real = std::get_if<double>(&content);
    return real ? std::bit_cast<int64_t>(*real) : std::get<int64_t>(content);
  };
  if (!first && number(seen->second.last) != number(cell->content)) seen->second = {cell->content, true};
  return seen->second.changed || options.dynamic == Dynamic::On;
}

void CompiledFunction::State::note_break(const std::string& why) {
  TENON_LOG(Breaks, "ran eagerly: {}", why);
  counter("graph_breaks").add();
  std::unique_lock lock(tree_mutex);
  breaks.push_back(why);
}

std::vector<Value> CompiledFunction::call(std::span<const Tensor> tensors, std::span<const Value> numbers,
                                          std::span<const Value> constants, Body body) try {
  // Captured inside another capture, or run on fakes: part of what is being captured. Tangents are eager's.
  if (is_capturing() || forward_ad::DualLevel::is_on()) return body(tensors, numbers);
  for (size_t at = 0; at < tensors.size(); ++at)
    TENON_CHECK(tensors[at].defined(), "[compile] argument {} is an undefined tensor", at);
  std::shared_ptr<void> compiles_walks;
  if (state_->options.compiled_autograd)
    if (WalkCompiler compiler = walk_compiler.load()) compiles_walks = compiler(state_->options);
  Stance stance = current_stance.load(std::memory_order_relaxed);
  if (stance == Stance::ForceEager) return body(tensors, numbers);
  Frame frame;
  frame.arguments = tensors;
  frame.constants = constants;
  frame.grad_enabled = autograd::grad_enabled();
  frame.autocast = Autocast::current();
  FlatValues with_numbers;
  if (state_->options.dynamic == Dynamic::Off && !numbers.empty()) {
    for (const Value& constant : constants) with_numbers.push_back(constant);
    for (const Value& number : numbers) with_numbers.push_back(number);
    frame.constants = with_numbers.span();
  } else {
    for (const Value& number : numbers) frame.numbers.push_back(graph::symbol_bits(number));
  }
  // Most functions are one segment, and most calls are not verified: what is left to do for others is out of the way.
  SegmentRef first = state_->find(state_->roots, frame);
  if (!first) return state_->capture_from({}, &state_->roots, frame, numbers, body);
  if (first->eager) return body(tensors, numbers);
  std::vector<Value> results = first->run(frame);
  if (!first->returns() || verifies.load(std::memory_order_relaxed)) [[unlikely]]
    return state_->go_on(std::move(first), std::move(results), frame, numbers, body);
  first->leave();
  return results;
} catch (const std::bad_alloc&) {
  support::raise_out_of_memory("compile");
}

std::vector<Value> CompiledFunction::State::go_on(SegmentRef segment, std::vector<Value> results, Frame& frame,
                                                  std::span<const Value> numbers, Body body) {
  std::vector<SegmentRef> path;
  while (!segment->returns()) {
    path.push_back(std::move(segment));
    const Siblings* level = &path.back()->children;
    segment = find(*level, frame);
    if (!segment) return capture_from(std::move(path), level, frame, numbers, body);
    if (segment->eager) return body(frame.arguments, numbers);
    results = segment->run(frame);
  }
  if (verifies.load(std::memory_order_relaxed)) {
    bool is_whole =
        std::all_of(frame.arguments.begin(), frame.arguments.end(), [](const Tensor& each) { return each.defined(); });
    path.push_back(segment);
    if (is_whole && !gave_up_parameters.load(std::memory_order_relaxed))
      Capture(*this, frame, numbers, std::move(path), body).run(true);
  }
  segment->leave();
  return results;
}

std::vector<Value> CompiledFunction::State::capture_from(std::vector<SegmentRef> path, const Siblings* level,
                                                         Frame& frame, std::span<const Value> numbers, Body body) {
  UnderWay under_way(*this);
  std::unique_lock one_at_a_time(compile_mutex, std::defer_lock);
  if (options.eager_while_compiling && path.empty()) {
    if (!one_at_a_time.try_lock()) return body(frame.arguments, numbers);
  } else {
    one_at_a_time.lock();
  }
  // Another thread may have been here in the meantime.
  while (SegmentRef segment = find(*level, frame)) {
    if (segment->eager) return body(frame.arguments, numbers);
    std::vector<Value> results = segment->run(frame);
    if (segment->returns()) {
      segment->leave();
      return results;
    }
    path.push_back(std::move(segment));
    level = &path.back()->children;
  }
  std::optional<CallSite> alarm;
  Reason reason = path.empty() ? why_new(frame, alarm) : Reason{};
  if (!path.empty()) {
    std::unique_lock lock(tree_mutex);
    std::erase_if(path.back()->children.segments, [](const SegmentRef& child) { return child->guards.lost_closure(); });
  }
  bool again = !reason.text.empty();
  if (again) {
    bool refuses = options.error_on_recompile || current_stance.load() == Stance::FailOnRecompile;
    TENON_CHECK(!refuses, "[compile] a recompile was needed and is refused ({}): {}",
                options.error_on_recompile ? "error_on_recompile" : "Stance::FailOnRecompile", reason.str());
    if (options.guard_fail) options.guard_fail(reason.str());
  }
  if (path.empty() && static_cast<int>(roots.segments.size()) >= options.recompile_limit) {
    if (!std::exchange(gave_up, true))
      warn_once(
          fmt::format("recompile limit {}", serial),
          fmt::format("a compiled function was compiled {} times, the limit; calls that fit none of them run "
                      "eagerly from now on (last: {}){}",
                      roots.segments.size(), reason.str(),
                      reason.text.starts_with("number ") ? "; a parameter of type SymInt or SymFloat may change" : ""));
    note_break(fmt::format("the recompile limit of {} is reached: {}", options.recompile_limit, reason.text));
    TENON_CHECK(
        !options.fullgraph,
        "[compile] the function cannot be captured as one graph (fullgraph): the recompile limit of {} is reached: {}",
        options.recompile_limit, reason.str());
    return body(frame.arguments, numbers);
  }
  int64_t before = compiles;
  alarmed = alarm.has_value();
  std::string why = path.empty() ? reason.str() : "the function goes on in a way that it did not go before";
  std::vector<Value> results = Capture(*this, frame, numbers, std::move(path), body, std::move(why)).run();
  if (alarm && compiles == before && ++false_alarms == kMostFalseAlarms) {
    std::string line = alarm->str();
    warn_once(
        fmt::format("closure {}", serial),
        fmt::format("a compiled function reads a tensor that is no argument{}, and variables that hold that tensor are "
                    "given others "
                    "again and again: from now on this goes unnoticed; keep it in a Cell, which is read at every call",
                    line.empty() ? "" : " at " + line));
  }
  if (again && compiles != before) {
    counter("recompiles").add();
    TENON_LOG(Recompiles, "{}", reason.str());
    std::unique_lock lock(tree_mutex);
    recompiles.push_back(std::move(reason));
  }
  return results;
}

Reason CompiledFunction::State::why_new(const Frame& frame, std::optional<CallSite>& alarm) {
  std::unique_lock lock(tree_mutex);
  // Of the graph that comes nearest, because that is the one which the caller expected to serve.
  Reason reason;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const SegmentRef& root : roots.segments) {
    std::vector<Reason> failures = root->guards.failures(frame);
    int64_t weight = 0;
    for (const Reason& each : failures) weight += each.weight;
    if (failures.empty() || weight > fewest) continue;
    fewest = weight;
    reason = std::move(failures.front());
  }
  for (const SegmentRef& root : roots.segments)
    if (std::optional<CallSite> site = root->guards.rebound_closure()) alarm = site;
  // A graph whose closure tensor is gone can never run again; what was compiled may serve the graph captured anew.
  std::erase_if(roots.segments, [](const SegmentRef& root) { return root->guards.lost_closure(); });
  return reason;
}

int64_t CompiledFunction::compile_count() const {
  std::shared_lock lock(state_->tree_mutex);
  return state_->compiles;
}

void CompiledFunction::reset() {
  std::lock_guard no_capture(state_->compile_mutex);
  std::unique_lock lock(state_->tree_mutex);
  state_->roots.segments.clear();
  state_->plans.clear();
  state_->recompiles.clear();
  state_->breaks.clear();
  state_->history.clear();
  state_->cell_history.clear();
  state_->false_alarms = 0;
  state_->compiles = 0;
  state_->gave_up = false;
}

void CompiledFunction::State::each_segment(const std::function<void(const Segment&)>& visit) const {
  std::vector<const Siblings*> open = {&roots};
  while (!open.empty()) {
    const Siblings* level = open.back();
    open.pop_back();
    for (const SegmentRef& segment : level->segments) {
      visit(*segment);
      open.push_back(&segment->children);
    }
  }
}

void CompiledFunction::refresh() {
  std::unique_lock lock(state_->tree_mutex);
  state_->each_segment([](const Segment& segment) {
    if (segment.frozen) segment.frozen->refresh();
  });
}

void CompiledFunction::update(std::span<const std::pair<std::string, Tensor>> tensors) {
  // Calls that look for a segment wait, and so do captures: they read all cells before or after this.
  std::lock_guard no_capture(state_->compile_mutex);
  std::unique_lock lock(state_->tree_mutex);
  std::map<std::string, std::set<CellState*>> known;
  state_->each_segment([&](const Segment& segment) {
    if (!segment.frozen) return;
    for (const InputSource& source : segment.guards.sources())
      if (const auto* cell = std::get_if<Ref<CellState>>(&source)) known[(*cell)->name].insert(cell->get());
  });
  std::vector<std::string> names;
  for (const auto& [name, cells] : known) names.push_back(name);
  std::vector<std::pair<CellState*, Tensor>> changes;
  for (const auto& [name, tensor] : tensors) {
    auto found = known.find(name);
    TENON_CHECK_VALUE(found != known.end(), "[update] expected the name of a parameter that was frozen ({}), got '{}'",
                      fmt::join(names, ", "), name);
    TENON_CHECK_VALUE(found->second.size() == 1, "[update] {} parameters have the name '{}'", found->second.size(),
                      name);
    CellState* cell = *found->second.begin();
    const Tensor& now = std::get<Tensor>(cell->content);
    bool fits = tensor.defined() && tensor.dtype() == now.dtype() && tensor.device() == now.device() &&
                tensor.sizes() == now.sizes();
    TENON_CHECK_VALUE(fits, "[update] '{}' is {}, got {}", name, now.description(),
                      tensor.defined() ? tensor.description() : "an undefined tensor");
    Tensor other = tensor.detach();
    if (now.requires_grad()) other.set_requires_grad();
    changes.emplace_back(cell, other);
  }
  for (auto& [cell, tensor] : changes) cell->content = std::move(tensor);
}

namespace {

void explain_tree(const Segment& segment, int depth, Explanation& explanation) {
  auto text = [](const std::shared_ptr<graph::Graph>& graph) {
    return graph ? graph::to_string(*graph) : std::string();
  };
  explanation.entries.push_back({segment.captured,
                                 text(segment.compiled.joint),
                                 text(segment.compiled.forward),
                                 text(segment.compiled.backward),
                                 segment.guards.describe(),
                                 segment.eager,
                                 depth,
                                 segment.why,
                                 "",
                                 {}});
  std::vector<std::string>& freezing = explanation.entries.back().freezing;
  if (!segment.not_frozen.empty()) freezing.push_back("not frozen: " + segment.not_frozen);
  if (segment.frozen) {
    explanation.entries.back().frozen = graph::to_string(segment.frozen->graph());
    freezing = segment.frozen->describe_constants();
    freezing.insert(freezing.end(), segment.frozen->notes().begin(), segment.frozen->notes().end());
  }
  for (const SegmentRef& child : segment.children.segments) explain_tree(*child, depth + 1, explanation);
}

}  // namespace

Explanation CompiledFunction::explain() const try {
  std::shared_lock lock(state_->tree_mutex);
  Explanation explanation;
  for (const SegmentRef& root : state_->roots.segments) explain_tree(*root, 0, explanation);
  for (const Reason& reason : state_->recompiles) explanation.recompiles.push_back(reason.str());
  explanation.breaks = state_->breaks;
  return explanation;
} catch (const std::bad_alloc&) {
  support::raise_out_of_memory("explain");
}

}  // namespace capture
}  // namespace tenon
