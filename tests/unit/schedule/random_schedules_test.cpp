// Any legal schedule of a nest computes the same bits: random ones, run as machine code of every width, against the
// interpreter.
#include <gtest/gtest.h>
#include <tenon/codegen/compile.h>
#include <tenon/loop/evaluate.h>
#include <tenon/schedule/schedule.h>
#include <tenon/tenon.h>

#include "schedule/emit.h"

#include <map>
#include <random>

namespace tenon::schedule {
namespace {

using Engine = std::mt19937_64;

int64_t pick(Engine& engine, int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(engine); }
bool chance(Engine& engine, double probability) { return std::bernoulli_distribution(probability)(engine); }

// ---- Programs

struct Program {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

// Exact arithmetic alone: machine code and interpreter agree to the bit.
Program random_program(Engine& engine) {
  constexpr int64_t kSizes[] = {2, 3, 6, 7, 8, 16, 17, 30, 32, 33, 40, 64, 65, 100, 130};
  constexpr int64_t kLong[] = {1023, 1024, 1025, 1500, 2048, 2100, 3075, 5000};
  const bool pointwise = chance(engine, 0.5);
  const int64_t rank = pointwise ? 2 + pick(engine, 2) : 1 + pick(engine, 3);
  Ints sizes;
  int64_t total = 1;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t size = kSizes[pick(engine, std::size(kSizes))];
    if (total <= 4 && chance(engine, 0.35)) size = kLong[pick(engine, std::size(kLong))];
    size = std::min(size, std::max<int64_t>(1, 12000 / total));
    total *= size;
    sizes.push_back(size);
  }
  constexpr Dtype kDtypes[] = {kFloat32, kFloat32, kFloat32, kFloat64, kBFloat16, kInt32, kInt64, kUInt8};
  const Dtype dtype = kDtypes[pick(engine, std::size(kDtypes))];
  // Small integers leave halves exact, so that a fused chain is one with rounding steps between.
  auto make = [&](const Ints& of, double permuted) {
    Ints stored = of;
    std::vector<int64_t> order(of.size());
    for (size_t at = 0; at < order.size(); ++at) order[at] = static_cast<int64_t>(at);
    if (chance(engine, permuted)) std::shuffle(order.begin(), order.end(), engine);
    for (size_t at = 0; at < order.size(); ++at) stored[at] = of[static_cast<size_t>(order[at])];
    Tensor made = zeros(SymInts(stored.span()), kFloat64);
    for (int64_t at = 0; at < made.numel().plain(); ++at)
      made.data<double>()[at] = is_floating(dtype) && dtype != kBFloat16
                                    ? std::normal_distribution<double>(0, 3)(engine)
                                    : static_cast<double>(pick(engine, 7)) - (dtype == kUInt8 ? 0 : 3);
    Ints back;
    back.resize(order.size(), 0);
    for (size_t at = 0; at < order.size(); ++at) back[static_cast<size_t>(order[at])] = static_cast<int64_t>(at);
    return made.to(dtype).permute(back);
  };
  Program program;
  program.inputs.push_back(make(sizes, 0.4));
  Ints row = sizes;
  for (int64_t& size : row)
    if (chance(engine, pointwise ? 0.2 : 0.5)) size = 1;
  program.inputs.push_back(make(row, 0.8));
  Ints dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (chance(engine, 0.6)) dims.push_back(dim);
  if (dims.empty()) dims.push_back(rank - 1);
  const int64_t kind = pointwise ? pick(engine, 2) : chance(engine, 0.4) ? 7 : 2 + pick(engine, 7);
  const bool keep = chance(engine, 0.5);
  auto body = [=](Tensor x, Tensor y) -> std::vector<Tensor> {
    switch (kind) {
      case 0: return {x * y + x};
      case 1: return {x + y, x * 2};
      case 2: return {(x * y).sum(dims, keep)};
      case 3: return {x.sum(dims, keep), x.amax(dims, keep)};
      case 4: return {(x - x.amax(dims, true)).sum(dims, keep)};
      case 5: return {(x + y).sum(dims, true) * 2, x.amin(dims, false)};
      case 6: return {x - (x * y).sum(dims, true)};
      case 7: {
        Tensor again = (x * y - x) * x;
        return {again - again.sum(dims, true)};
      }
      default: return {x.sum(dims, true) + y.sum(dims, true), x + 1};
    }
  };
  const Dynamic dynamic = chance(engine, 0.4) ? Dynamic::On : Dynamic::Off;
  // The graph is all that is wanted.
  struct Captured {};
  auto backend = [&](const graph::Graph& graph) -> GraphFunction {
    program.graph = decompose(graph);
    throw Captured{};
  };
  try {
    compile(body, {.dynamic = dynamic, .backend = backend})(program.inputs[0], program.inputs[1]);
  } catch (const Captured&) {
  }
  return program;
}

// ---- Schedules

struct Counts {
  int kept = 0, reordered = 0, tiled = 0, collapsed = 0, kept_lanes = 0, reduced_lanes = 0, unrolled = 0, along = 0,
      split = 0, streamed = 0, symbolic = 0, tails = 0;
};

LoopSchedule random_schedule(Engine& engine, const Nest& nest) {
  const int kept = static_cast<int>(nest.kept_count()), count = static_cast<int>(nest.axes.size());
  std::vector<int> order;
  for (int axis = 0; axis < kept; ++axis) order.push_back(axis);
  if (chance(engine, 0.6)) std::shuffle(order.begin(), order.end(), engine);
  std::vector<Piece> outer, tiles, inner;
  for (int axis : order) {
    outer.push_back({axis, 0, Role::Serial});
    constexpr int64_t kFactors[] = {2, 3, 8, 16, 32, 50};
    if (chance(engine, 0.18)) tiles.push_back({axis, kFactors[pick(engine, std::size(kFactors))], Role::Serial});
  }
  if (chance(engine, 0.5)) std::shuffle(tiles.begin(), tiles.end(), engine);
  for (int axis = kept; axis < count; ++axis) inner.push_back({axis, 0, Role::Serial});
  const bool lanes_reduced = !inner.empty() && (outer.empty() || chance(engine, 0.5));
  std::vector<Piece> pieces = outer;
  pieces.insert(pieces.end(), tiles.begin(), tiles.end());
  if (lanes_reduced) {
    if (chance(engine, 0.85)) inner.back().role = Role::Vector;
  } else if (!pieces.empty() && chance(engine, 0.9)) {
    pieces.back().role = Role::Vector;
  }
  // Rows together.
  if (inner.empty() && pieces.size() >= 2 && pieces.back().role == Role::Vector && chance(engine, 0.6)) {
    std::vector<int> fits;
    for (const Piece& piece : outer) {
      const Expr& extent = nest.axes[static_cast<size_t>(piece.axis)].extent;
      const bool tiled = std::any_of(tiles.begin(), tiles.end(), [&](const Piece& t) { return t.axis == piece.axis; });
      if (extent.is_constant() && extent.constant() % 2 == 0 && !tiled && piece.axis != pieces.back().axis)
        fits.push_back(piece.axis);
    }
    if (!fits.empty()) {
      const int axis = fits[static_cast<size_t>(pick(engine, static_cast<int64_t>(fits.size())))];
      const int64_t extent = nest.axes[static_cast<size_t>(axis)].extent.constant();
      pieces.insert(pieces.end() - 1, Piece{axis, extent % 4 == 0 && chance(engine, 0.5) ? 4 : 2, Role::Unroll});
    }
  }
  // Vectors that walk along another axis.
  const bool unrolled =
      std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.role == Role::Unroll; });
  if (inner.empty() && outer.size() >= 2 && !unrolled && pieces.back().role == Role::Vector && chance(engine, 0.95)) {
    constexpr int64_t kAlong[] = {16, 40, 128};
    const int axis = outer[static_cast<size_t>(pick(engine, static_cast<int64_t>(outer.size())))].axis;
    const bool tiled = std::any_of(tiles.begin(), tiles.end(), [&](const Piece& t) { return t.axis == axis; });
    if (!tiled && axis != pieces.back().axis)
      pieces.push_back({axis, kAlong[pick(engine, std::size(kAlong))], Role::Unroll});
  }
  if (!inner.empty() && chance(engine, 0.6)) {
    const bool blocks = inner.size() == 1 && nest.stages[0].ordered > 0;
    inner[0].factor = (blocks ? loop::kBlock : 1) << pick(engine, 3);
    pieces.insert(pieces.begin(), Piece{inner[0].axis, 0, Role::Parallel});
  }
  const auto parallel = static_cast<size_t>(pick(engine, static_cast<int64_t>(pieces.size()) + 1));
  for (size_t at = 0; at < parallel && pieces[at].role == Role::Serial && pieces[at].factor == 0; ++at)
    pieces[at].role = Role::Parallel;
  if (!pieces.empty() && pieces[0].role == Role::Vector && chance(engine, 0.7)) pieces[0].role = Role::ParallelVector;
  pieces.insert(pieces.end(), inner.begin(), inner.end());
  LoopSchedule schedule{pieces, {}};
  if (chance(engine, 0.4))
    for (const Access& access : nest.accesses) {
      const bool read = std::any_of(nest.accesses.begin(), nest.accesses.end(),
                                    [&](const Access& other) { return other.value == access.value && !other.store; });
      if (access.store && !read && schedule.streaming.empty()) schedule.streaming.push_back(access.value);
    }
  for (const Reused& reused : nest.reused)
    if (chance(engine, 0.8)) schedule.scratch.push_back(reused.value);
  return schedule;
}

void count(const Nest& nest, const LoopSchedule& schedule, Counts& counts) {
  int last = -1, parallel = 0;
  bool reordered = false, tiled = false;
  for (const Piece& piece : schedule.pieces) {
    const NestAxis& axis = nest.axes[static_cast<size_t>(piece.axis)];
    if (!axis.reduced && piece.factor == 0) {
      reordered |= piece.axis < last;
      last = piece.axis;
    }
    tiled |= !axis.reduced && piece.factor > 0 && piece.role != Role::Unroll;
    parallel += piece.parallel() ? 1 : 0;
    if (piece.vector()) ++(axis.reduced ? counts.reduced_lanes : counts.kept_lanes);
    if (piece.role == Role::Unroll) ++(&piece == &schedule.pieces.back() ? counts.along : counts.unrolled);
  }
  counts.reordered += reordered;
  counts.tiled += tiled;
  counts.collapsed += parallel > 1;
  counts.split += schedule.split_axis(nest) >= 0;
  counts.streamed += !schedule.streaming.empty();
  counts.kept += !schedule.scratch.empty();
  bool symbolic = false, tail = false;
  for (const NestAxis& axis : nest.axes) {
    symbolic |= !axis.extent.is_constant();
    tail |= axis.size % 16 != 0;
  }
  counts.symbolic += symbolic;
  counts.tails += tail;
}

// ---- Runs

using Memory = std::map<ValueId, std::vector<std::byte>>;

class Runner {
 public:
  explicit Runner(const Program& program) : program_(program), schedule_(fuse(program.graph, {})) {
    for (const Group& group : schedule_.groups) nests_.push_back(make_nest(schedule_, group));
  }
  const std::vector<Nest>& nests() const { return nests_; }

  // Every group as its schedule says. `bits` 0: the interpreter.
  Memory run(const std::vector<LoopSchedule>& loops, int bits) {
    Memory memory;
    for (size_t at = 0; at < program_.graph.inputs.size(); ++at) {
      const Tensor& given = program_.inputs[at];
      auto* first = static_cast<const std::byte*>(given.raw_data());
      memory[program_.graph.inputs[at]].assign(
          first, first + core::reach(given.sizes(), given.strides()) * size_of(given.dtype()));
    }
    Memory written;
    for (size_t at = 0; at < nests_.size(); ++at) {
      EmittedGroup emitted = emit(schedule_, schedule_.groups[at], nests_[at], loops[at], "random");
      for (EmittedKernel& kernel : emitted.kernels) launch(kernel, emitted, memory, bits);
      std::erase_if(memory, [](const auto& each) { return is_partial(each.first); });
    }
    for (const auto& [id, bytes] : memory)
      if (id >= 0 && !schedule_.is_input(id)) written[id] = bytes;
    return written;
  }

 private:
  int64_t hint(Expr expr) const { return *schedule_.graph.env->hint(expr); }

  void launch(EmittedKernel& emitted, const EmittedGroup& group, Memory& memory, int bits) {
    std::vector<void*> buffers;
    for (size_t at = 0; at < emitted.buffers.size(); ++at) {
      const ValueId id = emitted.buffers[at];
      std::vector<std::byte>& bytes = memory[id];
      if (bytes.empty()) {
        const int64_t count = is_partial(id) ? hint(group.partials[partial_place(id)].count)
                                             : hint(to_expr(schedule_.graph, schedule_.graph.meta(id).numel()));
        // Room for one more vector, to see that nothing is written there.
        bytes.assign(static_cast<size_t>(count * size_of(emitted.kernel.buffers[at].dtype)) + 64, std::byte{0x5a});
      }
      buffers.push_back(bytes.data());
    }
    std::vector<int64_t> integers;
    for (Expr expr : emitted.integers) integers.push_back(hint(expr));
    // Scratch comes behind.
    std::vector<int64_t> symbols(static_cast<size_t>(emitted.kernel.pool->symbol_count()));
    for (size_t at = 0; at < integers.size(); ++at)
      symbols[static_cast<size_t>(emitted.kernel.integers[at].symbol_id())] = integers[at];
    std::vector<std::vector<std::byte>> scratch;
    for (size_t at = emitted.buffers.size(); at < emitted.kernel.buffers.size(); ++at) {
      const loop::Buffer& buffer = emitted.kernel.buffers[at];
      scratch.emplace_back(static_cast<size_t>(sym::evaluate(buffer.extent, symbols) * size_of(buffer.dtype)) + 64);
      buffers.push_back(scratch.back().data());
    }
    int64_t failed = -1;
    const int64_t extent = loop::parallel_extent(emitted.kernel, integers);
    if (bits == 0) {
      loop::interpret(emitted.kernel, {buffers.data(), integers.data(), nullptr, 0, extent, &failed});
      return;
    }
    codegen::set_isa(bits);
    codegen::CompiledKernelRef compiled = codegen::compile(std::move(emitted.kernel));
    codegen::set_isa(0);
    // Three threads' worth, the last first.
    for (int64_t piece = 3; piece-- > 0;)
      if (compiled->shape.parallel() || piece == 0)
        compiled->entry(buffers.data(), integers.data(), nullptr, compiled->shape.parallel() ? extent * piece / 3 : 0,
                        compiled->shape.parallel() ? extent * (piece + 1) / 3 : extent, &failed);
  }

  const Program& program_;
  Schedule schedule_;
  std::vector<Nest> nests_;
};

LoopSchedule plain_schedule(const Nest& nest) {
  LoopSchedule schedule;
  for (size_t axis = 0; axis < nest.axes.size(); ++axis)
    schedule.pieces.push_back({static_cast<int>(axis), 0, Role::Serial});
  return schedule;
}

// Shards share the programs.
class RandomSchedulesOf : public ::testing::TestWithParam<int> {};
constexpr int kPrograms = 220, kShards = 20;
constexpr size_t kSchedules = 25;

// Legal schedules of a program's nests, the same at every call.
std::vector<std::vector<LoopSchedule>> random_schedules(Engine& engine, const std::vector<Nest>& nests) {
  std::vector<std::vector<LoopSchedule>> found;
  for (size_t attempt = 0; found.size() < kSchedules && attempt < 40 * kSchedules; ++attempt) {
    std::vector<LoopSchedule> loops;
    bool all = true;
    for (const Nest& nest : nests) {
      loops.push_back(random_schedule(engine, nest));
      all &= static_cast<bool>(legal(nest, loops.back()));
    }
    if (all) found.push_back(std::move(loops));
  }
  return found;
}

TEST_P(RandomSchedulesOf, GiveTheBitsOfTheInterpreter) {
  for (int program_at = GetParam(); program_at < kPrograms; program_at += kShards) {
    Engine engine(static_cast<uint64_t>(program_at) * 7919 + 1);
    Program program = random_program(engine);
    Runner runner(program);
    std::vector<LoopSchedule> plain;
    for (const Nest& nest : runner.nests()) {
      plain.push_back(plain_schedule(nest));
      EXPECT_EQ(to_string(parse_nest(to_string(nest))), to_string(nest));
    }
    const Memory expected = runner.run(plain, 0);
    int at_width = 0;
    std::vector<std::vector<LoopSchedule>> all = random_schedules(engine, runner.nests());
    ASSERT_EQ(all.size(), kSchedules) << "program " << program_at;
    for (const std::vector<LoopSchedule>& loops : all) {
      std::string text;
      for (size_t at = 0; at < loops.size(); ++at)
        text += to_string(runner.nests()[at]) + "  " + to_string(loops[at]) + "\n";
      constexpr int kWidths[] = {128, 256, 512};
      const int bits = kWidths[at_width++ % 3];
      ASSERT_TRUE(runner.run(loops, bits) == expected) << "program " << program_at << ", " << bits << " bits\n" << text;
      if (at_width % 12 != 0) continue;
      ASSERT_TRUE(runner.run(loops, 0) == expected) << "program " << program_at << ", interpreted\n" << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, RandomSchedulesOf, ::testing::Range(0, kShards));

// What `GiveTheBitsOfTheInterpreter` ran, and what is done to a legal schedule to spoil it.
TEST(RandomSchedules, HoldEveryPrimitiveAndEveryBreachIsRefused) {
  Counts counts;
  int schedules = 0, refused = 0;
  for (int program_at = 0; program_at < kPrograms; ++program_at) {
    Engine engine(static_cast<uint64_t>(program_at) * 7919 + 1);
    Program program = random_program(engine);
    Runner runner(program);
    for (const std::vector<LoopSchedule>& loops : random_schedules(engine, runner.nests())) {
      ++schedules;
      for (size_t at = 0; at < loops.size(); ++at) {
        const Nest& nest = runner.nests()[at];
        count(nest, loops[at], counts);
        EXPECT_EQ(parse_loop_schedule(to_string(loops[at])), loops[at]);
        if (schedules % 5 != 0 || loops[at].pieces.empty()) continue;
        std::vector<LoopSchedule> spoilt(6, loops[at]);
        std::erase_if(spoilt[0].pieces, [&](const Piece& piece) { return piece.axis == loops[at].pieces[0].axis; });
        spoilt[1].pieces.push_back({static_cast<int>(nest.axes.size()), 0, Role::Serial});
        spoilt[2].pieces.push_back({loops[at].pieces[0].axis, 0, Role::Serial});
        spoilt[3].pieces.insert(spoilt[3].pieces.begin(), Piece{loops[at].pieces[0].axis, 8, Role::Serial});
        spoilt[4].pieces.push_back({loops[at].pieces[0].axis, 3, Role::Parallel});
        for (const Access& access : nest.accesses)
          if (!access.store) spoilt[5].streaming = {access.value};
        for (const LoopSchedule& each : spoilt) {
          if (each == loops[at]) continue;
          Decision decision = legal(nest, each);
          EXPECT_FALSE(decision) << to_string(nest) << to_string(each);
          refused += decision.why().empty() ? 0 : 1;
        }
      }
    }
  }
  EXPECT_GE(schedules, 5000);
  EXPECT_GE(refused, 500);
  EXPECT_GE(counts.reordered, 500);
  EXPECT_GE(counts.tiled, 500);
  EXPECT_GE(counts.collapsed, 500);
  EXPECT_GE(counts.kept_lanes, 500);
  EXPECT_GE(counts.reduced_lanes, 500);
  EXPECT_GE(counts.unrolled, 500);
  EXPECT_GE(counts.along, 500);
  EXPECT_GE(counts.split, 500);
  EXPECT_GE(counts.streamed, 500);
  EXPECT_GE(counts.kept, 500);
  EXPECT_GE(counts.symbolic, 500);
  EXPECT_GE(counts.tails, 500);
}

}  // namespace
}  // namespace tenon::schedule
