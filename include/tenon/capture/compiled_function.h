// What stands behind `compile(fn)`: the graphs captured so far, each with the guards under which it may be used.
//
// A call looks for an entry whose guards hold and runs it; the user's function does not run. Without one the function
// is run on fake tensors, its operators are recorded, and the graph is compiled by the backend. Tensors that the
// function reaches other than through its arguments become inputs too: those in a `Cell` are read again at every call,
// others are known by their identity and held weakly.
#pragma once

#include <tenon/aot/aot.h>
#include <tenon/dispatch/value.h>
#include <tenon/support/function_ref.h>

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

//   auto f = compile([](Tensor a) { return a.exp(); }, {.dynamic = Dynamic::On});
enum class Dynamic : uint8_t {
  Auto,  // sizes are static at first; one that changes becomes dynamic at the next compile
  On,    // all sizes are dynamic at once
  Off,   // every new size is a new compile
};

// Runs a captured graph: given its inputs and the values of its symbols.
using GraphFunction = aot::GraphFunction;

// "inductor": differentiated ahead of time, fused, compiled. "aot_eager": differentiated ahead of time, then run by the
// graph interpreter. "eager": the captured graph, run as it is. Or a function of the user's from a graph to a callable.
//
//   Backend looking = [](const graph::Graph& graph) -> GraphFunction {
//     fmt::print("{}", graph::to_string(graph));
//     return [graph](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
//       graph::InterpretOptions options;
//       options.symbols = symbols;
//       return graph::interpret(graph, inputs, options);
//     };
//   };
//   bool mine = looking.name() == "custom" && looking.custom() && looking.serial() > 0;
//   compile([](Tensor a) { return a + 1; }, {.backend = looking})(x);
class Backend {
 public:
  Backend(const char* name) : Backend(std::string(name)) {}
  Backend(std::string name);  // an Error that lists the known ones
  Backend(std::function<GraphFunction(const graph::Graph&)> custom);
  template <typename F>
    requires std::is_invocable_r_v<GraphFunction, F&, const graph::Graph&>
  Backend(F custom) : Backend(std::function<GraphFunction(const graph::Graph&)>(std::move(custom))) {}

  const std::string& name() const { return name_; }
  const std::function<GraphFunction(const graph::Graph&)>& custom() const { return custom_; }
  // Copies of a backend have the same; of those with a name it is 0.
  uint64_t serial() const { return serial_; }

 private:
  std::string name_;
  uint64_t serial_ = 0;
  std::function<GraphFunction(const graph::Graph&)> custom_;
};

// Parameters as constants, for functions that only infer. Tensors that the function reaches by itself (cells, a
// module's parameters among them, and variables that it captured) are taken for constants where gradients are off: what
// is computed from them alone is computed once, and again when one of them has changed. See docs/freezing.md.
//
//   nn::Linear layer(3, 2);
//   auto infer = compile([&](Tensor a) { return layer(a) * 2; }, {.freeze = Freeze::On});
//   NoGrad off;
//   infer(x);                                        // twice the layer's weight is a constant of it
//   infer.update({{"weight", zeros({2, 3})}});       // follows, without a compile
enum class Freeze : uint8_t { Off, On };

// Derivatives of a compiled function's derivatives. Refusing saves what only they need of the function's inputs.
enum class DoubleBackward : uint8_t { Allow, Refuse };

//   CompileOptions options{.fullgraph = true, .dynamic = Dynamic::Off, .backend = "aot_eager"};
//   compile([](Tensor a) { return a + 1; }, options)(x);
//   compile([](Tensor a) { return a + 1; }, {.double_backward = DoubleBackward::Refuse})(x);
struct CompileOptions {
  bool fullgraph = false;  // an Error where the function would otherwise be captured as more than one graph
  Dynamic dynamic = Dynamic::Auto;
  Backend backend = "inductor";
  Freeze freeze = Freeze::Off;
  // Of a frozen function: parameters in cells are given up once what is computed from them is there. Sizes of arguments
  // are dynamic then, because nothing can be captured again; reading such a parameter is an Error.
  bool discard_parameters = false;
  int recompile_limit = 8;              // past it, calls that fit nothing that was compiled run eagerly
  bool capture_scalar_outputs = false;  // item() gives a symbol instead of ending the graph
  bool capture_dynamic_output_shape_ops =
      false;                        // nonzero() and the like give a symbolic size instead of ending the graph
  bool error_on_recompile = false;  // an Error, with the reason, where a second compile would come
  bool eager_on_backend_error =
      false;  // a backend that throws makes the call run eagerly, instead of passing the error on
  bool eager_while_compiling = false;  // calls from other threads run eagerly while one compiles, instead of waiting
  // What backward(create_graph) through the function gives: gradients that can be differentiated again, or such that an
  // Error comes when they are.
  DoubleBackward double_backward = DoubleBackward::Allow;
  // Operands of matrix products are padded with zeros to rows of whole vector registers, where that may pay. (The
  // library packs operands by itself; so measure before setting this.)
  bool pad_products = false;
  // Backward walks that start while the function runs are captured and compiled as well (compiled_autograd/enable.h).
  bool compiled_autograd = false;
  std::vector<std::string> argument_names = {};  // of the tensors, for guards and messages; without: arg0, arg1, …
  std::function<void(const std::string& reason)> guard_fail = nullptr;  // told why a call needs a new compile
};

// What compiled functions do on calls that nothing compiled fits, process-wide. The innermost one alive holds.
//
//   SetStance until_the_end_of_the_scope(Stance::ForceEager);
//   compile([](Tensor a) { return a + 1; })(x);  // compiles nothing
enum class Stance : uint8_t {
  Default,
  ForceEager,       // every call runs eagerly, compiled or not
  FailOnRecompile,  // a call that needs a new compile after the first is an Error
};
class SetStance {
 public:
  explicit SetStance(Stance stance);
  ~SetStance();
  SetStance(const SetStance&) = delete;

 private:
  Stance before_;
};

// What a compiled function did and why, as text for people.
//
//   auto f = compile([](Tensor a) { return a + 1; });
//   f(x);
//   Explanation explanation = f.explain();
//   for (const Explanation::Entry& entry : explanation.entries) fmt::print("{}\n", entry.captured);
//   fmt::print("{}", explanation.str());
//   std::ostringstream page;
//   page << explanation;
struct Explanation {
  struct Entry {
    std::string captured, joint, forward, backward;  // graphs; empty where there is none
    std::vector<std::string> guards;
    bool eager = false;                 // these calls run eagerly
    int depth = 0;                      // how many breaks come before
    std::string why;                    // the break that ends it; empty: it returns
    std::string frozen;                 // of a frozen one: what runs at every call, its constants last among the inputs
    std::vector<std::string> freezing;  // what was folded, and what was not and why
  };
  std::vector<Entry> entries;           // of graphs that follow on a break: behind the one that breaks
  std::vector<std::string> recompiles;  // why each compile after the first was needed
  std::vector<std::string> breaks;      // why graphs end, or calls run eagerly
  std::string str() const;
};
std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

namespace capture {

// Runs the user's function with these tensors and numbers in place of its arguments; gives its results, flattened.
using Body = FunctionRef<std::vector<dispatch::Value>(std::span<const Tensor>, std::span<const dispatch::Value>)>;

class CompiledFunction {
 public:
  explicit CompiledFunction(CompileOptions options);
  ~CompiledFunction();

  // `numbers`: become symbols. `constants`: each combination is compiled for itself.
  std::vector<dispatch::Value> call(std::span<const Tensor> tensors, std::span<const dispatch::Value> numbers,
                                    std::span<const dispatch::Value> constants, Body body);

  // Dimensions of arguments that will change, by their size: the first capture takes them for dynamic.
  void foresee(std::span<const Tensor> tensors, FunctionRef<bool(int64_t size)> changes);

  // Of a frozen function: other tensors for parameters, by the names of their cells.
  void update(std::span<const std::pair<std::string, Tensor>> tensors);
  void refresh();

  int64_t compile_count() const;
  void reset();
  Explanation explain() const;

 private:
  friend class Capture;
  friend struct Captured;
  struct State;
  std::unique_ptr<State> state_;
};

// What makes `CompileOptions::compiled_autograd` hold while what it gives is alive; set by the room that knows it.
using WalkCompiler = std::shared_ptr<void> (*)(const CompileOptions& options);
void set_walk_compiler(WalkCompiler compiler);

// Whether a capture is running on this thread.
bool is_capturing();
// In a capture: ends the graph, runs `action` on the real tensors behind these fakes, and gives fakes of its results.
std::vector<Tensor> run_disabled(std::span<const Tensor> tensors,
                                 std::function<std::vector<Tensor>(std::span<const Tensor>)> action);

}  // namespace capture
}  // namespace tenon
