// Arguments that a kernel keeps without owning them.
#include <tenon/dispatch/library.h>
#include <tenon/dispatch/packet.h>
#include <tenon/generated/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "error_of.h"

namespace tenon::dispatch {
namespace {

using ::testing::HasSubstr;

using tenon::testing::error_of;

// An operator whose kernel keeps its arguments, owned or not.
struct Keeper {
  Library lib{"borrow_test"};
  bool owning = false;
  std::vector<Value> kept;
  Keeper() {
    lib.def("keep(Tensor x, Tensor[] list, int[] sizes, str text, float number) -> ()");
    lib.impl(
        "keep",
        [this](Call& call) {
          for (const Value& arg : call.args) {
            kept.push_back(owning ? arg.own() : arg);
            // During the call both are good.
            kept.back().str();
          }
        },
        "CPU");
  }
  void call() {
    Tensor x = ones({2});
    std::vector<Tensor> list{x, x};
    Ints sizes{1, 2};
    std::string text = "text";
    call_by_name("borrow_test::keep", {Value(x), Value(list), Value(sizes), Value(std::string_view(text)), Value(1.5)});
  }
};

TEST(Borrow, keeping_an_argument_without_own_is_caught) {
  CheckBorrows checked;
  Keeper keeper;
  keeper.call();
  for (const auto& [at, kind] : {std::pair(0, "Tensor"), {1, "Tensor[]"}, {2, "int[]"}, {3, "str"}}) {
    const Value& value = keeper.kept[static_cast<size_t>(at)];
    EXPECT_EQ(
        error_of([&] { value.own(); }),
        fmt::format("[value] a borrowed {} is read after the call of borrow_test::keep that it was an argument of: "
                    "keep arguments beyond a call with own()",
                    kind));
    // Copies know it too.
    Value copy = value;
    EXPECT_THAT(error_of([&] { copy.str(); }), HasSubstr("keep arguments beyond a call with own()"));
  }
  EXPECT_THAT(error_of([&] { keeper.kept[0].tensor(); }), HasSubstr("borrowed Tensor"));
  EXPECT_THAT(error_of([&] { keeper.kept[1].tensors(); }), HasSubstr("borrowed Tensor[]"));
  EXPECT_THAT(error_of([&] { keeper.kept[2].ints(); }), HasSubstr("borrowed int[]"));
  EXPECT_THAT(error_of([&] { keeper.kept[3].string(); }), HasSubstr("borrowed str"));
  // A number is no reference to anything.
  EXPECT_EQ(keeper.kept[4].real(), 1.5);
}

TEST(Borrow, owned_arguments_may_be_kept) {
  CheckBorrows checked;
  Keeper keeper;
  keeper.owning = true;
  keeper.call();
  EXPECT_EQ(keeper.kept[0].tensor().sum().item<double>(), 2);
  EXPECT_EQ(keeper.kept[1].tensors().size(), 2u);
  EXPECT_EQ(keeper.kept[2].str(), "[1, 2]");
  EXPECT_EQ(keeper.kept[3].string(), "text");
}

TEST(Borrow, another_thread_may_read_during_the_call_only) {
  CheckBorrows checked;
  Library lib("borrow_test");
  lib.def("threads(Tensor x) -> ()");
  Value kept;
  std::string during = "not run";
  lib.impl(
      "threads",
      [&](Call& call) {
        kept = call.args[0];
        std::thread([&] { during = error_of([&] { kept.tensor(); }); }).join();
      },
      "CPU");
  Tensor x = ones({2});
  call_by_name("borrow_test::threads", {Value(x)});
  EXPECT_EQ(during, "no error");
  std::string after = "not run";
  std::thread([&] { after = error_of([&] { kept.tensor(); }); }).join();
  EXPECT_THAT(after, HasSubstr("call of borrow_test::threads"));
}

TEST(Borrow, values_of_a_caller_are_good_while_it_runs) {
  CheckBorrows checked;
  Library lib("borrow_test");
  lib.def("outer(Tensor x) -> Tensor");
  lib.def("inner(Tensor x, Tensor y) -> Tensor");
  lib.impl("inner", [](const Tensor& x, const Tensor& y) { return x + y; }, "CPU");
  lib.impl(
      "outer",
      [](Call& call) {
        Values args{call.args[0], call.args[0]};  // copies, good until this kernel returns
        for (int round = 0; round < 3; ++round) args[0] = call_by_name("borrow_test::inner", args)[0];
        call.results.push_back(args[0]);
      },
      "CPU");
  Tensor x = ones({2});
  EXPECT_EQ(call_by_name("borrow_test::outer", {Value(x)})[0].tensor().sum().item<double>(), 8);
}

TEST(Borrow, is_not_checked_when_it_is_off) {
  CheckBorrows off(false);
  Library lib("borrow_test");
  lib.def("off(Tensor x) -> ()");
  Value kept;
  lib.impl("off", [&](Call& call) { kept = call.args[0]; }, "CPU");
  Tensor x = ones({2});
  call_by_name("borrow_test::off", {Value(x)});
  EXPECT_EQ(kept.tensor().sum().item<double>(), 2);
}

}  // namespace
}  // namespace tenon::dispatch
