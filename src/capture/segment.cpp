#include "segment.h"

#include "support/thread_context.h"

#include <tenon/autograd/grad_mode.h>

#include <bit>

namespace tenon::capture {

using dispatch::Value;

std::vector<Value> Segment::run_graph(Frame& frame) const {
  std::vector<Value> results;
  freezing::UseConstants constants(frame.frozen);
  if (takes_all_inputs) {
    results = compiled.run(frame.all_inputs(), frame.symbols.span());
  } else {
    SmallVector<Tensor, 8> given;
    for (const InputRef& input : inputs) given.push_back(frame.at(input));
    results = compiled.run(given.span(), frame.symbols.span());
  }
  if (register_count == 0 && bound.empty()) return results;
  for (size_t at = 0; at < register_count; ++at) frame.registers.push_back(results[at].take_tensor());
  size_t first = results.size() - bound.size();
  for (size_t at = 0; at < bound.size(); ++at) {
    auto id = static_cast<size_t>(bound[at]);
    while (frame.symbols.size() <= id) frame.symbols.push_back(0);
    frame.symbols[id] = graph::symbol_bits(results[first + at]);
  }
  results.resize(first);
  results.erase(results.begin(), results.begin() + static_cast<ptrdiff_t>(register_count));
  return results;
}

namespace {

std::vector<Standing> standings(const Frame& frame) {
  std::vector<Standing> found;
  auto add = [&](bool is_register, std::span<const Tensor> tensors) {
    for (size_t at = 0; at < tensors.size(); ++at)
      if (tensors[at].defined())
        found.push_back({{is_register, static_cast<int32_t>(at)}, tensors[at].requires_grad(), tensors[at].is_leaf()});
  };
  add(false, frame.all_inputs());
  add(true, frame.registers);
  return found;
}

// Both of the same tensors.
std::vector<Standing> changed(std::span<const Standing> before, std::span<const Standing> after) {
  std::vector<Standing> found;
  for (size_t at = 0; at < after.size(); ++at)
    if (after[at] != before[at]) found.push_back(after[at]);
  return found;
}

}  // namespace

void Segment::run_end(Frame& frame, std::span<Value> tensors, std::span<const Standing> before) const {
  if (const auto* read = std::get_if<Read>(&end)) {
    dispatch::ExcludeKeys below(KeySet{DispatchKey::Capture});
    Scalar value = (read->operand ? frame.at(*read->operand) : tensors[0].tensor()).item();
    frame.numbers.push_back(value.is_real() ? std::bit_cast<int64_t>(value.real()) : value.to_int());
  } else if (const auto* act = std::get_if<Act>(&end)) {
    std::vector<Tensor> given;
    size_t next = 0;
    for (const Operand& operand : act->operands)
      given.push_back(operand ? frame.at(*operand) : tensors[next++].take_tensor());
    autograd::SetGradMode mode(act->grad_enabled);
    std::vector<Tensor> results = act->run(given);
    Aftermath aftermath{autograd::grad_enabled(), {}};
    if (act->watched) aftermath.changed = changed(before, standings(frame));
    frame.aftermaths.push_back(std::move(aftermath));
    for (Tensor& result : results) frame.registers.push_back(std::move(result));
  }
}

std::vector<Value> Segment::run(Frame& frame) const {
  std::vector<Value> results;
  std::vector<Standing> before;
  const auto* act = std::get_if<Act>(&end);
  const bool is_watched = act && act->watched;
  if (is_watched) before = standings(frame);
  {
    support::OwnCode own;
    dispatch::ExcludeKeys cast_already(KeySet{DispatchKey::Autocast});
    results = run_graph(frame);
  }
  if (is_watched) {
    // What the graph computed is known from here on.
    std::vector<Standing> with_computed = standings(frame);
    before.insert(before.end(), with_computed.begin() + static_cast<ptrdiff_t>(before.size()), with_computed.end());
  }
  const auto* returned = std::get_if<Return>(&end);
  if (!returned) {
    size_t registers = frame.registers.size();
    run_end(frame, results, before);
    if (end_registers.load(std::memory_order_relaxed) < 0)
      end_registers.store(static_cast<int64_t>(frame.registers.size() - registers), std::memory_order_relaxed);
    return {};
  }
  if (returned->results.empty()) return results;
  std::vector<Value> all;
  all.reserve(returned->results.size());
  size_t next = 0;
  for (const std::optional<Value>& constant : returned->results)
    all.push_back(constant ? *constant : std::move(results[next++]));
  return all;
}

void Segment::leave() const {
  if (const auto* returned = std::get_if<Return>(&end); returned && returned->grad_mode)
    autograd::set_grad_enabled(*returned->grad_mode);
}

}  // namespace tenon::capture
