#include "optim/fused_step.h"

#include <tenon/support/counters.h>
#include <tenon/support/parallel.h>

#include <algorithm>

namespace tenon::optim {
namespace {

// Elements that one thread takes at a time: 5 arrays of them fit in its cache.
constexpr int64_t kBlock = 8192;

thread_local FusedStep* running = nullptr;

const void* storage_of(const Tensor& tensor) { return tensor.impl()->storage.get(); }

}  // namespace

FusedStep::FusedStep() : before_(running) { running = this; }
FusedStep::~FusedStep() { running = before_; }
FusedStep* FusedStep::current() { return running; }

bool FusedStep::takes(std::span<const Tensor> tensors) const {
  const Tensor& parameter = tensors[0];
  if (parameter.is_fake() || (parameter.dtype() != kFloat32 && parameter.dtype() != kFloat64)) return false;
  std::set<const void*> own;
  for (size_t at = 0; at < tensors.size(); ++at) {
    const Tensor& each = tensors[at];
    if (!each.defined() || each.is_fake() || each.device() != Device(kCPU) || !each.is_contiguous() ||
        each.dtype() != parameter.dtype() || !(each.sizes() == parameter.sizes()))
      return false;
    if (!own.insert(storage_of(each)).second) return false;
  }
  return true;
}

void FusedStep::make_way_for(std::span<const Tensor> tensors) {
  bool touches = false;
  for (size_t at = 0; at < tensors.size(); ++at)
    touches |= tensors[at].defined() && storage_of(tensors[at]) &&
               (written_.contains(storage_of(tensors[at])) || (at != 1 && read_.contains(storage_of(tensors[at]))));
  if (touches) launch();
}

void FusedStep::add(std::vector<Tensor> tensors, std::function<void(int64_t begin, int64_t end)> run) {
  for (size_t at = 0; at < tensors.size(); ++at) (at == 1 ? read_ : written_).insert(storage_of(tensors[at]));
  const int64_t blocks = (tensors[0].numel().plain() + kBlock - 1) / kBlock;
  parts_.push_back({std::move(tensors), std::move(run), blocks_});
  blocks_ += blocks;
}

void FusedStep::launch() {
  if (blocks_ == 0) return;
  static Counter& launches = counter("kernels_launched");
  parallel_for(blocks_, 1, [&](int64_t begin, int64_t end) {
    // The last part that begins at or before `begin`.
    auto part = std::upper_bound(parts_.begin(), parts_.end(), begin,
                                 [](int64_t block, const Part& each) { return block < each.first_block; }) -
                1;
    for (; part != parts_.end() && part->first_block < end; ++part) {
      const int64_t count = part->tensors[0].numel().plain();
      for (int64_t block = std::max(begin, part->first_block); block < end; ++block) {
        const int64_t from = (block - part->first_block) * kBlock;
        if (from >= count) break;
        part->run(from, std::min(count, from + kBlock));
      }
    }
  });
  launches.add();
  // What was saved before the step is known to have changed.
  for (const Part& part : parts_)
    for (size_t at = 0; at < part.tensors.size(); ++at)
      if (at != 1 && part.tensors[at].impl()->version) ++part.tensors[at].impl()->version->count;
  parts_.clear();
  read_.clear();
  written_.clear();
  blocks_ = 0;
}

}  // namespace tenon::optim
