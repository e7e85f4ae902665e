// `Graph`: a straight-line program of operator calls.
//
// A value is a tensor, known by its fake (`meta`): sizes, which may be symbolic, strides, dtype. It is an input or an
// output of one node. A node's arguments mirror its operator's schema: a reference to a value, a list of references, or
// a constant. Symbolic numbers among the constants are expressions of the graph's `ShapeEnv`; `symbols` says where, in
// the inputs, the values of the symbols are found when the graph runs.
#pragma once

#include <tenon/core/size_guards.h>
#include <tenon/dispatch/operator.h>
#include <tenon/sym/env_copy.h>

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tenon::graph {

using ValueId = int32_t;
constexpr ValueId kNoValue = -1;

struct ValueList {
  std::vector<ValueId> ids;  // kNoValue: None
  bool optional = false;     // Tensor?[]
  bool operator==(const ValueList&) const = default;
};

// A constant is an owned `dispatch::Value` without tensors.
using Argument = std::variant<dispatch::Value, ValueId, ValueList>;

struct ValueInfo {
  std::string name;
  Tensor meta;  // a fake tensor
};

// An unbacked symbol that a node gives a value to: what its result, or the geometry of one of its outputs, turns out to
// be.
struct Binding {
  enum class Kind : uint8_t {
    Item,  // a number that the node returns
    Size,
    Stride,
    Offset,
    Hidden,  // it shows nowhere outside of the node; a composite has it, and one of its parts binds it
  } kind = Kind::Hidden;
  int32_t symbol = -1;
  int32_t output = -1;  // position among the node's outputs; of an Item: -1
  int32_t dim = -1;     // of an Item: which of the node's results
};

struct Node {
  dispatch::OperatorRef op;
  std::vector<Argument> args;
  std::vector<ValueId> outputs;  // one per schema return; of a list return: as many as the list has
  bool grad_enabled = true;      // grad mode at the call, in a captured graph
  std::string place;             // where in the user's program
  int64_t sequence = -1;         // of a forward node, or of the one that a backward node differentiates
  std::string module;            // path of the module that called it; of a backward node: empty
  std::vector<Binding> binds;    // in the order in which the symbols were made
  int32_t draw = -1;             // of a random operator in a graph made for a call: which of the call's draws it uses
};

// The generator is seeded, in a captured program.
struct SeedEvent {
  size_t position = 0;   // how many nodes come before
  dispatch::Value seed;  // an integer, possibly symbolic
};

using core::SymbolSource;

// An output that an input becomes. Whoever runs the graph may write it there himself; then the output is the input.
struct Written {
  int32_t output = -1;  // positions among the outputs and the inputs
  int32_t input = -1;
};

struct Graph {
  Ref<sym::ShapeEnv> env;
  std::vector<ValueInfo> values;
  std::vector<ValueId> inputs;
  std::vector<Node> nodes;
  std::vector<Argument> outputs;      // values, or constants (symbolic numbers)
  std::vector<SymbolSource> symbols;  // by symbol id of `env`
  std::vector<SeedEvent> seeds;       // of a captured graph, in order
  std::vector<Written> written;       // of a functional graph

  ValueId add_value(std::string name, Tensor meta);
  const Tensor& meta(ValueId id) const { return values[static_cast<size_t>(id)].meta; }
};

// Short readable text: one line per node.
std::string to_string(const Graph& graph);

// Throws an InternalError that shows the graph and names the first rule that it breaks: every reference is to an
// earlier value, every node's arguments fit its schema, values have metadata, symbols have sources.
void verify(const Graph& graph);

// Calls `visit(ValueId)` for every reference.
void each_reference(const Argument& argument, const std::function<void(ValueId)>& visit);
void each_reference(const Node& node, const std::function<void(ValueId)>& visit);

// Users of each value, by node position; outputs of the graph are not counted.
std::vector<std::vector<int32_t>> users_of(const Graph& graph);

// Calls `visit(symbol id)` for every symbol in the numbers of an argument, in the geometry of a value.
void each_symbol(const Argument& argument, const std::function<void(int32_t)>& visit);
void each_symbol(const Tensor& meta, const std::function<void(int32_t)>& visit);

// Removes nodes whose results nobody reads, neither the tensors nor the symbols that they bind. Keeps mutating nodes,
// and what the environment's deferred checks need.
void remove_dead_code(Graph& graph);

// The symbol's value after its node has run; of reals: the bits.
int64_t bound_value(const Binding& binding, std::span<const dispatch::Value> results, std::span<const Tensor> outputs);
// A number as symbols carry it: integers and bools as they are, reals by their bits.
int64_t symbol_bits(const dispatch::Value& number);
// What an expression of integer, boolean or real type is for these symbols.
dispatch::Value evaluate_number(sym::Expr expr, std::span<const int64_t> symbols);
// The same for every symbolic number of a constant argument.
dispatch::Value evaluate_numbers(const dispatch::Value& value, std::span<const int64_t> symbols);

// The values of all symbols for these inputs, by symbol id (0 for symbols without a source).
std::vector<int64_t> bind_symbols(const Graph& graph, std::span<const Tensor> inputs,
                                  std::span<const int64_t> numbers = {});

// The graph with its expressions in the copy of its environment.
Graph in_copy(const Graph& graph, const sym::EnvCopy& copy);
// The symbols that nodes of the graph give a value to, as a copy of its environment wants to know them. `known`: the
// graph has run before, on the same data.
std::vector<sym::EnvCopy::Bound> bound_symbols(const Graph& graph, bool known);

struct InterpretOptions {
  // Values of the symbols; empty: symbolic numbers are passed as they are (a graph re-run on fakes of its own
  // environment).
  std::span<const int64_t> symbols = {};
  std::function<void(const Node&)> before_node = {};
  std::function<void(ValueId, Tensor&)> made =
      {};                  // sees each value that a node makes, and may put another in its place
  bool free_early = true;  // drop values after their last use
  bool seeds = true;       // seed the generator where the program does; false: nothing is drawn, the run is on fakes
};

// Runs the graph through the dispatcher, node by node.
std::vector<dispatch::Value> interpret(const Graph& graph, std::span<const Tensor> inputs,
                                       const InterpretOptions& options = {});

}  // namespace tenon::graph
