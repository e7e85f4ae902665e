// Programs that end in the middle of something, and that compute while they end. Without arguments it lists them, one a
// line; a line's words as arguments run one:
//
//   ends PLACE WAY FIRST LATE
//
// PLACE is where the end comes about; WAY is how: `exit`, `quick_exit`, or `leave`, which throws out of the place and
// returns from main; FIRST says whether what computes late is made before (`late_first`) or after anything else was
// used, which is the order of destruction turned round; LATE is what still computes. A program that ends as it should
// has status 42. (tests/tools/ends_test.py runs them all.)
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

namespace tenon {
namespace {

constexpr int kStatus = 42, kRaised = 7, kWentOn = 6, kWrong = 5;

// What a dying program may do with tensors.
void use_everything(const Tensor& x) {
  Tensor product = mm(x, x).relu();
  Tensor leaf = x.clone().set_requires_grad();
  (mm(leaf, leaf).sin().sum() + conv1d(leaf.unsqueeze(0), ones({4, 4, 1})).sum()).backward();
  auto f = compile([](Tensor y) { return (mm(y, y) + 1).cos().sum(0); });
  Tensor result = f(x);
  if (product.sum().item<double>() != 64 || result.size(0) != 4) _exit(kWrong);
}

struct Left {};  // thrown by `leave`; not an exception of ours, so nobody may swallow it

std::string way;
void end() {
  if (way == "exit") std::exit(kStatus);
  if (way == "quick_exit") std::quick_exit(kStatus);
  throw Left();
}

// Inside of a capture, a hook or an operator `exit` finds the thread in the middle of that: then what is done late may
// be refused, with an Error. Elsewhere it works.
std::atomic<bool> may_raise = false;
void do_late(const std::function<void()>& what) {
  try {
    what();
  } catch (const Error& error) {
    if (may_raise) return;
    std::fprintf(stderr, "%s\n", error.what());
    _exit(kRaised);
  }
}

// What computes while the process ends. Each is made by a function, when the program says so.

struct LateObject {
  Tensor x = ones({4, 4});
  std::function<Tensor(Tensor)> compiled = compile([](Tensor y) { return mm(y, y).exp().sum(1); });
  LateObject() = default;
  LateObject(const LateObject&) = delete;
  ~LateObject() {
    do_late([&] { compiled(x); });
    do_late([&] { use_everything(x); });
  }
};
void make_object() { static LateObject object; }

void make_handler() {
  auto late = [] { do_late([] { use_everything(ones({4, 4})); }); };
  std::atexit(late);
  std::at_quick_exit(late);
}

struct LateInThread {
  Tensor x = ones({4, 4});
  ~LateInThread() {
    do_late([&] { use_everything(x); });
  }
};
void make_thread_local() {
  static thread_local LateInThread object;
  object.x = object.x * 1;
}

// Threads: one that nobody waits for, and one that a static object waits for.
void compute_until(const std::atomic<bool>& over) {
  for (int64_t size = 5; !over; ++size) {
    use_everything(ones({4, 4}));
    mm(ones({size, 4}), ones({4, size}));  // a product of its own every time
  }
}
std::atomic<bool> never = false;
void make_detached() {
  std::thread([] { compute_until(never); }).detach();
}

struct Worker {
  std::atomic<bool> over = false, computes = false;
  std::thread thread{[this] {
    computes = true;
    compute_until(over);
    use_everything(ones({4, 4}));
  }};
  ~Worker() {
    over = true;
    thread.join();
  }
};
void make_worker() {
  static Worker worker;
  while (!worker.computes) std::this_thread::yield();
}

struct Late {
  const char* name;
  void (*make)();
};
constexpr Late kLate[] = {{"object", make_object},
                          {"handler", make_handler},
                          {"thread_local", make_thread_local},
                          {"detached", make_detached},
                          {"worker", make_worker}};

// Where it ends.

void in_main(const Tensor&) { end(); }

void in_capture(const Tensor& x) {
  compile([](Tensor y) {
    Tensor z = y.sin();
    end();
    return z;
  })(x);
}

// What is used late is the function that was being captured.
void in_its_own_capture(const Tensor& x) {
  static std::function<Tensor(Tensor)> again;
  static std::atomic<int> calls = 0;
  static struct Caller {
    ~Caller() {
      do_late([] { again(ones({4, 4})); });
    }
  } caller;
  again = compile([](Tensor y) {
    Tensor z = y.sin();
    if (calls++ == 0) end();
    return z;
  });
  again(x);
}

void in_hook(const Tensor& x) {
  Tensor leaf = x.clone().set_requires_grad();
  Tensor twice = leaf * 2;
  twice.register_hook([](const Tensor& grad) -> Tensor {
    end();
    return grad;
  });
  twice.sum().backward();
}

void in_walk_that_is_captured(const Tensor& x) {
  compiled_autograd::Enable on;
  in_hook(x);
}

auto& operator_that_ends() {
  static auto made = library::custom_op("ends::now", [](const Tensor& y) -> Tensor {
    end();
    return y.clone();
  });
  return made;
}
void in_operator(const Tensor& x) { operator_that_ends()(x); }
void in_step_of_plan(const Tensor& x) {
  operator_that_ends().register_fake([](const Tensor& y) { return empty_like(y); });
  compile([](Tensor y) { return operator_that_ends()(y.sin()).cos(); })(x);
}

struct Ends : autograd::Function<Ends> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x * 2; }
  static std::vector<Tensor> backward(autograd::AutogradContext*, std::vector<Tensor> grads) {
    end();
    return grads;
  }
};
void in_backward(const Tensor& x) { Ends::apply(x.clone().set_requires_grad()).sum().backward(); }

void in_thread(const Tensor&) {
  bool left = false;
  std::thread([&] {
    try {
      end();
    } catch (const Left&) {
      left = true;
    }
  }).join();
  if (left) throw Left();
}

void in_shared_loop(const Tensor&) {
  parallel_for(64, 1, [](int64_t first, int64_t last) {
    if (first <= 63 && 63 < last) end();
  });
}

struct Examples : data::Dataset {
  size_t size() const override { return 8; }
  data::Example get(size_t index) const override {
    if (index == 3) end();
    return {ones({2}), zeros({1})};
  }
};
void in_loader(const Tensor&) {
  data::DataLoader loader(std::make_shared<Examples>(), {.batch_size = 2, .workers = 2});
  for (const data::Example& batch : loader) (void)batch;
}

struct Place {
  const char* name;
  void (*run)(const Tensor& x);
  bool in_the_middle;  // of something that the thread at hand does
};
constexpr Place kPlaces[] = {{"main", in_main, false},
                             {"before_main", in_main, false},
                             {"capture", in_capture, true},
                             {"its_own_capture", in_its_own_capture, true},
                             {"hook", in_hook, true},
                             {"captured_walk", in_walk_that_is_captured, true},
                             {"operator", in_operator, true},
                             {"step_of_plan", in_step_of_plan, true},
                             {"backward", in_backward, true},
                             {"thread", in_thread, false},
                             {"shared_loop", in_shared_loop, true},
                             {"loader", in_loader, false}};

constexpr const char* kWays[] = {"exit", "quick_exit", "leave"};
constexpr const char* kFirst[] = {"late_first", "late_last"};

void list() {
  for (const Place& place : kPlaces)
    for (const char* each : kWays)
      for (const char* first : kFirst)
        for (const Late& late : kLate)
          if (place.run != in_main || std::strcmp(place.name, "main") == 0 || std::strcmp(each, "leave") != 0)
            std::printf("%s %s %s %s\n", place.name, each, first, late.name);
}

// Whether there is such a program.
bool run(const std::string& place_name, const std::string& first, const std::string& late_name) {
  for (const Place& place : kPlaces)
    for (const Late& late : kLate) {
      if (place_name != place.name || late_name != late.name) continue;
      if (first == "late_first") late.make();
      use_everything(ones({4, 4}));
      if (first == "late_last") late.make();
      may_raise = place.in_the_middle;
      try {
        place.run(ones({4, 4}));
      } catch (const Left&) {
        may_raise = false;
        return true;
      }
      _exit(kWentOn);
    }
  return false;
}

// One that ends before main begins. (The C library hands the arguments to whoever runs as the program is loaded, too.)
__attribute__((constructor)) void before_main(int count, char** words, char**) {
  if (count != 5 || std::strcmp(words[1], "before_main") != 0) return;
  way = words[2];
  run(words[1], words[3], words[4]);
}

}  // namespace
}  // namespace tenon

int main(int count, char** words) {
  if (count == 1) {
    tenon::list();
    return 0;
  }
  if (count != 5) return 2;
  tenon::way = words[2];
  return tenon::run(words[1], words[3], words[4]) ? tenon::kStatus : 2;
}
