#include "control/carry.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/control/scan.h>
#include <tenon/dispatch/call.h>
#include <tenon/fake/fake.h>
#include <tenon/generated/ops.h>

#include <atomic>

namespace tenon::control::detail {
namespace {

std::atomic<ScanCapturer> capture_scan{nullptr};

// What would be kept of a step, by its sizes alone: there is no step to take.
std::vector<Tensor> keep_nothing(const ScanLoop& loop, ScanBody body) {
  NoGrad off;
  fake::FakeMode fakes;
  // What the body writes to outside of it stays as it is: its version too.
  dispatch::ExcludeKeys no_versions(KeySet{DispatchKey::ADInplaceOrView});
  std::vector<Tensor> carry, x, kept;
  for (const Tensor& tensor : loop.carry) carry.push_back(fake::like(tensor));
  for (const Tensor& tensor : loop.xs)
    x.push_back(fake::make(SymInts(tensor.sym_sizes().span().subspan(1)),
                           SymInts(tensor.sym_strides().span().subspan(1)), tensor.dtype(), tensor.device()));
  std::vector<Tensor> step = body(carry, x);
  check_carry(carry, step);
  for (size_t at = carry.size(); at < step.size(); ++at) kept.push_back(step[at]);
  return kept;
}

}  // namespace

void set_scan_capturer(ScanCapturer capturer) { capture_scan = capturer; }

ScanLoop make_loop(std::vector<Tensor> carry, std::vector<Tensor> xs, const ScanOptions& options) {
  ScanLoop loop{std::move(carry), std::move(xs), 0, options.reverse};
  for (const Tensor& tensor : loop.carry)
    TENON_CHECK(tensor.defined(), "[scan] expected a carry of tensors, got an undefined tensor");
  for (const Tensor& tensor : loop.xs)
    TENON_CHECK(tensor.defined() && tensor.dim() > 0, "[scan] expected xs with a dimension of steps, got {}",
                tensor.defined() ? tensor.description() : "an undefined tensor");
  TENON_CHECK(options.steps || !loop.xs.empty(), "[scan] expected xs to go over, or a number of steps in the options");
  loop.steps = options.steps ? *options.steps : loop.xs.front().size(0);
  TENON_CHECK_VALUE(bool(loop.steps >= 0), "[scan] expected at least 0 steps, got {}", loop.steps.str());
  for (const Tensor& tensor : loop.xs)
    TENON_CHECK(bool(tensor.size(0) == loop.steps), "[scan] expected xs of {} steps, got {}", loop.steps.str(),
                tensor.description());
  return loop;
}

void check_carry(std::span<const Tensor> before, std::span<const Tensor> after) {
  check_carried("scan", before, after);
}

std::vector<Tensor> scan_by_steps(const ScanLoop& loop, ScanBody body) {
  const auto steps = int64_t(loop.steps);
  const size_t carried = loop.carry.size();
  std::vector<Tensor> carry = loop.carry;
  std::vector<std::vector<Tensor>> kept;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t time = loop.reverse ? steps - 1 - step : step;
    std::vector<Tensor> x;
    for (const Tensor& xs : loop.xs) x.push_back(xs.select(0, time));
    std::vector<Tensor> made = body(carry, x);
    check_carry(carry, made);
    kept.resize(made.size() - carried);
    for (size_t at = carried; at < made.size(); ++at) {
      std::vector<Tensor>& list = kept[at - carried];
      list.resize(static_cast<size_t>(steps));
      list[static_cast<size_t>(time)] = made[at];
    }
    made.resize(carried);
    carry = std::move(made);
  }
  std::vector<Tensor> results = std::move(carry);
  if (steps > 0) {
    for (const std::vector<Tensor>& list : kept) results.push_back(stack(list, 0));
    return results;
  }
  for (const Tensor& each : keep_nothing(loop, body)) {
    SymInts sizes{0};
    for (const SymInt& size : each.sym_sizes()) sizes.push_back(size);
    results.push_back(empty(sizes, TensorOptions(each.dtype(), each.device())));
  }
  return results;
}

std::vector<Tensor> scan(const ScanLoop& loop, ScanBody body) {
  if (ScanCapturer capturer = capture_scan)
    if (std::optional<std::vector<Tensor>> captured = capturer(loop, body)) return std::move(*captured);
  return scan_by_steps(loop, body);
}

}  // namespace tenon::control::detail
