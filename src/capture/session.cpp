#include "session.h"

#include <tenon/autograd/engine.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/ops/row.h>

namespace tenon::capture {
namespace {

thread_local Session* current_session = nullptr;

// A custom operator becomes a node if everything that it does shows in its tensors.
void check_recordable(const dispatch::Operator& op) {
  for (const schema::Argument& result : op.schema().returns)
    if (!result.type.is_tensor_like())
      throw GraphBreak(fmt::format("{} returns a {}, which cannot be recorded", op.name(), result.type.str()));
  if (op.schema().returns.empty() && !op.schema().is_mutable())
    throw GraphBreak(fmt::format("{} returns nothing and writes to nothing, so that it can only have side effects", op.name()));
}

void capture_call(dispatch::Call& call) {
  Session* session = Session::current();
  TENON_ASSERT(session, "{} reached the Capture key outside a capture", call.op.name());
  if (call.op.brief_name() == "_local_scalar_dense")
    throw GraphBreak(fmt::format("item() reads the value of a tensor ({})", call.args[0].str()));
  dispatch::Values args;
  for (const dispatch::Value& arg : call.args)
    args.push_back(arg.map_tensors([&](const Tensor& tensor) { return session->stand_in(tensor); }));
  if (!ops::row_of(call.op) && !call.op.is_composite_implicit()) check_recordable(call.op);
  {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Capture});
    try {
      call.results = dispatch::call_boxed(call.op, args);
    } catch (const fake::DynamicOutputShape&) {
      throw GraphBreak(fmt::format("dynamic shape operator: {}", call.op.name()));
    }
  }
  graph::Node& node = session->recorder().record(call.op, args, call.results, [](const Tensor& tensor) { return fake::like(tensor); });
  node.grad_enabled = autograd::grad_enabled();
  session->writes |= call.op.schema().is_mutable();
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::Capture, capture_call);
  return true;
}();

}  // namespace

bool is_capturing() { return current_session != nullptr; }

Session* Session::current() { return current_session; }

Session::Session(DynamicDims dynamic)
    : dynamic_(std::move(dynamic)), env_(make_ref<sym::ShapeEnv>()), inputs_(env_), recorder_(env_), before_(current_session) {
  recorder_.unknown = [](const Tensor& tensor) -> graph::ValueId {
    fail("[compile] a tensor {} of another capture was used: results of a captured function must be returned, not kept aside",
         tensor.description());
  };
  current_session = this;
}

Session::~Session() { current_session = before_; }

Tensor Session::add_input(const Tensor& real, std::string name, InputSource source) {
  TENON_CHECK(real.device().type == DeviceType::CPU, "[compile] {} is on {}: expected cpu", name, real.device().str());
  std::vector<bool> dynamic = dynamic_(name, real);
  bool flags[64];
  TENON_CHECK(dynamic.size() <= 64, "[compile] {} has {} dimensions: expected at most 64", name, dynamic.size());
  std::copy(dynamic.begin(), dynamic.end(), flags);
  Tensor fake = inputs_.add(real, {flags, dynamic.size()}, name);
  if (real.requires_grad()) {
    fake.set_requires_grad(true);
    // A leaf may not be written to; a tensor with a history may, so its fake has one too.
    if (!real.is_leaf()) {
      Tensor leaf = std::exchange(fake, fake::like(fake));
      autograd::pass_on(fake, leaf);
    }
  }
  recorder_.add_input(fake, std::move(name), fake::like(fake));
  reals.push_back(real);
  sources.push_back(std::move(source));
  fakes_.emplace(real.impl(), fake);
  return fake;
}

Tensor Session::add_argument(const Tensor& real, int32_t position) {
  if (auto found = fakes_.find(real.impl()); found != fakes_.end()) return found->second;
  return add_input(real, fmt::format("arg{}", position), position);
}

Tensor Session::stand_in(const Tensor& tensor) {
  if (tensor.is_fake()) return tensor;
  if (auto found = fakes_.find(tensor.impl()); found != fakes_.end()) return found->second;
  return add_input(tensor, fmt::format("closure{}", reals.size()), ClosureTensor{WeakRef<TensorImpl>(tensor.ref())});
}

CellContent Session::read_cell(const Ref<CellState>& cell) {
  if (const auto* tensor = std::get_if<Tensor>(&cell->content)) {
    if (!tensor->defined()) {
      plain_cells.emplace_back(cell, cell->content);
      return cell->content;
    }
    if (auto found = fakes_.find(tensor->impl()); found != fakes_.end() && seen_cells_.contains(cell.get())) return found->second;
    seen_cells_[cell.get()] = reals.size();
    if (auto found = fakes_.find(tensor->impl()); found != fakes_.end()) {
      // Known through another name already; the cell must go on holding that very tensor.
      plain_cells.emplace_back(cell, cell->content);
      return found->second;
    }
    std::string name = cell->name.empty() ? fmt::format("cell{}", reals.size()) : cell->name;
    for (char& letter : name)
      if (letter == '.' || letter == ' ') letter = '_';
    return add_input(*tensor, std::move(name), cell);
  }
  if (!seen_cells_.contains(cell.get())) {
    seen_cells_[cell.get()] = 0;
    plain_cells.emplace_back(cell, cell->content);
  }
  return cell->content;
}

void Session::run(std::span<const Tensor> fakes, Body body) {
  core::CellReader reader = [this](const Ref<CellState>& cell) { return read_cell(cell); };
  struct Scope {
    const core::CellReader* cell_reader;
    autograd::EngineInterceptor interceptor;
    autograd::FunctionObserver observer;
    explicit Scope(const core::CellReader* replacement) : cell_reader(std::exchange(core::cell_reader(), replacement)) {
      interceptor = autograd::set_engine_interceptor([](const autograd::Walk&) -> std::optional<std::vector<Tensor>> {
        throw GraphBreak("backward() runs the autograd engine");
      });
      observer = autograd::set_function_observer([](std::string_view name) {
        throw GraphBreak(fmt::format("the autograd::Function {} has a backward that cannot be recorded", name));
      });
    }
    ~Scope() {
      core::cell_reader() = cell_reader;
      autograd::set_engine_interceptor(std::move(interceptor));
      autograd::set_function_observer(std::move(observer));
    }
  } scope(&reader);
  std::vector<dispatch::Value> results;
  {
    dispatch::IncludeKeys include(KeySet{DispatchKey::Capture, DispatchKey::Fake});
    results = body(fakes);
    for (dispatch::Value& result : results)
      recorder_.graph().outputs.push_back(
          recorder_.to_argument(result.map_tensors([&](const Tensor& tensor) { return stand_in(tensor); })));
  }
  recorder_.graph().symbols = inputs_.sources();
  graph::verify(recorder_.graph());
}

}  // namespace tenon::capture
