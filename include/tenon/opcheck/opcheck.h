// `opcheck`: whether an operator is registered as it must be to work everywhere: below autograd, on fakes, compiled.
//
//   auto twice = library::custom_op("examples::checked", [](const Tensor& a) { return a * 2; }, {.names = "a"});
//   twice.register_fake([](const Tensor& a) { return empty_like(a); });
//   twice.register_autograd([](library::AutogradContext&, const Tensor& grad) { return grad * 2; });
//   library::opcheck(twice, {randn({3}).set_requires_grad()});            // an OpCheckError if something is wrong
//   opcheck::Report some = library::opcheck(twice, {x}, {}, {.tests = {"test_schema"}, .raise = false});
//   std::string what = some["test_schema"].str() + some.str();            // "SUCCESS", …
//   bool good = some.ok() && some["test_schema"].ok() && some.outcomes().size() == 1;
//   library::opcheck(twice);                                               // arguments are made from the schema
//   library::opcheck_samples(twice, {.gradcheck = true});
//   std::vector<dispatch::Values> made = opcheck::samples(twice);
//
// The tests, each by name (`all_tests()`; without `tests`, all but the static one):
//  test_schema                 what the call changes, aliases and returns, against the schema's annotations
//  test_autograd_registration  gradients come from a kernel of the Autograd key or a formula, not from below it
//  test_faketensor             the fake implementation against the kernel: sizes, strides, dtypes, devices, aliases
//  test_aot_dispatch_static    eager against compiled ahead of time, forward and backward
//  test_aot_dispatch_dynamic   the same with symbolic sizes, and no second compile for other sizes
#pragma once

#include <tenon/dispatch/packet.h>
#include <tenon/library/custom_op.h>

#include <exception>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace tenon::opcheck {

// What `opcheck` raises: the first test that failed, and why.
//
//   try {
//     library::opcheck("aten::sin", {x});
//   } catch (const opcheck::OpCheckError& error) {
//     fmt::print("{}", error.what());
//   } catch (const opcheck::AssertionError& wrong) {  // by a check that was called for itself
//     throw;
//   }
class OpCheckError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};
// A condition of a check that does not hold.
class AssertionError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

//   std::vector<std::string> five = opcheck::all_tests(), four = opcheck::default_tests();
const std::vector<std::string>& all_tests();
const std::vector<std::string>& default_tests();

// How one test ended.
//
//   opcheck::Outcome outcome = library::opcheck("aten::sin", {x})["test_schema"];
//   if (!outcome.ok()) std::rethrow_exception(outcome.error);
//   std::string text = outcome.test + ": " + outcome.str();
struct Outcome {
  std::string test;
  std::exception_ptr error;  // null: it passed
  std::string text;          // what the error says
  bool ok() const { return error == nullptr; }
  std::string str() const { return ok() ? "SUCCESS" : text; }
};

class Report {
 public:
  explicit Report(std::vector<Outcome> outcomes) : outcomes_(std::move(outcomes)) {}
  const std::vector<Outcome>& outcomes() const& { return outcomes_; }
  std::vector<Outcome> outcomes() && { return std::move(outcomes_); }
  // An Error if no such test ran.
  const Outcome& operator[](std::string_view test) const;
  bool ok() const;
  std::string str() const;  // a line per test

 private:
  std::vector<Outcome> outcomes_;
};
std::ostream& operator<<(std::ostream& out, const Report& report);

// What is checked: an operator by handle, by reference, or by the name of one overload.
//
//   opcheck::Subject sine("aten::sin");
//   const dispatch::Operator& op = sine.op();
class Subject {
 public:
  Subject(const dispatch::Operator& op) : op_(&op) {}
  Subject(const library::OperatorHandle& handle) : op_(&handle.op()) {}
  template <typename R, typename... A>
  Subject(const library::CustomOp<R, A...>& handle) : op_(&handle.op()) {}
  Subject(const char* name) : Subject(std::string_view(name)) {}
  Subject(const std::string& name) : Subject(std::string_view(name)) {}
  Subject(std::string_view name);
  // A function is no operator: asking for `op()` is a ValueError that says what to pass.
  template <typename F>
    requires(!std::is_convertible_v<F, std::string_view> && !std::is_convertible_v<F, library::OperatorHandle> &&
             !std::is_base_of_v<Subject, std::remove_cvref_t<F>> &&
             !std::is_same_v<std::remove_cvref_t<F>, dispatch::Operator>)
  Subject(F&&) : problem_("a function") {}
  const dispatch::Operator& op() const;

 private:
  dispatch::OperatorRef op_;
  std::string problem_;
};

//   opcheck::Options quick{.tests = {"test_schema", "test_faketensor"}, .raise = false, .gradcheck = false};
//   library::opcheck("aten::sin", {x}, {}, quick);
struct Options {
  std::vector<std::string> tests = {};  // empty: default_tests()
  bool raise = true;                    // false: what failed stands in the report alone
  bool gradcheck = false;               // gradients against finite differences too, in test_aot_dispatch_*
};

// ---- The checks, for themselves: they raise what they find
// -----------------------------------------------------------

// Raises an AssertionError if gradients come from below the Autograd key; a RuntimeError if nothing requires grad.
//
//   Tensor w = ones({3}).set_requires_grad();
//   opcheck::autograd_registration_check("aten::sin", {w});
void autograd_registration_check(const Subject& op, std::span<const dispatch::Value> args);
inline void autograd_registration_check(const Subject& op, std::initializer_list<dispatch::Value> args) {
  autograd_registration_check(op, std::span<const dispatch::Value>(args.begin(), args.size()));
}

// Whether gradients are compared: always, never, or where a result requires grad.
enum class CheckGradients : uint8_t { Auto, Yes, No };
//   opcheck::AotCheck options{.dynamic = true, .check_gradients = opcheck::CheckGradients::No};
//   opcheck::aot_autograd_check([](const Tensor& a) { return a.clone(); }, {x}, options);
struct AotCheck {
  bool dynamic = false;
  CheckGradients check_gradients = CheckGradients::Auto;
  bool gradcheck = false;
  bool other_sizes = false;  // with `dynamic`: sizes twice as large must not need another compile
};
using BoxedFunction = std::function<dispatch::Results(std::span<const dispatch::Value>)>;
void aot_check(const BoxedFunction& function, std::span<const dispatch::Value> args, const AotCheck& options);

// Raises an AssertionError where the function, compiled ahead of time, gives something else than run eagerly.
template <typename F>
void aot_autograd_check(F function, std::initializer_list<dispatch::Value> args, const AotCheck& options = {}) {
  using Types = dispatch::detail::FunctionTypesOf<F>;
  BoxedFunction boxed = [&](std::span<const dispatch::Value> values) {
    dispatch::Results results;
    [&]<size_t... I>(std::index_sequence<I...>) {
      auto run = [&] {
        return function(
            dispatch::detail::read_argument<std::tuple_element_t<I, typename Types::Arguments>>(values[I])...);
      };
      if constexpr (std::is_void_v<typename Types::Result>)
        run();
      else
        dispatch::detail::write_typed(results, run());
    }(std::make_index_sequence<std::tuple_size_v<typename Types::Arguments>>());
    return results;
  };
  aot_check(boxed, std::span<const dispatch::Value>(args.begin(), args.size()), options);
}

// Derivatives of the results against finite differences, with double numbers; an AssertionError where they differ.
//
//   opcheck::gradcheck("aten::sin", {ones({3}).set_requires_grad()});
void gradcheck(const Subject& op, std::span<const dispatch::Value> args);
inline void gradcheck(const Subject& op, std::initializer_list<dispatch::Value> args) {
  gradcheck(op, std::span<const dispatch::Value>(args.begin(), args.size()));
}

// Arguments that the operator takes, made from its schema: several, or an Error that says what was tried.
std::vector<dispatch::Values> samples(const Subject& op);

// Runs `run`, which must raise a `Kind` whose text the regular expression finds; an AssertionError otherwise, which
// says "Expected exception", "instead got" or "to match regex".
//
//   opcheck::assert_raises<ValueError>("expected", [] { fail<ValueError>("expected two"); });
void check_raised(std::string_view expected, std::exception_ptr raised, bool of_that_kind, std::string_view regex);
template <typename Kind, typename F>
void assert_raises(std::string_view regex, F&& run) {
  std::exception_ptr raised;
  bool of_that_kind = false;
  try {
    run();
  } catch (const Kind&) {
    raised = std::current_exception();
    of_that_kind = true;
  } catch (...) {
    raised = std::current_exception();
  }
  check_raised(tenon::autograd::detail::type_name(typeid(Kind)), raised, of_that_kind, regex);
}

}  // namespace tenon::opcheck

namespace tenon::library {

// Runs the tests on the operator, called with these arguments. They are copied: the caller's tensors stay as they are.
opcheck::Report opcheck(const opcheck::Subject& op, std::span<const dispatch::Value> args,
                        std::span<const dispatch::Keyword> kwargs = {}, const opcheck::Options& options = {});
inline opcheck::Report opcheck(const opcheck::Subject& op, std::initializer_list<dispatch::Value> args,
                               std::initializer_list<dispatch::Keyword> kwargs = {},
                               const opcheck::Options& options = {}) {
  return opcheck(op, std::span<const dispatch::Value>(args.begin(), args.size()),
                 std::span<const dispatch::Keyword>(kwargs.begin(), kwargs.size()), options);
}
// The same with arguments that are made from the schema.
opcheck::Report opcheck(const opcheck::Subject& op);
opcheck::Report opcheck_samples(const opcheck::Subject& op, const opcheck::Options& options = {});

}  // namespace tenon::library
