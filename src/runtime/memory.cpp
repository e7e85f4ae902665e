#include <tenon/core/dtype.h>
#include <tenon/runtime/memory.h>

#include <algorithm>

namespace tenon::runtime {
namespace {

// A run without data: which blocks the slots hold.
class DryRun {
 public:
  DryRun(const Plan& plan, std::span<const int64_t> symbols)
      : plan_(plan), symbols_(symbols), block_of_(plan.slot_count, kNone) {}

  int64_t peak() {
    for (const Step& step : plan_.steps) std::visit([this](const auto& each) { run(each); }, step);
    return peak_;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Block {
    int64_t bytes = 0;
    int slots = 0;  // that show it
  };

  size_t& block(Slot slot) { return block_of_[static_cast<size_t>(slot)]; }
  int64_t number(ExprIndex at) const { return sym::evaluate(plan_.expressions[static_cast<size_t>(at)], symbols_); }

  void run(const AllocateStep& step) {
    if (step.reuse >= 0) {
      block(step.slot) = std::exchange(block(step.reuse), kNone);
      return;
    }
    int64_t reach = 1;
    bool empty = false;
    for (size_t dim = 0; dim < step.sizes.size(); ++dim) {
      const int64_t size = number(step.sizes[dim]);
      empty |= size == 0;
      reach += (size - 1) * number(step.strides[dim]);
    }
    block(step.slot) = blocks_.size();
    blocks_.push_back({empty ? 0 : reach * size_of(step.dtype), 1});
    held_ += blocks_.back().bytes;
    peak_ = std::max(peak_, held_);
  }
  void run(const ViewStep& step) {
    block(step.slot) = block(step.base);
    if (block(step.slot) != kNone) ++blocks_[block(step.slot)].slots;
  }
  void run(const FreeStep& step) {
    const size_t freed = std::exchange(block(step.slot), kNone);
    if (freed != kNone && --blocks_[freed].slots == 0) held_ -= blocks_[freed].bytes;
  }
  void run(const LaunchStep&) {}
  void run(const CallStep&) {}
  void run(const BodyStep&) {}
  void run(const CheckResultsStep&) {}
  void run(const BindStep&) {}
  void run(const EvaluateStep&) {}
  void run(const CheckStep&) {}

  const Plan& plan_;
  std::span<const int64_t> symbols_;
  std::vector<size_t> block_of_;  // by slot
  std::vector<Block> blocks_;
  int64_t held_ = 0, peak_ = 0;
};

}  // namespace

int64_t peak_bytes(const Plan& plan, std::span<const int64_t> symbols) { return DryRun(plan, symbols).peak(); }

}  // namespace tenon::runtime
