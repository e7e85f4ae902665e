// What must hold for a captured graph to be used again.
#pragma once

#include "session.h"

namespace tenon::capture {

struct TensorGuard {
  Dtype dtype;
  Device device;
  int64_t rank;
  bool requires_grad;
  std::string name;
};

class Guards {
 public:
  Guards() = default;
  // `arguments`: the call's tensors; `session`: what was captured from it.
  Guards(const Session& session, std::span<const Tensor> arguments, std::span<const dispatch::Value> constants, bool grad_enabled);

  // Fills `inputs` and `symbols` if everything holds. Allocates nothing in the usual case.
  bool check(std::span<const Tensor> arguments, std::span<const dispatch::Value> constants, bool grad_enabled,
             SmallVector<Tensor, 8>& inputs, SmallVector<int64_t, 16>& symbols) const;
  // The first thing that does not hold, in words.
  std::string explain(std::span<const Tensor> arguments, std::span<const dispatch::Value> constants, bool grad_enabled) const;
  std::vector<std::string> describe() const;
  // A closure tensor that this graph reads is gone.
  bool lost_closure() const;
  void set_sizes(graph::SizeGuards sizes) { sizes_ = std::move(sizes); }

 private:
  // Collects inputs; the reason if one is missing or of another kind.
  std::optional<std::string> collect(std::span<const Tensor> arguments, SmallVector<Tensor, 8>& inputs) const;

  bool grad_enabled_ = true;
  std::vector<dispatch::Value> constants_;
  size_t argument_count_ = 0;
  std::vector<int32_t> same_as_;             // by argument: the first argument that is the same tensor
  std::vector<InputSource> sources_;         // by input
  std::vector<TensorGuard> tensors_;         // by input
  std::vector<std::pair<Ref<CellState>, CellContent>> cells_;
  bool distinct_inputs_ = false;             // the graph writes: inputs must stay apart
  graph::SizeGuards sizes_;
};

}  // namespace tenon::capture
