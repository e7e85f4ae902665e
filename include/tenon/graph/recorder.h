// Records operator calls into a graph: which tensor is which value.
#pragma once

#include <tenon/graph/graph.h>

#include <map>
#include <unordered_map>
#include <unordered_set>

namespace tenon::graph {

// What is told of a fake that a graph does not know because it was made for another one, and kept aside.
std::string of_another_capture(const Tensor& fake);

class Recorder {
 public:
  explicit Recorder(Ref<sym::ShapeEnv> env) { graph_.env = std::move(env); }

  Graph& graph() { return graph_; }
  // A new input; `tensor` stands for it from now on. `meta` describes it.
  ValueId add_input(const Tensor& tensor, std::string name, const Tensor& meta);
  // The value that a tensor stands for; kNoValue if it is unknown.
  ValueId find(const Tensor& tensor) const;
  // Makes `tensor` stand for a value.
  void bind(const Tensor& tensor, ValueId id);
  // While there is a journal, what tensors come to stand for is noted in it (a call that gives back what it was given
  // gives that a second name), so that it can be undone: all but the inputs that were added.
  struct Bound {
    Tensor tensor;
    ValueId before = kNoValue, after = kNoValue;
  };
  std::vector<Bound>* journal = nullptr;
  void undo(std::span<const Bound> journal);
  // Every tensor that stands for a value.
  void each_tensor(const std::function<void(const Tensor&, ValueId)>& visit) const;
  // What to do with a tensor that the graph does not know: return its value (a new input), or throw.
  std::function<ValueId(const Tensor&)> unknown;

  // Appends a call, with the module and the number of the operator that is being run or differentiated: forward
  // operators are counted from 0. `results` become its outputs; a mutated argument keeps standing for its value.
  Node& record(const dispatch::Operator& op, std::span<const dispatch::Value> args,
               std::span<const dispatch::Value> results, const std::function<Tensor(const Tensor&)>& meta_of = nullptr);
  Argument to_argument(const dispatch::Value& value);

 private:
  int64_t number_now();

  Graph graph_;
  int64_t next_number_ = 0;                // of a forward node
  std::map<int64_t, int64_t> numbers_;     // of forward nodes, by the operator that was being run (`Origin::sequence`)
  std::unordered_set<std::string> names_;  // of inputs
  // Tensors are kept alive while recording, so that an address is never reused.
  std::unordered_map<const TensorImpl*, std::pair<Tensor, ValueId>> ids_;
};

}  // namespace tenon::graph
