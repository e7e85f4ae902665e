#include "pad_products.h"

#include <tenon/generated/ops.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/log.h>

#include "fusion.h"
#include "rewrite.h"

#include <algorithm>

namespace tenon::schedule {
namespace {

constexpr int64_t kRegister = 64;  // bytes of the widest vector register, and of a cache line
constexpr int64_t kLongest = 8;    // times as much as is read may be written for the padding, to hide behind the sums

// How many zeros make the size a whole number of registers.
int64_t missing(int64_t size, Dtype dtype) {
  const int64_t step = kRegister / size_of(dtype);
  return (step - size % step) % step;
}

}  // namespace

Decision should_pad(const Tensor& a, const Tensor& b) {
  if (a.dtype() != kFloat32 && a.dtype() != kBFloat16)
    return Decision::forbid("{} is multiplied by loops, which have no ends of rows to save", name(a.dtype()));
  const SymInt rows = a.size(-2), inner = a.size(-1), columns = b.size(-1);
  for (const SymInt& size : {rows, inner, columns})
    if (size.is_symbolic()) return Decision::forbid("the size {} is not known before it runs", size.str());
  const int64_t k = inner.plain();
  if (missing(k, a.dtype()) == 0)
    return Decision::forbid("{} is a multiple of {} already", k, kRegister / size_of(a.dtype()));
  if (k < kRegister) return Decision::forbid("rows of {} elements would be mostly padding", k);
  if (std::min(rows.plain(), columns.plain()) < kLongest)
    return Decision::forbid("a product of {} rows and {} columns takes no longer than copying its operands",
                            rows.plain(), columns.plain());
  return Decision::allow();
}

Graph pad_products(const Graph& graph) {
  Instead instead;
  for (const graph::Node& node : graph.nodes) {
    const ops::Role role = row_for(*node.op).role;
    if (role != ops::Role::Product && role != ops::Role::AddedProduct) continue;
    const bool adds = role == ops::Role::AddedProduct;
    const size_t place = adds ? 1 : 0;  // of the first matrix among the arguments
    const ValueId left = std::get<ValueId>(node.args[place]), right = std::get<ValueId>(node.args[place + 1]);
    const Decision pads = should_pad(graph.meta(left), graph.meta(right));
    if (!pads) {
      TENON_LOG(Fusion, "{} is not padded: {}", graph.values[static_cast<size_t>(node.outputs[0])].name, pads.why());
      continue;
    }
    const int64_t zeros = missing(graph.meta(left).size(-1).plain(), graph.meta(left).dtype());
    instead[node.outputs[0]] = [&node, left, right, zeros, adds](const Values& now) {
      const Tensor a = constant_pad_nd(now(left), SymInts{0, zeros}, 0);
      const Tensor b = constant_pad_nd(now(right), SymInts{0, 0, 0, zeros}, 0);
      const bool is_batch = a.dim() == 3;
      if (!adds) return is_batch ? bmm(a, b) : mm(a, b);
      const Tensor& added = now(std::get<ValueId>(node.args[0]));
      auto factor = [&](size_t which) { return std::get<dispatch::Value>(node.args[which]).scalar(); };
      const Scalar beta = factor(3), alpha = factor(4);
      return is_batch ? baddbmm(added, a, b, beta, alpha) : addmm(added, a, b, beta, alpha);
    };
  }
  return instead.empty() ? graph : rewrite(graph, instead);
}

}  // namespace tenon::schedule
