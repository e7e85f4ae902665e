// `Profiler`: a record of the operators that run, and of the steps of backward, on all threads.
//
//   Tensor w = ones({3}).set_requires_grad();
//   Profiler profiler;              // records from here on
//   (w * 2).sum().backward();
//   profiler.stop();
//   for (const Profiler::Event& event : profiler.events())
//     fmt::print("{} {} {} ns\n", event.sequence, event.name, event.duration);
//   std::string text = profiler.chrome_trace();         // for chrome://tracing and ui.perfetto.dev
//   profiler.save(std::filesystem::temp_directory_path() / "tenon-trace.json");
//
// An operator that is made of others stands around their events. A step of backward has the number of the operator that
// it differentiates. Only one profiler records at a time; without one, a call pays for one branch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon {

class Profiler {
 public:
  struct Event {
    enum class Kind : uint8_t { Operator, Backward } kind = Kind::Operator;
    std::string name;                 // "aten::mul.Tensor"; of a step of backward: "mul backward"
    std::string module;               // path of the module that called it
    int64_t sequence = -1;            // of an operator that autograd saw; counted on each thread
    int64_t start = 0, duration = 0;  // nanoseconds; since the profiler began to record
    int32_t thread = 0;
    int32_t depth = 0;  // how many events of the thread are around it
  };

  // An Error if another one records.
  Profiler();
  ~Profiler();
  Profiler(const Profiler&) = delete;

  // Ends the record; a call that is still running is not in it.
  void stop();
  // By thread, then by start, what stands around before what is inside.
  const std::vector<Event>& events();
  // The record as JSON in the trace event format.
  std::string chrome_trace();
  void save(const std::filesystem::path& path);

 private:
  bool recording_ = true;
  std::vector<Event> events_;
};

}  // namespace tenon
