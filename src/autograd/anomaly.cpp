#include "autograd/anomaly.h"

#include "support/thread_context.h"

#include <tenon/generated/ops.h>
#include <tenon/support/call_site.h>
#include <tenon/support/warnings.h>

namespace tenon::autograd {
namespace {

const DetectAnomaly* innermost() {
  return support::thread_context.get<const DetectAnomaly>(support::ContextSlot::Anomaly);
}

std::string where(const Node& node) {
  if (node.made_at().empty())
    return fmt::format("No forward pass information is known of {}: turn anomaly mode on before the forward pass, too",
                       node.name());
  return fmt::format("The forward call that made {} is at {}", node.name(), node.made_at());
}

}  // namespace

DetectAnomaly::DetectAnomaly(bool check_nan) : check_nan_(check_nan), before_(innermost()) {
  if (!before_) warn("Anomaly Detection has been enabled: it makes every operator and every step of backward slower");
  support::thread_context.set(support::ContextSlot::Anomaly, this);
}
DetectAnomaly::~DetectAnomaly() { support::thread_context.set(support::ContextSlot::Anomaly, before_); }

bool anomaly_enabled() { return innermost() != nullptr; }
bool checks_nan() { return innermost() && innermost()->check_nan_; }

std::string forward_line(const Node* inside) {
  std::string line = CallSite::here().str();
  if (line.empty()) line = "an unknown line";
  // What a walk records (create_graph) was induced by the node that ran.
  if (inside)
    line += fmt::format(", called by {}, which was made at {}", inside->name(),
                        inside->made_at().empty() ? "an unknown line" : inside->made_at());
  return line;
}

void tell_of_failure(const Node& node) { warn(fmt::format("Error detected in {}. {}", node.name(), where(node))); }

void refuse_nan(const Node& node, std::span<const Tensor> leaving) {
  for (size_t at = 0; at < leaving.size(); ++at) {
    const Tensor& gradient = leaving[at];
    if (!gradient.defined() || !gradient.is_floating_point() || gradient.is_fake()) continue;
    NoGrad off;
    TENON_CHECK(!gradient.isnan().any().item<bool>(),
                "[backward] Function '{}' returned nan values in its {}th output.", node.name(), at);
  }
}

}  // namespace tenon::autograd
