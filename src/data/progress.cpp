#include <tenon/data/progress.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tenon {

ProgressBar::ProgressBar(std::string label, int64_t total)
    : label_(std::move(label)),
      total_(total),
      shown_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

std::string ProgressBar::text(int64_t done, double seconds) const {
  constexpr int64_t kWidth = 20;
  std::string count = fmt::format("{}", total_);
  int64_t filled = total_ > 0 ? std::min(kWidth, done * kWidth / total_) : kWidth;
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < kWidth) bar += '>';
  bar.resize(kWidth, ' ');
  return fmt::format("{}{}{:>{}}/{} [{}] {:.1f}/s", label_, label_.empty() ? "" : " ", done, count.size(), count, bar,
                     seconds > 0 ? static_cast<double>(done) / seconds : 0.0);
}

void ProgressBar::advance(int64_t by) {
  done_ += by;
  if (!shown_) return;
  auto now = std::chrono::steady_clock::now();
  // Ten times a second is enough.
  if (done_ < total_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  fmt::print(stderr, "\r{}", text(done_, std::chrono::duration<double>(now - start_).count()));
  std::fflush(stderr);
}

void ProgressBar::finish() {
  if (shown_ && done_ > 0) fmt::print(stderr, "\n");
  shown_ = false;
}

}  // namespace tenon
