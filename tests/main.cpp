// The `main` of every test executable. Run by hand as by CTest, tests keep their compiled kernels in the build tree.
//
// With TENON_FAIL_ALLOCATION=SEED in the environment, and the allocator of tests/low_memory loaded in front
// (LD_PRELOAD), each test runs with allocations that fail at a point drawn by that seed and the test's name:
// tools/low_memory. What it expects then need not come true: it is wrong only to end the process, or to let anything
// out but an Error.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <random>
#include <string>

namespace {

// Of the allocator.
using FailAllocations = void (*)(int64_t first, int64_t length);
using FailedAllocation = const char* (*)();  // the functions that the last failure came from, innermost first

class LowMemory : public testing::EmptyTestEventListener {
 public:
  LowMemory(FailAllocations fail, FailedAllocation failed, unsigned seed) : fail_(fail), failed_(failed), seed_(seed) {}
  int raw_exceptions() const { return raw_; }

  void OnTestStart(const testing::TestInfo& test) override {
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    std::mt19937 draw(seed_ ^ static_cast<unsigned>(std::hash<std::string>()(name)));
    // Tests make between ten and a million allocations.
    const double exponent = std::uniform_real_distribution<double>(0, 5)(draw);
    constexpr int64_t kLengths[] = {1, 1, 2, 5, 20};
    fail_(static_cast<int64_t>(std::pow(10, exponent)), kLengths[draw() % std::size(kLengths)]);
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    const std::string message = result.message() ? result.message() : "";
    for (const char* raw : {"std::bad_alloc", "std::system_error", "internal error"}) {
      if (message.find(std::string("C++ exception with description \"") + raw) == message.npos) continue;
      ++raw_;
      fail_(0, 0);
      std::fprintf(stderr, "failed in %s\n", failed_());
    }
  }
  void OnTestEnd(const testing::TestInfo&) override { fail_(0, 0); }

 private:
  FailAllocations fail_;
  FailedAllocation failed_;
  unsigned seed_;
  int raw_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  setenv("TENON_CACHE", TENON_TEST_CACHE, /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);
  const char* seed = std::getenv("TENON_FAIL_ALLOCATION");
  if (!seed) return RUN_ALL_TESTS();
  auto fail = reinterpret_cast<FailAllocations>(dlsym(RTLD_DEFAULT, "tenon_fail_allocations"));
  auto failed = reinterpret_cast<FailedAllocation>(dlsym(RTLD_DEFAULT, "tenon_failed_allocation"));
  if (!fail || !failed) {
    std::fprintf(stderr, "TENON_FAIL_ALLOCATION: expected the allocator of tests/low_memory in LD_PRELOAD\n");
    return 2;
  }
  auto* low_memory = new LowMemory(fail, failed, static_cast<unsigned>(std::atoi(seed)));
  testing::UnitTest::GetInstance()->listeners().Append(low_memory);
  (void)!RUN_ALL_TESTS();
  std::fprintf(stderr, "%d raw exceptions\n", low_memory->raw_exceptions());
  return low_memory->raw_exceptions() == 0 ? 0 : 1;
}
