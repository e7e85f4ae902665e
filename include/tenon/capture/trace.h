// `trace(fn, mode, args…)`: the operators that a function calls, as a graph; nothing is computed.
//
//   graph::Graph graph = trace([](Tensor a) { return a.sin().sum(); }, Tracing::Symbolic, x);
//
// The function runs on fakes of its arguments below autograd: views and in-place operators stand in the graph as they
// were called. `export_joint(fn, mode, args…)`: the same with its gradients, and without mutation; see aot/export.h.
//
//   Tensor w = ones({3}).set_requires_grad();
//   aot::JointGraph joint = export_joint([](Tensor a) { return a.sin().sum(); }, Tracing::Fake, w);
//   size_t results = joint.graph.outputs.size();  // the sum, and the gradient of w
#pragma once

#include <tenon/aot/export.h>
#include <tenon/capture/compile.h>
#include <tenon/graph/graph.h>

namespace tenon {

enum class Tracing : uint8_t {
  Fake,      // sizes as they are
  Symbolic,  // sizes are symbols
};

namespace capture {
graph::Graph trace_function(std::span<const Tensor> tensors, std::span<const dispatch::Value> numbers, Tracing mode,
                            Body body);
}

template <typename F, typename... Args>
graph::Graph trace(F&& function, Tracing mode, const Args&... args) {
  capture::FlatArguments flat;
  (capture::flatten_argument(args, flat), ...);
  using R = std::invoke_result_t<F&, const Args&...>;
  auto body = [&](std::span<const Tensor> tensors, std::span<const dispatch::Value> numbers) {
    std::vector<dispatch::Value> results;
    capture::Supply supply{tensors, numbers};
    std::tuple<Args...> rebuilt{capture::rebuild_argument(args, supply)...};
    if constexpr (std::is_void_v<R>)
      std::apply(function, rebuilt);
    else
      capture::flatten_result<std::remove_cvref_t<R>>(std::apply(function, rebuilt), results);
    return results;
  };
  return capture::trace_function(flat.tensors.span(), flat.numbers.span(), mode, body);
}

template <typename F, typename... Args>
aot::JointGraph export_joint(F&& function, Tracing mode, const Args&... args) {
  return aot::export_joint(trace(std::forward<F>(function), mode, args...));
}

}  // namespace tenon
