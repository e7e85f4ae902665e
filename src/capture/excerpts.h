// What loops and branches have in common when their bodies are cut out of a capture.
#pragma once

#include "session.h"

#include <tenon/core/tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::capture {

bool is_same(const SymInts& a, const SymInts& b);
// What stands for a tensor in a body. As within a loop, it may have a history, and may be written to.
Tensor placeholder(const SymInts& sizes, const SymInts& strides, const Tensor& like, bool requires_grad);

// Results of a body as stand-ins that have memory of their own.
void give_own_memory(Session& session, std::vector<Tensor>& results,
                     const std::function<bool(const Tensor&)>& is_from_outside);

// Makes pieces graphs over the same inputs: those that they share, which stand first in each, then what any of them
// captured. Gives what was captured.
std::vector<Tensor> join_captured(std::vector<Session::Excerpt>& excerpts, size_t shared);

// Why bodies cannot be differentiated ahead of time, where that is tried: an author's backward cannot be traced, an
// operator has none, a value that backward needs was written to. Eager says so only if a gradient comes there, so the
// loop or branch is written out.
template <typename Differentiate>
std::optional<std::string> why_no_way_back(Differentiate&& differentiate) {
  try {
    differentiate();
  } catch (const MemoryError&) {
    throw;
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

// The values of symbols of a capture, by id.
SymInts numbers_of(const std::vector<int32_t>& symbols, const Ref<sym::ShapeEnv>& env);

}  // namespace tenon::capture
