// Benchmarks: functions that measure something and add rows to the report.
//
//   BENCH(kernel_compile) {
//     Timing timing = time_rounds([&] { compile(kernel); });
//     report.add({.name = "kernel_compile", .value = timing.median * 1e3, .unit = "ms", .judged = Judged::Value,
//                 .better = Better::Lower, .bar = 8});
//   }
//
// A comparison measures both sides in the same run, rounds alternating (`time_against`), and is judged by its ratio.
// Every row ends up in the table and in build/bench.json. A bar sets `ok`; it never fails a build.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::bench {

enum class Judged { Value, Ratio };
enum class Better { Lower, Higher };

struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::string against = {};          // what `ratio` compares with; empty: nothing
  std::optional<double> ratio = {};  // this over that, in the direction that the benchmark explains
  Judged judged = Judged::Value;     // which of the two numbers the bar is for
  Better better = Better::Lower;
  std::optional<double> bar = {};  // none: the row informs only

  // Whether the judged number is on the good side of the bar, or on it; true without a bar.
  bool ok() const;
};

class Report {
 public:
  void add(Row row);
  const std::vector<Row>& rows() const { return rows_; }
  // The list as JSON, one row a line.
  std::string json() const;

 private:
  std::vector<Row> rows_;
};

// Seconds.
struct Timing {
  double median = 0, best = 0;
  std::vector<double> rounds;  // seconds of each, in order
};

// How many times as long `one` takes as `other`: the median over rounds in which both ran, one right after the other.
// What slows the whole machine down for a while slows both.
double paired_ratio(const Timing& one, const Timing& other);

struct Rounds {
  int warm_up = 2;
  int count = 15;
  // Calls per round; 0: as many as take about a millisecond, so that the clock's own cost does not count.
  int calls = 0;
};

double now();  // seconds on a clock that never goes back

Timing time_rounds(const std::function<void()>& body, Rounds rounds = {});
// A round of each in turn: a disturbance of the machine hits all.
std::vector<Timing> time_alternating(const std::vector<std::function<void()>>& bodies, Rounds rounds = {});
std::pair<Timing, Timing> time_against(const std::function<void()>& one, const std::function<void()>& other,
                                       Rounds rounds = {});

// The compiler must assume that the value is used, or that memory is read.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

using Function = void (*)(Report&);
struct Registration {
  Registration(const char* name, Function function);
};

}  // namespace tenon::bench

#define BENCH(name)                                                               \
  static void bench_##name(::tenon::bench::Report& report);                       \
  static const ::tenon::bench::Registration register_##name(#name, bench_##name); \
  static void bench_##name([[maybe_unused]] ::tenon::bench::Report& report)
