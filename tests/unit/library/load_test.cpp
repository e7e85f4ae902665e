#include <tenon/dispatch/packet.h>
#include <tenon/generated/ops.h>
#include <tenon/library/custom_op.h>
#include <tenon/library/load.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "error_of.h"

namespace tenon::library {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

LoadOptions options() {
  LoadOptions made;
  made.include_paths = {std::string(TENON_SOURCE_DIR) + "/include",
                        std::string(TENON_BINARY_DIR) + "/generated/include"};
  made.flags = {"-O0"};
  return made;
}

using tenon::testing::error_of;

TEST(LoadInline, operators_of_a_source) {
  const std::string source = R"(
#include <tenon/compat/torch.h>
torch::Tensor thrice(const torch::Tensor& x) { return x + x + x; }
TORCH_LIBRARY(load_test, m) { m.def("thrice", thrice); }
)";
  std::string path = load_inline("load_test", source, options());
  Tensor x = ones({2});
  EXPECT_EQ(dispatch::call_by_name("load_test::thrice", {dispatch::Value(x)})[0].tensor().sum().item<double>(), 6);
  auto made = std::filesystem::last_write_time(path);
  // The second time nothing is compiled, nor registered again.
  EXPECT_EQ(load_inline("load_test", source, options()), path);
  EXPECT_EQ(std::filesystem::last_write_time(path), made);
}

// An operator of `custom_op` is code of the library that made it: it goes with the library, and whoever still has it is
// told so.
TEST(LoadInline, operators_go_with_their_library) {
  LoadOptions unloadable = options();
  // A library with such symbols is never unloaded.
  unloadable.flags.push_back("-fno-gnu-unique");
  const std::string path = load_inline("unloaded_test", R"(
#include <tenon/dispatch/packet.h>
#include <tenon/library/custom_op.h>
namespace {
tenon::Tensor copy(tenon::Tensor a) {
  return tenon::dispatch::call_by_name("aten::clone", {tenon::dispatch::Value(a)})[0].take_tensor();
}
const auto made = tenon::library::custom_op("unloaded_test::copy", copy, {.names = "a"});
}
)",
                                       unloadable);
  Tensor x = ones({2});
  OperatorHandle held("unloaded_test::copy");
  auto call = [&] { return dispatch::call_boxed(held.op(), std::array{dispatch::Value(x)})[0].tensor(); };
  EXPECT_EQ(call().sum().item<double>(), 2);
  // Once for load_inline, once for looking.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  dlclose(handle);
  dlclose(handle);
  ASSERT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << "its code is gone";
  EXPECT_THAT(error_of(call), HasSubstr("unloaded_test::copy] was removed"));
  EXPECT_THAT(error_of([] { OperatorHandle("unloaded_test::copy"); }), HasSubstr("there is no operator"));
  // It can come back.
  load_library(path);
  EXPECT_EQ(dispatch::call_by_name("unloaded_test::copy", {dispatch::Value(x)})[0].tensor().sum().item<double>(), 2);
}

// The compiler tells a type that has no schema type, and what to write in its place.
TEST(LoadInline, a_type_without_a_schema_type_does_not_compile) {
  LoadOptions checked = options();
  checked.flags = {"-O0", "-fsyntax-only"};
  std::string message = error_of([&] {
    load_inline("no_schema_type", R"(
#include <tenon/dispatch/schema_of.h>
using F = tenon::Tensor (*)(tenon::Tensor, std::tuple<int64_t, int64_t>);
auto schema = tenon::dispatch::schema_of<F>("mylib::f");
)",
                checked);
  });
  EXPECT_THAT(message, HasSubstr("this parameter or result has no schema type"));
  EXPECT_THAT(message, HasSubstr("a tuple parameter is written as a std::vector"));
  EXPECT_THAT(message,
              ContainsRegex("ParameterHasNoSchemaType<std::tuple<long( int)?, long( int)?>, std::vector<long"));
}

TEST(LoadInline, errors_show_what_was_printed) {
  EXPECT_THAT(error_of([] { load_inline("bad_source", "int f() { return not_declared; }", options()); }),
              HasSubstr("not_declared"));
  EXPECT_THAT(error_of([] { load_library("/nowhere/lib.so"); }), HasSubstr("/nowhere/lib.so"));
  LoadOptions without = options();
  without.compiler = "no-such-compiler";
  EXPECT_THAT(error_of([&] { load_inline("no_compiler", "int f();", without); }), HasSubstr("no-such-compiler"));
  // Nor is anything left of them.
  for (const auto& entry : std::filesystem::directory_iterator(std::string(std::getenv("TENON_CACHE")) + "/inline")) {
    EXPECT_THAT(entry.path().filename().string(), Not(AnyOf(StartsWith("bad_source"), StartsWith("no_compiler"))));
  }
}

}  // namespace
}  // namespace tenon::library
