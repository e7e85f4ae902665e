// Small operators of all sorts, and the checks of them that are generated from their tests.
#include "seeds/custom_ops.h"

#include <tenon/opcheck/suite.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tenon::testing {
namespace {

const std::string kNs = "mini_op_test";

// Copies in forward, refuses in backward.
struct DelayedError : autograd::Function<DelayedError> {
  static inline const dispatch::Operator* op = nullptr;
  static Tensor forward(AutogradContext*, const Tensor& x) {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd});
    const Value args[] = {Value(x)};
    return dispatch::call_boxed(*op, args)[0].take_tensor();
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor>) {
    fail<NotImplementedError>("[delayed_error] not implemented");
  }
};

class MiniOpTest : public ::testing::Test {
 protected:
  MiniOpTest() : lib(kNs) {
    lib.def("no_abstract(Tensor x) -> Tensor", std::vector<Tag>{Tag::pt2_compliant_tag});
    lib.impl("no_abstract", [](const Tensor& x) { return x.clone(); }, "CPU");
    DelayedError::op = &lib.def("delayed_error(Tensor x) -> Tensor");
    lib.impl("delayed_error", [](const Tensor& x) { return x.clone(); }, "CompositeExplicitAutograd");
    lib.impl("delayed_error", [](const Tensor& x) { return DelayedError::apply(x); }, "Autograd");
  }
  Tensor call(const std::string& name, const Tensor& x) {
    return call_by_name(kNs + "::" + name, {Value(x)})[0].take_tensor();
  }
  // What it returns looks into its argument, which the schema does not say.
  void define_incorrect_schema() {
    lib.def("incorrect_schema(Tensor x) -> Tensor");
    lib.impl("incorrect_schema", [](const Tensor& x) { return x.slice(0); }, "CompositeExplicitAutograd");
  }
  Library lib;
};

TEST_F(MiniOpTest, dont_generate) {
  define_incorrect_schema();
  Tensor x = randn({3});
  expect_equal(call("incorrect_schema", x), x);
}
OPCHECK_DONT_GENERATE(MiniOpTest, dont_generate, "Testing this API")

TEST_F(MiniOpTest, mm) {
  Tensor x = leaf({2, 3}), y = randn({3, 5});
  EXPECT_EQ(values(call_by_name("aten::mm", {Value(x), Value(y)})[0].tensor()), values(matmul(x, y)));
}

TEST_F(MiniOpTest, mm_meta) {
  TensorOptions meta(kFloat32, kMeta);
  Tensor x = empty({2, 3}, meta).set_requires_grad(), y = empty({3, 5}, meta);
  Tensor result = call_by_name("aten::mm", {Value(x), Value(y)})[0].tensor();
  EXPECT_EQ(result.description(), "float32[2, 5]");
  EXPECT_EQ(result.device(), kMeta);
}

TEST_F(MiniOpTest, mm_fake) {
  FakeMode fakes;
  Tensor x = randn({2, 3}).set_requires_grad(), y = randn({3, 5});
  Tensor result = call_by_name("aten::mm", {Value(x), Value(y)})[0].tensor();
  EXPECT_TRUE(result.is_fake());
  EXPECT_EQ(result.description(), matmul(x, y).description());
}

TEST_F(MiniOpTest, mm_errors) {
  Tensor x = leaf({2, 3}), y = randn({4, 5});
  EXPECT_THAT(error_of<RuntimeError>([&] { call_by_name("aten::mm", {Value(x), Value(y)}); }),
              HasSubstr("cannot be multiplied"));
}

TEST_F(MiniOpTest, nonzero) {
  Tensor x = tensor({0, 1, 2, 0, 0});
  Tensor y = call_by_name("aten::nonzero", {Value(x)})[0].tensor();
  expect_equal(y, tensor({1, 2}).view({2, 1}));
}

TEST_F(MiniOpTest, inplace) {
  Tensor x = randn({3});
  Tensor expected = x.clone().sin();
  Tensor y = call_by_name("aten::sin_", {Value(x)})[0].tensor();
  EXPECT_TRUE(y.is(x));
  expect_equal(x, expected);
}

TEST_F(MiniOpTest, incorrect_schema) {
  define_incorrect_schema();
  Tensor x = randn({3});
  expect_equal(call("incorrect_schema", x), x);
}

TEST_F(MiniOpTest, no_abstract) {
  Tensor x = randn({3});
  expect_equal(call("no_abstract", x), x);
}

TEST_F(MiniOpTest, delayed_error) {
  Tensor x = leaf({});
  Tensor y = call("delayed_error", x);
  EXPECT_THAT(error_of<NotImplementedError>([&] { y.sum().backward(); }), HasSubstr("not implemented"));
}

TEST_F(MiniOpTest, delayed_error_no_requires_grad) {
  Tensor x = randn({});
  Tensor y = call("delayed_error", x);
  EXPECT_FALSE(y.requires_grad());
  expect_equal(y, x);
}

class MiniOpTestOther : public ::testing::Test {};

TEST_F(MiniOpTestOther, nonzero_again) {
  Tensor x = tensor({0, 1, 2, 0, 0});
  Tensor y = call_by_name("aten::nonzero", {Value(x)})[0].tensor();
  expect_equal(y, tensor({1, 2}).view({2, 1}));
}

const std::string kFailures = TENON_SOURCE_DIR "/tests/seeds/mini_op_failures.json";

OPCHECK_SUITE(MiniOpTest, .namespaces = {"aten", "mini_op_test"}, .failures = kFailures,
              .tests = {"test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static",
                        "test_aot_dispatch_dynamic"},
              .expected_failures = {"test_pt2_compliant_tag_mini_op_test_no_abstract"})
OPCHECK_SUITE(MiniOpTestOther, .namespaces = {"aten", "mini_op_test"}, .failures = kFailures,
              .tests = {"test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static",
                        "test_aot_dispatch_dynamic"})

bool has_test(const std::string& suite, const std::string& name) {
  for (const auto* test : tenon::opcheck::detail::tests_of(suite))
    if (test->name() == name) return true;
  return false;
}

TEST(TestGenerateOpcheckTests, MiniOpTest) {
  for (const char* original : {"mm", "nonzero"})
    for (const std::string& check : tenon::opcheck::default_tests())
      EXPECT_TRUE(has_test("MiniOpTest", check + "__" + original)) << check << "__" << original;
}

TEST(TestGenerateOpcheckTests, dont_generate_decorator) {
  EXPECT_TRUE(has_test("MiniOpTest", "dont_generate"));
  EXPECT_FALSE(has_test("MiniOpTest", "test_schema__dont_generate"));
}

TEST(TestGenerateOpcheckTests, generate_repro_save_data) {
  Tensor x = ones({2, 2}), other = zeros({2, 2});
  const Value args[] = {Value(x)};
  const dispatch::Keyword kwargs[] = {{"mat2", Value(other)}};
  std::string text =
      tenon::opcheck::reproducer("test_schema", "aten::sin", args, kwargs, {.save_data = true, .dry_run = true});
  EXPECT_EQ(std::regex_replace(text, std::regex("\\(\".*\\.safetensors\"\\)"), "(\"repro.safetensors\")"),
            R"(// =========================================================
// BEGIN REPRODUCER
// =========================================================
#include <tenon/opcheck/mode.h>
#include <tenon/tenon.h>

using namespace tenon;

int main() {
  // Link the library that has the operator, or load it here: library::load_library("…");
  opcheck::SavedArguments saved = opcheck::load_arguments("repro.safetensors");
  library::opcheck("aten::sin", saved.args, saved.keywords(), {.tests = {"test_schema"}});
}
// =========================================================
// END REPRODUCER
// =========================================================
)");
}

TEST(TestGenerateOpcheckTests, generate_repro_no_save_data) {
  Tensor x = ones({2, 2}), other = zeros({2, 2});
  const Value args[] = {Value(x)};
  const dispatch::Keyword kwargs[] = {{"mat2", Value(other)}};
  EXPECT_EQ(tenon::opcheck::reproducer("test_schema", "aten::sin", args, kwargs, {.dry_run = true}),
            R"(// =========================================================
// BEGIN REPRODUCER
// =========================================================
#include <tenon/opcheck/mode.h>
#include <tenon/tenon.h>

using namespace tenon;

int main() {
  // Link the library that has the operator, or load it here: library::load_library("…");
  Tensor arg0 = tensor(std::vector<double>{1, 1, 1, 1}, kFloat32).view({2, 2});
  Tensor mat2_ = tensor(std::vector<double>{0, 0, 0, 0}, kFloat32).view({2, 2});
  library::opcheck("aten::sin", {arg0}, {{"mat2", mat2_}}, {.tests = {"test_schema"}});
}
// =========================================================
// END REPRODUCER
// =========================================================
)");
}

TEST(TestGenerateOpcheckTests, failures_dict_validation) {
  auto complaint = [](const char* test, const char* status) {
    tenon::opcheck::FailuresFile failures("", {{"mini_op_test::incorrect_schema", {{test, {status, ""}}}}});
    std::vector<std::string> cases;
    for (const auto* each : tenon::opcheck::detail::tests_of("MiniOpTest")) cases.emplace_back(each->name());
    return error_of<RuntimeError>([&] { failures.validate("MiniOpTest", tenon::opcheck::default_tests(), cases); });
  };
  EXPECT_THAT(complaint("MiniOpTest.test_aot_dispatch_dynamic__delayed_error", "success"),
              HasSubstr("got status=success"));
  EXPECT_THAT(complaint("MiniOpTest.test_aot_dispatch__delayed_error", "xfail"), HasSubstr("should begin with one of"));
  EXPECT_THAT(complaint("MiniOpTest.test_aot_dispatch_dynamic__delayed_error_nopenopenope", "xfail"),
              HasSubstr("does not exist on the TestCase"));
  EXPECT_EQ(complaint("MiniOpTest.test_aot_dispatch_dynamic__delayed_error", "xfail"), "no error");
}

TEST(TestGenerateOpcheckTests, is_inside_opcheck_mode) {
  EXPECT_FALSE(tenon::opcheck::is_inside_opcheck_mode());
  {
    tenon::opcheck::OpCheckMode mode({"foo"}, "bar", "baz");
    EXPECT_TRUE(tenon::opcheck::is_inside_opcheck_mode());
  }
  EXPECT_FALSE(tenon::opcheck::is_inside_opcheck_mode());
}

// A program that is linked with nothing but the library.
// What a program must be compiled with to use this build of the library.
#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kSanitizer = "-fsanitize=address,undefined";
#elif defined(__SANITIZE_THREAD__)
constexpr const char* kSanitizer = "-fsanitize=thread";
#else
constexpr const char* kSanitizer = "";
#endif

TEST(TestGenerateOpcheckTests, opcheck_does_not_require_extra_deps) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / fmt::format("tenon_opcheck_{}", getpid());
  fs::create_directories(folder);
  std::ofstream(folder / "program.cpp") << R"(
#include <tenon/generated/ops.h>
#include <tenon/opcheck/opcheck.h>
#include <fstream>
#include <iterator>
int main() {
  tenon::Tensor x = tenon::randn({3}).set_requires_grad();
  tenon::library::opcheck("aten::sin", {x});
  std::ifstream file("/proc/self/maps");
  std::string loaded(std::istreambuf_iterator<char>(file), {});
  return loaded.find("gtest") != std::string::npos || loaded.find("gmock") != std::string::npos;
}
)";
  std::string build = TENON_BINARY_DIR, source = TENON_SOURCE_DIR;
  std::string compile = fmt::format(
      "c++ {3} -std=c++20 -O0 -w -DFMT_SHARED -I{1}/include -I{0}/generated/include {2}/program.cpp -o {2}/program "
      "-L{0} "
      "-ltenon -lfmt -Wl,-rpath,{0}",
      build, source, folder.string(), kSanitizer);
  ASSERT_EQ(std::system(compile.c_str()), 0);
  EXPECT_EQ(std::system((folder / "program").c_str()), 0);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tenon::testing
