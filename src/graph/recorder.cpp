#include <tenon/graph/recorder.h>

namespace tenon::graph {

ValueId Recorder::add_input(const Tensor& tensor, std::string name, const Tensor& meta) {
  names_.insert(name);
  ValueId id = graph_.add_value(std::move(name), meta);
  graph_.inputs.push_back(id);
  bind(tensor, id);
  return id;
}

ValueId Recorder::find(const Tensor& tensor) const {
  auto found = ids_.find(tensor.impl());
  return found == ids_.end() ? kNoValue : found->second.second;
}

void Recorder::bind(const Tensor& tensor, ValueId id) { ids_[tensor.impl()] = {tensor, id}; }

Argument Recorder::to_argument(const dispatch::Value& value) {
  auto id_of = [&](const Tensor& tensor) {
    if (!tensor.defined()) return kNoValue;
    ValueId id = find(tensor);
    if (id != kNoValue) return id;
    TENON_ASSERT(unknown, "a tensor {} that the graph does not know", tensor.description());
    return unknown(tensor);
  };
  switch (value.tag()) {
    case dispatch::Value::Tag::Tensor: return id_of(value.tensor());
    case dispatch::Value::Tag::Tensors: {
      ValueList list;
      for (const Tensor& tensor : value.tensors()) list.ids.push_back(id_of(tensor));
      return list;
    }
    case dispatch::Value::Tag::OptionalTensors: {
      ValueList list{{}, true};
      for (const auto& tensor : value.optional_tensors()) list.ids.push_back(tensor ? id_of(*tensor) : kNoValue);
      return list;
    }
    default: return value.own();
  }
}

Node& Recorder::record(const dispatch::Operator& op, std::span<const dispatch::Value> args,
                       std::span<const dispatch::Value> results, const std::function<Tensor(const Tensor&)>& meta_of) {
  Node node;
  node.op = &op;
  for (const dispatch::Value& arg : args) node.args.push_back(to_argument(arg));
  for (const dispatch::Value& result : results)
    result.each_tensor([&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      ValueId known = find(tensor);
      // An in-place operator returns the tensor that it was given.
      if (known != kNoValue && op.schema().is_mutable()) {
        node.outputs.push_back(known);
        return;
      }
      // An input may bring a number as its name from the graph that it was a value of.
      std::string name = std::to_string(graph_.values.size());
      while (names_.contains(name)) name += "_";
      ValueId id = graph_.add_value(std::move(name), meta_of ? meta_of(tensor) : tensor);
      bind(tensor, id);
      node.outputs.push_back(id);
    });
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back();
}

}  // namespace tenon::graph
