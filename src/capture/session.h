// One capture in progress: the user's function runs on fakes, and what it does is recorded.
#pragma once

#include <tenon/capture/compiled_function.h>
#include <tenon/core/cell.h>
#include <tenon/graph/recorder.h>
#include <tenon/graph/symbolic_inputs.h>

#include <map>
#include <unordered_map>

namespace tenon::capture {

// Thrown through the user's function when it asks for something that cannot be recorded.
class GraphBreak : public std::exception {
 public:
  explicit GraphBreak(std::string why) : why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.c_str(); }

 private:
  std::string why_;
};

// Where an input beyond the arguments comes from.
struct ClosureTensor {
  WeakRef<TensorImpl> tensor;
};
using InputSource = std::variant<int32_t /* argument */, Ref<CellState>, ClosureTensor>;

// Which dimensions of an input are to be dynamic, by the input's name.
using DynamicDims = std::function<std::vector<bool>(const std::string& name, const Tensor& tensor)>;

class Session {
 public:
  Session(DynamicDims dynamic);
  ~Session();
  static Session* current();

  // The fake of an argument; one tensor given twice has one fake.
  Tensor add_argument(const Tensor& real, int32_t position);
  // What the function sees instead of `tensor`: fakes are themselves, real tensors become inputs.
  Tensor stand_in(const Tensor& tensor);
  CellContent read_cell(const Ref<CellState>& cell);

  // Runs `body` on the arguments' fakes and records it.
  void run(std::span<const Tensor> fakes, Body body);

  graph::Recorder& recorder() { return recorder_; }
  graph::SymbolicInputs& inputs() { return inputs_; }

  std::vector<Tensor> reals;                                     // by input
  std::vector<InputSource> sources;                              // by input
  std::vector<std::pair<Ref<CellState>, CellContent>> plain_cells;  // cells that are not tensors, and what they held
  bool writes = false;                                           // an operator writes to something

 private:
  Tensor add_input(const Tensor& real, std::string name, InputSource source);

  DynamicDims dynamic_;
  Ref<sym::ShapeEnv> env_;
  graph::SymbolicInputs inputs_;
  graph::Recorder recorder_;
  std::unordered_map<const TensorImpl*, Tensor> fakes_;          // by real tensor
  std::unordered_map<const CellState*, size_t> seen_cells_;
  Session* before_;
};

}  // namespace tenon::capture
