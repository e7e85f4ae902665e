// Forks beside threads that compute and compile: whatever locks these hold, the child gets them free.
#include "testing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace tenon {
namespace {

// Everything that takes locks: memory, random numbers, products, kernels that are new, gradients.
void compute(double new_number) {
  Tensor x = randn({32, 32});
  Tensor leaf = mm(x, x).relu().set_requires_grad();
  auto f = compile([new_number](Tensor y) { return (y * new_number).sin().sum(0); });
  f(leaf).sum().backward();
  randn({40'000}).sin().sum().item();
}

TEST(Fork, children_of_a_program_whose_threads_compute) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kForks = 0;
  GTEST_SKIP() << "the sanitizers' own locks do not survive a fork beside threads";
#else
  constexpr int kForks = 60;
#endif
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; !over; ++round) compute(2 + 0.001 * (3 * round + thread));
    });
  int hung = 0, failed = 0;
  for (int at = 0; at < kForks; ++at) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(120);
      compute(-1 - 0.001 * at);
      _exit(0);
    }
    ASSERT_GT(child, 0);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    hung += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    failed += status != 0;
  }
  over = true;
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(hung, 0);
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace tenon
