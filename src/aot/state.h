// What was made of a program, and what is made of it later on: backward, backward of some results, the next order.
#pragma once

#include "variants.h"

#include <tenon/aot/aot.h>
#include <tenon/core/draws.h>

#include <map>

namespace tenon::aot {

struct State {
  Program program;
  JointGraph joint;
  Partition parts;
  GraphCompiler compiler;
  bool refuse_double_backward = false;
  sym::EnvSnapshot known;       // what the guards make sure of
  uint64_t serial = 0;          // never that of another
  bool can_be_inlined = false;  // backward is a graph that can become a part of another one
  GraphFunction forward;
  std::vector<bool>
      reads;  // by input, of a program that computes gradients: it, or a derivative of it, takes its value

  // A backward graph; compiled at its first use.
  struct Backward {
    std::shared_ptr<const graph::Graph> graph;
    std::vector<bool> read;      // by saved value, whether it is an input
    std::vector<bool> reached;   // by gradient, whether there is one
    std::vector<int32_t> draws;  // random numbers that it draws, in order
    Variants<GraphFunction> compiled;
  };
  // `given`: by tangent, whether it has a value.
  Backward& backward(const std::vector<bool>& given, std::span<const int64_t> symbols);
  std::shared_ptr<GraphFunction> compiled(Backward& backward, std::span<const int64_t> symbols);

  // The program differentiated once more.
  std::shared_ptr<State> differentiated(const GradientLevel& level, bool history, std::span<const int64_t> symbols);

 private:
  // By gradient: whether eager computes one, be it zeros, if these tangents have a value.
  std::vector<bool> reached_from(const std::vector<bool>& given, std::span<const int64_t> symbols) const;
  bool are_places_kept(const sym::EnvCopy& copy) const;
  Backward* known_backward(const std::vector<bool>& given);
  std::unique_ptr<Backward> make_backward(const std::vector<bool>& given, std::span<const int64_t> symbols) const;

  support::ForkSafe<std::mutex> mutex_;                              // of the maps
  std::mutex making_;                                                // one backward at a time, inside of `Undivided`
  std::map<std::vector<bool>, std::unique_ptr<Backward>> backward_;  // by which tangents are given
  std::map<std::pair<GradientLevel, bool>, std::unique_ptr<Variants<State>>> orders_;
};

std::shared_ptr<State> make_state(Program program, const GraphCompiler& compiler, bool refuse_double_backward);

// Runs forward, and puts back what it left out. `given`: the program's first draws.
std::vector<dispatch::Value> run_wrapped(const std::shared_ptr<State>& state, std::span<const Tensor> inputs,
                                         std::span<const int64_t> symbols, std::span<const Draw> given = {});

}  // namespace tenon::aot
