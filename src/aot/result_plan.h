// How the results of a function come about: as values of the forward graph, as inputs, or as views that are made again.
#pragma once

#include "histories.h"

#include <tenon/aot/aot.h>
#include <tenon/graph/recorder.h>

#include <map>

namespace tenon::aot {

class ResultPlanner {
 public:
  // `primals`: functional tensors, by input. `forward`: by forward output; planning adds to it, to the graph's outputs
  // and to `joint`.
  ResultPlanner(graph::Recorder& recorder, const std::vector<Tensor>& primals, std::vector<Tensor>& forward,
                JointGraph& joint)
      : recorder_(recorder), primals_(primals), forward_(forward), joint_(joint) {}

  // `known`: what an earlier trace decided, by result.
  void plan(const std::vector<dispatch::Value>& results, const std::vector<Remade>* known);
  int32_t add_forward_output(const Tensor& outer, const Tensor& value);
  // A result that autograd sees as a view of an input, and that can be made before anything is known from data.
  std::optional<HoistedView> as_view_of_input(const Tensor& outer) const;
  // What was planned so far is not to be returned.
  void forget();

 private:
  void plan_tensor(const Tensor& outer, const std::vector<dispatch::Value>& results, OutputPlan& plan);
  bool is_older(const Tensor& outer) const;
  bool has_relatives(const Tensor& outer, const std::vector<dispatch::Value>& results) const;
  int32_t primal_of(const Tensor& outer) const;
  std::vector<ViewLink> chain_from(int32_t input, const FunctionalSlot& slot) const;
  int32_t forward_output_of(const Tensor& outer);
  void decide(const std::vector<dispatch::Value>& results, const std::vector<Remade>* known);
  bool must_be_remade(const Tensor& outer, const std::vector<dispatch::Value>& results) const;
  bool is_passed(const Tensor& outer, const std::vector<dispatch::Value>& results);
  bool must_be_on_the_way(const Tensor& outer) const;
  int32_t remade(const Tensor& outer);

  graph::Recorder& recorder_;
  const std::vector<Tensor>& primals_;
  std::vector<Tensor>& forward_;
  JointGraph& joint_;
  std::vector<Tensor> remade_;  // by `joint_.remade`
  std::vector<Tensor> older_;   // results
  std::vector<Tensor> passed_;  // results
  // By memory: what gradients of results that lie elsewhere pass.
  std::map<const FunctionalStorage*, EdgeSet> passed_by_;
};

}  // namespace tenon::aot
