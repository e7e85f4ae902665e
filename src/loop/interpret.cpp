#include "iterations.h"
#include "print.h"

#include <tenon/loop/evaluate.h>

#include <bit>
#include <optional>

namespace tenon::loop {
namespace {

constexpr int64_t kMany = int64_t{1} << 20;  // iterations of which it is asked whether they do anything

int32_t max_symbols(const Kernel& kernel) { return kernel.pool->symbol_count(); }

std::vector<int64_t> symbol_values(const Kernel& kernel, const int64_t* integers) {
  std::vector<int64_t> result(max_symbols(kernel));
  for (size_t i = 0; i < kernel.integers.size(); ++i) result[kernel.integers[i].symbol_id()] = integers[i];
  return result;
}

const Loop* parallel_loop(const Kernel& kernel) {
  if (kernel.body.size() != 1) return nullptr;
  const auto* loop = std::get_if<std::unique_ptr<Loop>>(&kernel.body[0]);
  return loop && (*loop)->parallel ? loop->get() : nullptr;
}

struct Interpreter {
  const Kernel& kernel;
  const Launch& launch;
  std::vector<int64_t> symbols;
  std::vector<Number> values;
  std::vector<std::optional<int64_t>> extents;
  std::vector<std::pair<ValueId, Reduction>> reductions;  // of the loops that run; the innermost's come last

  Interpreter(const Kernel& k, const Launch& l) : kernel(k), launch(l), symbols(symbol_values(k, l.integers)) {
    values.resize(kernel.value_count);
    for (const Buffer& buffer : kernel.buffers) {
      extents.push_back(buffer.extent.defined() ? std::optional(sym::evaluate(buffer.extent, symbols)) : std::nullopt);
    }
  }

  int64_t checked_index(const Op& op) const {
    const int64_t index = sym::evaluate(op.index, symbols);
    const std::optional<int64_t>& extent = extents[op.buffer];
    TENON_ASSERT(!extent || (0 <= index && index < *extent), "kernel {}: `{}` accesses element {} of {}\n{}",
                 kernel.name, to_string(kernel, op), index, *extent, to_string(kernel));
    return index;
  }

  Number parameter(const Op& op) const {
    const uint64_t bits = launch.scalars[op.parameter];
    const Number given =
        is_floating(op.dtype) ? Number::of(std::bit_cast<double>(bits)) : Number::of(std::bit_cast<int64_t>(bits));
    return round_to(given, op.dtype);
  }

  void fail_check(int32_t number) const {
    if (*launch.failed < 0 || number < *launch.failed) *launch.failed = number;
  }

  void run(const Op& op) {
    const auto operand = [&](int i) { return values[op.operands[i]]; };
    switch (op.code) {
      case OpCode::Parameter: values[op.result] = parameter(op); return;
      case OpCode::Index: values[op.result] = Number::of(sym::evaluate(op.index, symbols)); return;
      case OpCode::Load:
        if (op.operands[0] != kNone && operand(0).integer == 0) {
          values[op.result] = is_floating(op.dtype) ? Number::of(0.0) : Number::of(int64_t{0});
          return;
        }
        values[op.result] = load_element(launch.buffers[op.buffer], kernel.buffers[op.buffer].dtype, checked_index(op));
        return;
      case OpCode::Random:
        values[op.result] =
            evaluate_op(op, std::array{operand(0), operand(1), Number::of(sym::evaluate(op.index, symbols))});
        return;
      case OpCode::Store:
        store_element(launch.buffers[op.buffer], kernel.buffers[op.buffer].dtype, checked_index(op), operand(0));
        return;
      case OpCode::Check:
        if (operand(0).integer == 0) fail_check(op.parameter);
        return;
      case OpCode::BindIndex: symbols[op.index.symbol_id()] = operand(0).integer; return;
      case OpCode::Reduce:
        for (size_t i = reductions.size(); i-- > 0;) {
          if (reductions[i].first == op.result) return reductions[i].second.add(operand(0));
        }
        TENON_ASSERT(false, "reduction %{} has no loop", op.result);
      default: break;
    }
    const int count = traits(op.code).operands;
    Number given[3];
    for (int i = 0; i < count; ++i) given[i] = operand(i);
    values[op.result] = evaluate_op(op, std::span<const Number>(given, count));
  }

  void run(const Loop& loop, int64_t begin, int64_t end) {
    const size_t outer = reductions.size();
    for (const Statement& statement : loop.body) {
      const Op* op = std::get_if<Op>(&statement);
      if (op && op->code == OpCode::Reduce)
        reductions.emplace_back(op->result, Reduction(op->reduce, op->dtype, loop.pairwise));
    }
    for (int64_t i = begin; i < end; ++i) {
      symbols[loop.index.symbol_id()] = i;
      run(loop.body);
    }
    for (size_t i = outer; i < reductions.size(); ++i) values[reductions[i].first] = reductions[i].second.result();
    reductions.erase(reductions.begin() + static_cast<ptrdiff_t>(outer), reductions.end());
  }

  void run(const Block& block) {
    for (const Statement& statement : block) {
      if (const Op* op = std::get_if<Op>(&statement)) {
        run(*op);
        continue;
      }
      const Loop& loop = *std::get<std::unique_ptr<Loop>>(statement);
      int64_t extent = sym::evaluate(loop.extent, symbols);
      if (extent > kMany) extent = sym::evaluate(iterations(loop, *kernel.pool), symbols);
      TENON_ASSERT(extent >= 0, "kernel {}: the extent of `{}` is {}", kernel.name, header_of(loop), extent);
      run(loop, 0, extent);
    }
  }
};

}  // namespace

int64_t parallel_extent(const Kernel& kernel, std::span<const int64_t> integers) {
  const Loop* loop = parallel_loop(kernel);
  if (!loop) return 1;
  TENON_ASSERT(integers.size() == kernel.integers.size(), "kernel {} has {} integer parameters, got {}", kernel.name,
               kernel.integers.size(), integers.size());
  return sym::evaluate(iterations(*loop, *kernel.pool), symbol_values(kernel, integers.data()));
}

void interpret(const Kernel& kernel, const Launch& launch) {
  Interpreter interpreter(kernel, launch);
  if (const Loop* loop = parallel_loop(kernel)) {
    interpreter.run(*loop, launch.begin, launch.end);
  } else {
    interpreter.run(kernel.body);
  }
}

}  // namespace tenon::loop
