#include "composite.h"
#include "support/at_fork.h"

#include <tenon/fake/fake.h>
#include <tenon/graph/symbolic_inputs.h>
#include <tenon/graph/trace.h>
#include <tenon/runtime/plan.h>
#include <tenon/schedule/schedule.h>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tenon::eager {
namespace {

using dispatch::Value;

struct Entry {
  graph::SizeGuards guards;
  std::shared_ptr<const runtime::Plan> plan;
};

struct Cache {
  support::ForkSafe<std::shared_mutex> mutex;
  std::unordered_map<std::string, std::vector<std::shared_ptr<const Entry>>> entries;
};

Cache& cache() {
  static auto* instance = new Cache;
  return *instance;
}

// Sizes given as arguments are symbols like sizes of tensors; small and negative ones mean something and stay as they
// are.
bool is_symbolic_argument(const schema::Argument& argument) {
  const schema::Type& type = argument.type.is_optional() ? argument.type.element[0] : argument.type;
  return type.kind == schema::Kind::SymInt || (type.is_list() && type.element[0].kind == schema::Kind::SymInt);
}

std::string key_of(const dispatch::Call& call, const std::vector<Tensor>& tensors) {
  std::string key = call.op.name();
  for (const Tensor& tensor : tensors) {
    key += fmt::format("|{}{}", static_cast<int>(tensor.dtype()), tensor.dim());
    for (int64_t size : tensor.sizes()) key += size < 2 ? static_cast<char>('0' + size) : 'n';
  }
  for (size_t at = 0; at < call.args.size(); ++at) {
    const Value& value = call.args[at];
    key += '|';
    if (value.tag() == Value::Tag::OptionalTensors) {
      for (const std::optional<Tensor>& each : value.optional_tensors()) key += each && each->defined() ? 't' : '-';
    } else if (value.is_tensor() || value.is_tensors()) {
      key += value.is_tensors() ? std::to_string(value.tensors().size()) : "t";
    } else if (is_symbolic_argument(call.op.schema().arguments[at]) && !value.is_none()) {
      Ints numbers = value.tag() == Value::Tag::Int ? Ints{value.integer()} : value.ints();
      for (int64_t number : numbers) key += number < 2 ? std::to_string(number) + "," : "n,";
    } else {
      key += value.str();
    }
  }
  return key;
}

std::shared_ptr<const Entry> build(const dispatch::Call& call, const std::vector<Tensor>& tensors) {
  auto env = make_ref<sym::ShapeEnv>();
  graph::SymbolicInputs inputs(env);
  graph::Recorder recorder(env);
  std::vector<Tensor> fakes;
  for (const Tensor& tensor : tensors) {
    bool dynamic[64];
    TENON_CHECK(tensor.dim() <= 64, "[{}] expected at most 64 dimensions, got {}", call.op.brief_name(), tensor.dim());
    std::fill_n(dynamic, tensor.dim(), true);
    std::string name = fmt::format("x{}", fakes.size());
    Tensor fake = inputs.add(tensor, {dynamic, static_cast<size_t>(tensor.dim())}, name);
    recorder.add_input(fake, name, fake);
    fakes.push_back(fake);
  }
  auto symbolic = [&](int64_t number) { return number < 2 ? SymInt(number) : inputs.add_number(number, "a number"); };
  size_t next = 0;
  dispatch::Values args;
  for (size_t at = 0; at < call.args.size(); ++at) {
    const Value& value = call.args[at];
    if (is_symbolic_argument(call.op.schema().arguments[at]) && !value.is_none()) {
      if (value.tag() == Value::Tag::Int) {
        args.push_back(Value(symbolic(value.integer())).own());
      } else {
        SymInts numbers;
        for (int64_t number : value.ints()) numbers.push_back(symbolic(number));
        args.push_back(Value(numbers).own());
      }
    } else {
      args.push_back(value.map_tensors([&](const Tensor&) { return fakes[next++]; }));
    }
  }
  {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView, DispatchKey::Functionalize,
                                       DispatchKey::Capture, DispatchKey::Autocast});
    graph::TraceMode trace(recorder);
    for (const Value& result : dispatch::call_boxed(call.op, args))
      recorder.graph().outputs.push_back(recorder.to_argument(result));
  }
  recorder.graph().symbols = inputs.sources();
  auto entry = std::make_shared<Entry>();
  entry->plan = schedule::compile_graph(recorder.graph());
  entry->guards = inputs.finish();
  return entry;
}

// An error in words of the sizes at hand: the same call on fakes of these very sizes. Returns if it finds nothing
// wrong.
void say_with_numbers(const dispatch::Call& call) {
  dispatch::Values args;
  for (const Value& value : call.args)
    args.push_back(value.map_tensors([](const Tensor& tensor) { return fake::like(tensor); }));
  dispatch::ExcludeKeys below(KeySet{DispatchKey::Autograd, DispatchKey::ADInplaceOrView, DispatchKey::Functionalize,
                                     DispatchKey::Capture, DispatchKey::Autocast});
  fake::FakeMode mode;
  dispatch::call_boxed(call.op, args);
}

}  // namespace

void forget_plans() {
  std::unique_lock lock(cache().mutex);
  cache().entries.clear();
}

void run_composite(dispatch::Call& call) {
  std::vector<Tensor> tensors;
  Ints numbers;
  for (size_t at = 0; at < call.args.size(); ++at) {
    call.args[at].each_tensor([&](const Tensor& tensor) {
      TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", call.op.brief_name());
      tensors.push_back(tensor);
    });
    if (is_symbolic_argument(call.op.schema().arguments[at]) && !call.args[at].is_none()) {
      const Value& value = call.args[at];
      for (int64_t number : value.tag() == Value::Tag::Int ? Ints{value.integer()} : value.ints())
        if (number >= 2) numbers.push_back(number);
    }
  }
  std::string key = key_of(call, tensors);
  SmallVector<int64_t, 16> symbols;
  std::shared_ptr<const Entry> entry;
  Cache& plans = cache();
  {
    std::shared_lock lock(plans.mutex);
    if (auto found = plans.entries.find(key); found != plans.entries.end())
      for (const auto& each : found->second) {
        symbols.clear();
        if (each->guards.check(tensors, numbers.span(), symbols)) {
          entry = each;
          break;
        }
      }
  }
  if (!entry) {
    try {
      entry = build(call, tensors);
    } catch (const Error&) {
      say_with_numbers(call);
      throw;
    }
    symbols.clear();
    TENON_ASSERT(entry->guards.check(tensors, numbers.span(), symbols), "{}: a new plan refuses its own inputs: {}",
                 call.op.name(), entry->guards.failures(tensors, numbers.span()).front().text);
    std::unique_lock lock(plans.mutex);
    plans.entries[key].push_back(entry);
  }
  for (Value& result : runtime::run(*entry->plan, tensors, symbols.span())) call.results.push_back(std::move(result));
}

}  // namespace tenon::eager
