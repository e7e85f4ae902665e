#include "cache.h"
#include "support/thread_data.h"

#include "replay.h"

#include "capture/session.h"
#include "support/thread_context.h"

#include <tenon/autograd/anomaly.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/core/given_up.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <algorithm>
#include <bit>
#include <set>

namespace tenon::compiled_autograd {
namespace {

using dispatch::Value;

// A walk with more calls than these that cannot be captured is run node by node: graphs between them would be short.
constexpr size_t kMostBreaks = 32;
// How often walks that are alike may be captured anew, because of what cannot be seen from the description.
constexpr int kRecompileLimit = 16;

void say(const std::string& text) { log_line(LogTopic::CompiledAutograd, text); }

Value number_value(const Description::Number& number) {
  return number.real ? Value(std::bit_cast<double>(number.bits)) : Value(number.bits);
}

// Why the walk is run node by node; empty: it is captured.
std::string why_not(const Description& description) {
  if (!description.broken.empty()) return description.broken;
  if (description.breaks > kMostBreaks)
    return fmt::format("it calls {} functions and hooks that cannot be captured, more than {}", description.breaks,
                       kMostBreaks);
  for (const Tensor& tensor : description.tensors)
    if (tensor.is_fake() || tensor.device().type != DeviceType::CPU) return "it works on tensors without data";
  return {};
}

}  // namespace

std::optional<std::vector<Tensor>> Cache::run(const autograd::Walk& walk, bool verbose) {
  // Part of what something else records.
  if (capture::is_capturing() || !dispatch::thread_keys().include.empty()) return std::nullopt;
  // Every node is looked at.
  if (autograd::anomaly_enabled()) return std::nullopt;
  autograd::RunningWalk running(walk);
  Description description = describe(running);
  std::string why = why_not(description);
  if (!why.empty()) {
    TENON_CHECK(!options_.fullgraph || description.breaks <= kMostBreaks,
                "[compiled_autograd] the walk cannot be captured as one graph (fullgraph): {}", why);
    if (verbose) say("not captured: " + why);
    return std::nullopt;
  }
  std::shared_ptr<Entry> entry = find(description, verbose);
  // A walk that a node of one like it has started, while that one is in the middle of what is recorded for both.
  std::vector<const Entry*>& under_way = support::thread_data([] { return new std::vector<const Entry*>; });
  if (std::find(under_way.begin(), under_way.end(), entry.get()) != under_way.end()) {
    if (verbose) say("not captured: a walk like it, which started it, is under way");
    return std::nullopt;
  }
  under_way.push_back(entry.get());
  struct Over {
    std::vector<const Entry*>& of;
    ~Over() { of.pop_back(); }
  } over{under_way};
  running.id = autograd::next_walk_id();
  support::SwapSlot runs(support::ContextSlot::Walk, &running);
  Run run(running, description);
  bool releases = !walk.retain_graph && !walk.create_graph;
  auto release = [&] {
    for (const Description::Step& step : description.steps)
      if (step.runs) step.node->release_saved();
  };
  bool gives_up = releases && description.breaks == 0 && is_known(*entry);
  std::vector<Tensor> captured;
  try {
    captured = call(*entry, run, verbose, gives_up);
  } catch (...) {
    if (gives_up) release();
    throw;
  }
  if (releases) release();
  running.running = nullptr;
  autograd::run_callbacks(running);
  return captured;
}

std::shared_ptr<Cache::Entry> Cache::find(const Description& description, bool verbose) {
  std::string with_numbers;
  if (options_.dynamic == Dynamic::Off) {
    with_numbers = description.key.bytes();
    for (const Description::Number& number : description.numbers)
      with_numbers.append(reinterpret_cast<const char*>(&number.bits), sizeof number.bits);
  }
  std::lock_guard lock(mutex_);
  // A key of a large walk is long: it is copied for a new one alone.
  std::string_view key = with_numbers.empty() ? description.key.bytes() : std::string_view(with_numbers);
  auto found = entries_.find(key);
  if (found == entries_.end()) found = entries_.try_emplace(std::string(key)).first;
  std::shared_ptr<Entry>& entry = found->second;
  if (!entry) {
    note_new(description, verbose);
    entry = std::make_shared<Entry>();
    entry->last = description.numbers;
    entry->changes.assign(description.numbers.size(), options_.dynamic == Dynamic::On);
    entry->any_changes = options_.dynamic == Dynamic::On || !description.foreseen.empty();
    CompileOptions options{.fullgraph = options_.fullgraph, .dynamic = options_.dynamic, .backend = options_.backend};
    options.recompile_limit = kRecompileLimit;
    entry->function = std::make_shared<capture::CompiledFunction>(std::move(options));
    if (!description.foreseen.empty() && options_.dynamic == Dynamic::Auto) {
      std::set<int64_t> sizes(description.foreseen.begin(), description.foreseen.end());
      for (size_t at = 0; at < description.numbers.size(); ++at)
        entry->changes[at] = !description.numbers[at].real && sizes.contains(description.numbers[at].bits);
      entry->function->foresee(description.tensors, [&](int64_t size) { return sizes.contains(size); });
    }
    return entry;
  }
  TENON_ASSERT(entry->changes.size() == description.numbers.size(), "walks with one key have {} and {} numbers",
               entry->changes.size(), description.numbers.size());
  note_changes(*entry, description, verbose);
  return entry;
}

// The first node at which the walk leaves those that are known.
void Cache::note_new(const Description& description, bool verbose) {
  Prefix* prefix = &prefixes_;
  size_t begin = 0, number = 0;
  bool said = false;
  auto step = [&](size_t end, const std::string& name) {
    std::string_view part = description.key.bytes(begin, end);
    auto found = prefix->next.find(part);
    if (found == prefix->next.end()) {
      if (!std::exchange(said, true) && verbose) {
        std::vector<size_t> sizes;
        for (const auto& [key, next] : prefix->next) sizes.push_back(key.size());
        say(fmt::format(
            "Cache miss due to new autograd node: {} (NodeCall {}) with key size {}, previous key sizes=[{}]", name,
            number, part.size(), fmt::join(sizes, ", ")));
      }
      found = prefix->next.emplace(std::string(part), std::make_unique<Prefix>()).first;
    }
    prefix = found->second.get();
    begin = end;
    ++number;
  };
  step(description.root_key_end, "torch::autograd::GraphRoot");
  for (const Description::Step& each : description.steps) step(each.key_end, each.node->name());
}

void Cache::note_changes(Entry& entry, const Description& description, bool verbose) {
  std::lock_guard lock(entry.mutex);
  auto same = [](const Description::Number& a, const Description::Number& b) { return a.bits == b.bits; };
  if (std::equal(entry.last.begin(), entry.last.end(), description.numbers.begin(), same)) return;
  bool any = false;
  size_t at = 0, step = 0;
  for (const Description::Step& each : description.steps) {
    ++step;
    for (size_t first = at; at < each.numbers_end; ++at) {
      if (entry.changes[at] || entry.last[at].bits == description.numbers[at].bits) continue;
      entry.changes[at] = any = true;
      if (verbose)
        say(fmt::format("Cache miss due to changed shapes: marking size idx {} of {} (NodeCall {}) as dynamic",
                        at - first, each.node->name(), step));
    }
  }
  if (any) ++entry.generation;
  entry.any_changes |= any;
}

bool Cache::is_known(Entry& entry) const {
  std::lock_guard lock(entry.mutex);
  return entry.compiled == entry.generation;
}

std::vector<Tensor> Cache::call(Entry& entry, Run& run, bool verbose, bool gives_up) {
  static Counter& captures = counter("compiled_autograd_captures");
  static Counter& compiles = counter("compiled_autograd_compiles");
  std::vector<Value> numbers;
  std::vector<bool> changes;
  bool any_changes = false;
  int64_t generation = 0;
  {
    std::lock_guard lock(entry.mutex);
    changes = entry.changes;
    generation = entry.generation;
    any_changes = entry.any_changes;
  }
  for (size_t at = 0; any_changes && at < changes.size(); ++at)
    if (changes[at]) numbers.push_back(number_value(run.description.numbers[at]));
  const Value constants[] = {Value(generation)};
  int64_t callbacks = -1;
  auto body = [&](std::span<const Tensor> tensors, std::span<const Value> symbols) {
    capture::Session* session = capture::Session::current();
    if (session) captures.add();
    Replayed replayed = replay({tensors, symbols, changes}, verbose && session);
    int64_t number = -1;
    if (!replayed.callbacks.empty() && session) {
      TENON_CHECK(!session->broke,
                  "[queue_callback] a final callback of a walk with a graph break: queue_callback() is only supported "
                  "when Compiled Autograd is enabled with fullgraph=True");
      std::lock_guard lock(entry.mutex);
      number = static_cast<int64_t>(entry.callbacks.size());
      entry.callbacks[number] = std::move(replayed.callbacks);
    } else {
      for (std::function<void()>& callback : replayed.callbacks) autograd::queue_callback(std::move(callback));
    }
    std::vector<Value> values = flatten(std::move(replayed));
    values.insert(values.begin(), Value(number));
    return values;
  };
  autograd::SetGradMode mode(run.walk.walk.create_graph);
  int64_t before = entry.function->compile_count();
  std::vector<Value> values;
  {
    // Activations go as soon as their gradients have been computed.
    std::optional<core::GiveUp> up;
    if (gives_up) {
      for (const Description::Step& step : run.description.steps)
        if (step.runs) drop_saved(*step.node);
      up.emplace(run.description.tensors);
    }
    values = entry.function->call(run.description.tensors, numbers, constants, body);
  }
  if (int64_t made = entry.function->compile_count() - before) {
    compiles.add(made);
    if (options_.cuda_graphs) {
      counter("cuda_graph_skips").add(made);
      if (verbose) say("skipping cuda graphs: the walk works on cpu tensors");
    }
  }
  {
    std::lock_guard lock(entry.mutex);
    entry.compiled = std::max(entry.compiled, generation);
  }
  callbacks = values.front().integer();
  values.erase(values.begin());
  Replayed results = rebuild(std::move(values));
  for (size_t at = 0; at < results.arrivals.size(); ++at)
    land(run, results.arrivals[at], std::move(results.gradients[at]));
  if (callbacks >= 0) {
    std::lock_guard lock(entry.mutex);
    for (const std::function<void()>& callback : entry.callbacks.at(callbacks)) autograd::queue_callback(callback);
  }
  return std::move(results.captured);
}

}  // namespace tenon::compiled_autograd
