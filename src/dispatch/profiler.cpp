#include "profile_ranges.h"
#include "profile_scope.h"
#include "support/at_fork.h"

#include <tenon/support/error.h>

#include "support/origin.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <tuple>

namespace tenon {
namespace dispatch {

namespace detail {
std::atomic<bool> profiling{false};
}

namespace {

// What the profiler that records has so far.
struct Store {
  support::ForkSafe<std::mutex> mutex;
  uint64_t record = 0;  // counts profilers
  bool record_shapes = false;
  std::chrono::steady_clock::time_point begin;
  std::vector<Profiler::Event> events;
};

Store& store() {
  static auto* made = new Store;
  return *made;
}

int32_t thread_number() {
  static std::atomic<int32_t> threads{0};
  thread_local const int32_t number = threads++;
  return number;
}

int64_t nanoseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

struct ProfileScope::Open {
  Profiler::Event event;
  uint64_t record = 0;
  std::chrono::steady_clock::time_point begin;
  Open* around = nullptr;
  static Open*& innermost() {
    thread_local Open* open = nullptr;
    return open;
  }
};

void detail::note_sequence(int64_t sequence) {
  if (ProfileScope::Open* open = ProfileScope::Open::innermost()) open->event.sequence = sequence;
}

namespace {

// A size that is a symbol is -1.
std::vector<std::vector<int64_t>> shapes_of(std::span<const Value> args) {
  std::vector<std::vector<int64_t>> shapes;
  for (const Value& arg : args)
    arg.each_tensor([&](const Tensor& tensor) {
      std::vector<int64_t>& sizes = shapes.emplace_back();
      if (!tensor.defined()) return;
      for (const SymInt& size : tensor.sym_sizes()) sizes.push_back(size.is_symbolic() ? -1 : size.plain());
    });
  return shapes;
}

}  // namespace

void ProfileScope::start(std::string_view prefix, std::string_view name, std::span<const Value> args,
                         Profiler::Event::Kind kind, int64_t sequence, int32_t forward_thread) {
  auto open = std::make_unique<Open>();
  open->event.kind = kind;
  open->event.name = fmt::format("{}{}", prefix, name);
  open->event.sequence = sequence;
  open->event.forward_thread = forward_thread;
  open->event.thread = thread_number();
  if (const std::string* module = current_origin().module) open->event.module = *module;
  open->around = Open::innermost();
  if (open->around) open->event.depth = open->around->event.depth + 1;
  {
    std::lock_guard lock(store().mutex);
    open->record = store().record;
    open->begin = store().begin;
    if (store().record_shapes) open->event.shapes = shapes_of(args);
  }
  open_ = Open::innermost() = open.release();
  open_->event.start = nanoseconds_since(open_->begin);
}

void ProfileScope::finish() {
  std::unique_ptr<Open> open(open_);
  open->event.duration = nanoseconds_since(open->begin) - open->event.start;
  Open::innermost() = open->around;
  std::lock_guard lock(store().mutex);
  if (!detail::profiling || open->record != store().record) return;
  try {
    store().events.push_back(std::move(open->event));
  } catch (...) {
    // An event for which there is no memory is left out: destructors come here.
  }
}

uint64_t current_record(int64_t& now) {
  std::lock_guard lock(store().mutex);
  now = nanoseconds_since(store().begin);
  return detail::profiling ? store().record : 0;
}

int32_t current_thread() { return thread_number(); }

void add_event(uint64_t record, Profiler::Event event) {
  std::lock_guard lock(store().mutex);
  if (detail::profiling && record == store().record) store().events.push_back(std::move(event));
}

}  // namespace dispatch

Profiler::Profiler(Options options) {
  dispatch::Store& store = dispatch::store();
  std::lock_guard lock(store.mutex);
  TENON_CHECK(!dispatch::detail::profiling, "[Profiler] another profiler records: stop() it first");
  ++store.record;
  store.events.clear();
  store.record_shapes = options.record_shapes;
  store.begin = std::chrono::steady_clock::now();
  dispatch::detail::profiling = true;
}

Profiler::~Profiler() { stop(); }

void Profiler::stop() {
  if (!std::exchange(recording_, false)) return;
  dispatch::Store& store = dispatch::store();
  std::lock_guard lock(store.mutex);
  dispatch::detail::profiling = false;
  events_ = std::move(store.events);
  std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.thread, a.start, a.depth) < std::tie(b.thread, b.start, b.depth);
  });
}

const std::vector<Profiler::Event>& Profiler::events() {
  stop();
  return events_;
}

namespace {

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (static_cast<unsigned char>(letter) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<int>(letter));
    else
      result += letter;
  }
  return result + '"';
}

}  // namespace

std::string Profiler::chrome_trace() {
  std::string text = "{\"traceEvents\": [";
  const char* separator = "\n";
  for (const Event& event : events()) {
    // Microseconds, as the format has it.
    text += fmt::format(
        "{}{{\"ph\": \"X\", \"pid\": 0, \"tid\": {}, \"cat\": \"{}\", \"name\": {}, \"ts\": {}.{:03}, \"dur\": "
        "{}.{:03}, "
        "\"args\": {{\"sequence\": {}, \"module\": {}}}}}",
        separator, event.thread, event.kind == Event::Kind::Backward ? "backward" : "operator", json_string(event.name),
        event.start / 1000, event.start % 1000, event.duration / 1000, event.duration % 1000, event.sequence,
        json_string(event.module));
    separator = ",\n";
  }
  return text + "\n]}\n";
}

void Profiler::save(const std::filesystem::path& path) {
  std::ofstream file(path);
  file << chrome_trace();
  file.close();
  TENON_CHECK(file.good(), "[Profiler] {} cannot be written", path.string());
}

}  // namespace tenon
