// How far a loop is, on the terminal; silent when the output is none.
//
//   data::DataLoader loader(std::make_shared<data::TensorDataset>(ones({10, 3})), {.batch_size = 5});
//   for (const data::Example& batch : progress(loader, "training")) SymInt samples = batch.data.size(0);
//   for (int step : progress(std::vector<int>{1, 2, 3})) step += 1;
//
//   ProgressBar bar("steps", 100);
//   for (int step = 0; step < 100; ++step) bar.advance();
//   bar.finish();
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace tenon {

class ProgressBar {
 public:
  // To the standard error, if that is a terminal.
  ProgressBar(std::string label, int64_t total);
  ~ProgressBar() { finish(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void advance(int64_t by = 1);
  // Ends the line.
  void finish();
  // What it shows: "training  3/10 [=====>              ] 12.5/s".
  //
  //   std::string line = ProgressBar("steps", 4).text(2, 1.0);
  std::string text(int64_t done, double seconds) const;

 private:
  std::string label_;
  int64_t total_, done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point start_, last_;
};

// A range that shows how far a loop over it is.
template <typename Range>
class Progress {
 public:
  Progress(Range&& range, std::string label)
      : range_(std::forward<Range>(range)), bar_(std::move(label), static_cast<int64_t>(range_.size())) {}

  template <typename It>
  class Iterator {
   public:
    Iterator(It inner, ProgressBar* bar) : inner_(std::move(inner)), bar_(bar) {}
    decltype(auto) operator*() const { return *inner_; }
    Iterator& operator++() {
      ++inner_;
      bar_->advance();
      return *this;
    }
    template <typename End>
    bool operator!=(const End& end) const {
      if constexpr (requires { end.inner(); })
        return !(inner_ == end.inner());
      else
        return !(inner_ == end);
    }
    const It& inner() const { return inner_; }

   private:
    It inner_;
    ProgressBar* bar_;
  };

  auto begin() { return Iterator(range_.begin(), &bar_); }
  auto end() { return Iterator(range_.end(), &bar_); }

 private:
  Range range_;
  ProgressBar bar_;
};

template <typename Range>
Progress<Range> progress(Range&& range, std::string label = "") {
  return Progress<Range>(std::forward<Range>(range), std::move(label));
}

}  // namespace tenon
