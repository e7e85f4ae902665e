// What a compiled function knows: the tree of its segments, what was compiled, and what was seen to change.
#pragma once

#include "session.h"
#include "support/at_fork.h"

#include <tenon/capture/compile.h>

#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace tenon::capture {

using SegmentRef = std::shared_ptr<const Segment>;

struct CompiledFunction::State {
  using Value = dispatch::Value;

  CompileOptions options;
  mutable support::ForkSafe<std::shared_mutex> tree_mutex;  // guards `roots`, all children, and what follows
  Siblings roots;
  std::vector<Reason> recompiles;
  std::vector<std::string> breaks;
  int64_t compiles = 0;
  bool gave_up = false;  // past the recompile limit
  // One capture at a time; a disabled function may call its caller. For long only inside of `Undivided`.
  support::ForkSafe<std::recursive_mutex> compile_mutex;
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
  // Operators that turned out not to fit into graphs.
  std::shared_ptr<const CalledBetween> called_between = std::make_shared<CalledBetween>();
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

// What was captured of a function, for other rooms.
struct Captured {
  static const CompileOptions& options(const CompiledFunction& function) { return function.state_->options; }
  // The beginnings of the ways through it. (A reset forgets them; whoever holds one keeps it.)
  static std::vector<SegmentRef> roots(const CompiledFunction& function) {
    std::shared_lock lock(function.state_->tree_mutex);
    return function.state_->roots.segments;
  }
};

}  // namespace tenon::capture
