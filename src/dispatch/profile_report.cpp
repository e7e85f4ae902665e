#include <tenon/dispatch/profile_report.h>

#include "dispatch/profile_ranges.h"
#include "dispatch/profile_scope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon {

bool is_profiling() { return dispatch::detail::profiling.load(std::memory_order_relaxed); }

struct RecordFunction::Open {
  Profiler::Event event;
  uint64_t record = 0;
};

RecordFunction::RecordFunction(std::string name) {
  if (!is_profiling()) return;
  int64_t now = 0;
  uint64_t record = dispatch::current_record(now);
  if (record == 0) return;
  open_ = std::make_unique<Open>();
  open_->record = record;
  open_->event.name = std::move(name);
  open_->event.start = now;
  open_->event.thread = dispatch::current_thread();
}

RecordFunction::~RecordFunction() { finish(); }

void RecordFunction::finish() {
  std::unique_ptr<Open> open = std::move(open_);
  int64_t now = 0;
  if (!open || dispatch::current_record(now) != open->record) return;
  open->event.duration = now - open->event.start;
  dispatch::add_event(open->record, std::move(open->event));
}

void ProfileAverage::add(const ProfileAverage& other) {
  count += other.count;
  total += other.total;
  self += other.self;
}

std::vector<std::vector<size_t>> children_of(const std::vector<Profiler::Event>& events) {
  // Those that begin first come first, of those the ones that end last; what is around an event is then still open.
  std::vector<size_t> order(events.size()), open;
  std::iota(order.begin(), order.end(), 0);
  auto end_of = [&](size_t at) { return events[at].start + events[at].duration; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(events[a].thread, events[a].start, -end_of(a)) <
           std::tuple(events[b].thread, events[b].start, -end_of(b));
  });
  std::vector<std::vector<size_t>> children(events.size());
  for (size_t at : order) {
    // What does not reach as far does not stand around it; ranges may overlap.
    while (!open.empty() && (events[open.back()].thread != events[at].thread || end_of(open.back()) < end_of(at)))
      open.pop_back();
    if (!open.empty()) children[open.back()].push_back(at);
    open.push_back(at);
  }
  return children;
}

std::vector<ProfileAverage> key_averages(const std::vector<Profiler::Event>& events, bool by_shapes) {
  std::vector<std::vector<size_t>> children = children_of(events);
  using Shapes = std::vector<std::vector<int64_t>>;
  std::map<std::pair<std::string, Shapes>, ProfileAverage> by_name;
  for (size_t at = 0; at < events.size(); ++at) {
    int64_t inside = 0;
    for (size_t child : children[at]) inside += events[child].duration;
    ProfileAverage& sum = by_name[{events[at].name, by_shapes ? events[at].shapes : Shapes()}];
    sum.name = events[at].name;
    if (by_shapes) sum.shapes = events[at].shapes;
    sum.add({events[at].name, 1, events[at].duration, events[at].duration - inside, {}});
  }
  std::vector<ProfileAverage> averages;
  for (auto& [key, sum] : by_name) averages.push_back(std::move(sum));
  std::stable_sort(averages.begin(), averages.end(),
                   [](const ProfileAverage& a, const ProfileAverage& b) { return a.total > b.total; });
  return averages;
}

std::string profile_table(const std::vector<Profiler::Event>& events, bool top_level, bool by_shapes) {
  std::vector<Profiler::Event> shown;
  if (top_level) {
    std::vector<bool> inside(events.size());
    for (const std::vector<size_t>& children : children_of(events))
      for (size_t child : children) inside[child] = true;
    for (size_t at = 0; at < events.size(); ++at)
      if (!inside[at]) shown.push_back(events[at]);
  }
  std::vector<ProfileAverage> averages = key_averages(top_level ? shown : events, by_shapes);
  if (by_shapes)
    for (ProfileAverage& each : averages) {
      std::vector<std::string> shapes;
      for (const std::vector<int64_t>& shape : each.shapes)
        shapes.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
      each.name += fmt::format(" [{}]", fmt::join(shapes, ", "));
    }
  size_t width = 4;
  for (const ProfileAverage& each : averages) width = std::max(width, each.name.size());
  std::string text = fmt::format("{:<{}}  {:>6}  {:>12}  {:>12}  {:>12}\n", "name", width, "calls", "total us",
                                 "self us", "average us");
  for (const ProfileAverage& each : averages)
    text += fmt::format("{:<{}}  {:>6}  {:>12.3f}  {:>12.3f}  {:>12.3f}\n", each.name, width, each.count,
                        static_cast<double>(each.total) / 1000, static_cast<double>(each.self) / 1000,
                        each.average() / 1000);
  return text;
}

std::string Profiler::table() { return profile_table(events()); }

}  // namespace tenon
