// The step of the backward graph that stands for a whole compiled forward.
#pragma once

#include "state.h"

#include <tenon/autograd/node.h>
#include <tenon/autograd/saved_tensor.h>

namespace tenon::aot {

class CompiledNode final : public autograd::Node {
 public:
  CompiledNode(std::shared_ptr<State> state, std::span<const int64_t> symbols, std::vector<Draw> draws)
      : Node("CompiledFunctionBackward"),
        state_(std::move(state)),
        symbols_(symbols.begin(), symbols.end()),
        draws_(std::move(draws)) {}

  // Before the function's writes land in its inputs.
  void save(std::span<const Tensor> inputs, std::span<dispatch::Value> forward_results);

  // After them, for each of the joint graph's junctions.
  void save_junction(const Tensor& result) { junctions_.push_back(autograd::SavedTensor::output(result)); }

  // What eager keeps may not be changed before the gradients of these tangents are computed.
  void watch(const char* what, const Tensor& tensor, const std::vector<int32_t>& needed_by);

  std::vector<Tensor> apply(std::vector<Tensor> gradients) override;
  void release_saved() override;
  Tensor whole_gradient(uint32_t input_nr, const std::vector<Tensor>& gradients) const override;
  bool is_compound() const override { return true; }
  bool is_partial(uint32_t input_nr, const std::vector<Tensor>& gradients) const override;
  // Without `create_graph`, backward is a graph that can be repeated as a part of another one.
  bool visit(autograd::NodeVisitor& visitor) override;
  Ref<autograd::Node> copy() const override;

 private:
  // A tensor of the call, and whether `saved_` has it already.
  struct Primal {
    int32_t saved = -1;
    autograd::SavedTensor own;
  };

  Tensor unpack(const Primal& primal) const;
  bool has_history(const std::vector<Tensor>& gradients) const;
  // Lets go of the gradients, and of what was saved, if nobody runs it again.
  std::vector<Tensor> apply_once(std::vector<Tensor>& gradients);
  // By differentiating the program and running that, on what it was called with.
  std::vector<Tensor> run_differentiated(const std::vector<Tensor>& gradients, const GradientLevel& level,
                                         bool history) const;
  GradientLevel level_for(const std::vector<Tensor>& gradients) const;
  // Of a copy: operator by operator, with the numbers and tensors that it holds.
  std::vector<Tensor> apply_inlined(const std::vector<Tensor>& gradients) const;
  std::vector<Tensor> apply_refusing_more(std::vector<Tensor>& gradients);
  Tensor as_traced(const Tensor& gradient, size_t tangent) const;
  void check_alive() const;
  void check_unchanged(const std::vector<Tensor>& gradients) const;

  std::shared_ptr<State> state_;
  std::vector<int64_t> symbols_;
  std::vector<Draw> draws_;
  std::vector<autograd::SavedTensor> saved_;
  std::vector<Primal> primals_;  // by input, where gradients are computed from it
  std::vector<autograd::SavedTensor> junctions_;
  struct Watched {
    const char* what;                       // for errors
    const std::vector<int32_t>* needed_by;  // of the joint graph
    Ref<Version> version;
    int64_t then;  // its count when the function returned
  };
  std::vector<Watched> watched_;
  bool alive_ = false;
  bool is_copy_ = false;
  std::vector<dispatch::Value> numbers_;  // of a copy: what stands for `symbols_`
};

}  // namespace tenon::aot
