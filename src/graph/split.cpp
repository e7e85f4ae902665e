#include <tenon/graph/split.h>

#include <algorithm>
#include <set>

namespace tenon::graph {
namespace {

bool contains(const std::vector<ValueId>& list, ValueId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

// Consecutive nodes of the whole as a graph of their own.
class PieceMaker {
 public:
  PieceMaker(const Graph& whole, size_t first, size_t last) : whole_(whole), first_(first), last_(last) {}

  Piece make(const std::vector<bool>& read_later) {
    piece_.graph.env = whole_.env;
    piece_.graph.symbols = whole_.symbols;
    becomes_.assign(whole_.values.size(), kNoValue);
    std::vector<ValueId> made;
    for (size_t at = first_; at < last_; ++at) {
      each_reference(whole_.nodes[at], [&](ValueId id) {
        if (becomes_[static_cast<size_t>(id)] != kNoValue) return;
        piece_.inputs.push_back(id);
        piece_.graph.inputs.push_back(add(id));
      });
      for (ValueId id : whole_.nodes[at].outputs) {
        if (becomes_[static_cast<size_t>(id)] == kNoValue) add(id);
        if (!contains(made, id)) made.push_back(id);
      }
    }
    for (size_t at = first_; at < last_; ++at) piece_.graph.nodes.push_back(renamed(whole_.nodes[at]));
    for (ValueId id : made)
      // An input that the piece writes to has its new value already.
      if (read_later[static_cast<size_t>(id)] && !contains(piece_.inputs, id)) {
        piece_.outputs.push_back(id);
        piece_.graph.outputs.push_back(becomes_[static_cast<size_t>(id)]);
      }
    verify(piece_.graph);
    return std::move(piece_);
  }

 private:
  ValueId add(ValueId id) {
    const ValueInfo& value = whole_.values[static_cast<size_t>(id)];
    return becomes_[static_cast<size_t>(id)] = piece_.graph.add_value(value.name, value.meta);
  }

  Node renamed(Node node) const {
    auto rename = [&](ValueId& id) {
      if (id != kNoValue) id = becomes_[static_cast<size_t>(id)];
    };
    for (Argument& argument : node.args) {
      if (auto* id = std::get_if<ValueId>(&argument)) rename(*id);
      if (auto* list = std::get_if<ValueList>(&argument))
        for (ValueId& id : list->ids) rename(id);
    }
    for (ValueId& id : node.outputs) rename(id);
    return node;
  }

  const Graph& whole_;
  size_t first_, last_;
  std::vector<ValueId> becomes_;  // by value of the whole
  Piece piece_;
};

// A symbol that a node binds is known inside of its piece alone.
void check_symbols(const Graph& graph, const std::vector<size_t>& ends) {
  std::set<int32_t> bound;
  size_t first = 0;
  for (size_t last : ends) {
    auto check = [&](int32_t id) {
      TENON_CHECK(!bound.contains(id), "[split] the size {} is taken from data in one piece and needed in another",
                  graph.env->pool().symbol(id).name());
    };
    for (size_t at = first; at < last; ++at) {
      for (const Argument& argument : graph.nodes[at].args) each_symbol(argument, check);
      each_reference(graph.nodes[at], [&](ValueId id) { each_symbol(graph.meta(id), check); });
    }
    for (size_t at = first; at < last; ++at)
      for (const Binding& binding : graph.nodes[at].binds) bound.insert(binding.symbol);
    first = last;
  }
}

}  // namespace

std::vector<Piece> split(const Graph& graph, const std::function<int(const Node&)>& piece_of) {
  std::vector<size_t> ends;
  int before = 0;
  for (size_t at = 0; at < graph.nodes.size(); ++at) {
    int number = piece_of(graph.nodes[at]);
    TENON_CHECK(at == 0 || number >= before,
                "[split] {} belongs to piece {} and comes after one of piece {}: pieces run in the program's order",
                graph.nodes[at].op->name(), number, before);
    if (at > 0 && number != before) ends.push_back(at);
    before = number;
  }
  if (!graph.nodes.empty()) ends.push_back(graph.nodes.size());
  if (graph.env) check_symbols(graph, ends);
  std::vector<bool> read(graph.values.size());
  auto reads = [&](ValueId id) { read[static_cast<size_t>(id)] = true; };
  for (const Argument& output : graph.outputs) each_reference(output, reads);
  std::vector<Piece> pieces;
  for (size_t at = ends.size(); at-- > 0;) {
    size_t first = at == 0 ? 0 : ends[at - 1];
    pieces.push_back(PieceMaker(graph, first, ends[at]).make(read));
    for (size_t node = first; node < ends[at]; ++node) each_reference(graph.nodes[node], reads);
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<dispatch::Value> run_pieces(const Graph& whole, std::span<const Piece> pieces,
                                        std::span<const PieceFunction> functions, std::span<const Tensor> inputs,
                                        std::span<const int64_t> symbols) {
  TENON_CHECK(functions.size() == pieces.size() && inputs.size() == whole.inputs.size(),
              "[run_pieces] expected {} functions and {} inputs, got {} and {}", pieces.size(), whole.inputs.size(),
              functions.size(), inputs.size());
  std::vector<Tensor> values(whole.values.size());
  for (size_t at = 0; at < inputs.size(); ++at) values[static_cast<size_t>(whole.inputs[at])] = inputs[at];
  for (size_t at = 0; at < pieces.size(); ++at) {
    std::vector<Tensor> given;
    for (ValueId id : pieces[at].inputs) given.push_back(values[static_cast<size_t>(id)]);
    std::vector<dispatch::Value> results = functions[at](given, symbols);
    TENON_CHECK(results.size() == pieces[at].outputs.size(), "[run_pieces] piece {} gave {} results, expected {}", at,
                results.size(), pieces[at].outputs.size());
    for (size_t result = 0; result < results.size(); ++result)
      values[static_cast<size_t>(pieces[at].outputs[result])] = results[result].tensor();
  }
  std::vector<dispatch::Value> outputs;
  for (const Argument& output : whole.outputs) {
    if (const auto* id = std::get_if<ValueId>(&output))
      outputs.push_back(*id == kNoValue ? dispatch::Value()
                                        : dispatch::Value(Tensor(values[static_cast<size_t>(*id)])));
    else
      outputs.push_back(evaluate_numbers(std::get<dispatch::Value>(output), symbols));
  }
  return outputs;
}

}  // namespace tenon::graph
