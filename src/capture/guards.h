// What must hold for a captured segment to be used again: of a root all that it rests on, of a child what was added
// since its parent.
#pragma once

#include "alias_guard.h"
#include "freeze/frozen.h"

#include <tenon/core/cell.h>
#include <tenon/graph/symbolic_inputs.h>
#include <tenon/support/intrusive.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tenon::capture {

struct Frame;
class Session;

// Where an input comes from.
struct Argument {
  int32_t position;
};
struct ClosureTensor {
  WeakRef<TensorImpl> tensor;
  uint32_t rebinds = 0;  // of variables that held it, at capture
  CallSite site = {};    // where the function reads it
  Tensor literal = {};   // one that the function makes itself, tensor({1, 2}): kept, because nobody else does

  static constexpr uint32_t kNotWatched = ~0u;
  // A variable that held it was given another tensor since: perhaps the one that the function reads.
  bool rebound(const TensorImpl& now) const {
    return rebinds != kNotWatched && now.rebinds.load(std::memory_order_relaxed) != rebinds;
  }
};
struct Register {
  int32_t index;
};
using InputSource = std::variant<Argument, Ref<CellState>, ClosureTensor, Register>;

// A cell that holds no tensor: what it held, or that its number is a symbol.
struct CellFact {
  Ref<CellState> cell;
  CellContent content;
  bool is_symbol = false;
  std::string name;
};

// Of a register that is no input of its own: it holds no tensor, or one that was known before.
struct RegisterFact {
  int32_t index;
  std::optional<InputRef> same_as;
};

// What a tensor of the frame is to autograd.
struct Standing {
  InputRef tensor;
  bool requires_grad, is_leaf;
  bool operator==(const Standing&) const = default;
};

// What an action left behind.
struct Aftermath {
  bool grad_enabled = true;
  std::vector<Standing> changed;  // tensors that it did not make, if it was watched
  bool operator==(const Aftermath&) const = default;
};

// Of a cell, or of a tensor that the function reaches by itself: it is the very tensor that was met before as another
// input.
struct SameTensor {
  std::variant<Ref<CellState>, ClosureTensor> what;
  InputRef input;
  std::string name;  // of the input
};

struct TensorGuard {
  Dtype dtype;
  Device device;
  int64_t rank;
  bool requires_grad;
  std::string name;
};

// How far a capture had come, in each of the lists that it appends to.
struct Progress {
  size_t inputs = 0, cells = 0, registers = 0, same_tensors = 0, aftermaths = 0;
  graph::SymbolicInputs::Progress sizes;
};

// Why guards do not hold, in words, and the line of the user's program that made the guard. Lines are looked up when
// somebody reads them.
struct Reason {
  std::string text;
  CallSite site = {};
  int64_t weight = 1;  // how many things it stands for that were not compared

  std::string str() const;
};

// By tensor: the first that is the same.
std::vector<int32_t> first_of_each(std::span<const Tensor> tensors);
bool same_constant(const dispatch::Value& a, const dispatch::Value& b);

class Guards {
 public:
  Guards() = default;
  // What `session` has met since `from`. `root`: also what the call as a whole was like.
  Guards(Session& session, const Progress& from, const Frame* root);

  // Appends to the frame's inputs and symbols if everything holds; the caller puts the frame back if not. Allocates
  // nothing in the usual case.
  bool check(Frame& frame) const;
  // What does not hold, as far as it can be compared; the first thing.
  std::vector<Reason> failures(Frame frame) const;
  Reason explain(const Frame& frame) const;
  std::vector<std::string> describe() const;
  // A closure tensor that is read here is gone, or may have been replaced.
  bool lost_closure() const;
  // The capture is over: keeps closure tensors that nobody holds but the session; what is done to variables that hold
  // the others is of interest from now on, if `watch`.
  void settle_closures(const Session& session, bool watch);
  // The line where a closure tensor is read that lives, but that a variable holds no longer; nothing if there is none.
  std::optional<CallSite> rebound_closure() const;
  // Nothing comes after these guards, so that inputs need not be held beyond what the caller holds: if they are just
  // the arguments, they are not copied.
  void end_here();
  // Of the inputs that were met here.
  const std::vector<InputSource>& sources() const { return sources_; }
  // Which inputs of the graph share memory, where it writes to some.
  void set_aliases(AliasGuard aliases) { aliases_ = std::move(aliases); }
  const AliasGuard& aliases() const { return aliases_; }
  // Of a frozen segment that ends the call and writes to nothing, with these inputs: as long as all its parameters are
  // what constants were computed from, nothing else is asked of them, and the frame gets none of them.
  void let_stand(std::shared_ptr<freezing::Frozen> frozen, std::span<const InputRef> inputs);
  // As they are, for whoever writes them down.
  struct Parts {
    bool grad_enabled;
    std::optional<Dtype> autocast;
    const std::vector<dispatch::Value>& constants;
    const std::vector<std::string>& argument_names;
    const std::vector<int32_t>& same_as;
    const std::vector<InputSource>& sources;
    const std::vector<TensorGuard>& tensors;
    const std::vector<CellFact>& cells;
    const std::vector<SameTensor>& same_tensors;
    const graph::SizeGuards& sizes;
  };
  Parts parts() const {
    return {grad_enabled_, autocast_, constants_, argument_names_, same_as_,
            sources_,      tensors_,  cells_,     same_tensors_,   sizes_};
  }
  // The sizes again: compiling may have asked more of them.
  void set_sizes(Session& session, const Progress& from);

 private:
  // Appends the inputs to the frame's. False if one is missing or of another kind. `stand`: parameters are left out.
  bool collect(Frame& frame, bool stand) const;
  bool all_stand(Frame& frame) const;
  Tensor fetch(size_t at, const Frame& frame) const;
  void add_call_mismatches(const Frame& frame, std::vector<Reason>& found) const;
  bool add_tensor_mismatches(Frame& frame, std::vector<Reason>& found) const;
  std::string input_name(const InputRef& ref) const;
  bool holds(const RegisterFact& fact, const Frame& frame) const;
  bool holds(const SameTensor& fact, const Frame& frame) const;
  // Closure tensors that are inputs, and those that are other inputs, too.
  template <typename Visit>
  void each_closure(const Visit& visit) const;
  bool holds(const CellFact& fact, Frame& frame) const;

  bool is_root_ = false;
  bool borrows_arguments_ = false;
  bool grad_enabled_ = true;
  std::optional<Dtype> autocast_;
  std::vector<dispatch::Value> constants_;
  size_t argument_count_ = 0;
  std::vector<std::string> argument_names_;
  std::vector<int32_t> same_as_;        // by argument: the first argument that is the same tensor
  size_t first_input_ = 0;              // how many inputs come before those of this slice
  std::vector<InputSource> sources_;    // by input
  std::vector<TensorGuard> tensors_;    // by input
  std::vector<std::string> all_names_;  // of the inputs of the whole path
  std::vector<CellFact> cells_;
  std::vector<RegisterFact> registers_;
  std::vector<SameTensor> same_tensors_;
  size_t first_aftermath_ = 0;
  std::vector<Aftermath> aftermaths_;  // of actions
  AliasGuard aliases_;
  std::shared_ptr<freezing::Frozen> frozen_;
  struct Parameter {
    const CellState* cell;  // that holds it; null: `sources_` says where it is
    int32_t input;          // of these guards
    int32_t frozen;         // which input of `frozen_` it is
  };
  std::vector<Parameter> parameters_;
  std::vector<int32_t> asked_for_;  // the inputs that are not among those that stand
  graph::SizeGuards sizes_;
};

}  // namespace tenon::capture
