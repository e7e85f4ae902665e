#include <tenon/support/error.h>
#include <tenon/support/log.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "support/at_fork.h"

namespace tenon {
namespace {

constexpr unsigned kTopics = static_cast<unsigned>(LogTopic::Count_);
constexpr std::array<std::string_view, kTopics> kNames = {
    "graph", "guards", "recompiles", "breaks", "fusion", "kernels", "plan", "cache", "compiled_autograd"};
std::atomic<int64_t> warnings{0};

unsigned parse_topics(std::string_view list) {
  unsigned mask = 0;
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view word = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (word.empty()) continue;
    if (word == "all") {
      mask = (1u << kTopics) - 1;
      continue;
    }
    unsigned topic = 0;
    while (topic < kTopics && kNames[topic] != word) ++topic;
    if (topic == kTopics)
      fail("[TENON_LOGS] unknown topic '{}': expected a comma-separated list of all, {}", word,
           fmt::join(kNames, ", "));
    mask |= 1u << topic;
  }
  return mask;
}

std::atomic<unsigned>& enabled_topics() {
  static std::atomic<unsigned> mask = [] {
    const char* text = std::getenv("TENON_LOGS");
    return text ? parse_topics(text) : 0u;
  }();
  return mask;
}

}  // namespace

bool log_enabled(LogTopic topic) {
  return enabled_topics().load(std::memory_order_relaxed) >> static_cast<unsigned>(topic) & 1;
}

void log_line(LogTopic topic, const std::string& text) {
  std::fprintf(stderr, "[%s] %s\n", kNames[static_cast<unsigned>(topic)].data(), text.c_str());
}

void support::log_formatted(LogTopic topic, fmt::string_view text, fmt::format_args arguments) {
  log_line(topic, fmt::vformat(text, arguments));
}

void set_logs(std::string_view topics) { enabled_topics() = parse_topics(topics); }

void warn_once(const std::string& key, const std::string& text) {
  static auto& mutex = *new support::ForkSafe<std::mutex>;
  static auto& seen = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (!seen.insert(key).second) return;
  ++warnings;
  std::fprintf(stderr, "tenon: warning: %s\n", text.c_str());
}

int64_t warning_count() { return warnings; }

}  // namespace tenon
