// The bodies of random_kernel.h, inline since unit tests share no sources but headers.
#pragma once

#include "random_kernel.h"

#include <tenon/loop/builder.h>
#include <tenon/loop/evaluate.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace tenon::loop {

class RandomKernelMaker {
 public:
  RandomKernelMaker(uint64_t seed, const RandomOptions& options) : options_(options), engine_(seed) {}

  RandomKernel make() {
    switch (pick(options_.reductions ? 5 : 2)) {
      case 0: pointwise(); break;
      case 1: options_.temporaries ? through_temporary() : pointwise(); break;
      case 2: inner_reduction(); break;
      case 3: outer_reduction(); break;
      default: nested_reduction(); break;
    }
    // Buffers' storage was made in order of declaration; nothing is declared after it.
    result_.kernel = builder_.finish();
    return std::move(result_);
  }

 private:
  struct Axis {
    sym::Expr index, extent;
    int64_t size;
  };
  struct Value {
    Lane lane;
    Tolerance tolerance = Tolerance::Exact;
  };

  // Choices ----------------------------------------------------------------------------------------------------------

  int64_t pick(int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(engine_); }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(engine_); }
  template <typename List>
  const auto& pick_from(const List& list) {
    return list[static_cast<size_t>(pick(static_cast<int64_t>(std::size(list))))];
  }

  Dtype pick_dtype() {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Dtype dtype = static_cast<Dtype>(pick(kDtypeCount));
      if (options_.allow_dtype(dtype)) return dtype;
    }
    return Dtype::Float32;
  }
  Dtype pick_float() {
    constexpr Dtype kFloats[] = {Dtype::Float32, Dtype::Float64, Dtype::Float16, Dtype::BFloat16};
    const Dtype dtype = pick_from(kFloats);
    return options_.allow_dtype(dtype) ? dtype : Dtype::Float32;
  }

  int64_t pick_size(int64_t most) {
    constexpr int64_t kSizes[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  13,  15,  16,
                                  17, 24, 31, 32, 33, 47, 63, 64, 65, 100, 129, 300};
    for (;;) {
      const int64_t size = pick_from(kSizes);
      if (size <= most && (size > 1 || chance(0.3))) return size;
    }
  }

  // A size, stride or offset: a constant, or a parameter with a range that may be tight or loose.
  sym::Expr number_expr(int64_t value) {
    if (chance(0.4)) return builder_.pool().constant(value);
    sym::Range range;
    if (chance(0.5)) range.min = value >= 2 && chance(0.7) ? 2 : std::min<int64_t>(value, 0);
    if (chance(0.2)) range.max = value + pick(100);
    result_.integers.push_back(value);
    return builder_.integer(fmt::format("n{}", result_.integers.size() - 1), range);
  }

  // Data -------------------------------------------------------------------------------------------------------------

  Number random_number(Dtype dtype, bool moderate) {
    if (is_floating(dtype)) {
      if (options_.special_values && !moderate && chance(0.08)) {
        constexpr double kSpecial[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, 1e-40, -3e-42, 0.5, 2.5, -1.5, 1e-7, 65519.0};
        return chance(0.15) ? Number::of(std::nan("")) : Number::of(double{pick_from(kSpecial)});
      }
      if (moderate)
        return Number::of(std::uniform_real_distribution<double>(0.75, 1.3)(engine_) * (chance(0.5) ? 1 : -1));
      if (chance(0.2)) return Number::of(static_cast<double>(pick(21) - 10));
      return Number::of(std::normal_distribution<double>(0, chance(0.1) ? 1000 : 3)(engine_));
    }
    if (chance(0.5)) return Number::of(pick(21) - 10);
    return Number::of(static_cast<int64_t>(engine_()));
  }

  int declare(Dtype dtype, BufferRole role, int64_t elements, bool moderate = false) {
    const std::string name = fmt::format("{}{}",
                                         role == BufferRole::In          ? "x"
                                         : role == BufferRole::Temporary ? "t"
                                                                         : "y",
                                         result_.buffers.size());
    const sym::Expr extent = chance(0.1) ? sym::Expr() : number_expr(elements);
    const int buffer = builder_.buffer(name, dtype, role, extent);
    // At least one element, so that the address is never null.
    std::vector<std::byte> data(static_cast<size_t>(std::max<int64_t>(elements, 1) * size_of(dtype)));
    for (int64_t i = 0; i < elements; ++i) {
      store_element(data.data(), dtype, i, round_to(random_number(dtype, moderate), dtype));
    }
    result_.buffers.push_back(std::move(data));
    return buffer;
  }

  // Where the elements of a tensor over `axes` lie: permuted, with gaps, and broadcast if that is allowed. The symbols
  // are made now; the index is built later, when the loops exist.
  struct Layout {
    std::vector<sym::Expr> strides;
    sym::Expr offset;
    int64_t elements;
  };
  Layout pick_layout(const std::vector<int64_t>& sizes, bool broadcast) {
    std::vector<int64_t> strides(sizes.size()), order(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) order[i] = static_cast<int64_t>(sizes.size() - 1 - i);
    if (chance(0.3)) std::shuffle(order.begin(), order.end(), engine_);
    int64_t stride = chance(0.15) ? 2 + pick(2) : 1, last = 0;
    for (int64_t axis : order) {
      if (broadcast && chance(0.25)) continue;
      strides[static_cast<size_t>(axis)] = stride;
      last += std::max<int64_t>(sizes[static_cast<size_t>(axis)] - 1, 0) * stride;
      stride *= std::max<int64_t>(sizes[static_cast<size_t>(axis)], 1);
      if (chance(0.1)) stride += pick(3);
    }
    const int64_t offset = chance(0.2) ? pick(9) : 0;
    Layout layout;
    for (int64_t s : strides) layout.strides.push_back(s <= 1 ? builder_.pool().constant(s) : number_expr(s));
    layout.offset = offset == 0 ? builder_.pool().constant(0) : number_expr(offset);
    layout.elements = offset + last + 1;
    return layout;
  }
  sym::Expr place(const Layout& layout, const std::vector<Axis>& axes) {
    sym::Expr result = layout.offset;
    for (size_t i = 0; i < axes.size(); ++i) result = result + layout.strides[i] * axes[i].index;
    return result;
  }

  // What a body reads: declared before the loops, loaded inside them.
  struct Input {
    int buffer;
    Layout layout;
  };
  struct Table {  // a gather: indices over the axes into a table
    Input indices;
    int table;
    sym::Expr size;
    int64_t count;
  };
  void declare_inputs(const std::vector<int64_t>& sizes, bool moderate = false) {
    const int64_t count = 1 + pick(3);
    for (int64_t i = 0; i < count; ++i) {
      const Dtype dtype = i == 0 && chance(0.5) ? Dtype::Float32 : pick_dtype();
      const Layout layout = pick_layout(sizes, true);
      inputs_.push_back({declare(dtype, BufferRole::In, layout.elements, moderate), layout});
    }
    if (options_.gathers && chance(0.3)) {
      Table table;
      table.count = 1 + pick(20);
      table.size = number_expr(table.count);
      table.indices.layout = pick_layout(sizes, true);
      table.indices.buffer = declare(options_.allow_dtype(Dtype::Int64) ? Dtype::Int64 : Dtype::Float32, BufferRole::In,
                                     table.indices.layout.elements);
      table.table = declare(pick_dtype(), BufferRole::In, table.count);
      tables_.push_back(table);
    }
    if (chance(0.4)) {
      const Dtype dtype = options_.allow_dtype(Dtype::Int64) && chance(0.4) ? Dtype::Int64 : Dtype::Float64;
      if (options_.allow_dtype(dtype)) {
        scalars_.push_back(builder_.scalar(fmt::format("p{}", scalars_.size()), dtype));
        const Number number = round_to(random_number(dtype, moderate), dtype);
        result_.scalars.push_back(dtype == Dtype::Int64 ? std::bit_cast<uint64_t>(number.integer)
                                                        : std::bit_cast<uint64_t>(number.real));
      }
    }
  }

  // Bodies -----------------------------------------------------------------------------------------------------------

  bool allowed(OpCode code, Dtype dtype) {
    const OpTraits& t = traits(code);
    const bool defined = dtype == Dtype::Bool ? t.booleans : is_floating(dtype) ? t.floats : t.integers;
    return defined && options_.allow(code, dtype);
  }

  void load_inputs(const std::vector<Axis>& axes) {
    values_.clear();
    for (const Input& input : inputs_) {
      values_.push_back({builder_.load(input.buffer, place(input.layout, axes))});
      if (chance(0.3) && conditions_allowed()) values_.push_back({load_further(input, axes)});
    }
    for (const Table& table : tables_) {
      if (!chance(0.4) || !conditions_allowed()) {
        gather(table, axes);
        continue;
      }
      // Neither read nor checked elsewhere.
      const Lane known = values_.back().lane;
      const Lane lane = builder_.when(builder_.index(pick_from(axes).index) < number_lane(1 + pick(5)), [&] {
        gather(table, axes);
        return known;
      });
      (void)lane;
    }
    for (int scalar : scalars_) values_.push_back({builder_.parameter(scalar)});
    if (chance(0.3) && options_.allow_dtype(Dtype::Int64)) values_.push_back({builder_.index(pick_from(axes).index)});
    if (chance(0.15) && options_.random_bits && options_.allow_dtype(Dtype::Int64)) {
      const Lane seed = builder_.constant(static_cast<int64_t>(engine_()), Dtype::Int64);
      const Lane offset = builder_.constant(pick(1000), Dtype::Int64);
      values_.push_back({builder_.random_bits(seed, offset, place(inputs_[0].layout, axes))});
    }
  }

  bool conditions_allowed() { return options_.allow_dtype(Dtype::Int64) && options_.allow_dtype(Dtype::Bool); }
  Lane number_lane(int64_t value) { return builder_.constant(value, Dtype::Int64); }

  // An input some elements further on, where there are any: beyond its end nothing may be read.
  Lane load_further(const Input& input, const std::vector<Axis>& axes) {
    const sym::Expr at = place(input.layout, axes) + (chance(0.2) ? int64_t{1} << 40 : pick(4));
    const Lane inside = builder_.index(at) < number_lane(input.layout.elements);
    const Lane wanted = chance(0.5) ? inside : inside & (builder_.index(pick_from(axes).index) > number_lane(pick(3)));
    return builder_.when(wanted, [&] {
      if (chance(0.7)) return builder_.load(input.buffer, at);
      // Another condition inside the first.
      return builder_.when(builder_.index(at) != number_lane(1), [&] { return builder_.load(input.buffer, at); });
    });
  }

  void gather(const Table& table, const std::vector<Axis>& axes) {
    const Lane raw = cast(builder_.load(table.indices.buffer, place(table.indices.layout, axes)), Dtype::Int64);
    const Lane size = builder_.index(table.size);
    builder_.check((raw >= 0.0) & (raw < size), "index out of range");
    const Lane clamped = maximum(minimum(raw, size - 1.0), number(raw, 0));
    const sym::Expr at = builder_.bind_index(clamped, {0, chance(0.5) ? table.count - 1 : sym::Range::kMax});
    values_.push_back({builder_.load(table.table, at)});
  }

  Value pick_exact() {
    for (;;) {
      const Value& value = pick_from(values_);
      if (value.tolerance == Tolerance::Exact) return value;
    }
  }
  Lane pick_of(Dtype dtype) {
    for (int attempt = 0; attempt < 6; ++attempt) {
      const Lane lane = pick_exact().lane;
      if (lane.dtype() == dtype) return lane;
    }
    if (chance(0.3)) {
      const Number number = round_to(random_number(dtype, false), dtype);
      return number.is_real ? builder_.constant(number.real, dtype) : builder_.constant(number.integer, dtype);
    }
    return cast(pick_exact().lane, dtype);
  }

  void add_operation() {
    const Lane a = pick_exact().lane;
    const OpCode code =
        static_cast<OpCode>(static_cast<int64_t>(OpCode::Neg) +
                            pick(static_cast<int64_t>(OpCode::Reduce) - static_cast<int64_t>(OpCode::Neg)));
    if (code == OpCode::Cast) {
      const Dtype target = pick_dtype();
      if (options_.allow(OpCode::Cast, target)) values_.push_back({cast(a, target)});
      return;
    }
    if (!allowed(code, a.dtype())) return;
    if (code == OpCode::Select) {
      if (options_.allow_dtype(Dtype::Bool)) values_.push_back({select(pick_of(Dtype::Bool), a, pick_of(a.dtype()))});
      return;
    }
    const bool math = traits(code).transcendental && is_floating(a.dtype());
    const auto bounded = [&](Lane lane) {
      if (!math) return lane;
      return maximum(minimum(lane, number(lane, options_.math_range)), number(lane, -options_.math_range));
    };
    const Tolerance tolerance = math ? Tolerance::FewUlps : Tolerance::Exact;
    if (traits(code).operands == 1) {
      values_.push_back({builder_.unary(code, bounded(a)), tolerance});
    } else {
      values_.push_back({builder_.binary(code, bounded(a), bounded(pick_of(a.dtype()))), tolerance});
    }
  }

  void compute() {
    // Tries that the options refuse count too, so there are more of them than operations wanted.
    const size_t wanted = values_.size() + static_cast<size_t>(pick(options_.operations) + 1);
    for (int i = 0; i < 4 * options_.operations && values_.size() < wanted; ++i) add_operation();
  }

  struct Slot {  // an output declared before the loops
    int buffer;
    Layout layout;
    bool used = false;
  };
  void declare_outputs(std::vector<Slot>& slots, const std::vector<int64_t>& sizes, int count, Dtype dtype) {
    const Layout layout = pick_layout(sizes, false);
    for (int i = 0; i < count; ++i) slots.push_back({declare(dtype, BufferRole::Out, layout.elements), layout});
  }
  void declare_outputs(std::vector<Slot>& slots, const std::vector<int64_t>& sizes) {
    for (int64_t i = 1 + pick(3); i > 0; --i) declare_outputs(slots, sizes, 1, i == 1 ? pick_float() : pick_dtype());
  }

  // Exact values go anywhere; the others only into floats, where a small difference stays small.
  void store(Slot& slot, const Value& value, const std::vector<Axis>& axes) {
    const Dtype dtype = builder_.kernel().buffers[static_cast<size_t>(slot.buffer)].dtype;
    const bool fits = value.tolerance == Tolerance::Exact || is_floating(dtype);
    const Value stored = fits ? value : pick_exact();
    builder_.store(slot.buffer, place(slot.layout, axes), stored.lane);
    result_.outputs.push_back({slot.buffer, stored.tolerance, stored.lane.dtype()});
  }
  void store_all(std::vector<Slot>& slots, const std::vector<Axis>& axes) {
    for (Slot& slot : slots) store(slot, chance(0.6) ? values_.back() : pick_from(values_), axes);
  }

  // Loops ------------------------------------------------------------------------------------------------------------

  std::vector<int64_t> pick_sizes(int64_t rank, int64_t most = 3000) {
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < rank; ++i) {
      sizes.push_back(pick_size(std::max<int64_t>(most, 1)));
      most /= std::max<int64_t>(sizes.back(), 1);
    }
    return sizes;
  }

  struct Nest {
    std::vector<int64_t> sizes;
    std::vector<sym::Expr> extents;
  };
  Nest pick_nest(int64_t rank) {
    Nest nest{pick_sizes(rank), {}};
    for (int64_t size : nest.sizes) nest.extents.push_back(number_expr(size));
    return nest;
  }
  Axis open(const Nest& nest, size_t axis, LoopFlags flags) {
    return {builder_.begin_loop(nest.extents[axis], flags), nest.extents[axis], nest.sizes[axis]};
  }

  void pointwise() {
    const Nest nest = pick_nest(1 + pick(3));
    declare_inputs(nest.sizes);
    std::vector<Slot> slots;
    declare_outputs(slots, nest.sizes);
    const bool in_place = chance(0.3);
    int updated = -1;
    Layout layout;
    if (in_place) {
      layout = pick_layout(nest.sizes, false);
      updated = declare(pick_dtype(), BufferRole::InOut, layout.elements);
    }
    const bool parallel = chance(0.6), vector = chance(0.7);
    std::vector<Axis> axes;
    for (size_t i = 0; i < nest.sizes.size(); ++i) {
      axes.push_back(open(nest, i, {.parallel = parallel && i == 0, .vector = vector && i + 1 == nest.sizes.size()}));
    }
    load_inputs(axes);
    if (in_place) values_.push_back({builder_.load(updated, place(layout, axes))});
    compute();
    store_all(slots, axes);
    if (in_place) {
      const Value value = pick_exact();
      builder_.store(updated, place(layout, axes), value.lane);
      result_.outputs.push_back({updated, Tolerance::Exact, value.lane.dtype()});
    }
    for (size_t i = 0; i < axes.size(); ++i) builder_.end_loop();
  }

  // Rows: one loop fills a temporary, a sibling loop reads it back.
  void through_temporary() {
    const Nest nest = pick_nest(2);
    declare_inputs(nest.sizes);
    std::vector<Slot> slots;
    declare_outputs(slots, nest.sizes);
    Slot temporary{-1, pick_layout(nest.sizes, false)};
    temporary.buffer = declare(pick_dtype(), BufferRole::Temporary, temporary.layout.elements);
    const bool whole = chance(0.5);  // the siblings at the top, or inside a parallel loop over rows
    const bool vector = chance(0.7);
    std::vector<Axis> axes;
    axes.push_back(open(nest, 0, {.parallel = !whole}));
    axes.push_back(open(nest, 1, {.vector = vector}));
    load_inputs(axes);
    compute();
    builder_.store(temporary.buffer, place(temporary.layout, axes), pick_exact().lane);
    builder_.end_loop();
    axes.pop_back();
    if (whole) {
      builder_.end_loop();
      axes.pop_back();
      axes.push_back(open(nest, 0, {}));
    }
    axes.push_back(open(nest, 1, {.vector = vector}));
    values_.clear();
    values_.push_back({builder_.load(temporary.buffer, place(temporary.layout, axes))});
    compute();
    store_all(slots, axes);
    builder_.end_loop();
    builder_.end_loop();
  }

  // What a reduction leaves behind: its kind decides how exactly it is known.
  struct Reduced {
    Lane lane;
    Tolerance tolerance;
  };
  Reduced reduce_value(int64_t terms) {
    // A product needs few and moderate factors, or it leaves the range of its dtype, where the order decides: those are
    // the inputs as they were loaded.
    const bool loaded = chance(0.5);
    const Lane value = loaded ? values_[0].lane : pick_exact().lane;
    if (value.dtype() == Dtype::Bool) {
      return {builder_.reduce(chance(0.5) ? ReduceKind::Any : ReduceKind::All, value), Tolerance::Exact};
    }
    const bool real = is_floating(value.dtype());
    constexpr ReduceKind kKinds[] = {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Product};
    ReduceKind kind = pick_from(kKinds);
    if (kind == ReduceKind::Product && real && (terms > 40 || !loaded)) kind = ReduceKind::Sum;
    // Sums and products have one order; of zeros of either sign the largest may be any.
    const bool extremum = kind == ReduceKind::Max || kind == ReduceKind::Min;
    return {builder_.reduce(kind, value), real && extremum ? Tolerance::Equal : Tolerance::Exact};
  }

  void store_reduced(const Slot& slot, const Reduced& reduced, const std::vector<Axis>& axes) {
    builder_.store(slot.buffer, place(slot.layout, axes), reduced.lane);
    const Dtype stored = builder_.kernel().buffers[static_cast<size_t>(slot.buffer)].dtype;
    // An inexact value must not be cut to an integer: its last bit would decide. Its slot is a float64.
    TENON_ASSERT(reduced.tolerance == Tolerance::Exact || is_floating(stored));
    result_.outputs.push_back({slot.buffer, reduced.tolerance, reduced.lane.dtype()});
  }

  Dtype reduced_slot_dtype() { return options_.allow_dtype(Dtype::Float64) ? Dtype::Float64 : Dtype::Float32; }

  // for rows { reduction over columns; maybe a second loop over the columns that uses the result }
  void inner_reduction() {
    const Nest nest = pick_nest(2);
    declare_inputs(nest.sizes, true);
    std::vector<Slot> results, slots;
    declare_outputs(results, {nest.sizes[0]}, 1, reduced_slot_dtype());
    declare_outputs(slots, nest.sizes);
    const bool vector = chance(0.7);
    std::vector<Axis> row{open(nest, 0, {.parallel = chance(0.7)})};
    std::vector<Axis> axes = row;
    axes.push_back(open(nest, 1, {.vector = vector, .reduction = true, .pairwise = !vector && chance(0.4)}));
    load_inputs(axes);
    if (chance(0.6)) compute();
    const Reduced reduced = reduce_value(nest.sizes[1]);
    builder_.end_loop();
    axes.pop_back();
    store_reduced(results[0], reduced, row);
    axes.push_back(open(nest, 1, {.vector = vector}));
    load_inputs(axes);
    if (reduced.tolerance == Tolerance::Exact) values_.push_back({reduced.lane});
    compute();
    if (reduced.tolerance == Tolerance::Equal && allowed(OpCode::Sub, reduced.lane.dtype())) {
      const Lane shifted = cast(values_[0].lane, reduced.lane.dtype()) - reduced.lane;
      values_.push_back({shifted, Tolerance::Equal});
    }
    store_all(slots, axes);
    builder_.end_loop();
    builder_.end_loop();
  }

  // for columns (vector) { reduction over rows }
  void outer_reduction() {
    const Nest nest = pick_nest(2);
    declare_inputs(nest.sizes, true);
    std::vector<Slot> results;
    declare_outputs(results, {nest.sizes[0]}, 1, reduced_slot_dtype());
    std::vector<Axis> column{open(nest, 0, {.parallel = chance(0.6), .vector = chance(0.7)})};
    std::vector<Axis> axes = column;
    axes.push_back(open(nest, 1, {.reduction = true, .pairwise = chance(0.4)}));
    load_inputs(axes);
    if (chance(0.6)) compute();
    const Reduced reduced = reduce_value(nest.sizes[1]);
    builder_.end_loop();
    store_reduced(results[0], reduced, column);
    builder_.end_loop();
  }

  // reduction { reduction }, to a single number or per outer index
  void nested_reduction() {
    const bool kept = chance(0.6);
    const Nest nest = pick_nest(kept ? 3 : 2);
    const size_t first = kept ? 1 : 0;
    declare_inputs(nest.sizes, true);
    std::vector<Slot> results;
    declare_outputs(results, kept ? std::vector<int64_t>{nest.sizes[0]} : std::vector<int64_t>{}, 1,
                    reduced_slot_dtype());
    std::vector<Axis> outer;
    if (kept) outer.push_back(open(nest, 0, {.parallel = chance(0.6)}));
    std::vector<Axis> axes = outer;
    axes.push_back(open(nest, first, {.reduction = true, .pairwise = chance(0.4)}));
    axes.push_back(open(nest, first + 1, {.vector = chance(0.7), .reduction = true}));
    load_inputs(axes);
    const int64_t terms = nest.sizes[first] * nest.sizes[first + 1];
    const Reduced inner = reduce_value(terms);
    builder_.end_loop();
    Reduced reduced = inner;
    if (inner.tolerance == Tolerance::Equal) {
      reduced.lane = builder_.reduce(chance(0.5) ? ReduceKind::Max : ReduceKind::Min, inner.lane);
    } else {
      const bool boolean = inner.lane.dtype() == Dtype::Bool;
      reduced.lane = builder_.reduce(boolean ? ReduceKind::Any : ReduceKind::Sum, inner.lane);
    }
    builder_.end_loop();
    store_reduced(results[0], reduced, outer);
    if (kept) builder_.end_loop();
  }

  const RandomOptions& options_;
  std::mt19937_64 engine_;
  Builder builder_{"random"};
  RandomKernel result_;
  std::vector<Input> inputs_;
  std::vector<Table> tables_;
  std::vector<int> scalars_;
  std::vector<Value> values_;
};

inline RandomKernel make_random_kernel(uint64_t seed, const RandomOptions& options) {
  return RandomKernelMaker(seed, options).make();
}

inline RunResult run(const RandomKernel& random, const std::function<void(const Launch&)>& execute, int pieces) {
  RunResult result;
  result.buffers = random.buffers;
  std::vector<void*> pointers;
  for (auto& buffer : result.buffers) pointers.push_back(buffer.data());
  const int64_t extent = parallel_extent(random.kernel, random.integers);
  const bool parallel = random.kernel.body.size() == 1 && random.kernel.body[0].index() == 1 &&
                        std::get<1>(random.kernel.body[0])->parallel;
  if (!parallel) pieces = 1;
  for (int piece = 0; piece < pieces; ++piece) {
    int64_t failed = -1;
    execute({pointers.data(), random.integers.data(), random.scalars.data(), extent * piece / pieces,
             extent * (piece + 1) / pieces, &failed});
    if (failed >= 0 && (result.failed < 0 || failed < result.failed)) result.failed = failed;
  }
  return result;
}

namespace random_kernel_detail {

// The distance between neighbours of `dtype` near a value.
inline double ulp(double value, Dtype dtype) {
  int mantissa = dtype == Dtype::Float64 ? 52 : dtype == Dtype::Float32 ? 23 : dtype == Dtype::Float16 ? 10 : 7;
  int least = dtype == Dtype::Float64 ? -1022 : dtype == Dtype::Float16 ? -14 : -126;
  if (dtype == Dtype::Float8E4M3FN) mantissa = 3, least = -6;
  if (dtype == Dtype::Float8E5M2) mantissa = 2, least = -14;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - mantissa);
}

inline bool agrees(const RandomOutput& output, Dtype dtype, Number expected, Number actual) {
  if (!expected.is_real) return expected.integer == actual.integer;
  const double a = expected.real, b = actual.real;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
  if (std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b)) return true;
  // A small difference may round the other way when the store narrows.
  const bool narrowed = is_narrow(dtype) || (dtype == Dtype::Float32 && output.computed == Dtype::Float64);
  const double rounding = narrowed ? ulp(a, dtype) : 0;
  switch (output.tolerance) {
    case Tolerance::Exact: return false;
    case Tolerance::Equal: return a == b;
    case Tolerance::FewUlps: {
      const double largest = dtype == Dtype::Float16      ? 65504.0
                             : dtype == Dtype::Float8E5M2 ? 57344.0
                             : dtype == Dtype::Float64    ? 0x1.fffffffffffffp1023
                                                          : 0x1.fffffep127;
      if (std::isinf(a) || std::isinf(b)) return std::abs(std::isinf(a) ? b : a) >= largest * 0.99;
      return std::abs(a - b) <= 5 * ulp(a, output.computed) + rounding;
    }
  }
  return false;
}

}  // namespace random_kernel_detail

inline std::string difference(const RandomKernel& random, const RunResult& expected, const RunResult& actual) {
  if (expected.failed != actual.failed) {
    return fmt::format("failed checks: expected {}, got {}\n{}", expected.failed, actual.failed,
                       to_string(random.kernel));
  }
  for (const RandomOutput& output : random.outputs) {
    const size_t position = static_cast<size_t>(output.buffer);
    const Buffer& buffer = random.kernel.buffers[position];
    const int64_t count = static_cast<int64_t>(expected.buffers[position].size()) / size_of(buffer.dtype);
    for (int64_t i = 0; i < count; ++i) {
      const Number a = load_element(expected.buffers[position].data(), buffer.dtype, i);
      const Number b = load_element(actual.buffers[position].data(), buffer.dtype, i);
      if (random_kernel_detail::agrees(output, buffer.dtype, a, b)) continue;
      return fmt::format("{}[{}]: expected {}, got {} (tolerance {})\n{}", buffer.name, i,
                         a.is_real ? fmt::format("{:a} = {}", a.real, a.real) : fmt::format("{}", a.integer),
                         b.is_real ? fmt::format("{:a} = {}", b.real, b.real) : fmt::format("{}", b.integer),
                         static_cast<int>(output.tolerance), to_string(random.kernel));
    }
  }
  // What no store touches must stay as it was, but for temporaries.
  for (size_t i = 0; i < random.kernel.buffers.size(); ++i) {
    if (random.kernel.buffers[i].role == BufferRole::In && actual.buffers[i] != random.buffers[i]) {
      return fmt::format("the input {} was changed\n{}", random.kernel.buffers[i].name, to_string(random.kernel));
    }
  }
  return "";
}

}  // namespace tenon::loop
