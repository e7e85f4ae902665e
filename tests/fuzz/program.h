// Random programs over the operator table, and what they must satisfy: eager, compiled (static and dynamic), and the
// other backends agree, forward and backward.
//
// A program is a list of statements `v7 = sin(v3)`; operands are inputs and earlier values. Sizes are three letters
// whose values change from run to run, so that one program serves several sizes. Programs without reductions and
// products must agree bit for bit.
#pragma once

#include <tenon/core/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::fuzz {

constexpr int kSizeSets = 3;

struct Input {
  std::vector<int> shape;  // positions in a size set; -1 is a size of 1
  Dtype dtype = kFloat32;
  int placement = 0;  // of test::Placement
};

struct Statement {
  size_t operation;  // position in the table of program.cpp
  int x, y;          // values; y is unused by operations of one operand
  int64_t n;         // a dimension
};

struct Program {
  uint64_t seed = 0;
  std::vector<Input> inputs;
  std::vector<Statement> statements;
  std::vector<int> outputs;  // values: inputs first, then one per statement

  bool exact() const;  // every operation gives the same bits however it is compiled
};

// What is wrong with a program, and how it was run.
struct Finding {
  std::string text;              // empty if nothing is wrong
  std::string options;           // of compile(): ".dynamic = Dynamic::On"
  std::vector<int> calls = {0};  // the size sets that it was called with; the last call shows it
  bool gradients = false;        // it is the gradients that are wrong

  explicit operator bool() const { return !text.empty(); }
};

Program random_program(uint64_t seed);
Finding check(const Program& program);

// A program in C++, with the values of its inputs, that runs as the finding was made and prints what eager and what
// compiled code gives.
std::string source(const Program& program, const Finding& finding);

// The smallest program found, by leaving statements out, for which `check` still complains.
Program reduce(Program program);

}  // namespace tenon::fuzz
