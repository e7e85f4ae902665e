// Logging by topic. `TENON_LOGS=graph,guards` (or `all`) in the environment turns topics on; an unknown
// topic is an error that lists the known ones. Lines go to standard error.
//
//   TENON_LOG(Kernels, "{} compiled in {:.1f} ms", "sum", 3.5);
//   set_logs("recompiles,breaks");
//   if (log_enabled(LogTopic::Breaks)) log_line(LogTopic::Breaks, "a line of that topic");
//   set_logs("");
//   warn_once("examples", "seen whatever topics are on");
//   int64_t warnings = warning_count();
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

enum class LogTopic : unsigned {
  Graph,             // captured graphs, before and after aot
  Guards,            // guards of a compiled function, and why one failed
  Recompiles,        // why a function was compiled again
  Breaks,            // why a call ran eagerly
  Fusion,            // what was fused, what not and why
  Kernels,           // every kernel as text, and its compile time
  Plan,              // plans as text
  Cache,             // object cache hits, misses, rejected entries
  CompiledAutograd,  // backward walks that are captured: their nodes, why one was captured anew, graphs
  Count_,
};

bool log_enabled(LogTopic topic);
void log_line(LogTopic topic, const std::string& text);

// Replaces the set of enabled topics by a comma-separated list, as `TENON_LOGS` does.
void set_logs(std::string_view topics);

// A line that a person should see whatever topics are on, printed once per `key`.
void warn_once(const std::string& key, const std::string& text);
// How often `warn_once` has printed since the start (tests look at it).
int64_t warning_count();

namespace support {
void log_formatted(LogTopic topic, fmt::string_view text, fmt::format_args arguments);
template <typename... Args>
void log(LogTopic topic, fmt::format_string<Args...> text, const Args&... args) {
  log_formatted(topic, text, fmt::make_format_args(args...));
}
}  // namespace support

}  // namespace tenon

#define TENON_LOG(topic, ...)                                        \
  do {                                                               \
    if (::tenon::log_enabled(::tenon::LogTopic::topic)) [[unlikely]] \
      ::tenon::support::log(::tenon::LogTopic::topic, __VA_ARGS__);  \
  } while (false)
