#include "checks.h"
#include "copies.h"

#include <algorithm>
#include <regex>

namespace tenon::opcheck {
namespace {

struct Test {
  const char* name;
  void (*run)(const Operator&, std::span<const Value>, const Options&);
};
// In the order in which they run: each relies on what those before it have seen.
const Test kTests[] = {
    {"test_schema", [](const Operator& op, std::span<const Value> args, const Options&) { schema_test(op, args); }},
    {"test_autograd_registration",
     [](const Operator& op, std::span<const Value> args, const Options&) { autograd_registration_test(op, args); }},
    {"test_faketensor", [](const Operator& op, std::span<const Value> args, const Options&) { fake_test(op, args); }},
    {"test_aot_dispatch_static", [](const Operator& op, std::span<const Value> args,
                                    const Options& options) { aot_test(op, args, false, options.gradcheck); }},
    {"test_aot_dispatch_dynamic", [](const Operator& op, std::span<const Value> args,
                                     const Options& options) { aot_test(op, args, true, options.gradcheck); }},
};

std::vector<std::string> chosen_tests(const Options& options) {
  if (options.tests.empty()) return default_tests();
  for (const std::string& test : options.tests)
    TENON_CHECK_VALUE(std::count(all_tests().begin(), all_tests().end(), test) == 1,
                      "[opcheck] expected test_utils to be subset of {{{}}}, got '{}'", fmt::join(all_tests(), ", "),
                      test);
  return options.tests;
}

Outcome run_test(const Test& test, const Operator& op, std::span<const Value> args, const Options& options) {
  Outcome outcome{test.name, nullptr, {}};
  try {
    test.run(op, args, options);
  } catch (const std::exception& error) {
    outcome.error = std::current_exception();
    outcome.text = error.what();
  }
  return outcome;
}

}  // namespace

const std::vector<std::string>& all_tests() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> list;
    for (const Test& test : kTests) list.emplace_back(test.name);
    return list;
  }());
  return names;
}

const std::vector<std::string>& default_tests() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> list = all_tests();
    std::erase(list, "test_aot_dispatch_static");
    return list;
  }());
  return names;
}

const Outcome& Report::operator[](std::string_view test) const {
  for (const Outcome& outcome : outcomes_)
    if (outcome.test == test) return outcome;
  fail<ValueError>("[opcheck] the test '{}' did not run", test);
}

bool Report::ok() const {
  return std::all_of(outcomes_.begin(), outcomes_.end(), [](const Outcome& outcome) { return outcome.ok(); });
}

std::string Report::str() const {
  std::string text;
  for (const Outcome& outcome : outcomes_) text += fmt::format("{}: {}\n", outcome.test, outcome.str());
  return text;
}

std::ostream& operator<<(std::ostream& out, const Report& report) { return out << report.str(); }

Subject::Subject(std::string_view name) {
  if (Operator* found = dispatch::find_operator_or_null(name)) {
    op_ = dispatch::OperatorRef(found);
    return;
  }
  problem_ = fmt::format("'{}'", name);
  std::vector<std::string> overloads;
  for (const Operator* op : dispatch::overloads_of(name)) overloads.push_back(op->name());
  if (!overloads.empty()) problem_ += fmt::format(", which has the overloads {}", fmt::join(overloads, ", "));
}

const Operator& Subject::op() const {
  TENON_CHECK_VALUE(
      op_.get(),
      "[opcheck] expected one operator (an OpOverload: a handle of custom_op, an Operator, or the name of "
      "one overload such as \"aten::add.Tensor\"), got {}",
      problem_);
  return *op_;
}

std::string dotted_name(const Operator& op) {
  const schema::Schema& schema = op.schema();
  return fmt::format("{}.{}.{}", schema.ns, schema.name, schema.overload.empty() ? "default" : schema.overload);
}

void check_raised(std::string_view expected, std::exception_ptr raised, bool of_that_kind, std::string_view regex) {
  if (!raised)
    throw AssertionError(fmt::format("Expected exception {} to be raised, but nothing was raised", expected));
  try {
    std::rethrow_exception(raised);
  } catch (const std::exception& error) {
    if (!of_that_kind)
      throw AssertionError(
          fmt::format("Expected an exception of type {} to be raised, instead got: {}", expected, error.what()));
    if (!std::regex_search(error.what(), std::regex(std::string(regex))))
      throw AssertionError(fmt::format("Expected the text of the exception to match regex \"{}\", but it says: {}",
                                       regex, error.what()));
  } catch (...) {
    throw AssertionError(
        fmt::format("Expected an exception of type {} to be raised, instead got something without a text", expected));
  }
}

}  // namespace tenon::opcheck

namespace tenon::library {

using opcheck::OpCheckError;
using opcheck::Outcome;

opcheck::Report opcheck(const opcheck::Subject& subject, std::span<const dispatch::Value> args,
                        std::span<const dispatch::Keyword> kwargs, const opcheck::Options& options) {
  const dispatch::Operator& op = subject.op();
  std::vector<std::string> tests = opcheck::chosen_tests(options);
  dispatch::Values bound = dispatch::bind_arguments(op.schema(), args, kwargs);
  std::vector<Outcome> outcomes;
  for (const opcheck::Test& test : opcheck::kTests) {
    if (std::find(tests.begin(), tests.end(), test.name) == tests.end()) continue;
    outcomes.push_back(opcheck::run_test(test, op, bound, options));
    const Outcome& outcome = outcomes.back();
    if (options.raise && !outcome.ok())
      throw OpCheckError(fmt::format("[opcheck] {} ({}): {} failed: {}", op.name(), opcheck::dotted_name(op),
                                     outcome.test, outcome.text));
  }
  return opcheck::Report(std::move(outcomes));
}

opcheck::Report opcheck_samples(const opcheck::Subject& subject, const opcheck::Options& options) {
  std::vector<Outcome> worst;
  for (const dispatch::Values& args : opcheck::samples(subject)) {
    opcheck::Report report = opcheck(subject, args, {}, options);
    if (worst.empty()) worst = report.outcomes();
    for (size_t at = 0; at < worst.size(); ++at)
      if (worst[at].ok()) worst[at] = report.outcomes()[at];
  }
  return opcheck::Report(std::move(worst));
}

opcheck::Report opcheck(const opcheck::Subject& subject) { return opcheck_samples(subject, {}); }

}  // namespace tenon::library
