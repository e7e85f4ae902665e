#include "capture.h"

#include "autograd/author_formula.h"
#include "backends.h"
#include "freeze_piece.h"
#include "outside.h"
#include "support/reworded.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/capture/marks.h>
#include <tenon/dispatch/autocast.h>
#include <tenon/fake/fake.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

namespace tenon::capture {

using dispatch::Value;

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

class Capture::Run {
 public:
  Run(CompiledFunction::State& state, Frame& frame, std::span<const Value> numbers, std::vector<SegmentRef> path,
      Body body, std::string why = "")
      : state_(state), frame_(frame), numbers_(numbers), path_(std::move(path)), body_(body), why_(std::move(why)) {}

  // `verify`: the whole path is known; an Error if the function does something else now.
  std::vector<Value> run(bool verify = false) {
    verify_ = verify;
    std::optional<std::pair<size_t, EarlyBreak>> before;
    for (;;) {
      std::optional<EarlyBreak> early;
      bool again = false;
      std::vector<Value> results = attempt(early, again);
      if (!again) return results;
      begin_anew(early);
      if (!early) {
        before.reset();
        continue;
      }
      std::pair<size_t, EarlyBreak> now{path_.size(), *early};
      TENON_CHECK(before != now,
                  "[compile] the function looks at the gradient of a value from which others were computed, and its "
                  "graph cannot be cut behind the value: call graph_break() there, or look at a copy of it");
      before = now;
    }
  }

 private:
  // Up to its end, or until a segment is found that should have ended earlier, or without one of its operators.
  std::vector<Value> attempt(std::optional<EarlyBreak>& early, bool& again) {
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
      session.called_between.push_back(segment->called_between);
      const std::vector<InputSource>& sources = segment->guards.sources();
      session.expected_sources.insert(session.expected_sources.end(), sources.begin(), sources.end());
      session.expected_choices.insert(session.expected_choices.end(), segment->choices.begin(), segment->choices.end());
    }
    session.early_breaks.push_back(early_);
    session.called_between.push_back(state_.called_between);
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
      again = true;
      return {};
    } catch (const CallBetweenNeeded& needed) {
      auto known = std::make_shared<CalledBetween>(*state_.called_between);
      (*known)[needed.op] = needed.why;
      state_.called_between = std::move(known);
      again = true;
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
  void begin_anew(const std::optional<EarlyBreak>& early) {
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
    choices_ = 0;
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
    segment->called_between = state_.called_between;
    segment->policies = std::exchange(new_policies_, {});
    segment->cell_symbols = std::exchange(new_cells_, {});
    segment->choices.assign(session_->choices.begin() + static_cast<ptrdiff_t>(choices_), session_->choices.end());
    choices_ = session_->choices.size();
    segment->guards = Guards(*session_, from_, depth_ == 0 ? &frame_ : nullptr);
    segment->guards.set_aliases(std::move(piece.aliases));
    if (segment->returns()) segment->guards.end_here();
    bool shared = false;
    const Ref<sym::ShapeEnv>& env = session_->env();
    const int32_t symbols = env->pool().symbol_count();
    const size_t guards = env->guards().size(), checks = env->deferred_checks().size();
    {
      // The casts are nodes of the graph.
      dispatch::ExcludeKeys cast_already(KeySet{DispatchKey::Autocast});
      shared = compile(*segment, piece);
    }
    segment->learnt.env = env;
    for (int32_t id = symbols; id < env->pool().symbol_count(); ++id)
      segment->learnt.symbols.push_back(env->pool().symbol(id).is_real());
    for (size_t at = guards; at < env->guards().size(); ++at)
      segment->learnt.facts.push_back(env->guards()[at].condition);
    for (size_t at = checks; at < env->deferred_checks().size(); ++at)
      segment->learnt.facts.push_back(env->deferred_checks()[at].condition);
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

  // What compiling did, and does not do again. (No node of the graph binds the symbols.)
  void learn(const Learnt& learnt) {
    sym::ShapeEnv& env = *session_->env();
    for (bool real : learnt.symbols) {
      if (real)
        (void)env.create_unbacked_real();
      else
        (void)env.create_unbacked();
    }
    if (!learnt.symbols.empty()) (void)env.take_fresh();
    if (learnt.facts.empty()) return;
    std::unordered_map<int32_t, sym::Expr> same;
    for (int32_t id = 0; id < env.pool().symbol_count(); ++id) same.emplace(id, env.pool().symbol(id));
    for (sym::Expr fact : learnt.facts) env.pool().assume(env.pool().import(fact, same));
  }

  // Known already: the function must do what it did. The frame holds what came of it.
  size_t follow(const Segment& known, const Piece& piece, const std::string& captured) {
    if (captured != known.captured || piece.end.index() != known.end.index()) {
      auto [before, now] = first_difference(known.captured, captured);
      fail("[compile] {}the function no longer does what was captured:\n  captured: {}\n  now:      {}\n  {}",
           verify_ ? "TENON_VERIFY_CAPTURE: " : "", before, now, kAdvice);
    }
    learn(known.learnt);
    from_ = session_->progress();
    choices_ = session_->choices.size();
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
      segment.compiled = {.run = pass_on_inputs(graph)};
      segment.passed_on = std::make_shared<graph::Graph>(graph);
      return depth_ > 0;
    }
    if (segment.guards.aliases().classes().any_overlap()) {
      // One after the other, on tensors that overlap as they do, the operators do what they do in eager.
      TENON_LOG(Breaks, "run operator by operator: inputs that the function writes to overlap in memory");
      segment.compiled = {.run = replay_graph(graph)};
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
      aot::Options options{piece.leaves, state_.options.double_backward == DoubleBackward::Refuse,
                           state_.options.pad_products};
      segment.compiled =
          freezes ? compile_frozen(state_.options.backend, piece, parameters, may_hold, options, segment.frozen)
                  : compile_with(state_.options.backend, graph, piece.requires_grad, records, options);
    } catch (const autograd::NotTraceable& error) {
      if (state_.options.fullgraph) throw;
      throw CallBetweenNeeded{error.op(), fmt::format("the backward of {}: {}", error.op(), error.what())};
    } catch (const autograd::NoDerivative& error) {
      // As in eager, that matters only to those who ask for the gradient.
      TENON_LOG(Breaks, "run operator by operator: {}", error.what());
      segment.compiled = {.run = replay_graph(graph)};
      return false;
    } catch (const std::exception& error) {
      if (!state_.options.backend.custom()) throw;
      if (state_.options.eager_on_backend_error) {
        warn_once(fmt::format("backend {}", state_.serial),
                  fmt::format("a backend failed ({}): the graph is interpreted", error.what()));
        segment.compiled = {.run = replay_graph(graph)};
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
  size_t choices_ = 0;                         // of the segments so far
  std::vector<Value> results_;
};

std::vector<Value> Capture::run(CompiledFunction::State& state, Frame& frame, std::span<const Value> numbers,
                                std::vector<SegmentRef> path, Body body, std::string why) {
  return Run(state, frame, numbers, std::move(path), body, std::move(why)).run();
}

void Capture::verify(CompiledFunction::State& state, Frame& frame, std::span<const Value> numbers,
                     std::vector<SegmentRef> path, Body body) {
  Run(state, frame, numbers, std::move(path), body).run(true);
}

}  // namespace tenon::capture
