// PyTorch as a second opinion: programs run in a long-lived Python process (peer.py) that says what it sees.
#pragma once

#include "fuzz/observe.h"

#include <cstdio>
#include <map>

namespace tenon::fuzz {

// A program as Python text: `P`, the data of its world, and `function`.
std::string python_source(const Program& program);
// Custom operators and random numbers are ours alone; a difference in the last bits must not become large.
bool has_peer(const Program& program);

class Peer {
 public:
  explicit Peer(const std::string& python);  // that has PyTorch
  ~Peer();
  Peer(const Peer&) = delete;

  // What PyTorch leaves to see, by program and call.
  std::vector<std::vector<Observation>> run(const std::vector<Program>& programs);

 private:
  int process_ = 0;
  FILE *to_ = nullptr, *from_ = nullptr;
};

struct PeerDifference {
  std::string text;    // empty: none
  std::string aspect;  // values, dtype, strides, requires_grad, gradients, raises, sharing
};
PeerDifference compare_with_peer(const Program& program, const std::vector<Observation>& ours,
                                 const std::vector<Observation>& theirs);

// peer_known.txt: lines "operator aspect: reason", or "operator aspect "text": reason" for differences that are told
// with that text; `*` stands for any operator or aspect, `hook` and `requires_grad_` for
// statements that are no operators.
class KnownDifferences {
 public:
  explicit KnownDifferences(const std::string& path);
  // The operator of the program that a line names with this difference; empty if there is none.
  std::string find(const Program& program, const PeerDifference& difference) const;

 private:
  std::multimap<std::string, PeerDifference> known_;  // by operator
};

// The operators that the texts of a program's statements call, in order.
std::vector<std::string> operators_of(const Program& program);

}  // namespace tenon::fuzz
