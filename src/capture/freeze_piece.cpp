#include "freeze_piece.h"

#include "core/erased.h"
#include "freeze/freeze.h"

#include <tenon/aot/export.h>

#include <map>

namespace tenon::capture {

freezing::Parameters parameters_of(std::span<const InputRef> inputs, const Piece& piece, const Session& session) {
  freezing::Parameters parameters;
  for (size_t at = 0; at < inputs.size(); ++at) {
    const InputRef& ref = inputs[at];
    const InputSource* source = ref.is_register ? nullptr : &session.sources[static_cast<size_t>(ref.index)];
    bool is_reached =
        source && (std::holds_alternative<Ref<CellState>>(*source) || std::holds_alternative<ClosureTensor>(*source));
    if (!is_reached)
      parameters.push_back(Decision::forbid(""));
    else if (piece.written[at])
      parameters.push_back(Decision::forbid("the function writes to it"));
    else if (piece.shown[at])
      parameters.push_back(Decision::forbid("a result is a view of it, or it itself"));
    else
      parameters.push_back(Decision::allow());
  }
  return parameters;
}

Decision can_be_frozen(const Backend& backend, bool records) {
  if (records) return Decision::forbid("grad mode is on: parameters may be trained");
  if (backend.name() != "inductor" && backend.name() != "aot_eager")
    return Decision::forbid("the backend '{}' runs the captured graph as it is", backend.name());
  return Decision::allow();
}

std::vector<bool> in_cells(std::span<const InputRef> inputs, const Session& session) {
  std::vector<bool> are;
  for (const InputRef& ref : inputs)
    are.push_back(!ref.is_register &&
                  std::holds_alternative<Ref<CellState>>(session.sources[static_cast<size_t>(ref.index)]));
  return are;
}

aot::Compiled compile_frozen(const Backend& backend, const Piece& piece, const freezing::Parameters& parameters,
                             const std::vector<bool>& may_hold, const aot::Options& options,
                             std::shared_ptr<freezing::Frozen>& frozen) {
  aot::GraphCompiler inner = backend.name() == "inductor" ? aot::GraphCompiler(aot::scheduled) : aot::interpreted;
  if (options.pad_products && backend.name() == "inductor") inner = aot::scheduled_with_padding;
  // Whoever compiles keeps the compiler, for graphs that follow later on.
  auto made = std::make_shared<std::shared_ptr<freezing::Frozen>>();
  auto compiler = [made, parameters, may_hold, inner](const graph::Graph& graph) -> GraphFunction {
    *made = freezing::freeze(graph, parameters, may_hold, inner);
    return [kept = *made](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
      return kept->run(inputs, symbols);
    };
  };
  aot::Compiled compiled = aot::compile(piece.graph, piece.requires_grad, false, compiler, options);
  frozen = *made;
  return compiled;
}

bool give_up_parameters(std::span<const std::shared_ptr<const Segment>> path, const Session& session) {
  // By input of the frame: what stands for it; those that some segment needs as they are stay.
  std::map<int32_t, Tensor> erased;
  std::vector<bool> stays(session.reals.size());
  for (const auto& segment : path)
    for (size_t at = 0; at < segment->inputs.size(); ++at) {
      const InputRef& ref = segment->inputs[at];
      if (!ref.is_register && !(segment->frozen && segment->frozen->is_parameter(at)))
        stays[static_cast<size_t>(ref.index)] = true;
    }
  for (size_t at = 0; at < session.reals.size(); ++at)
    if (!stays[at] && std::holds_alternative<Ref<CellState>>(session.sources[at]))
      erased.emplace(static_cast<int32_t>(at), core::erased(session.reals[at]));
  if (erased.empty()) return false;
  for (const auto& segment : path) {
    if (!segment->frozen) continue;
    std::vector<Tensor> given(segment->inputs.size()), stands(segment->inputs.size());
    for (size_t at = 0; at < segment->inputs.size(); ++at) {
      const InputRef& ref = segment->inputs[at];
      auto found = ref.is_register ? erased.end() : erased.find(ref.index);
      if (found == erased.end()) continue;
      given[at] = session.reals[static_cast<size_t>(ref.index)];
      stands[at] = found->second;
    }
    segment->frozen->give_up(given, stands);
  }
  for (const auto& [at, stand_in] : erased)
    std::get<Ref<CellState>>(session.sources[static_cast<size_t>(at)])->content = stand_in;
  return true;
}

}  // namespace tenon::capture
