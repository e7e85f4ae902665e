#include <tenon/codegen/compile.h>
#include <tenon/core/dtype.h>
#include <tenon/core/float8.h>
#include <tenon/oracle/oracle.h>
#include <tenon/runtime/launch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace tenon::oracle {
namespace {

constexpr int64_t kMostElements = 100'000;

std::vector<int64_t> symbol_values(const loop::Kernel& kernel, std::span<const int64_t> integers) {
  std::vector<int64_t> values(static_cast<size_t>(kernel.pool->symbol_count()));
  for (size_t at = 0; at < kernel.integers.size(); ++at)
    values[static_cast<size_t>(kernel.integers[at].symbol_id())] = integers[at];
  return values;
}

// How close a kernel and the interpreter can be.
struct Approximation {
  bool any = false;     // functions, and sums in another order
  bool single = false;  // … of float32
  bool sums = false;
  double terms = 1;               // of the longest sum
  bool extremum = false;          // of zeros of either sign, any
  bool half = false;              // a rounding to a half on the way
  bool breaks = false;            // a comparison or rounding to whole numbers, which may fall on the other side
  bool wild = false;              // an exponential or a wave of such a value: nothing is left to compare
  std::vector<bool> approximate;  // by value
};

// `terms`: how often reductions around the block run it.
void find_ops(const loop::Block& block, std::span<const int64_t> symbols, double terms, Approximation& found) {
  using loop::OpCode;
  found.terms = std::max(found.terms, terms);
  for (const loop::Statement& statement : block) {
    if (const auto* inner = std::get_if<std::unique_ptr<loop::Loop>>(&statement)) {
      const loop::Loop& loop = **inner;
      double times =
          loop.reduction ? static_cast<double>(std::max<int64_t>(1, sym::evaluate(loop.extent, symbols))) : 1;
      find_ops(loop.body, symbols, terms * times, found);
      continue;
    }
    const loop::Op& op = std::get<loop::Op>(statement);
    bool inherits = false;
    for (loop::ValueId operand : op.operands)
      inherits |= operand >= 0 && found.approximate[static_cast<size_t>(operand)];
    bool combines =
        op.code == OpCode::Reduce && (op.reduce == loop::ReduceKind::Sum || op.reduce == loop::ReduceKind::Product);
    if (is_floating(op.dtype) && (combines || loop::traits(op.code).transcendental)) {
      found.any = true;
      found.sums |= combines;
      found.single |= op.dtype == Dtype::Float32;
      found.wild |= inherits && (op.code == OpCode::Sin || op.code == OpCode::Cos || op.code == OpCode::Tan ||
                                 op.code == OpCode::Exp || op.code == OpCode::Exp2 || op.code == OpCode::Expm1 ||
                                 op.code == OpCode::Pow || op.code == OpCode::Sinh || op.code == OpCode::Cosh);
      inherits = true;
    }
    if (op.result >= 0) found.approximate[static_cast<size_t>(op.result)] = inherits;
    found.extremum |=
        op.code == OpCode::Reduce && (op.reduce == loop::ReduceKind::Max || op.reduce == loop::ReduceKind::Min);
    found.half |= op.has_rounding;
    found.breaks |=
        (op.code >= OpCode::Eq && op.code <= OpCode::Ge) || (op.code == OpCode::Cast && !is_floating(op.dtype)) ||
        op.code == OpCode::Sign || op.code == OpCode::Floor || op.code == OpCode::Ceil || op.code == OpCode::Trunc ||
        op.code == OpCode::Round || op.code == OpCode::FloorDiv || op.code == OpCode::Rem || op.code == OpCode::Mod;
  }
}

double read(const std::byte* data, Dtype dtype) {
  auto as = [data]<typename T>(T value) {
    std::memcpy(&value, data, sizeof value);
    return value;
  };
  switch (dtype) {
    case Dtype::Float16: return to_float(as(Half()));
    case Dtype::BFloat16: return to_float(as(BFloat16()));
    case Dtype::Float8E4M3FN: return to_float(as(Float8E4M3FN()));
    case Dtype::Float8E5M2: return to_float(as(Float8E5M2()));
    case Dtype::Float32: return as(0.f);
    default: return as(0.0);
  }
}

// The kernel again, through the interpreter, on copies taken before the run; then a comparison.
class Comparison {
 public:
  Comparison(const loop::Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers)
      : kernel_(kernel), buffers_(buffers) {
    std::vector<int64_t> symbols = symbol_values(kernel, integers);
    int64_t total = 0;
    for (const loop::Buffer& buffer : kernel.buffers) {
      if (buffer.role == loop::BufferRole::Scratch) break;
      if (!buffer.extent.defined()) return;
      extents_.push_back(
          std::max<int64_t>(0, sym::evaluate(buffer.extent, symbols)));  // below zero if there are no elements
      total += extents_.back();
    }
    if (total > kMostElements) return;
    for (size_t at = 0; at < buffers.size(); ++at) {
      auto* first = static_cast<const std::byte*>(buffers[at]);
      copies_.emplace_back(first, first + extents_[at] * size_of(kernel.buffers[at].dtype));
    }
    active_ = true;
  }

  void compare(std::span<const int64_t> integers, std::span<const uint64_t> scalars) {
    if (!active_) return;
    std::vector<void*> copies;
    for (auto& copy : copies_) copies.push_back(copy.data());
    launch_interpreted(kernel_, copies, integers, scalars);
    Approximation approximation;
    approximation.approximate.resize(static_cast<size_t>(kernel_.value_count));
    find_ops(kernel_.body, symbol_values(kernel_, integers), 1, approximation);
    if (approximation.wild) return;
    for (size_t at = 0; at < copies_.size(); ++at)
      if (kernel_.buffers[at].role != loop::BufferRole::In) compare_buffer(at, approximation);
  }

 private:
  void compare_buffer(size_t at, const Approximation& approximation) {
    bool approximate = approximation.any;
    Dtype dtype = kernel_.buffers[at].dtype;
    auto step = static_cast<size_t>(size_of(dtype));
    const auto* got = static_cast<const std::byte*>(buffers_[at]);
    const std::byte* expected = copies_[at].data();
    if (copies_[at].empty() || std::memcmp(got, expected, copies_[at].size()) == 0) return;
    // Differences of numbers of about one may be left over, however small the results.
    double scale = 1;
    for (size_t buffer = 0; buffer < copies_.size() && approximate; ++buffer)
      if (Dtype each = kernel_.buffers[buffer].dtype; is_floating(each))
        for (size_t i = 0; i < copies_[buffer].size(); i += static_cast<size_t>(size_of(each)))
          if (double value = std::fabs(read(copies_[buffer].data() + i, each)); std::isfinite(value))
            scale = approximation.sums ? scale + value : std::max(scale, value);
    // Nested sums read elements more than once.
    if (approximation.sums)
      scale *=
          std::max(1.0, approximation.terms / static_cast<double>(*std::max_element(extents_.begin(), extents_.end())));
    int64_t excused = approximate && approximation.breaks ? 1 + extents_[at] / 100 : 0;
    for (size_t i = 0; i < copies_[at].size(); i += step) {
      if (std::memcmp(got + i, expected + i, step) == 0) continue;
      double a = 0, b = 0;
      if (is_floating(dtype)) {
        a = read(got + i, dtype);
        b = read(expected + i, dtype);
        if ((std::isnan(a) && std::isnan(b)) || (approximation.extremum && a == b)) continue;
        bool fine = dtype == Dtype::Float64 && !approximation.single;
        double relative = is_narrow(dtype) || approximation.half ? 2e-2 : fine ? 1e-11 : 2e-5;
        if (approximate && (a == b || std::fabs(a - b) <= relative * std::max(std::fabs(b), 0.01 * scale))) continue;
      }
      if (excused-- > 0) continue;
      TENON_ASSERT(false, "kernel and interpreter differ in buffer {} at element {}: {} and {}\n{}",
                   kernel_.buffers[at].name, i / step, a, b, loop::to_string(kernel_));
    }
  }

  const loop::Kernel& kernel_;
  std::span<void* const> buffers_;
  std::vector<int64_t> extents_;
  std::vector<std::vector<std::byte>> copies_;
  bool active_ = false;
};

void compare_with_interpreter(const load::Kernel& kernel, std::span<void* const> buffers,
                              std::span<const int64_t> integers, std::span<const uint64_t> scalars,
                              FunctionRef<void()> run) {
  const codegen::CompiledKernel* compiled = codegen::compiled_from(kernel);
  if (!compiled) return run();
  Comparison check(compiled->kernel, buffers, integers);
  run();
  check.compare(integers, scalars);
}

[[maybe_unused]] const bool is_on_from_the_start = [] {
  const char* text = std::getenv("TENON_ORACLE");
  if (text && std::strcmp(text, "0") != 0 && *text != '\0') enable(true);
  return true;
}();

}  // namespace

void enable(bool on) { runtime::watch_launches(on ? compare_with_interpreter : nullptr); }
bool enabled() { return runtime::launch_watch() == compare_with_interpreter; }

void launch_interpreted(const loop::Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> integers,
                        std::span<const uint64_t> scalars) {
  const std::vector<int64_t> symbols = symbol_values(kernel, integers);
  std::vector<std::vector<std::byte>> scratch;
  std::vector<void*> all(buffers.begin(), buffers.end());
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.role == loop::BufferRole::Scratch) {
      const int64_t bytes = std::max<int64_t>(0, sym::evaluate(buffer.extent, symbols)) * size_of(buffer.dtype);
      all.push_back(scratch.emplace_back(static_cast<size_t>(bytes)).data());
    }
  int64_t failed = -1;
  loop::interpret(kernel,
                  {all.data(), integers.data(), scalars.data(), 0, loop::parallel_extent(kernel, integers), &failed});
  if (failed >= 0) raise_named(kernel.checks.at(static_cast<size_t>(failed)));
}

}  // namespace tenon::oracle
