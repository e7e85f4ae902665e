// Which results are written past the caches.
#include <tenon/codegen/compile.h>
#include <tenon/schedule/schedule.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

namespace tenon::schedule {
namespace {

template <typename Body>
std::shared_ptr<const runtime::Plan> plan_of(Body body, const Tensor& x) {
  std::shared_ptr<const runtime::Plan> plan;
  compile(body, {.backend = [&](const graph::Graph& graph) -> GraphFunction {
            plan = compile_graph(graph);
            return [plan](std::span<const Tensor> inputs, std::span<const int64_t> symbols) {
              return runtime::run(*plan, inputs, symbols);
            };
          }})(x);
  return plan;
}

int streaming_buffers(const runtime::Plan& plan) {
  int count = 0;
  for (const auto& kernel : plan.kernels)
    for (const loop::Buffer& buffer : codegen::compiled_from(*kernel)->kernel.buffers) count += buffer.streaming;
  return count;
}

TEST(Streaming, OnlyLargeResultsThatNothingReads) {
  Tensor large = ones({4096, 1024}), small = ones({64, 64});
  auto chain = [](Tensor x) { return x * 2 + 1; };
  EXPECT_EQ(streaming_buffers(*plan_of(chain, large)), 1);
  EXPECT_EQ(streaming_buffers(*plan_of(chain, small)), 0);
  // The first result is read again by the product: it had better stay where it is.
  auto read_again = [](Tensor x) {
    Tensor y = x * 2;
    return std::pair(y, mm(y.t(), y));
  };
  EXPECT_EQ(streaming_buffers(*plan_of(read_again, ones({65536, 64}))), 0);
}

TEST(Streaming, GivesTheSameNumbers) {
  Tensor x = randn({4097, 1025});
  auto chain = [](Tensor a) { return a * 2 + 1; };
  Tensor compiled = compile(chain)(x), eager = chain(x);
  int64_t different = 0;
  for (int64_t at = 0; at < 4097 * 1025; ++at) different += compiled.data<float>()[at] != eager.data<float>()[at];
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace tenon::schedule
