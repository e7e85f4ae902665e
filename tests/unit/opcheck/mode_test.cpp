// Checks of the calls that a test makes, what is known of them, and how a failed one is shown.
#include <tenon/fake/fake.h>
#include <tenon/library/load.h>
#include <tenon/opcheck/suite.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "error_of.h"
#include "values_of.h"

namespace tenon::opcheck {
namespace {

using dispatch::Library;
using dispatch::Value;
using tenon::testing::error_of;
using tenon::testing::values;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Returns its argument, which its schema does not say.
class ModeTest : public ::testing::Test {
 protected:
  ModeTest() : lib("mode_test") {
    lib.def("bad(Tensor x) -> Tensor");
    lib.impl("bad", [](const Tensor& x) { return x; }, "CompositeExplicitAutograd");
    lib.def("good(Tensor x) -> Tensor");
    lib.impl("good", [](const Tensor& x) { return x.clone(); }, "CompositeExplicitAutograd");
  }
  static void call(const char* name, const Tensor& x) {
    dispatch::call_by_name(std::string("mode_test::") + name, {Value(x)});
  }
  static std::shared_ptr<FailuresFile> known(Status status) {
    auto failures = std::make_shared<FailuresFile>("failures.json");
    failures->set("mode_test::bad", "Suite.test_schema__small", status);
    return failures;
  }
  // What a mode with these known failures says of a call.
  static std::string said(const char* op, std::shared_ptr<FailuresFile> failures, const Tensor& x = randn({3})) {
    OpCheckMode mode({"mode_test"}, "test_schema", "Suite.test_schema__small", std::move(failures));
    call(op, x);
    return error_of<OpCheckError>([&] { mode.finish(); });
  }
  Library lib;
};

TEST_F(ModeTest, a_call_is_checked) {
  EXPECT_EQ(said("good", nullptr), "no error");
  EXPECT_THAT(said("bad", nullptr),
              AllOf(HasSubstr("Suite.test_schema__small: test_schema failed on the operator mode_test::bad"),
                    HasSubstr("is not defined to alias output"), HasSubstr("BEGIN REPRODUCER")));
}

TEST_F(ModeTest, known_failures) {
  EXPECT_EQ(said("bad", known(Status::XFail)), "no error");
  EXPECT_EQ(said("bad", known(Status::Skip)), "no error");
  auto wrong = std::make_shared<FailuresFile>("failures.json");
  wrong->set("mode_test::good", "Suite.test_schema__small", Status::XFail);
  EXPECT_THAT(said("good", wrong), AllOf(HasSubstr("Unexpected success for operator mode_test::good"),
                                         HasSubstr("failures.json"), HasSubstr("TENON_OPCHECK_UPDATE=1")));
}

TEST_F(ModeTest, the_file_is_rewritten) {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("failures_{}.json", getpid())).string();
  FailuresFile before(path);
  before.set("mode_test::good", "Suite.test_schema__small", Status::XFail, "mended since");
  before.save();
  setenv("TENON_OPCHECK_UPDATE", "1", 1);
  {
    OpCheckMode mode({"mode_test"}, "test_schema", "Suite.test_schema__small",
                     std::make_shared<FailuresFile>(FailuresFile::load(path)));
    call("good", randn({3}));
    call("bad", randn({3}));
    mode.finish();
  }
  unsetenv("TENON_OPCHECK_UPDATE");
  FailuresFile after = FailuresFile::load(path);
  EXPECT_EQ(after.status("mode_test::good", "Suite.test_schema__small"), Status::Success);
  EXPECT_EQ(after.status("mode_test::bad", "Suite.test_schema__small"), Status::XFail);
  EXPECT_EQ(FailuresFile::parse(path, after.str()).str(), after.str());
  std::filesystem::remove(path);
}

TEST_F(ModeTest, what_is_left_alone) {
  auto checked = [](std::vector<std::string> namespaces, auto run) {
    OpCheckMode mode(std::move(namespaces), "test_schema", "Suite.test_schema__small");
    run();
    return mode.checked();
  };
  EXPECT_EQ(checked({"mode_test"}, [] { call("bad", randn({3})); }), 1u);
  EXPECT_EQ(checked({"other"}, [] { call("bad", randn({3})); }), 0u);
  EXPECT_EQ(checked({"mode_test"}, [] { call("bad", empty({3}, TensorOptions(kFloat32, kMeta))); }), 0u);
  EXPECT_EQ(checked({"mode_test"}, [] { call("bad", fake::make({3}, {1}, kFloat32)); }), 0u);
  EXPECT_EQ(checked({"mode_test"},
                    [] {
                      Tensor x = randn({3});
                      x.impl()->version = nullptr;  // an inference tensor
                      call("bad", x);
                    }),
            0u);
  // A call that raises is the caller's business.
  EXPECT_EQ(checked({"aten"}, [] { EXPECT_THROW(matmul(ones({2, 3}), ones({4, 5})), Error); }), 2u) << "ones, twice";
}

TEST_F(ModeTest, calls_of_backward) {
  OpCheckMode mode({"aten"}, "test_autograd_registration", "Suite.test_autograd_registration__small");
  Tensor x = randn({3}).set_requires_grad();
  size_t before = mode.checked();
  (x * x).sum().backward();
  EXPECT_GT(mode.checked(), before + 2);
  mode.finish();
  EXPECT_EQ(x.grad().sym_sizes().size(), 1u);
}

TEST(GeneratedNames, one_that_would_hide_a_test) {
  EXPECT_EQ(generated_names("S", {"a", "b"}, {"test_schema"}),
            (std::vector<std::string>{"test_schema__a", "test_schema__b"}));
  EXPECT_THAT(error_of<OpCheckError>([] { generated_names("S", {"a", "test_schema__a"}, {"test_schema"}); }),
              HasSubstr("the test S.test_schema__a is there already"));
}

TEST(FailuresFile, texts_that_are_none) {
  auto complaint = [](const char* text) { return error_of<ValueError>([&] { FailuresFile::parse("f.json", text); }); };
  EXPECT_THAT(complaint("{\"data\": {\"a::b\": {\"S.test_schema__c\": {}}}}"), HasSubstr("has no status"));
  EXPECT_THAT(complaint("{}"), HasSubstr("expected an object with \"data\""));
  EXPECT_THAT(complaint("{\"data\": }"), HasSubstr("expected a value at character 9"));
  EXPECT_THAT(complaint("{\"data\": [1]}"), HasSubstr("expected an object, got [1]"));
}

std::vector<Value> many_arguments() {
  std::vector<Tensor> list = {tensor({1.5, 2.5}), tensor({1, 2, 3})};
  const int64_t numbers[] = {3, -4};
  return {Value(tensor({0.1, 0.2}).set_requires_grad()).own(),
          Value(list).own(),
          Value(7),
          Value(0.1),
          Value(true),
          Value(std::string_view("a b")).own(),
          Value(kFloat64),
          Value(),
          Value(std::span<const int64_t>(numbers)).own(),
          Value(std::vector<double>{0.1, 0.5}).own(),
          Value(std::vector<bool>{true, false}).own()};
}

TEST(SavedArguments, come_back_as_they_were) {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("saved_{}.safetensors", getpid())).string();
  std::vector<Value> args = many_arguments();
  Tensor other = ones({2, 2});
  const dispatch::Keyword kwargs[] = {{"mat2", Value(other)}};
  save_arguments(path, args, kwargs);
  SavedArguments loaded = load_arguments(path);
  std::filesystem::remove(path);
  ASSERT_EQ(loaded.args.size(), args.size());
  EXPECT_TRUE(loaded.args[0].tensor().requires_grad());
  EXPECT_EQ(values(loaded.args[0].tensor()), values(args[0].tensor()));
  EXPECT_EQ(values(loaded.args[1].tensors()[1]), values(args[1].tensors()[1]));
  EXPECT_EQ(loaded.args[1].tensors()[1].dtype(), kInt64);
  for (size_t at = 2; at < args.size(); ++at) EXPECT_EQ(loaded.args[at].str(), args[at].str()) << at;
  ASSERT_EQ(loaded.keywords().size(), 1u);
  EXPECT_EQ(loaded.keywords()[0].name, "mat2");
  EXPECT_EQ(values(loaded.keywords()[0].value.tensor()), values(other));
}

// The program compiles.
TEST(Reproducer, is_a_program) {
  library::LoadOptions checked;
  checked.include_paths = {std::string(TENON_SOURCE_DIR) + "/include",
                           std::string(TENON_BINARY_DIR) + "/generated/include"};
  checked.flags = {"-O0"};
  std::vector<Value> args = many_arguments();
  std::string text = reproducer("test_schema", "aten::sin", args);
  for (const char* part : {"set_requires_grad()", "std::vector<Tensor> arg1", "dispatch::Value(7)", "kFloat64"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_EQ(error_of([&] { library::load_inline("reproducer", text, checked); }), "no error");
}

}  // namespace
}  // namespace tenon::opcheck
