// One capture in progress: the user's function runs on fakes, and what it does is recorded.
//
// The function sees fakes from beginning to end. Where it breaks, what was recorded so far becomes a segment: the
// session hands the graph to its owner, which runs it on the real tensors behind the fakes (or, where this path was
// taken before, knows the results already), and goes on recording into the next segment's graph. A fake that lives on
// is an input of that graph; a view is made anew there from the tensor that it looks into, so that writing to either
// still shows in the other, unless gradients may lead through it: then it is an input, too.
#pragma once

#include "core/effects.h"
#include "segment.h"
#include "support/thread_context.h"

#include <tenon/autograd/engine.h>
#include <tenon/capture/compiled_function.h>
#include <tenon/graph/recorder.h>
#include <tenon/ops/row.h>

#include <set>
#include <unordered_map>
#include <unordered_set>

namespace tenon::capture {

// Thrown through the user's function when it asks for something that cannot be recorded, nor done between two segments.
class GraphBreak : public std::exception {
 public:
  explicit GraphBreak(std::string why) : why_(std::move(why)) {}
  const char* what() const noexcept override { return why_.c_str(); }

 private:
  std::string why_;
};

// Thrown through the user's function when the segment should have ended already: the capture begins anew and ends it
// there.
struct EarlyBreakNeeded {
  EarlyBreak where;
};

// Thrown through the user's function when an operator must not be part of a graph: the capture begins anew, and the
// operator is called between two segments.
struct CallBetweenNeeded {
  std::string op, why;
};

// Thrown through a piece of the user's function that is recorded apart, where it would end the segment.
struct NotApart {
  std::string why;
};

// What is to become of an input's sizes, by its name. What does become of them is noted there.
using InputPolicies = std::function<InputPolicy&(size_t input, const std::string& name, const Tensor& tensor)>;

// Whether the number in a cell is to be a symbol; by how many such cells were met before.
using CellPolicies = std::function<bool(size_t position, const Ref<CellState>& cell)>;

// A finished piece of the capture. The owner puts what comes of it into the session's frame.
struct Piece {
  graph::Graph graph;
  std::vector<InputRef> inputs;
  std::vector<bool> requires_grad;  // by input, before the piece runs
  std::vector<bool> leaves;         // by input
  std::vector<bool> written;        // by input
  std::vector<bool> shown;          // by input: a result has its memory
  AliasGuard aliases;
  size_t register_count = 0, tensor_count = 0;
  std::vector<int32_t> bound;
  End end;
  std::string why;
  CallSite site;  // of a break: the line of the user's program
};

class Session {
 public:
  struct Options {
    bool scalar_outputs = false;     // item() gives a symbol instead of breaking
    bool dynamic_shape_ops = false;  // nonzero() and the like give a symbolic size instead of breaking
    bool fullgraph = false;
    std::vector<std::string> argument_names;
    std::string why;  // there is a capture; of the first one: empty
  };

  Session(InputPolicies policies, CellPolicies cell_policies, Options options, Frame& frame);
  ~Session();
  static Session* current();

  // Called at every break, and at the end. After it, the frame holds the results of the piece. Gives how many registers
  // its end added.
  std::function<size_t(Piece piece)> finish_piece;

  // Of a path that was taken before: where each input came from. What was one input then may be the same tensor as
  // another now, and what is compiled does not mind.
  std::vector<InputSource> expected_sources;
  // What the body chose by values that no guard holds to (see `choose`), there and in this capture.
  std::vector<int64_t> expected_choices, choices;
  // By segment: a break that an earlier attempt found out about.
  std::vector<std::optional<EarlyBreak>> early_breaks;
  // By segment, the last for all behind it: operators that are called between two segments, and why.
  std::vector<std::shared_ptr<const CalledBetween>> called_between;

  // The fake of an argument; one tensor given twice has one fake.
  Tensor add_argument(const Tensor& real, int32_t position);
  // The symbol of a number argument; numbers are taken from the frame in order.
  dispatch::Value add_number(const dispatch::Value& kind);
  // What the function sees instead of `tensor`: fakes are themselves, known to the graph from now on; real tensors
  // become inputs.
  Tensor stand_in(const Tensor& tensor);
  CellValue read_cell(const Ref<CellState>& cell);
  // A choice that a body makes by values: where the path was taken before, with other values perhaps, as it was made
  // then.
  int64_t choose(int64_t now);

  // Runs `body` on the arguments' fakes, breaks included, and finishes the last piece.
  void run(std::span<const Tensor> fakes, std::span<const dispatch::Value> numbers, Body body);

  // A call that the Capture key saw.
  void record_call(dispatch::Call& call);
  // Raises what must be raised where the segment is to end and may not: all is to be one graph, or this is recorded
  // apart.
  void check_may_end(const std::string& why) const;
  // Ends the segment here.
  void break_here(std::string why);
  // Ends the segment and runs something on real tensors in place of these; its results as fakes.
  std::vector<Tensor> act_on(std::string why, std::span<const Tensor> tensors, decltype(Act::run) action);
  // The same for what the function does besides computing. It is done to these very tensors: from here on the graph
  // takes them as inputs, and does not make them anew where they are views.
  std::vector<Tensor> effect(core::Effect effect);
  // A piece of the function, as a graph of its own over what it was given and what it captured from outside.
  struct Excerpt {
    graph::Graph graph;
    std::vector<Tensor> captured;  // its last inputs
    std::vector<bool> needs_grad;  // by result
  };
  // Records what `body` does and takes it out of the graph again. Nothing, and `why`, if it cannot be a graph of its
  // own: it would end the segment, writes to what is not its own, draws random numbers or sizes from data. Of one that
  // is not repeated, only what its results are like is of interest.
  std::optional<Excerpt> record_apart(
      std::span<const Tensor> given,
      const std::function<std::vector<Tensor>(const std::function<bool(const Tensor&)>& is_from_outside)>& body,
      std::string& why, bool is_repeated = true);
  // A walk of the autograd engine, on the real tensors.
  std::vector<Tensor> run_walk(const autograd::Walk& walk);

  graph::Recorder& recorder() { return *recorder_; }
  graph::SymbolicInputs& inputs() { return inputs_; }
  const Ref<sym::ShapeEnv>& env() const { return env_; }
  Progress progress() const;
  // What messages call an argument.
  std::string argument_name(size_t position) const;
  // What the thread was in the middle of when the function was called.
  const support::ThreadContext& context_of_call() const { return context_of_call_; }
  // Whether an input is neither written to nor given back, as itself or as a view. Once the capture is over.
  bool is_only_read(size_t input) const { return !writes && !returned_.contains(input); }
  // An Error that names the operator of a fake that somebody still holds.
  void check_nothing_escaped();

  std::vector<Tensor> reals;         // by input
  std::vector<InputSource> sources;  // by input
  std::vector<std::string> names;    // by input
  std::vector<CellFact> cells;       // those that hold no tensor
  std::vector<RegisterFact> register_facts;
  std::vector<SameTensor> same_tensors;
  std::vector<Aftermath> aftermaths;  // of actions
  bool writes = false;                // an operator writes to something
  bool broke = false;                 // there was a break already

 private:
  // How a fake that shares memory with another came from it.
  struct Recipe {
    dispatch::OperatorRef op;
    dispatch::Values args;  // owned; the source among them
    Tensor source;
    std::vector<Tensor> metas;  // of all results
    size_t output;              // which of them this is
    bool grad_enabled;
  };
  struct Marked {
    std::string name;
    int64_t dim;
    SymInt size;
  };
  struct Item {
    WeakRef<TensorImpl> tensor;
    int64_t version;
    Scalar value;
  };

  void start_recorder();
  std::vector<bool> shown_inputs() const;
  Tensor add_input(const Tensor& real, std::string name, InputSource source);
  bool expects(const InputSource& source) const;
  void know(const Tensor& fake);
  void note_same(std::variant<Ref<CellState>, ClosureTensor> what, const Tensor& fake);
  const Tensor& real_at(const InputRef& ref) const;
  CellValue number_in(const CellState& cell);
  std::string cell_name(const CellState& cell) const;
  void derive(const Tensor& fake, const Recipe& recipe);
  bool is_left(const Tensor& fake) const;
  void record_without_contents(const Tensor& fake);
  void record_parts(const ops::Row& row, dispatch::Call& call);
  void remember_views(const dispatch::Operator& op, const dispatch::Values& args, const dispatch::Results& results);
  // Which tensors are inputs of the next segment, as they are, even if they are views and could be made anew.
  enum class Keep : uint8_t { Nothing, Operands, AndTheirViews };
  // Ends the segment with an end that works on `operands`.
  size_t finish(End end, std::span<const Tensor> operands, std::string why, Keep keep = Keep::Nothing);
  std::vector<Tensor> act(std::string why, std::span<const Tensor> tensors, decltype(Act::run) action, Keep keep,
                          bool watched = false);
  size_t hand_over(End end, size_t registers, size_t tensors, std::string why);
  void call_between(std::string why, dispatch::Call& call);
  [[noreturn]] void refuse(std::string why) const;
  // Sees to it that nothing of this segment is computed from the tensor; of an earlier one it must not be.
  void separate(const Tensor& fake) const;
  void set_views_free(const Tensor& fake) const;
  // What an action made of a tensor, its fake becomes.
  void follow(const Standing& standing);
  void break_early();
  std::vector<Tensor> live_bases(std::span<const Tensor> kept);
  void remake_views(std::span<const Tensor> bases);
  Tensor record_place(const Tensor& fake);
  bool gives_others_a_history(const Tensor& written);
  Scalar read_item(const Tensor& tensor);
  Scalar next_number(Dtype dtype);
  bool resolve(sym::Expr expr);
  // An Error if a dimension marked dynamic came out as a constant.
  void check_marks() const;

  InputPolicies policies_;
  CellPolicies cell_policies_;
  Options options_;
  Frame& frame_;
  Ref<sym::ShapeEnv> env_;
  graph::SymbolicInputs inputs_;
  std::unique_ptr<graph::Recorder> recorder_;
  std::vector<InputRef> graph_inputs_;                                           // of the segment being recorded
  std::unordered_set<const Storage*> written_;                                   // by the segment: storages of fakes
  std::unordered_map<const TensorImpl*, Tensor> fakes_;                          // by real tensor
  std::unordered_map<const TensorImpl*, Tensor> closures_;                       // of closure tensors that are inputs
  std::unordered_map<const CellState*, std::pair<Tensor, Tensor>> cell_inputs_;  // of cells: the tensor and its fake
  std::unordered_map<const TensorImpl*, std::pair<Tensor, InputRef>> origins_;   // fakes with a place in the frame
  std::unordered_map<const TensorImpl*, Recipe> recipes_;                        // fakes that are views
  std::unordered_set<const TensorImpl*> others_with_histories_;  // asked about: `gives_others_a_history`
  std::unordered_map<const TensorImpl*, uint32_t> held_;         // references that recipes hold
  std::unordered_map<const TensorImpl*, Item> items_;            // elements that were read
  std::unordered_map<const CellState*, CellValue> seen_cells_;
  std::vector<std::pair<WeakRef<TensorImpl>, std::string>> made_;  // every fake that an operator made, and which
  size_t segment_ = 0;                                             // how many ended already
  size_t made_before_ = 0;                                         // of `made_`, by segments that ended
  std::unordered_set<const TensorImpl*> used_;                     // views that calls of this segment were given
  std::vector<size_t> calls_;  // of the segment: how many nodes there were when each call of an operator began
  std::vector<Marked> marks_;
  std::set<size_t> returned_;                   // inputs that results show
  size_t next_number_ = 0, next_register_ = 0;  // in the frame
  int apart_ = 0;                               // pieces that are being recorded apart, one in the other
  support::ThreadContext context_of_call_ = support::thread_context;
};

}  // namespace tenon::capture
