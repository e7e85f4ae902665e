#include <tenon/nn/residual.h>

#include <tenon/generated/ops.h>

namespace tenon::nn {
namespace {

// Adding would stretch a side of one element over the other; here that is a mistake.
bool same_sizes(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (int64_t dim = 0; dim < a.dim(); ++dim)
    if (!bool(a.size(dim) == b.size(dim))) return false;
  return true;
}

}  // namespace

Residual::Residual(AnyLayer body) : body_(std::move(body)), shortcut_(Identity()) {
  submodule("body", body_);
  describe("Residual");
}

Residual::Residual(AnyLayer body, AnyLayer shortcut) : body_(std::move(body)), shortcut_(std::move(shortcut)) {
  submodule("body", body_);
  submodule("shortcut", shortcut_);
  describe("Residual");
}

Tensor Residual::operator()(const Tensor& input) const {
  return run(input, [&](const Tensor& x) {
    Tensor added = body_(x), kept = shortcut_(x);
    TENON_CHECK(same_sizes(added, kept),
                "[Residual] expected a body and a shortcut that give the same sizes, got {} and {}: give it a shortcut "
                "that changes them as the body does",
                added.description(), kept.description());
    return kept + added;
  });
}

}  // namespace tenon::nn
