// Forks beside threads that compute and compile: whatever locks these hold, the child gets them free, and finds whole
// what it shares with them.
#include "testing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
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

// What threads and children have in common: functions that are captured again and again, backward of some results and
// its backward, constants that are folded anew, walks that are compiled.
struct Shared {
  Tensor weight = ones({8});
  Tensor x = ones({8}).set_requires_grad();
  Cell<Tensor> cell{weight};

  struct Both {
    std::vector<Tensor> operator()(Tensor y) const { return {(y * 3).sin(), (y * 2).cos()}; }
  };
  struct Infer {
    Cell<Tensor> scale;
    Tensor operator()(Tensor y) const { return y * (scale.get() + 1).sin(); }
  };
  Compiled<Both> both = compile(Both{});
  Compiled<Infer> infer = freeze(Infer{cell});

  void use() {
    std::vector<Tensor> results = both(x);
    Tensor first = autograd::grad_with({results[0].sum()}, {x}, {.create_graph = true})[0];
    autograd::grad_with({first.sum()}, {x});
    compiled_autograd::Enable on;
    autograd::grad_with({both(x)[1].exp().sum()}, {x});
    NoGrad off;
    infer(x.detach());
  }
  void forget() {
    both.reset();
    infer.refresh();
  }
};

// A small number by itself; TENON_FORKS asks for others.
int wanted_forks() {
  const char* given = std::getenv("TENON_FORKS");
  return given ? std::atoi(given) : 60;
}

TEST(Fork, children_of_a_program_whose_threads_compute) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizers' own locks do not survive a fork beside threads";
#endif
  Shared shared;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread](std::stop_token stop) {
      for (int round = 0; !stop.stop_requested(); ++round) {
        compute(2 + 0.001 * (3 * round + thread));
        shared.use();
        if (thread == 0) shared.forget();
      }
    });
  int hung = 0, failed = 0;
  for (int at = 0; at < wanted_forks(); ++at) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(120);
      try {
        compute(-1 - 0.001 * at);
        shared.use();
        shared.forget();
        shared.use();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "child %d: %s\n", at, error.what());
        _exit(1);
      }
      _exit(0);
    }
    ASSERT_GT(child, 0);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    hung += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    failed += status != 0;
  }
  threads.clear();  // asks them to stop, and waits
  EXPECT_EQ(hung, 0);
  EXPECT_EQ(failed, 0);
}

// The thread that forks holds the function's own lock, and so does the child's.
TEST(Fork, in_the_middle_of_a_capture) {
  pid_t child = -1;
  bool once = false;
  auto f = compile([&](Tensor x) {
    x = x + 1;
    if (!std::exchange(once, true)) child = fork();
    return x * 2;
  });
  f(ones({3}));
  if (child == 0) {
    alarm(120);
    f.reset();
    bool right = f(ones({3}))[0].item<double>() == 4;
    std::thread([&] { right &= f(ones({4}))[3].item<double>() == 4; }).join();
    _exit(right ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  EXPECT_EQ(status, 0);
  EXPECT_EQ(f(ones({3}))[0].item<double>(), 4);
}

}  // namespace
}  // namespace tenon
