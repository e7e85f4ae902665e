// `Profiler`: a record of the operators that run, and of the steps of backward, on all threads.
//
//   Tensor w = ones({3}).set_requires_grad();
//   Profiler profiler;              // records from here on
//   (w * 2).sum().backward();
//   profiler.stop();
//   for (const Profiler::Event& event : profiler.events())
//     fmt::print("{} {} {} ns\n", event.sequence, event.name, event.duration);
//   std::string text = profiler.chrome_trace();         // for chrome://tracing and ui.perfetto.dev
//   fmt::print("{}", profiler.table());                 // by name, as profile_report.h does it; str() is the same
//   profiler.save(std::filesystem::temp_directory_path() / "tenon-trace.json");
//
//   Profiler with_shapes({.record_shapes = true});
//   w.sum();
//   std::vector<std::vector<int64_t>> sizes = with_shapes.events()[0].shapes;  // of each tensor argument
//
// An operator that is made of others stands around their events. A step of backward has the number of the operator that
// it differentiates, and two events: what the engine does for it, hooks and all, and the step itself. Only one profiler
// records at a time; without one, a call pays for one branch.
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
    // "aten::mul.Tensor"; of a step of backward "autograd::engine::evaluate_function: MulBackward0" and "MulBackward0"
    std::string name;
    std::string module;               // path of the module that called it
    int64_t sequence = -1;            // of an operator that autograd saw; counted on each thread
    int64_t start = 0, duration = 0;  // nanoseconds; since the profiler began to record
    int32_t thread = 0;
    int32_t depth = 0;                         // how many events of the thread are around it
    int32_t forward_thread = -1;               // of a step of backward: where the operator was called
    std::vector<std::vector<int64_t>> shapes;  // of its tensors, if they are recorded
  };

  struct Options {
    bool record_shapes = false;  // the sizes of tensor arguments
  };

  // An Error if another one records.
  Profiler() : Profiler(Options()) {}
  explicit Profiler(Options options);
  ~Profiler();
  Profiler(const Profiler&) = delete;

  // Ends the record; a call that is still running is not in it.
  void stop();
  // By thread, then by start, what stands around before what is inside.
  const std::vector<Event>& events();
  // Events added up by name, a line each.
  std::string table();
  std::string str() { return table(); }
  // The record as JSON in the trace event format.
  std::string chrome_trace();
  void save(const std::filesystem::path& path);

 private:
  bool recording_ = true;
  std::vector<Event> events_;
};

}  // namespace tenon
