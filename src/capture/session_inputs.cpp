// What a session meets that is not computed inside: arguments, numbers, cells, closure tensors.
#include "session.h"

#include "core/erased.h"

#include <tenon/autograd/meta.h>
#include <tenon/capture/marks.h>
#include <tenon/fake/fake.h>

#include <bit>

namespace tenon::capture {
namespace {

using dispatch::Value;

bool same_source(const InputSource& a, const InputSource& b) {
  if (a.index() != b.index()) return false;
  if (const auto* argument = std::get_if<Argument>(&a)) return argument->position == std::get<Argument>(b).position;
  if (const auto* cell = std::get_if<Ref<CellState>>(&a)) return *cell == std::get<Ref<CellState>>(b);
  if (const auto* closure = std::get_if<ClosureTensor>(&a))
    return closure->tensor.address() == std::get<ClosureTensor>(b).tensor.address();
  return std::get<Register>(a).index == std::get<Register>(b).index;
}

}  // namespace

Tensor Session::add_input(const Tensor& real, std::string name, InputSource source) {
  TENON_CHECK(real.device().type == DeviceType::CPU, "[compile] {} is on {}: expected cpu", name, real.device().str());
  InputPolicy& decided = policies_(reals.size(), name, real);
  std::vector<graph::DimPolicy> dims = decided.dims;
  Tensor fake = inputs_.add(real, dims, name, &decided.layout);
  for (int64_t dim = 0; dim < real.dim(); ++dim) {
    const graph::DimPolicy& policy = dims[static_cast<size_t>(dim)];
    if (capture::mark_of(real, dim).mark != capture::Mark::Dynamic || policy.kind != graph::DimPolicy::Kind::Dynamic)
      continue;
    SymInt size = fake.size(dim);
    marks_.push_back({name, dim, size});
    // What the user promises is asked of every call.
    if (policy.range.min > 2) (void)bool(size >= policy.range.min);
    if (policy.range.max < sym::Range::kMax) (void)bool(size <= policy.range.max);
  }
  // Fakes share memory where the tensors do: writing to one shows in the versions of the others, and the session knows
  // what it touches.
  for (const auto& [impl, origin] : origins_)
    if (real_at(origin.second).is_same_storage(real)) {
      fake = core::make_view(origin.first, fake.sym_sizes(), fake.sym_strides(), fake.sym_storage_offset());
      fake.impl()->dtype = real.dtype();
      break;
    }
  // The function itself may have changed it since: a replay begins where the call began.
  if (!decided.requires_grad) decided.requires_grad = {real.requires_grad(), real.is_leaf()};
  if (auto [requires_grad, is_leaf] = *decided.requires_grad; requires_grad) {
    autograd::ensure_meta(fake).requires_grad = true;
    // A leaf may not be written to; a tensor with a history may, so its fake has one too.
    if (!is_leaf) {
      Tensor leaf =
          std::exchange(fake, core::make_view(fake, fake.sym_sizes(), fake.sym_strides(), fake.sym_storage_offset()));
      autograd::pass_on(fake, leaf);
    }
  }
  auto index = static_cast<int32_t>(reals.size());
  reals.push_back(real);
  sources.push_back(std::move(source));
  names.push_back(std::move(name));
  fakes_.emplace(real.impl(), fake);
  origins_.insert_or_assign(fake.impl(), std::pair(fake, InputRef{false, index}));
  know(fake);
  return fake;
}

bool Session::expects(const InputSource& source) const {
  return reals.size() < expected_sources.size() && same_source(expected_sources[reals.size()], source);
}

Tensor Session::add_argument(const Tensor& real, int32_t position) {
  if (auto found = fakes_.find(real.impl()); found != fakes_.end() && !expects(Argument{position}))
    return found->second;
  return add_input(real, argument_name(static_cast<size_t>(position)), Argument{position});
}

std::string Session::argument_name(size_t position) const {
  return position < options_.argument_names.size() ? options_.argument_names[position] : fmt::format("arg{}", position);
}

Value Session::add_number(const Value& kind) {
  std::string name = fmt::format("number {}", next_number_);
  int64_t bits = frame_.numbers[next_number_++];
  if (kind.tag() == Value::Tag::Real) return Value(inputs_.add_real(std::bit_cast<double>(bits), name)).own();
  if (kind.tag() == Value::Tag::Bool) return Value(inputs_.add_bool(bits != 0, name)).own();
  return Value(inputs_.add_number(bits, name)).own();
}

int64_t Session::choose(int64_t now) {
  const size_t at = choices.size();
  return choices.emplace_back(at < expected_choices.size() ? expected_choices[at] : now);
}

Tensor Session::stand_in(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  Tensor fake = tensor;
  if (!tensor.is_fake()) {
    if (auto known = closures_.find(tensor.impl()); known != closures_.end()) return know(known->second), known->second;
    ClosureTensor source{WeakRef<TensorImpl>(tensor.ref()), tensor.impl()->rebinds, CallSite::here()};
    auto found = fakes_.find(tensor.impl());
    tensor.impl()->watched.store(true, std::memory_order_relaxed);
    if (found == fakes_.end() || expects(source)) {
      fake = add_input(tensor, fmt::format("closure{}", reals.size()), std::move(source));
      return closures_.emplace(tensor.impl(), fake).first->second;
    }
    fake = found->second;
    note_same(std::move(source), fake);
  }
  know(fake);
  return fake;
}

// Reached by the function itself, and known under another name: at every call it must be the same tensor. What was met
// so first, is one thing already.
void Session::note_same(std::variant<Ref<CellState>, ClosureTensor> what, const Tensor& fake) {
  const InputRef& ref = origins_.at(fake.impl()).second;
  if (!ref.is_register && std::holds_alternative<ClosureTensor>(sources[static_cast<size_t>(ref.index)]) &&
      std::holds_alternative<ClosureTensor>(what))
    return;
  auto address = [](const auto& each) -> const void* {
    const auto* cell = std::get_if<Ref<CellState>>(&each);
    return cell ? static_cast<const void*>(cell->get()) : std::get<ClosureTensor>(each).tensor.address();
  };
  for (const SameTensor& known : same_tensors)
    if (known.input == ref && address(known.what) == address(what)) return;
  std::string name = ref.is_register ? "a tensor computed before" : names[static_cast<size_t>(ref.index)];
  same_tensors.push_back({std::move(what), ref, std::move(name)});
}

const Tensor& Session::real_at(const InputRef& ref) const {
  auto index = static_cast<size_t>(ref.index);
  return ref.is_register ? frame_.registers[index] : reals[index];
}

void Session::know(const Tensor& fake) {
  if (recorder_->find(fake) != graph::kNoValue) return;
  if (auto origin = origins_.find(fake.impl()); origin != origins_.end()) {
    const InputRef& ref = origin->second.second;
    // By position: trips of a loop look the same, and share what is compiled.
    std::string name =
        ref.is_register ? fmt::format("kept{}", graph_inputs_.size()) : names[static_cast<size_t>(ref.index)];
    // A backend of the user's reads from the metadata what requires grad.
    Tensor meta = fake::like(fake);
    if (fake.requires_grad()) autograd::ensure_meta(meta).requires_grad = true;
    recorder_->add_input(fake, std::move(name), meta);
    graph_inputs_.push_back(ref);
    return;
  }
  auto recipe = recipes_.find(fake.impl());
  if (recipe == recipes_.end()) throw RuntimeError(graph::of_another_capture(fake));
  derive(fake, recipe->second);
}

CellValue Session::read_cell(const Ref<CellState>& cell) {
  if (const auto* tensor = std::get_if<Tensor>(&cell->content); tensor && tensor->defined()) {
    // A cell that the function itself made, or wrote to.
    if (tensor->is_fake()) return stand_in(*tensor);
    TENON_CHECK(
        !core::is_erased(*tensor) || options_.why.empty(),
        "[compile] the function was frozen with discard_parameters, and '{}' was given up; this call needs a new "
        "compile: {}",
        cell->name, options_.why);
    if (core::is_erased(*tensor)) core::refuse_erased(cell->name);
    auto [seen, first] = seen_cells_.try_emplace(cell.get(), *tensor);
    auto own = cell_inputs_.find(cell.get());
    if (own != cell_inputs_.end() && own->second.first.is(*tensor)) return own->second.second;
    if (auto found = fakes_.find(tensor->impl()); found != fakes_.end() && !expects(cell)) {
      if (first) note_same(cell, found->second);
      return found->second;
    }
    Tensor fake = add_input(*tensor, cell_name(*cell), cell);
    cell_inputs_.insert_or_assign(cell.get(), std::pair(*tensor, fake));
    return fake;
  }
  auto found = seen_cells_.find(cell.get());
  if (found == seen_cells_.end()) {
    bool is_symbol = cell_policies_(cells.size(), cell);
    cells.push_back({cell, cell->content, is_symbol, cell_name(*cell)});
    found = seen_cells_.emplace(cell.get(), is_symbol ? number_in(*cell) : core::plain_value(cell->content)).first;
  }
  return found->second;
}

// The symbol of a number in a cell. A call's guards append its value to the frame's numbers.
CellValue Session::number_in(const CellState& cell) {
  ++next_number_;
  if (const auto* real = std::get_if<double>(&cell.content)) return inputs_.add_real(*real, cell_name(cell));
  return inputs_.add_number(std::get<int64_t>(cell.content), cell_name(cell));
}

std::string Session::cell_name(const CellState& cell) const {
  std::string name = cell.name.empty() ? fmt::format("cell{}", reals.size() + cells.size()) : cell.name;
  for (char& letter : name)
    if (letter == '.' || letter == ' ') letter = '_';
  return name;
}

}  // namespace tenon::capture
