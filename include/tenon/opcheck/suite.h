// Tests of operators from the tests of a GoogleTest suite that uses them.
//
//   class MySuite : public testing::Test { … };
//   TEST_F(MySuite, small) { mylib::foo(x); }
//   TEST_F(MySuite, odd) { … }
//   OPCHECK_DONT_GENERATE(MySuite, odd, "calls foo with arguments that it refuses")
//   OPCHECK_SUITE(MySuite, "mylib")
//
// runs `small` four times more, as MySuite.test_schema__small, MySuite.test_faketensor__small, …: every call of an
// operator of the namespace mylib is then checked with the arguments that it got (opcheck.h says by what). It stands
// below the tests, in their file, and knows tests of TEST_F; those of TEST_P are left alone.
//
//   OPCHECK_SUITE(MySuite, .namespaces = {"mylib", "mylib2"}, .failures = "tests/failures.json",
//                 .tests = {"test_schema"}, .expected_failures = {"test_pt2_compliant_tag_mylib_foo"})
//
// `failures`: a file of checks that are known to fail (failures.h). TENON_OPCHECK_UPDATE=1 rewrites it. Of every
// operator in it that carries the tag pt2_compliant_tag one more test, test_pt2_compliant_tag_<operator>, fails: it is
// not.
#pragma once

#include <tenon/dispatch/registration.h>
#include <tenon/opcheck/mode.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tenon::opcheck {

// One name or several.
class Names : public std::vector<std::string> {
 public:
  Names() = default;
  Names(const char* one) : std::vector<std::string>{one} {}
  Names(std::initializer_list<const char*> several) : std::vector<std::string>(several.begin(), several.end()) {}
};

struct SuiteOptions {
  Names namespaces = {};
  std::string failures = {};  // empty: nothing is known to fail
  Names tests = {};           // empty: default_tests()
  Names expected_failures = {};
};

// The names of the tests that a suite gets, for its cases; an OpCheckError if one of them is there already, which it
// would hide.
std::vector<std::string> generated_names(const std::string& suite, const std::vector<std::string>& cases,
                                         const std::vector<std::string>& checks);

namespace detail {

// Cases for which nothing is to be generated, as "Suite.case".
std::set<std::string>& not_generated();

// GoogleTest keeps to itself how a test is made; naming a private member in an explicit instantiation is allowed.
namespace {
struct FactoryOf {
  using type = ::testing::internal::TestFactoryBase* const ::testing::TestInfo::*;
  friend type member(FactoryOf);
};
template <typename Tag, typename Tag::type kMember>
struct Show {
  friend typename Tag::type member(Tag) { return kMember; }
};
template struct Show<FactoryOf, &::testing::TestInfo::factory_>;
}  // namespace

// The mode of the generated test that runs; it is over when the test is.
inline std::unique_ptr<OpCheckMode>& running_mode() {
  static auto* mode = new std::unique_ptr<OpCheckMode>;
  return *mode;
}
class EndMode : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo&) override {
    std::unique_ptr<OpCheckMode> mode = std::move(running_mode());
    if (!mode) return;
    try {
      mode->finish();
    } catch (const OpCheckError& error) {
      ADD_FAILURE() << error.what();
    }
  }
};

template <typename Suite>
class SuiteFails : public Suite {
 public:
  explicit SuiteFails(std::string why) : why_(std::move(why)) {}
  void TestBody() override { ADD_FAILURE() << why_; }

 private:
  std::string why_;
};

// An operator with the tag may have nothing that is known to fail.
template <typename Suite>
class TagIsKept : public Suite {
 public:
  TagIsKept(std::string op, bool expected_to_fail) : op_(std::move(op)), expected_(expected_to_fail) {}
  void TestBody() override {
    dispatch::Operator* op = dispatch::find_operator_or_null(op_);
    bool claims = op && dispatch::has_tag(*op, dispatch::Tag::pt2_compliant_tag);
    EXPECT_EQ(claims, expected_) << op_ << " carries pt2_compliant_tag, but checks of it are known to fail";
  }

 private:
  std::string op_;
  bool expected_;
};

inline std::vector<const ::testing::TestInfo*> tests_of(const std::string& suite) {
  std::vector<const ::testing::TestInfo*> tests;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int at = 0; at < all.total_test_suite_count(); ++at)
    if (all.GetTestSuite(at)->name() == suite)
      for (int test = 0; test < all.GetTestSuite(at)->total_test_count(); ++test)
        tests.push_back(all.GetTestSuite(at)->GetTestInfo(test));
  return tests;
}

template <typename Suite>
bool generate_tests(const std::string& suite, const SuiteOptions& options, const char* file, int line) {
  static const bool listening = [] {
    ::testing::UnitTest::GetInstance()->listeners().Append(new EndMode);
    return true;
  }();
  static_cast<void>(listening);
  auto add = [&](const std::string& name, auto make) {
    ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, file, line, make);
  };
  try {
    std::vector<const ::testing::TestInfo*> tests = tests_of(suite);
    std::vector<std::string> cases, chosen, checks = options.tests;
    if (checks.empty()) checks = default_tests();
    for (const ::testing::TestInfo* test : tests) cases.emplace_back(test->name());
    auto failures = std::make_shared<FailuresFile>(FailuresFile::load(options.failures));
    failures->validate(suite, checks, cases);
    generated_names(suite, cases, checks);
    for (const ::testing::TestInfo* test : tests) {
      if (not_generated().contains(suite + "." + test->name())) continue;
      for (const std::string& check : checks) {
        std::string name = check + "__" + test->name();
        ::testing::internal::TestFactoryBase* factory = test->*member(FactoryOf());
        add(name, [=, namespaces = options.namespaces]() -> Suite* {
          running_mode() = std::make_unique<OpCheckMode>(namespaces, check, suite + "." + name,
                                                         failures->path().empty() ? nullptr : failures);
          return static_cast<Suite*>(factory->CreateTest());
        });
      }
    }
    for (const auto& [op, known] : failures->entries()) {
      std::string name = "test_pt2_compliant_tag_";
      for (char letter : op)
        if (letter != ':' || name.back() != '_') name += letter == ':' || letter == '.' ? '_' : letter;
      const Names& expected = options.expected_failures;
      bool fails = std::find(expected.begin(), expected.end(), name) != expected.end();
      add(name, [op = op, fails]() -> Suite* { return new TagIsKept<Suite>(op, fails); });
    }
  } catch (const Error& error) {
    std::string why = error.what();
    add("opcheck_suite", [why]() -> Suite* { return new SuiteFails<Suite>(why); });
  }
  return true;
}

inline bool dont_generate(const char* suite, const char* name, const char* /*why*/) {
  not_generated().insert(std::string(suite) + "." + name);
  return true;
}

}  // namespace detail
}  // namespace tenon::opcheck

#define OPCHECK_SUITE(Suite, ...)                                                                                   \
  [[maybe_unused]] static const bool tenon_opcheck_suite_##Suite = ::tenon::opcheck::detail::generate_tests<Suite>( \
      #Suite, ::tenon::opcheck::SuiteOptions{__VA_ARGS__}, __FILE__, __LINE__);
#define OPCHECK_DONT_GENERATE(Suite, name, why)                           \
  [[maybe_unused]] static const bool tenon_opcheck_not_##Suite##_##name = \
      ::tenon::opcheck::detail::dont_generate(#Suite, #name, why);
