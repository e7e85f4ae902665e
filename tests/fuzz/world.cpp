#include "fuzz/world.h"

#include "fuzz/grammar.h"
#include "ops/samples.h"

#include <tenon/tenon.h>

namespace tenon::fuzz {

std::vector<Tensor> World::arguments(const Program& program) const {
  std::vector<Tensor> list;
  for (size_t at = 0; at < sources.size(); ++at)
    if (program.sources[at].role == Role::Argument) list.push_back(sources[at]);
  return list;
}

Ints base_sizes(const Base& base, size_t sizes) {
  Ints shape;
  for (int letter : base.shape) shape.push_back(letter < 0 ? 1 : kSizes[sizes][letter]);
  if (!shape.empty()) shape[0] = base.extra < 0 ? shape[0] * 2 : shape[0] + base.extra;
  return shape;
}

Tensor nudged(const Tensor& tensor) {
  const Dtype dtype = tensor.dtype();
  // Sums in another order are off by more than one in the last place, and small changes are lost in large sums.
  const int places = dtype == kFloat64 ? 52 - 4 : dtype == kFloat32 ? 23 - 4 : dtype == kFloat16 ? 10 : 7;
  // Up or down without a pattern: what cancels does so no longer.
  Tensor signs = reshape((arange(tensor.numel()) * 7919).remainder(101).remainder(2) * 2 - 1, tensor.sym_sizes());
  return tensor * (signs.to(kFloat64) * std::ldexp(1.0, -places) + 1).to(dtype);
}

Tensor make_base(const Program& program, size_t base, size_t call) {
  const Base& row = program.bases[base];
  const Call& now = program.calls[call];
  autograd::NoGrad off;
  bool turned = now.transposed && row.placement == 0;
  auto placement = turned ? test::Placement::Transposed : static_cast<test::Placement>(row.placement);
  auto with = [&](Dtype dtype) {
    return test::make_tensor(base_sizes(row, now.sizes), dtype, placement, test::Values::Ordinary,
                             program.seed * 1000 + base + 100 * call);
  };
  Tensor made = with(row.dtype);
  if (program.widened && is_floating(row.dtype)) made = with(kFloat64).copy_(made);
  if (program.nudged && is_floating(row.dtype)) made.copy_(nudged(made));
  if (now.contents == Contents::Ordinary) return made;
  // All of the memory, whatever the strides.
  int64_t count = made.storage_offset() + core::reach(made.sizes(), made.strides());
  Tensor memory = core::make_view(made, SymInts{SymInt(count)}, SymInts{SymInt(1)}, 0);
  if (row.dtype == kBool || row.dtype == kUInt8)
    zero_(memory);
  else
    copy_(memory, -abs(memory));
  if (now.contents == Contents::OnePositive && made.numel().plain() > 0) fill_(slice(memory, 0, -1), 1);
  return made;
}

namespace {

void make(World& world, const Program& program, size_t base, size_t call) {
  const Base& row = program.bases[base];
  Tensor leaf = make_base(program, base, call);
  if (row.requires_grad) leaf.set_requires_grad();
  world.leaves[base] = leaf;
  world.bases[base] = row.computed ? leaf * 1.5 : leaf;
  world.sizes[base] = program.calls[call].sizes;
}

}  // namespace

void prepare(World& world, const Program& program, size_t call) {
  autograd::set_grad_enabled(true);
  bool first = world.bases.empty();
  size_t bases = program.bases.size(), sources = program.sources.size();
  world.leaves.resize(bases);
  world.bases.resize(bases);
  world.sizes.resize(bases);
  world.sources.resize(sources);
  world.closures.resize(sources);
  while (world.cells.size() < sources) world.cells.emplace_back();
  world.hook_calls.resize(16);
  world.made.assign(bases, false);
  for (size_t at = 0; at < bases; ++at) {
    const Base& base = program.bases[at];
    bool stays = base.kept && !first && !program.calls[call].remake && world.sizes[at] == program.calls[call].sizes &&
                 world.bases[at].is_leaf();
    if (stays) {
      world.leaves[at].set_grad(Tensor());
      continue;
    }
    if (!first && base.kept && program.old_live) world.old.push_back(world.bases[at]);
    make(world, program, at, call);
    world.made[at] = true;
  }
  for (size_t at = 0; at < sources; ++at) {
    const std::vector<View>& by_call = program.sources[at].views;
    const View& view = by_call[std::min(call, by_call.size() - 1)];
    // What looks as before at what stays is the same tensor as before.
    const View& before = by_call[std::min(call == 0 ? 0 : call - 1, by_call.size() - 1)];
    if (!first && !world.made[view.base] && view == before) continue;
    world.sources[at] = views()[view.view].run(world.bases[view.base]);
    if (program.sources[at].role == Role::Closure) world.closures[at] = world.sources[at];
    if (program.sources[at].role == Role::Cell) world.cells[at].set(world.sources[at]);
  }
  world.rate.set(kRates[call % std::size(kRates)]);
  set_outside(call);
  autograd::set_grad_enabled(program.grad_mode);
  manual_seed(program.seed + call);
}

}  // namespace tenon::fuzz
