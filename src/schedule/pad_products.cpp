#include "pad_products.h"

#include <tenon/generated/ops.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/log.h>

#include "rewrite.h"

#include <algorithm>

namespace tenon::schedule {
namespace {

constexpr int64_t kRegister = 64;  // bytes of the widest vector register, and of a cache line
constexpr int64_t kLongest = 8;    // times as much as is read may be written for the padding, to hide behind the sums

// Where a product has its two matrices among its arguments; -1: it is none.
int first_matrix(const graph::Node& node) {
  const std::string& name = node.op->schema().name;
  if (name == "mm" || name == "bmm") return 0;
  return name == "addmm" || name == "baddbmm" ? 1 : -1;
}

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
    const int at = first_matrix(node);
    if (at < 0) continue;
    const auto place = static_cast<size_t>(at);
    const ValueId left = std::get<ValueId>(node.args[place]), right = std::get<ValueId>(node.args[place + 1]);
    const Decision pads = should_pad(graph.meta(left), graph.meta(right));
    if (!pads) {
      TENON_LOG(Fusion, "{} is not padded: {}", graph.values[static_cast<size_t>(node.outputs[0])].name, pads.why());
      continue;
    }
    const int64_t zeros = missing(graph.meta(left).size(-1).plain(), graph.meta(left).dtype());
    instead[node.outputs[0]] = [&node, left, right, zeros](const Values& now) {
      const Tensor a = constant_pad_nd(now(left), SymInts{0, zeros}, 0);
      const Tensor b = constant_pad_nd(now(right), SymInts{0, 0, 0, zeros}, 0);
      const std::string& name = node.op->schema().name;
      if (name == "mm") return mm(a, b);
      if (name == "bmm") return bmm(a, b);
      const Tensor& added = now(std::get<ValueId>(node.args[0]));
      auto factor = [&](size_t which) { return std::get<dispatch::Value>(node.args[which]).scalar(); };
      const Scalar beta = factor(3), alpha = factor(4);
      return name == "addmm" ? addmm(added, a, b, beta, alpha) : baddbmm(added, a, b, beta, alpha);
    };
  }
  return instead.empty() ? graph : rewrite(graph, instead);
}

}  // namespace tenon::schedule
