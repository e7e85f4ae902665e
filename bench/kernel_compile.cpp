// How long LLVM takes for one kernel: the median over kernels such as lowering makes, none of them in any cache.
#include "bench.h"

#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/loop/builder.h>

#include <algorithm>

namespace tenon::bench {
namespace {

using loop::BufferRole;
using loop::Builder;
using loop::Lane;
using loop::ReduceKind;
using sym::Expr;

constexpr sym::Range kCount = {0, sym::Range::kMax};

// relu(sin(x) + y)
loop::Kernel pointwise(const std::string& name) {
  Builder b(name);
  int x = b.buffer("x", kFloat32, BufferRole::In), y = b.buffer("y", kFloat32, BufferRole::In);
  int out = b.buffer("out", kFloat32, BufferRole::Out);
  b.loop(b.integer("n", kCount), {.parallel = true, .vector = true}, [&](Expr i) {
    Lane sum = sin(b.load(x, i)) + b.load(y, i);
    b.store(out, i, maximum(sum, number(sum, 0)));
  });
  return b.finish();
}

// tanh(x * w + b) + r with rows w and b, stored past the cache
loop::Kernel chain(const std::string& name) {
  Builder b(name);
  int x = b.buffer("x", kFloat32, BufferRole::In), w = b.buffer("w", kFloat32, BufferRole::In);
  int bias = b.buffer("b", kFloat32, BufferRole::In), r = b.buffer("r", kFloat32, BufferRole::In);
  int out = b.buffer("out", kFloat32, BufferRole::Out);
  b.kernel().buffers[static_cast<size_t>(out)].streaming = true;
  Expr rows = b.integer("rows", kCount), columns = b.integer("columns", kCount);
  b.loop(rows, {.parallel = true}, [&](Expr i) {
    b.loop(columns, {.vector = true}, [&](Expr j) {
      Expr at = i * columns + j;
      b.store(out, at, tanh(b.load(x, at) * b.load(w, j) + b.load(bias, j)) + b.load(r, at));
    });
  });
  return b.finish();
}

loop::Kernel softmax(const std::string& name) {
  Builder b(name);
  int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  Expr rows = b.integer("rows", kCount), columns = b.integer("columns", kCount);
  b.loop(rows, {.parallel = true}, [&](Expr i) {
    Lane most, sum;
    b.loop(columns, {.vector = true, .reduction = true},
           [&](Expr j) { most = b.reduce(ReduceKind::Max, b.load(x, i * columns + j)); });
    b.loop(columns, {.vector = true, .reduction = true},
           [&](Expr j) { sum = b.reduce(ReduceKind::Sum, exp(b.load(x, i * columns + j) - most)); });
    b.loop(columns, {.vector = true},
           [&](Expr j) { b.store(out, i * columns + j, exp(b.load(x, i * columns + j) - most) / sum); });
  });
  return b.finish();
}

loop::Kernel column_sums(const std::string& name) {
  Builder b(name);
  int x = b.buffer("x", kFloat32, BufferRole::In), out = b.buffer("out", kFloat32, BufferRole::Out);
  Expr rows = b.integer("rows", kCount), columns = b.integer("columns", kCount);
  b.loop(columns, {.parallel = true, .vector = true}, [&](Expr j) {
    Lane sum;
    b.loop(rows, {.reduction = true}, [&](Expr i) { sum = b.reduce(ReduceKind::Sum, b.load(x, i * columns + j)); });
    b.store(out, j, sum);
  });
  return b.finish();
}

}  // namespace

BENCH(kernel_compile) {
  const std::string cache = codegen::cache_folder();
  codegen::set_cache_folder("");
  codegen::compile(pointwise("warm_up"));
  std::vector<double> milliseconds;
  for (int round = 0; round < 11; ++round)
    for (auto* make : {pointwise, chain, softmax, column_sums})
      milliseconds.push_back(codegen::compile(make("round" + std::to_string(round)))->compile_ms);
  codegen::set_cache_folder(cache);
  auto middle = milliseconds.begin() + static_cast<ptrdiff_t>(milliseconds.size() / 2);
  std::nth_element(milliseconds.begin(), middle, milliseconds.end());
  report.add({.name = "one kernel, compiled", .value = *middle, .unit = "ms", .bar = 8});
}

}  // namespace tenon::bench
