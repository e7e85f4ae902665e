#include <tenon/support/error.h>
#include <tenon/support/parallel.h>

#include <cstdio>
#include <numeric>
#include <vector>

int main() {
  std::vector<long> squares(1000);
  tenon::parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) squares[i] = i * i;
  });
  long sum = std::accumulate(squares.begin(), squares.end(), 0l);
  try {
    TENON_CHECK(sum < 0, "[consumer] expected a negative sum, got {}", sum);
  } catch (const tenon::Error& error) {
    std::puts(error.what());
  }
}
