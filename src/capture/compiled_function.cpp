#include "capture.h"
#include "core/erased.h"
#include "support/out_of_memory.h"
#include "support/reworded.h"
#include "support/undivided.h"

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

std::atomic<bool> verifies{[] {
  const char* value = std::getenv("TENON_VERIFY_CAPTURE");
  return value && *value && std::string_view(value) != "0";
}()};

}  // namespace

bool set_verify_captures(bool on) { return verifies.exchange(on); }

CompiledFunction::CompiledFunction(CompileOptions options) try : state_(std::make_unique<State>()) {
  TENON_CHECK(options.recompile_limit > 0, "[compile] expected a recompile_limit of at least 1, got {}",
              options.recompile_limit);
  TENON_CHECK(!options.discard_parameters || options.freeze == Freeze::On,
              "[compile] discard_parameters gives up what constants were computed from: expected freeze = Freeze::On");
  state_->options = std::move(options);
} catch (...) {
  support::rethrow_named("compile");
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
  if (!is_number || cell->by_value || options.dynamic == Dynamic::Off) return false;
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
} catch (...) {
  support::rethrow_named("compile");
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
      Capture::verify(*this, frame, numbers, std::move(path), body);
  }
  segment->leave();
  return results;
}

std::vector<Value> CompiledFunction::State::capture_from(std::vector<SegmentRef> path, const Siblings* level,
                                                         Frame& frame, std::span<const Value> numbers, Body body) {
  support::Undivided captured_whole;
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
  std::vector<Value> results = Capture::run(*this, frame, numbers, std::move(path), body, std::move(why));
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
  support::Undivided changed_whole;
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
  support::Undivided changed_whole;
  std::unique_lock lock(state_->tree_mutex);
  state_->each_segment([](const Segment& segment) {
    if (segment.frozen) segment.frozen->refresh();
  });
}

void CompiledFunction::update(std::span<const std::pair<std::string, Tensor>> tensors) {
  // Calls that look for a segment wait, and so do captures: they read all cells before or after this.
  support::Undivided changed_whole;
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
} catch (...) {
  support::rethrow_named("explain");
}

}  // namespace capture
}  // namespace tenon
