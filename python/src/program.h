// `Program`: a functional program of ATen calls as another front end describes it, before it is a `Graph`.
//
// Everything is data: symbols with the values that they had when the program was made, tensors by their geometry,
// calls by the operator's name and named arguments. A number that may be symbolic is a plain one or an expression as
// text ("2*s0 + 1"). `Build` makes a graph of some of the calls by running them on fakes; it can do so again for other
// values of the symbols, which is how a part that specialised on a size is compiled once more.
#pragma once

#include <tenon/graph/recorder.h>
#include <tenon/support/decision.h>

#include <complex>
#include <map>

namespace tenon::python {

using Number = std::variant<int64_t, std::string>;

// A size (2 or more), an integer within a range, or a real. Named by the order of declaration, each kind from 0 on:
// s0, s1, … are integers, f0, f1, … reals.
struct Symbol {
  enum class Kind : uint8_t { Size, Integer, Real } kind = Kind::Size;
  int64_t hint = 0;  // of a real: the bits
  sym::Range range{};
};

struct TensorType {
  std::vector<Number> sizes, strides;
  Dtype dtype = Dtype::Float32;
  std::string str() const;
};

struct Reference {
  int32_t value;
};
struct Symbolic {
  std::string text;
};

// An argument as it was written.
struct Literal {
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, Reference, Symbolic,
               std::vector<Literal>>
      content;
  bool is_none() const { return std::holds_alternative<std::monostate>(content); }
  bool is_number() const;
};

struct CallDescription {
  std::string op;                                          // "aten::add.Tensor"
  std::vector<std::pair<std::string, Literal>> arguments;  // those that were written
  std::vector<std::optional<TensorType>> types;            // of its results; nothing: undefined
  std::vector<int32_t> results;                            // the values that they become
};

struct Program {
  std::vector<Symbol> symbols;
  std::vector<TensorType> types;  // by value; of an undefined one: without meaning
  std::vector<CallDescription> calls;

  int32_t add_value(TensorType type);
};

// A graph in the making.
class Build {
 public:
  // `hints`: by symbol.
  Build(const Program& program, std::span<const int64_t> hints);

  // A value that comes from outside.
  void add_input(int32_t value);
  bool has(int32_t value) const { return values_.contains(value); }
  // Runs a call on fakes and appends it. What the front end says of its results must be what our rules say; strides
  // that differ are brought to what it says. A refusal leaves the values of the call unmade.
  Decision call(const CallDescription& call);
  // The graph with these values as its results; nothing can be added afterwards.
  graph::Graph finish(std::span<const int32_t> outputs);

  sym::ShapeEnv& env() { return *recorder_.graph().env; }

 private:
  SymInt number(const Number& number);
  SymInts numbers(const std::vector<Number>& list);
  dispatch::Value symbolic(const std::string& text);
  dispatch::Value argument(const schema::Type& type, const Literal& literal);
  dispatch::Value wrapped(const Literal& number);
  dispatch::Values arguments(const dispatch::Operator& op, const CallDescription& call);
  void run(const dispatch::Operator& op, const CallDescription& call);
  Tensor with_type(const Tensor& made, const TensorType& type);

  const Program& program_;
  graph::Recorder recorder_;
  std::map<int32_t, Tensor> values_;
  std::map<std::string, SymInt, std::less<>> parsed_;
};

}  // namespace tenon::python
