// The memory bandwidth of this machine, as others measure themselves against it: c[i] = a[i] * s + b[i] over three
// arrays of floats, on all threads, with the better of plain and non-temporal stores.
#pragma once

#include <cstdint>
#include <memory>

namespace tenon::bench {

class Triad {
 public:
  // Each of the three arrays has so many floats; 0: 64 MiB each, far beyond any cache.
  explicit Triad(int64_t count = 0);

  void run_plain();
  void run_streaming();
  // What moves through memory in one run, in bytes: two arrays read, one written (a plain store's extra read of the
  // line is the machine's affair).
  double bytes() const { return 12.0 * static_cast<double>(count_); }

 private:
  struct Free {
    void operator()(float* pointer) const;
  };
  using Array = std::unique_ptr<float[], Free>;
  Array make(float value) const;

  int64_t count_;
  Array a_, b_, c_;
};

}  // namespace tenon::bench
