#include "backends.h"
#include "guards.h"
#include "session.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/fake/fake.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>

namespace tenon {

std::string Explanation::str() const {
  std::string text = fmt::format("{} graph(s), {} recompile(s), {} break(s)\n", entries.size(), recompiles.size(), breaks.size());
  for (size_t at = 0; at < entries.size(); ++at) {
    const Entry& entry = entries[at];
    text += fmt::format("\ngraph {}{}\n{}", at, entry.eager ? " (runs eagerly)" : "", entry.captured);
    text += "guards:\n";
    for (const std::string& guard : entry.guards) text += "  " + guard + "\n";
    if (!entry.forward.empty()) text += "forward after aot:\n" + entry.forward;
    if (!entry.backward.empty()) text += "backward after aot:\n" + entry.backward;
  }
  for (const std::string& reason : recompiles) text += "recompiled: " + reason + "\n";
  for (const std::string& reason : breaks) text += "ran eagerly: " + reason + "\n";
  return text;
}

namespace capture {

using dispatch::Value;

struct Entry {
  Guards guards;
  aot::Compiled compiled;   // `run` is empty: these calls run eagerly
  std::string captured;     // the graph as text
  std::string signature;    // graph and guards as text: equal means that `compiled` serves both
};

struct CompiledFunction::State {
  CompileOptions options;
  mutable std::shared_mutex entries_mutex;   // guards `entries` and what follows
  std::vector<std::shared_ptr<const Entry>> entries;
  std::vector<std::shared_ptr<const Entry>> orphans;  // entries whose closure tensor died
  std::vector<std::string> recompiles, breaks;
  int64_t compiles = 0;
  bool gave_up = false;                      // past the recompile limit
  std::mutex compile_mutex;                  // one capture at a time
  // Sizes seen at the last capture and the dimensions that have been seen to change, by input.
  struct History {
    Ints sizes;
    std::vector<bool> dynamic;
  };
  std::map<std::string, History> history;

  std::vector<bool> dynamic_dims(const std::string& name, const Tensor& tensor) {
    std::vector<bool> dims(static_cast<size_t>(tensor.dim()), options.dynamic == Dynamic::On);
    if (options.dynamic != Dynamic::Auto) return dims;
    History& seen = history[name];
    if (seen.sizes.size() != dims.size() || seen.dynamic.size() != dims.size()) {
      seen = {Ints(tensor.sizes()), dims};
      return dims;
    }
    for (size_t dim = 0; dim < dims.size(); ++dim)
      if (seen.sizes[dim] != tensor.sizes()[dim]) seen.dynamic[dim] = true;
    seen.sizes = Ints(tensor.sizes());
    return seen.dynamic;
  }

  std::vector<Value> capture(std::span<const Tensor> tensors, std::span<const Value> constants, Body body);
  std::vector<Value> run_eagerly(std::string why, std::span<const Tensor> tensors, Body body);
};

CompiledFunction::CompiledFunction(CompileOptions options) : state_(std::make_unique<State>()) { state_->options = std::move(options); }
CompiledFunction::~CompiledFunction() = default;

std::vector<Value> CompiledFunction::call(std::span<const Tensor> tensors, std::span<const Value> constants, Body body) {
  // Captured inside another capture, or run on fakes: part of what is being captured.
  if (is_capturing()) return body(tensors);
  for (size_t at = 0; at < tensors.size(); ++at)
    TENON_CHECK(tensors[at].defined(), "[compile] argument {} is an undefined tensor", at);
  bool grad_enabled = autograd::grad_enabled();
  SmallVector<Tensor, 8> inputs;
  SmallVector<int64_t, 16> symbols;
  auto find = [&]() -> std::shared_ptr<const Entry> {
    std::shared_lock lock(state_->entries_mutex);
    for (const auto& entry : state_->entries)
      if (entry->guards.check(tensors, constants, grad_enabled, inputs, symbols)) return entry;
    return nullptr;
  };
  std::shared_ptr<const Entry> entry = find();
  if (!entry) {
    std::lock_guard one_at_a_time(state_->compile_mutex);
    entry = find();
    if (!entry) return state_->capture(tensors, constants, body);
  }
  if (!entry->compiled.run) return body(tensors);
  return entry->compiled.run(inputs.span(), symbols.span());
}

std::vector<Value> CompiledFunction::State::run_eagerly(std::string why, std::span<const Tensor> tensors, Body body) {
  TENON_CHECK(!options.fullgraph, "[compile] the function cannot be captured as one graph (fullgraph): {}", why);
  TENON_LOG(Breaks, "ran eagerly: {}", why);
  counter("graph_breaks").add();
  {
    std::unique_lock lock(entries_mutex);
    breaks.push_back(std::move(why));
  }
  return body(tensors);
}

namespace {

// What the symbols that an error mentions stood for: " (with s0 = 3)".
std::string symbols_in(const std::string& text, sym::ShapeEnv& env) {
  std::vector<std::string> words;
  for (int32_t id = 0; id < env.pool().symbol_count(); ++id) {
    sym::Expr symbol = env.pool().symbol(id);
    std::optional<int64_t> hint = env.hint(symbol);
    size_t at = text.find(symbol.name());
    if (!hint || at == std::string::npos) continue;
    size_t end = at + symbol.name().size();
    bool whole = (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]))) &&
                 (end == text.size() || !std::isalnum(static_cast<unsigned char>(text[end])));
    if (whole) words.push_back(fmt::format("{} = {}", symbol.name(), *hint));
  }
  return words.empty() ? "" : fmt::format(" (with {})", fmt::join(words, ", "));
}

}  // namespace

std::vector<Value> CompiledFunction::State::capture(std::span<const Tensor> tensors, std::span<const Value> constants, Body body) {
  bool grad_enabled = autograd::grad_enabled();
  std::string reason;
  {
    std::unique_lock lock(entries_mutex);
    if (!entries.empty()) reason = entries.back()->guards.explain(tensors, constants, grad_enabled);
    // A graph whose closure tensor is gone can never run again, but what was compiled may serve the graph captured anew.
    auto lost = std::stable_partition(entries.begin(), entries.end(), [](const auto& entry) { return !entry->guards.lost_closure(); });
    orphans.insert(orphans.end(), lost, entries.end());
    entries.erase(lost, entries.end());
  }
  if (static_cast<int>(entries.size()) >= options.recompile_limit) {
    if (!std::exchange(gave_up, true))
      warn_once(fmt::format("recompile limit {}", static_cast<const void*>(this)),
                fmt::format("a compiled function was compiled {} times, the limit; calls that fit none of them run eagerly from now on (last: {})",
                            entries.size(), reason));
    return run_eagerly(fmt::format("the recompile limit of {} is reached: {}", options.recompile_limit, reason), tensors, body);
  }
  auto entry = std::make_shared<Entry>();
  std::string broken;
  bool reused = false;
  std::vector<bool> requires_grad;
  {
    Session session([this](const std::string& name, const Tensor& tensor) { return dynamic_dims(name, tensor); });
    std::vector<Tensor> fakes;
    for (size_t at = 0; at < tensors.size(); ++at) fakes.push_back(session.add_argument(tensors[at], static_cast<int32_t>(at)));
    try {
      session.run(fakes, body);
    } catch (const GraphBreak& graph_break) {
      broken = graph_break.what();
    } catch (const fake::NeedsData& needs_data) {
      broken = needs_data.what();
    } catch (const DataDependentError& data_dependent) {
      broken = data_dependent.what();
    } catch (const Error& error) {
      std::string meaning = symbols_in(error.what(), *session.inputs().env());
      if (meaning.empty()) throw;
      throw Error(error.what() + meaning);
    }
    entry->guards = Guards(session, tensors, constants, grad_enabled);
    if (broken.empty()) {
      const graph::Graph& graph = session.recorder().graph();
      entry->captured = graph::to_string(graph);
      TENON_LOG(Graph, "captured:\n{}", entry->captured);
      for (const Tensor& real : session.reals) requires_grad.push_back(real.requires_grad());
      entry->guards.set_sizes(session.inputs().finish());
      entry->signature = entry->captured + fmt::format("{}", fmt::join(entry->guards.describe(), "\n"));
      for (const auto& orphan : orphans)
        if (orphan->signature == entry->signature) {
          entry->compiled = orphan->compiled;
          reused = true;
          break;
        }
      if (!reused) entry->compiled = compile_with(options.backend, graph, requires_grad, grad_enabled);
    }
    // Compiling may have asked more of the sizes.
    entry->guards.set_sizes(session.inputs().finish());
  }
  SmallVector<Tensor, 8> inputs;
  SmallVector<int64_t, 16> symbols;
  TENON_ASSERT(entry->guards.check(tensors, constants, grad_enabled, inputs, symbols), "a new graph refuses its own arguments: {}",
               entry->guards.explain(tensors, constants, grad_enabled));
  TENON_CHECK(broken.empty() || !options.fullgraph, "[compile] the function cannot be captured as one graph (fullgraph): {}", broken);
  {
    std::unique_lock lock(entries_mutex);
    entries.push_back(entry);
    if (broken.empty() && !reused) ++compiles;
    if (!reason.empty() && !reused) recompiles.push_back(reason);
  }
  counter("compiles").add(broken.empty() && !reused ? 1 : 0);
  if (!reason.empty() && !reused) {
    counter("recompiles").add();
    TENON_LOG(Recompiles, "{}", reason);
  }
  for (const std::string& line : entry->guards.describe()) TENON_LOG(Guards, "{}", line);
  if (!broken.empty()) return run_eagerly(std::move(broken), tensors, body);
  return entry->compiled.run(inputs.span(), symbols.span());
}

int64_t CompiledFunction::compile_count() const {
  std::shared_lock lock(state_->entries_mutex);
  return state_->compiles;
}

void CompiledFunction::reset() {
  std::lock_guard no_capture(state_->compile_mutex);
  std::unique_lock lock(state_->entries_mutex);
  state_->entries.clear();
  state_->orphans.clear();
  state_->recompiles.clear();
  state_->breaks.clear();
  state_->history.clear();
  state_->compiles = 0;
  state_->gave_up = false;
}

Explanation CompiledFunction::explain() const {
  std::shared_lock lock(state_->entries_mutex);
  Explanation explanation;
  for (const auto& entry : state_->entries) {
    auto text = [](const std::shared_ptr<graph::Graph>& graph) { return graph ? graph::to_string(*graph) : std::string(); };
    explanation.entries.push_back({entry->captured, text(entry->compiled.joint), text(entry->compiled.forward),
                                   text(entry->compiled.backward), entry->guards.describe(), !entry->compiled.run});
  }
  explanation.recompiles = state_->recompiles;
  explanation.breaks = state_->breaks;
  return explanation;
}

}  // namespace capture
}  // namespace tenon
