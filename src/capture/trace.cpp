#include <tenon/autograd/grad_mode.h>
#include <tenon/capture/trace.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/graph/symbolic_inputs.h>
#include <tenon/graph/trace.h>

namespace tenon::capture {

graph::Graph trace_function(std::span<const Tensor> tensors, std::span<const dispatch::Value> numbers, Tracing mode,
                            Body body) {
  auto env = make_ref<sym::ShapeEnv>();
  graph::SymbolicInputs inputs(env);
  graph::Recorder recorder(env);
  std::vector<Tensor> fakes;
  for (size_t at = 0; at < tensors.size(); ++at) {
    std::string name = fmt::format("arg{}", at);
    auto dims = static_cast<size_t>(tensors[at].dim());
    std::unique_ptr<bool[]> dynamic(new bool[dims + 1]);
    std::fill_n(dynamic.get(), dims, mode == Tracing::Symbolic);
    Tensor fake = inputs.add(tensors[at], {dynamic.get(), dims}, name);
    Tensor meta = fake::like(fake);
    if (tensors[at].requires_grad()) meta.set_requires_grad(true);
    recorder.add_input(fake, std::move(name), meta);
    fakes.push_back(std::move(fake));
  }
  recorder.unknown = [](const Tensor& tensor) -> graph::ValueId {
    fail("[trace] the tensor {} comes from outside of the traced function: pass it as an argument",
         tensor.description());
  };
  {
    autograd::NoGrad off;
    graph::TraceMode trace(recorder);
    fake::DynamicSizes sizes(env);
    for (const dispatch::Value& result : body(fakes, numbers))
      recorder.graph().outputs.push_back(recorder.to_argument(result));
  }
  recorder.graph().symbols = inputs.sources();
  // Unbacked sizes have no source among the inputs.
  recorder.graph().symbols.resize(static_cast<size_t>(env->pool().symbol_count()));
  graph::verify(recorder.graph());
  return std::move(recorder.graph());
}

}  // namespace tenon::capture
