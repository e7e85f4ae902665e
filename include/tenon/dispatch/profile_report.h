// What a profile says: ranges with names of one's own, events added up, a table.
//
//   Profiler profiler;
//   {
//     RecordFunction step("step");        // an event around what the scope does
//     (x * 2 + 4).sum();
//   }
//   bool running = is_profiling();
//   std::vector<ProfileAverage> sums = key_averages(profiler.events());
//   std::string table = profile_table(profiler.events());
//   std::vector<std::vector<size_t>> inside = children_of(profiler.events());  // positions of events, by event
#pragma once

#include <tenon/dispatch/profiler.h>

#include <memory>

namespace tenon {

// Whether a profiler records.
bool is_profiling();

// A range of the program. Ranges may end in any order, also on another thread's behalf; one that ends when no profiler
// records is not in a record.
//
//   RecordFunction outer("outer"), inner("inner");
//   outer.finish();
//   inner.finish();
class RecordFunction {
 public:
  explicit RecordFunction(std::string name);
  ~RecordFunction();
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;
  void finish();

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

// Events of one name, added up.
//
//   ProfileAverage foo{.name = "foo", .count = 2, .total = 15000, .self = 15000};
//   foo.add(foo);
//   double each = foo.average();  // 7500
struct ProfileAverage {
  std::string name;
  int64_t count = 0;
  int64_t total = 0, self = 0;               // nanoseconds; `self`: less what is inside
  std::vector<std::vector<int64_t>> shapes;  // of the arguments, if those are told apart
  double average() const { return count > 0 ? static_cast<double>(total) / static_cast<double>(count) : 0; }
  void add(const ProfileAverage& other);
};

// Of each event the events directly inside of it: those of its thread that begin and end while it runs.
std::vector<std::vector<size_t>> children_of(const std::vector<Profiler::Event>& events);
// By name, those that took the most time first. `by_shapes`: calls with other shapes are told apart.
std::vector<ProfileAverage> key_averages(const std::vector<Profiler::Event>& events, bool by_shapes = false);
// The averages as text, a line each. `top_level`: of those events alone that nothing stands around.
std::string profile_table(const std::vector<Profiler::Event>& events, bool top_level = false, bool by_shapes = false);

}  // namespace tenon
