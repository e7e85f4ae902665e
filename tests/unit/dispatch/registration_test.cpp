#include <tenon/dispatch/library.h>
#include <tenon/dispatch/packet.h>
#include <tenon/generated/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "error_of.h"

namespace tenon::dispatch {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using tenon::testing::error_of;

int64_t call_number(const Operator& op, const Tensor& x) {
  const Value args[] = {Value(x)};
  return call<int64_t>(op, args);
}
// A kernel that tells who ran.
auto says(int64_t number) {
  return [number](const Tensor&) { return number; };
}

// Counts are compared by <=: operators of earlier tests that nobody refers to any more may go at any time.

TEST(Library, registrations_vanish_with_it) {
  Tensor x = ones({2});
  OperatorRef op;
  {
    Library lib("reg_test");
    op = lib.def("one(Tensor x) -> int");
    lib.impl("one", says(1), "CPU");
    EXPECT_EQ(call_number(*op, x), 1);
    {
      Library more("reg_test");
      more.impl("one", says(2), "Autograd");
      EXPECT_EQ(call_number(*op, x), 2);
    }
    EXPECT_EQ(call_number(*op, x), 1);
  }
  EXPECT_EQ(find_operator_or_null("reg_test::one"), nullptr);
  EXPECT_THAT(error_of([&] { call_number(*op, x); }), HasSubstr("[reg_test::one] was removed"));
  {
    Library other("reg_test");
    other.def("one(Tensor y) -> int");
    EXPECT_THAT(error_of([&] { call_number(*op, x); }), HasSubstr("[reg_test::one] was removed"));
  }
  // Defined again with the same schema, the reference is good again, if it was the last of its name.
  OperatorRef latest;
  {
    Library lib("reg_test");
    latest = lib.def("one(Tensor x, int y=1) -> int");
  }
  Library lib("reg_test");
  EXPECT_EQ(&lib.def("one(Tensor x, int y=1) -> int"), latest.get());
  lib.impl("one", [](const Tensor&, int64_t y) { return y; }, "CPU");
  const Value args[] = {Value(x), Value(3)};
  EXPECT_EQ(call<int64_t>(*latest, args), 3);
}

TEST(Library, errors_tell_both_places) {
  Library lib("reg_test");
  lib.def("two(Tensor x) -> int");
  EXPECT_THAT(
      error_of([&] { lib.def("two(Tensor x) -> int"); }),
      ContainsRegex("is defined already \\(at registration_test.cpp:[0-9]+\\).*\\(at registration_test.cpp:[0-9]+\\)"));
  lib.impl("two", says(1), "CPU");
  EXPECT_THAT(
      error_of([&] { lib.impl("two", says(2), "CPU"); }),
      ContainsRegex(
          "a kernel for CPU already \\(at registration_test.cpp:[0-9]+\\).*\\(at registration_test.cpp:[0-9]+\\)"));
  EXPECT_THAT(error_of([&] { lib.impl("three", says(1), "CPU"); }), HasSubstr("reg_test::three is not defined"));
  EXPECT_THAT(error_of([&] { lib.impl("two", [](const Tensor&, double) { return int64_t{1}; }, "CUDA"); }),
              HasSubstr("2 parameters, expected 1"));
  EXPECT_THAT(error_of([&] { lib.impl("two", says(1), "cpu"); }),
              HasSubstr("there is no dispatch key 'cpu': expected one of CPU, CUDA"));
  EXPECT_THAT(error_of([&] { lib.impl("two", says(1)); }), HasSubstr("say for which key"));
  EXPECT_THAT(error_of([&] { lib.def("other::two(Tensor x) -> int"); }), HasSubstr("not in the namespace"));
}

TEST(Library, one_defines_a_namespace) {
  Library first("claimed", Library::Kind::Def);
  EXPECT_THAT(error_of([] { Library("claimed", Library::Kind::Def); }),
              ContainsRegex("first is at registration_test.cpp:[0-9]+"));
  first.reset();
  EXPECT_EQ(error_of([] { Library("claimed", Library::Kind::Def); }), "no error");
  EXPECT_THAT(error_of([] { Library("aten", Library::Kind::Def); }), HasSubstr("reserved namespace"));
}

TEST(Precedence, own_then_explicit_then_implicit) {
  Library lib("reg_test");
  auto& op = lib.def("who(Tensor x) -> int");
  Tensor x = ones({2});
  lib.impl("who", says(1), "CompositeImplicitAutograd");
  EXPECT_EQ(call_number(op, x), 1);
  lib.impl("who", says(2), "CompositeExplicitAutograd");
  EXPECT_EQ(call_number(op, x), 2);
  lib.impl("who", says(3), "CPU");
  EXPECT_EQ(call_number(op, x), 3);
  lib.impl("who", says(4), "AutogradCUDA");
  EXPECT_EQ(call_number(op, x), 3);  // a CPU tensor
  lib.impl("who", says(5), "AutogradCPU");
  EXPECT_EQ(call_number(op, x), 5);
  std::string table = dispatch_table(op);
  EXPECT_THAT(table, HasSubstr("reg_test::who(Tensor x) -> int\n"));
  EXPECT_THAT(table, ContainsRegex("AutogradCPU +its own kernel \\(registration_test.cpp:[0-9]+\\)\n"));
  EXPECT_THAT(table, ContainsRegex("  CPU +its own kernel \\(registration_test.cpp:[0-9]+\\)\n"));
  EXPECT_THAT(table, ContainsRegex("  CUDA +CompositeExplicitAutograd \\(registration_test.cpp:[0-9]+\\)\n"));
  EXPECT_THAT(table, ContainsRegex("  Autograd +fallback"));
}

TEST(Precedence, layers_are_passed_from_the_top) {
  Library lib("reg_test");
  lib.def("layers(Tensor x) -> int");
  std::vector<std::string> order;
  for (auto [key, name] : {std::pair(DispatchKey::Autocast, "Autocast"),
                           {DispatchKey::Autograd, "Autograd"},
                           {DispatchKey::ADInplaceOrView, "ADInplaceOrView"}})
    lib.impl(
        "layers",
        [&order, key = key, name = std::string(name)](Call& call) {
          order.push_back(name);
          redispatch(call, call.keys.below(key));
        },
        name);
  lib.impl(
      "layers",
      [&order](const Tensor&) {
        order.push_back("CPU");
        return int64_t{1};
      },
      "CPU");
  IncludeKeys autocast(KeySet{DispatchKey::Autocast, DispatchKey::ADInplaceOrView});
  call_number(find_operator("reg_test::layers"), ones({2}));
  EXPECT_EQ(order, (std::vector<std::string>{"Autocast", "Autograd", "ADInplaceOrView", "CPU"}));
}

TEST(Precedence, an_implicit_composite_serves_devices_without_a_kernel) {
  Library lib("reg_test");
  auto& op = lib.def("square(Tensor x) -> Tensor");
  lib.impl("square", [](const Tensor& x) { return x * x; }, "CompositeImplicitAutograd");
  // A kernel of another device takes nothing from the composite: gradients flow through its operators.
  lib.impl("square", [](const Tensor& x) { return x.clone(); }, "CUDA");
  Tensor x = (ones({2}) * 3).set_requires_grad();
  const Value args[] = {Value(x)};
  call<Tensor>(op, args).sum().backward();
  EXPECT_EQ(x.grad().sum().item<double>(), 12);
  std::string table = dispatch_table(op);
  EXPECT_THAT(table, ContainsRegex("AutogradCPU +CompositeImplicitAutograd"));
  EXPECT_THAT(table, ContainsRegex("  Autograd +fallback"));
  EXPECT_THAT(table, ContainsRegex("  CPU +CompositeImplicitAutograd"));
  EXPECT_THAT(table, ContainsRegex("  CUDA +its own kernel"));
  // With a kernel of its own, a CPU tensor takes that one, and the composite's gradients are gone.
  lib.impl("square", [](const Tensor& t) { return t + 1; }, "CPU");
  EXPECT_EQ(call<Tensor>(op, args).sum().item<double>(), 8);
}

TEST(Fallback, serves_what_has_nothing) {
  Library lib("reg_test");
  auto& bare = lib.def("bare(Tensor x) -> int");
  auto& own = lib.def("own(Tensor x) -> int");
  lib.impl("own", says(1), "CPU");
  lib.impl("own", says(3), "Autocast");
  Tensor x = ones({2});
  IncludeKeys autocast(KeySet{DispatchKey::Autocast});
  EXPECT_EQ(call_number(own, x), 3);
  {
    Library layer("_", Library::Kind::Impl, KernelKey::Autocast);
    layer.fallback([](Call& call) { call.results.push_back(Value(7)); });
    EXPECT_EQ(call_number(bare, x), 7);
    EXPECT_EQ(call_number(own, x), 3);
    EXPECT_THAT(error_of([&] { layer.fallback([](Call&) {}); }), HasSubstr("Autocast has a fallback already"));
  }
  EXPECT_THAT(error_of([&] { call_number(bare, x); }), HasSubstr("no cpu impl registered"));
}

TEST(Packet, binds_by_position_name_and_default) {
  schema::Schema schema =
      schema::parse("t::f(Tensor x, int[2] k=1, *, float y=2, str mode=\"a\", ScalarType? dtype=None) -> ()");
  Tensor x = ones({2});
  const Value args[] = {Value(x)};
  Values bound = bind_arguments(schema, args);
  ASSERT_EQ(bound.size(), 5u);
  EXPECT_EQ(bound[1].str(), "[1, 1]");
  EXPECT_EQ(bound[2].tag(), Value::Tag::Real);
  EXPECT_EQ(bound[3].string(), "a");
  EXPECT_TRUE(bound[4].is_none());
  const Keyword mode[] = {{"mode", Value("b")}, {"k", Value(3)}};
  bound = bind_arguments(schema, args, mode);
  EXPECT_EQ(bound[1].str(), "[3, 3]");
  EXPECT_EQ(bound[3].string(), "b");
  const Keyword unknown[] = {{"z", Value(1)}}, twice[] = {{"x", Value(x)}};
  EXPECT_THAT(error_of([&] { bind_arguments(schema, args, unknown); }), HasSubstr("has no argument 'z'"));
  EXPECT_THAT(error_of([&] { bind_arguments(schema, args, twice); }), HasSubstr("'x' was given twice"));
  EXPECT_THAT(error_of([&] { bind_arguments(schema, {}); }), HasSubstr("argument 'x' (Tensor) is missing"));
  const Value text[] = {Value("x")};
  EXPECT_THAT(error_of([&] { bind_arguments(schema, text); }), HasSubstr("argument 'x': expected Tensor, got \"x\""));
}

// All operators in memory, without those that are only waiting to go.
size_t operators_in_memory() {
  EXPECT_EQ(retired_count(), 0u);
  return operator_count();
}

// Counts how many are alive.
struct Counted {
  static inline std::atomic<int> alive{0};
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  ~Counted() { --alive; }
};

TEST(Registration, leaves_nothing_behind) {
  Tensor x = ones({2});
  for (int round = 0; round < 20000; ++round) {
    Library lib("reg_test");
    auto& op = lib.def("again(Tensor x) -> int");
    lib.impl("again", [counted = Counted()](const Tensor&) { return int64_t{1}; }, "CPU");
    if (round % 1000 == 0) {
      EXPECT_EQ(call_number(op, x), 1);
    }
  }
  EXPECT_EQ(retired_count(), 0u);
  EXPECT_EQ(Counted::alive, 0);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kManyNames = 5000;  // slow enough
#else
constexpr int kManyNames = 100000;
#endif

TEST(Registration, many_names_leave_nothing_behind) {
  // A round as before, so that what is made once is there already.
  auto round = [](int from, int to) {
    for (int at = from; at < to; ++at) {
      Library lib("reg_test");
      lib.def(fmt::format("name{}(Tensor x) -> int", at));
      lib.impl(fmt::format("name{}", at), [counted = Counted()](const Tensor&) { return int64_t{1}; }, "CPU");
      lib.impl(fmt::format("name{}", at), says(2), "AutogradCPU");
    }
  };
  round(0, 100);
  size_t before = operators_in_memory(), defined = all_operators().size();
  round(100, kManyNames);
  EXPECT_LE(operators_in_memory(), before);
  EXPECT_EQ(all_operators().size(), defined);
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Registration, a_reference_keeps_an_operator) {
  size_t before = operators_in_memory();
  OperatorRef kept;
  {
    Library lib("reg_test");
    kept = lib.def("kept(Tensor x) -> int");
    lib.def("dropped(Tensor x) -> int");
    EXPECT_LE(operator_count(), before + 2);
  }
  EXPECT_LE(operators_in_memory(), before + 1);
  EXPECT_EQ(kept->name(), "reg_test::kept");
  EXPECT_FALSE(is_defined(*kept));
  kept = nullptr;
  EXPECT_LE(operator_count(), before);
}

TEST(Registration, a_running_call_keeps_its_operator) {
  size_t before = operators_in_memory();
  auto lib = std::make_unique<Library>("reg_test");
  auto& op = lib->def("removes_itself(Tensor x) -> int");
  std::string name;
  lib->impl(
      "removes_itself",
      [&, counted = Counted()](Call& call) {
        lib.reset();
        // Replaced tables that wait for this call are many by now.
        for (int round = 0; round < 1000; ++round) Library("reg_test").def("other(Tensor x) -> int");
        EXPECT_EQ(Counted::alive, 1);
        name = call.op.name();
        call.results.push_back(Value(7));
      },
      "CPU");
  EXPECT_EQ(call_number(op, ones({2})), 7);
  EXPECT_EQ(name, "reg_test::removes_itself");
  EXPECT_LE(operators_in_memory(), before);
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Registration, what_rooms_derive_goes_with_the_operator) {
  struct Derived {
    Counted counted;
    int number = 0;
  };
  Library lib("reg_test");
  auto& op = lib.def("derives(Tensor x) -> int");
  auto make = [] { return std::make_shared<Derived>(); };
  op.derived<Derived>(make).number = 5;
  EXPECT_EQ(op.derived<Derived>(make).number, 5);
  EXPECT_EQ(Counted::alive, 1);
  lib.reset();
  EXPECT_EQ(retired_count(), 0u);
  EXPECT_EQ(Counted::alive, 0);
}

// Two threads that call until it goes, however the test ends.
class Callers {
 public:
  explicit Callers(std::function<void()> call) : call_(std::move(call)) {
    for (std::jthread& thread : threads_)
      thread = std::jthread([this](const std::stop_token& stop) {
        for (; !stop.stop_requested(); ++calls_) call_();
      });
  }
  void wait_for(int64_t calls) const {
    while (calls_ < calls) std::this_thread::yield();
  }

 private:
  std::function<void()> call_;
  std::atomic<int64_t> calls_{0};
  std::array<std::jthread, 2> threads_;  // goes first, and waits
};

TEST(Registration, from_many_threads_while_others_call) {
  Library lib("reg_test");
  lib.def("shared(Tensor x) -> int");
  lib.impl("shared", says(1), "CPU");
  size_t before = operators_in_memory();
  constexpr int kRounds = 300;
  std::atomic<int64_t> wrong{0};
  {
    Tensor x = ones({2});
    Callers callers([&] {
      wrong += call_by_name("reg_test::shared", {Value(x)})[0].integer() != 1;
      // Comes and goes; where it is, it is whole.
      try {
        wrong += call_by_name("reg_test::fleeting", {Value(x)})[0].integer() != 2;
      } catch (const Error& error) {
        std::string_view text = error.what();
        wrong += text.find("there is no operator") == text.npos && text.find("was removed") == text.npos &&
                 text.find("no cpu impl") == text.npos && text.find("no kernel for CPU") == text.npos;
      }
    });
    std::vector<std::jthread> registrars;
    for (int thread = 0; thread < 3; ++thread)
      registrars.emplace_back([&, thread] {
        for (int round = 0; round < kRounds; ++round) {
          Library mine("reg_test");
          std::string name = fmt::format("own{}", thread);
          auto& op = mine.def(name + "(Tensor x) -> int");
          mine.impl(name, says(thread), "CPU");
          wrong += call_number(op, ones({1})) != thread;
          if (thread == 0) {
            mine.def("fleeting(Tensor x) -> int");
            mine.impl("fleeting", says(2), "CPU");
          }
        }
      });
    registrars.clear();  // waits for them
    callers.wait_for(100);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(operators_in_memory(), before);
}

TEST(Registration, while_others_call) {
  Library lib("reg_test");
  auto& op = lib.def("busy(Tensor x) -> int");
  lib.impl("busy", says(1), "CPU");
  std::atomic<int64_t> wrong{0};
  {
    Tensor x = ones({2});
    Callers callers([&] {
      int64_t got = call_number(op, x);
      wrong += got != 1 && got != 2;
    });
    for (int round = 0; round < 2000; ++round) {
      Library layer("reg_test");
      layer.impl("busy", says(2), "Autograd");
    }
    callers.wait_for(1000);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(retired_count(), 0u);
}

}  // namespace
}  // namespace tenon::dispatch

TENON_LIBRARY(reg_macro, m) {
  m.def("twice(Tensor x) -> Tensor");
  m.def("thrice", [](const tenon::Tensor& x) { return x + x + x; });
}
TENON_LIBRARY_FRAGMENT(reg_macro, m) {
  m.def("zero() -> Tensor", [] { return tenon::zeros({1}); });
}
TENON_LIBRARY_IMPL(reg_macro, CPU, m) {
  m.impl("twice", [](const tenon::Tensor& x) { return x * 2; });
}

namespace tenon::dispatch {
namespace {

TEST(Macros, define_and_implement) {
  Tensor x = ones({2});
  EXPECT_EQ(call_by_name("reg_macro::twice", {Value(x)})[0].tensor().sum().item<double>(), 4);
  EXPECT_EQ(call_by_name("reg_macro::thrice", {Value(x)})[0].tensor().sum().item<double>(), 6);
  EXPECT_EQ(call_by_name("reg_macro::zero", {})[0].tensor().item<double>(), 0);
  EXPECT_EQ(find_operator("reg_macro::thrice").schema().str(), "reg_macro::thrice(Tensor arg0) -> Tensor");
  // A composite of differentiable operators is differentiable.
  Tensor leaf = ones({2}).set_requires_grad();
  call_by_name("reg_macro::thrice", {Value(leaf)})[0].tensor().sum().backward();
  EXPECT_EQ(leaf.grad().sum().item<double>(), 6);
}

}  // namespace
}  // namespace tenon::dispatch
