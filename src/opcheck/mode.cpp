#include "checks.h"
#include "copies.h"

#include <tenon/capture/compiled_function.h>
#include <tenon/dispatch/call_mode.h>
#include <tenon/opcheck/mode.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace tenon::opcheck {

namespace {
thread_local int modes_on_this_thread = 0;
}

bool is_inside_opcheck_mode() { return modes_on_this_thread > 0; }

struct OpCheckMode::State {
  std::vector<std::string> namespaces;
  std::string check, test;
  std::shared_ptr<FailuresFile> failures;
  std::unique_ptr<dispatch::CallMode> calls;  // while it is on
  size_t checked = 0;
  std::map<std::string, std::vector<std::string>> errors;  // by operator, of every call; none: they all passed

  Status known(const std::string& op) const { return failures ? failures->status(op, test) : Status::Success; }
  bool wants(const dispatch::Call& call) const;
  void run(const Operator& op, const Values& args);

  void leave() {
    if (!calls) return;
    calls.reset();
    --modes_on_this_thread;
  }
};

namespace {

bool has_elements(const Tensor& tensor) {
  return !tensor.is_fake() && tensor.device() != kMeta && tensor.impl()->version && tensor.impl()->storage->has_data();
}

bool have_elements(std::span<const Value> values) {
  std::vector<Tensor> tensors = tensors_of(values);
  return std::all_of(tensors.begin(), tensors.end(), has_elements);
}

}  // namespace

bool OpCheckMode::State::wants(const dispatch::Call& call) const {
  if (std::find(namespaces.begin(), namespaces.end(), call.op.schema().ns) == namespaces.end()) return false;
  if (capture::is_capturing() || dispatch::thread_keys().include.has(DispatchKey::Autocast)) return false;
  return known(call.op.name()) != Status::Skip && have_elements(call.args);
}

void OpCheckMode::State::run(const Operator& op, const Values& args) {
  dispatch::ExcludeKeys not_again(KeySet{DispatchKey::UserMode});
  ++checked;
  std::vector<std::string>& found = errors[op.name()];
  std::vector<Value> positional;
  std::vector<dispatch::Keyword> keywords;
  for (size_t at = 0; at < args.size(); ++at)
    if (const schema::Argument& argument = op.schema().arguments[at]; argument.keyword_only)
      keywords.push_back({argument.name, args[at]});
    else
      positional.push_back(args[at]);
  Report report = library::opcheck(op, positional, keywords, {.tests = {check}, .raise = false});
  if (report.ok()) return;
  found.push_back(report.outcomes()[0].text + "\n" + reproducer(check, op, positional, keywords));
}

OpCheckMode::OpCheckMode(std::vector<std::string> namespaces, std::string check, std::string test,
                         std::shared_ptr<FailuresFile> failures)
    : state_(std::make_unique<State>()) {
  state_->namespaces = std::move(namespaces);
  state_->check = std::move(check);
  state_->test = std::move(test);
  state_->failures = std::move(failures);
  auto check_call = [state = state_.get()](dispatch::Call& call, const std::function<void()>& proceed) {
    if (!state->wants(call)) return proceed();
    // The arguments as they were: the call may write to them. One that raises is not checked.
    Values before = copy_arguments(call.args);
    proceed();
    if (have_elements(call.results.span())) state->run(call.op, before);
  };
  state_->calls = std::make_unique<dispatch::CallMode>(
      check_call, dispatch::CallMode::Options{.shows_parts = true, .captures_walks = true});
  ++modes_on_this_thread;
}

OpCheckMode::~OpCheckMode() { state_->leave(); }

size_t OpCheckMode::checked() const { return state_->checked; }

void OpCheckMode::finish() {
  state_->leave();
  const char* update = std::getenv("TENON_OPCHECK_UPDATE");
  bool updates = update && std::string_view(update) == "1" && state_->failures;
  // Other suites and processes write to the same file.
  if (updates) *state_->failures = FailuresFile::load(state_->failures->path());
  std::string text;
  for (const auto& [op, errors] : state_->errors) {
    Status known = state_->known(op);
    bool failed = !errors.empty();
    if (failed == (known == Status::XFail)) continue;
    if (updates) {
      state_->failures->set(op, state_->test, failed ? Status::XFail : Status::Success);
      continue;
    }
    if (failed)
      text += fmt::format("{}: {} failed on the operator {}: {}\n", state_->test, state_->check, op, errors[0]);
    else
      text += fmt::format(
          "{}: Unexpected success for operator {}: it is known to fail. Remove it from {}, or run with "
          "TENON_OPCHECK_UPDATE=1, which rewrites the file\n",
          state_->test, op, state_->failures->path());
  }
  if (updates) state_->failures->save();
  if (!text.empty()) throw OpCheckError(text);
}

}  // namespace tenon::opcheck
