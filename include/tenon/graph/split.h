// A graph in pieces, for a backend that compiles them one by one.
//
//   Backend in_two = [](const graph::Graph& whole) -> GraphFunction {
//     auto piece_of = [past = false](const graph::Node& node) mutable {
//       return int(past |= node.op->brief_name() == "mul");
//     };
//     std::vector<graph::Piece> pieces = graph::split(whole, piece_of);
//     std::vector<graph::PieceFunction> functions;
//     for (const graph::Piece& piece : pieces) functions.push_back(aot::interpreted(piece.graph));
//     return [whole, pieces, functions](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
//       return graph::run_pieces(whole, pieces, functions, inputs, symbols);
//     };
//   };
//   compile([](Tensor a) { return (a + 1) * 2; }, {.backend = in_two})(x);
#pragma once

#include <tenon/graph/graph.h>

namespace tenon::graph {

struct Piece {
  Graph graph;                           // of the same environment, and with the symbols of the whole
  std::vector<ValueId> inputs, outputs;  // its own, as values of the whole
};

// Nodes for which `piece_of` gives the same number are a piece. Pieces run in the order of the program: a number that
// falls is an Error, and so is a size that one piece takes from data and another needs.
std::vector<Piece> split(const Graph& graph, const std::function<int(const Node&)>& piece_of);

// Runs a piece, or a graph, on tensors, given the values of the symbols.
using PieceFunction =
    std::function<std::vector<dispatch::Value>(std::span<const Tensor> inputs, std::span<const int64_t> symbols)>;

// What the whole graph gives, by one function for each piece.
std::vector<dispatch::Value> run_pieces(const Graph& whole, std::span<const Piece> pieces,
                                        std::span<const PieceFunction> functions, std::span<const Tensor> inputs,
                                        std::span<const int64_t> symbols);

}  // namespace tenon::graph
