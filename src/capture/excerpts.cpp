#include "excerpts.h"

#include "core/memory_order.h"

#include <tenon/autograd/meta.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>

#include <algorithm>

namespace tenon::capture {

bool is_same(const SymInts& a, const SymInts& b) {
  for (size_t at = 0; at < a.size(); ++at)
    if (!a[at].same(b[at])) return false;
  return true;
}

Tensor placeholder(const SymInts& sizes, const SymInts& strides, const Tensor& like, bool requires_grad) {
  Tensor made = fake::make(sizes, strides, like.dtype(), like.device());
  if (!requires_grad) return made;
  Tensor leaf =
      std::exchange(made, core::make_view(made, made.sym_sizes(), made.sym_strides(), made.sym_storage_offset()));
  autograd::ensure_meta(leaf).requires_grad = true;
  autograd::pass_on(made, leaf);
  return made;
}

void give_own_memory(Session& session, std::vector<Tensor>& results,
                     const std::function<bool(const Tensor&)>& is_from_outside) {
  for (size_t at = 0; at < results.size(); ++at) {
    results[at] = session.stand_in(results[at]);
    const bool shared = is_from_outside(results[at]) ||
                        std::any_of(results.begin(), results.begin() + static_cast<ptrdiff_t>(at),
                                    [&](const Tensor& other) { return other.is_same_storage(results[at]); });
    if (shared) results[at] = results[at].clone();
  }
}

std::vector<Tensor> join_captured(std::vector<Session::Excerpt>& excerpts, size_t shared) {
  std::vector<Tensor> all;
  for (const Session::Excerpt& excerpt : excerpts)
    for (const Tensor& tensor : excerpt.captured)
      if (std::none_of(all.begin(), all.end(), [&](const Tensor& other) { return other.is(tensor); }))
        all.push_back(tensor);
  for (Session::Excerpt& excerpt : excerpts) {
    std::vector<graph::ValueId>& inputs = excerpt.graph.inputs;
    const std::vector<graph::ValueId> own(inputs.begin() + static_cast<ptrdiff_t>(shared), inputs.end());
    inputs.resize(shared);
    for (const Tensor& tensor : all) {
      auto found = std::find_if(excerpt.captured.begin(), excerpt.captured.end(),
                                [&](const Tensor& other) { return other.is(tensor); });
      inputs.push_back(
          found != excerpt.captured.end()
              ? own[static_cast<size_t>(found - excerpt.captured.begin())]
              : excerpt.graph.add_value(fmt::format("v{}", excerpt.graph.values.size()), fake::like(tensor)));
    }
    excerpt.captured = all;
  }
  return all;
}

SymInts numbers_of(const std::vector<int32_t>& symbols, const Ref<sym::ShapeEnv>& env) {
  SymInts numbers;
  for (int32_t id : symbols) numbers.push_back(SymInt(env->pool().symbol(id), env));
  return numbers;
}

}  // namespace tenon::capture
