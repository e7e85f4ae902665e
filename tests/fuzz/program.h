// Random programs, and what they must satisfy: eager and compiled runs agree in everything that a user can see.
//
// A program is a function and the world around it. The world has bases (tensors that own memory), and sources: views of
// bases that the function gets as arguments, closure tensors or cells. The function is a list of statements over
// values: the sources first, then what statements make. After each call the user goes on: writes to results, and
// differentiates. Sizes are three letters whose values change from call to call, and so do contents and who shares
// memory with whom.
//
//   program.h    the program itself: plain data
//   features.h   what a program may contain, each with a switch
//   grammar.h    the table of operations, and the views that sources are
//   generate.cpp random_program
//   world.h      the tensors outside of the function
//   machine.h    runs statements; loops.h: those that are loops or branches
//   observe.h    what a run leaves to see, and comparing that
//   check.cpp    runs a program on every backend
//   print.cpp    a program as a C++ program; print_python.cpp: as a PyTorch program
//   reduce.cpp   a smaller program with the same fault
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::fuzz {

// A tensor that owns memory. One that is kept lives from call to call, until sizes change or a call remakes it.
struct Base {
  std::vector<int> shape;  // positions in a size set; -1 is a size of 1
  Dtype dtype = kFloat32;
  int placement = 0;  // of test::Placement
  int extra = 0;      // rows more than the letters say, in dimension 0: room for views that overlap
  bool requires_grad = false;
  bool computed = false;  // not a leaf, but computed from one
  bool kept = false;
};

// What the function reads, in one call: `base` through view `view` of grammar.h.
struct View {
  size_t base = 0, view = 0;
  bool operator==(const View&) const = default;
};

enum class Role : uint8_t { Argument, Closure, Cell };
struct Source {
  Role role = Role::Argument;
  std::vector<View> views;  // one per call
};

enum class Contents : uint8_t { Ordinary, NonePositive, OnePositive };
struct Call {
  size_t sizes = 0;  // position in kSizes of grammar.h
  Contents contents = Contents::Ordinary;
  bool remake = false;      // kept bases are made anew
  bool transposed = false;  // bases that are otherwise contiguous are column-major
};

enum class Kind : uint8_t {
  Operation,     // results[0] = operation(operands)
  GradMode,      // set_grad_enabled(n), without a scope
  Scope,         // { SetGradMode mode(n); body }
  Seed,          // manual_seed(n)
  Hook,          // register_hook(operands[0], gradient * n)
  RequiresGrad,  // operands[0].set_requires_grad(n)
  Grad,          // results = grad(sum(operands[0]), the other operands), create_graph = n
  Backward,      // sum(operands[0]).backward(), create_graph = n
  Rate,          // results[0] = operands[0] * rate, a Cell<double>
  Custom,        // results = custom operator `operation` of the program
  Formula,       // results[0] = outside_formula(operands[0], n), of formulas.h
  Inner,         // results = inner(operands): a compiled (n = 0) or disabled (n = 1) function
  Loop,          // results = run_loop(body, operands, reverse = n), of loops.h
  Branch,        // results = run_branch(body, operands, n), likewise
  While,         // results = run_while(body, operands), likewise
};

struct Statement {
  Kind kind = Kind::Operation;
  size_t operation = 0;
  std::vector<int> operands, results;
  int64_t n = 0;  // a dimension, or as the kind says
  std::vector<Statement> body = {};
  std::vector<int> parameters = {},
                   returns = {};  // Inner and behind it: what operands are called inside, and what it gives
};

// What the user does after a call: in-place operations on what is in reach, then backward.
struct Action {
  size_t operation = 0;   // in place, of the table
  int target = 0, other;  // bases first, then sources, then results
};
struct After {
  std::vector<Action> actions;
  int order = 0;          // how often is differentiated
  bool of_bases = false;  // bases are among what is differentiated, not results alone
  bool between = false;   // gradients with respect to results are taken, too
};

struct Program {
  uint64_t seed = 0;
  std::vector<Base> bases;
  std::vector<Source> sources;
  std::vector<Call> calls;
  std::vector<std::string> custom;  // schemas of operators, "(Tensor(a!) x, int n) -> Tensor"
  std::vector<Statement> statements;
  std::vector<int> outputs;  // values
  int values = 0;            // how many names there are
  bool grad_mode = true;     // when a call begins
  bool old_live = false;     // kept bases that were made anew live on
  After after;
  std::vector<std::string> dynamic = {"Off", "Off", "Off"};  // of the three backends
  bool verify = false;                                       // captures are verified
  bool nudged = false;                                       // reals are off by a little
  bool widened = false;                                      // reals are float64, with the numbers that they would be

  bool exact() const;  // every operation gives the same bits however it is compiled
};

// Whether a statement writes to a tensor, or may.
bool writes_in_place(const Program& program);

// What is wrong with a program, and how it was run.
struct Finding {
  std::string text;     // empty if nothing is wrong
  std::string options;  // of compile(): ".dynamic = Dynamic::On"
  size_t calls = 1;     // how many it took
  bool walks = false;   // nothing was compiled, but backward walks were captured

  explicit operator bool() const { return !text.empty(); }
};

Program random_program(uint64_t seed);
Finding check(const Program& program);

// Whether eager runs the program, every number stays in reach, and nothing is written where elements share memory.
// `may_raise`: calls after the first may also be refused.
bool runs_eagerly(const Program& program, bool may_raise = false);

// A program in C++, with the values of its inputs, that runs as the finding was made and prints what eager and what
// compiled code gives.
std::string source(const Program& program, const Finding& finding);

// The smallest program found, by leaving things out, for which `check` still complains, or that still is as `wanted`.
Program reduce(Program program);
Program reduce(Program program, const std::function<bool(const Program&)>& wanted, int tries = 600);

// Names values in the order in which they are made, without gaps.
void renumber(Program& program);

// Calls `visit` with every statement, those inside of others too.
template <typename Statements, typename Visit>
void each_statement(Statements& statements, const Visit& visit) {
  for (auto& statement : statements) {
    visit(statement);
    each_statement(statement.body, visit);
  }
}

}  // namespace tenon::fuzz
