// What was captured of a function, as a tree.
//
// A segment is what the function does between two breaks: a graph, compiled, the guards under which it may be used, and
// how it ends. Where the function reads a value of a tensor, or calls something that cannot be recorded, the segment
// ends; what the function does next depends on the answer, so the segment has children, each with guards of its own on
// everything that was learnt since. A function without breaks is a single segment that ends by returning.
//
// A call is a `Frame`: what it was given, and what its segments have computed so far. Segments on one path number
// things as they are met (inputs, symbols, numbers, registers), and a child goes on counting where its parent ended.
#pragma once

#include "freeze/frozen.h"
#include "guards.h"

#include <tenon/aot/aot.h>

#include <atomic>
#include <map>
#include <memory>

namespace tenon::capture {

struct Frame {
  std::span<const Tensor> arguments;
  std::span<const dispatch::Value> constants;
  bool grad_enabled = true;
  std::optional<Dtype> autocast = {};
  freezing::ConstantsRef frozen;      // if parameters are left out of `inputs`: what they stand for
  SmallVector<Tensor, 8> inputs;      // guarded tensors, in the order in which they were met
  bool inputs_are_arguments = false;  // `inputs` is empty, because it would be the same
  SmallVector<int64_t, 16> symbols;   // by symbol id
  SmallVector<int64_t, 8> numbers;    // bits: of number arguments, then of values read
  std::vector<Tensor> registers;      // what segments computed for later ones
  std::vector<Aftermath> aftermaths;  // of actions

  std::span<const Tensor> all_inputs() const { return inputs_are_arguments ? arguments : inputs.span(); }
  const Tensor& at(const InputRef& ref) const {
    return ref.is_register ? registers[static_cast<size_t>(ref.index)] : all_inputs()[static_cast<size_t>(ref.index)];
  }
};

// What compiling a segment adds to the environment of its capture. Whoever follows the segment adds it too, so that
// symbols behind it are the same, and simplify to the same.
struct Learnt {
  std::vector<bool> symbols;  // the unbacked ones that were made, in order: whether they are real
  std::vector<sym::Expr> facts;
  Ref<sym::ShapeEnv> env;  // owns the facts
};

// A tensor that the end of a segment works on: one of the frame's, which others may know too, or else the next result
// of the graph behind its registers.
using Operand = std::optional<InputRef>;

// How a segment ends.
struct Return {
  // One for each flattened result of the function: a constant, or (undefined) the graph's next output.
  std::vector<std::optional<dispatch::Value>> results;
  std::optional<bool> grad_mode;  // that the function leaves behind, if it changed it
};
struct Read {  // the element of a tensor becomes a number
  Operand operand = {};
};
struct Resume {};  // nothing: a break that was asked for
struct Act {       // something that is not recorded runs on real tensors; its results become inputs
  std::function<std::vector<Tensor>(std::span<const Tensor> tensors)> run;
  bool grad_enabled = true;  // when it runs
  // Whatever it and the graph before it do to the frame's tensors is found out afterwards: it is somebody's code, or
  // the graph writes to one of several views of a tensor outside.
  bool watched = false;
  std::vector<Operand> operands = {};
};
using End = std::variant<Return, Read, Resume, Act>;

// A break that nobody asked for there: behind so many nodes, so that one of the function's values is a tensor of its
// own with a history of its own, and what is computed from it belongs to another graph.
struct EarlyBreak {
  size_t nodes = 0;
  size_t made = 0;  // which value: how many others operators had made before it, in all segments
  static constexpr size_t kInput = SIZE_MAX;  // none of those, but an input that was written
  bool operator==(const EarlyBreak&) const = default;
};

// Operators, by name, that could be nodes but for what their authors' backward does, and what that is.
using CalledBetween = std::map<std::string, std::string>;

// What was decided of an input's sizes.
struct InputPolicy {
  std::vector<graph::DimPolicy> dims;
  graph::InputLayout layout;
  std::optional<std::pair<bool, bool>> requires_grad = {};  // whether it did when it was met, and whether it was a leaf
};

struct Segment;

// The ways to go on from one place.
struct Siblings {
  std::vector<std::shared_ptr<const Segment>> segments;
  mutable std::atomic<size_t> last_found{0};
};

struct Segment {
  Guards guards;
  std::vector<InputRef> inputs;
  bool takes_all_inputs = false;  // they are the frame's inputs, in order
  aot::Compiled compiled;
  std::shared_ptr<const graph::Graph> passed_on =
      nullptr;                               // a graph that computes nothing, which `compiled` stands for
  std::shared_ptr<freezing::Frozen> frozen;  // what `compiled` runs, if parameters are its constants
  std::string not_frozen;                    // why not, if that was asked for
  std::string captured;                      // the graph as text
  std::string why;                           // of a break: what ended the segment
  size_t register_count = 0;                 // the graph's first outputs
  size_t tensor_count = 0;                   // those behind them: what the end works on
  Learnt learnt;
  std::vector<int32_t> bound;                           // unbacked symbols: the graph's last outputs
  CallSite site;                                        // of a break: the line of the user's program
  std::optional<EarlyBreak> early;                      // what it ends with
  std::shared_ptr<const CalledBetween> called_between;  // as it was known when this was captured
  std::vector<InputPolicy> policies;                    // of the inputs that were met here
  std::vector<int64_t> choices;                         // of the body: `Session::choose`
  std::vector<bool> cell_symbols;  // of the cells without a tensor that were met here: whether they are symbols
  // How many registers the end adds; -1: it has never come to its end, because it threw.
  mutable std::atomic<int64_t> end_registers{-1};
  End end;
  bool eager = false;         // of a root: calls like this one run without being compiled
  mutable Siblings children;  // under the function's lock

  bool returns() const { return std::holds_alternative<Return>(end); }
  // Runs the graph and the end on a frame whose guards were checked. Of a returning segment: the function's results.
  std::vector<dispatch::Value> run(Frame& frame) const;
  // Runs the graph alone; its results go to the frame's registers and symbols. Gives what the end works on.
  std::vector<dispatch::Value> run_graph(Frame& frame) const;
  // `before`: what the frame's tensors were to autograd before the graph ran, or as it gave them; if it is watched.
  void run_end(Frame& frame, std::span<dispatch::Value> tensors, std::span<const Standing> before) const;
  // Of a returning segment: leaves the thread as the function does.
  void leave() const;
};

}  // namespace tenon::capture
