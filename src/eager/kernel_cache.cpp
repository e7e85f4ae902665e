#include "kernel_cache.h"
#include "support/at_fork.h"

#include <tenon/fake/fake.h>
#include <tenon/runtime/launch.h>
#include <tenon/support/hash.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tenon::eager {
namespace {

// Of any dimension: strides 0 and 1 are part of the kernel.
enum class StrideClass : char { Zero, One, Other };

StrideClass classify(int64_t stride) {
  return stride == 0 ? StrideClass::Zero : stride == 1 ? StrideClass::One : StrideClass::Other;
}

// Sizes among which one schedule does: a kernel serves any, but is chosen for the first that it meets.
char size_class(int64_t size) {
  constexpr int64_t kLimits[] = {16, 256, 1 << 14, 1 << 20};
  char found = 'a';
  for (int64_t limit : kLimits) found = static_cast<char>(found + (size >= limit ? 1 : 0));
  return found;
}

// Whether there is something to choose: lanes along either of two axes, threads for pieces of a sum.
bool has_choice(const KernelRequest& request) {
  if (request.dims.empty()) return false;
  if (request.dims.back().reduced) return true;
  const Ints& inner = request.dims.back().strides;
  return std::any_of(inner.begin(), inner.end(), [](int64_t stride) { return stride != 0 && stride != 1; });
}

// A result that is larger than the caches goes past them: nothing of it would be there when it is read.
bool is_streamed(const KernelRequest& request) {
  constexpr int64_t kLarge = 16 << 20;  // bytes
  int64_t bytes = size_of(request.result);
  for (const LoopDim& dim : request.dims)
    if (!dim.reduced) bytes *= dim.size;
  return bytes >= kLarge;
}

using Key = SmallVector<char, 64>;

// Everything that the machine code depends on, as bytes.
Key key_of(const KernelRequest& request) {
  const auto* op = reinterpret_cast<const char*>(&request.op);
  Key key(op, op + sizeof request.op);
  auto add = [&](auto part) { key.push_back(static_cast<char>(part)); };
  add(request.result);
  for (const Tensor* operand : request.operands) {
    add(operand->dtype());
    add(operand->dim() == 0 ? '0' : 'd');  // takes part in promotion
  }
  for (const dispatch::Value& value : request.args) {
    add(value.tag());
    if (value.tag() == dispatch::Value::Tag::Dtype) add(value.dtype());
  }
  add(request.dims.size());
  for (const LoopDim& dim : request.dims) add(dim.reduced ? 'r' : 'k');
  for (const LoopDim& dim : request.dims)
    for (int64_t stride : dim.strides) add(classify(stride));
  add(is_streamed(request) ? 's' : '-');
  if (has_choice(request))
    for (const LoopDim& dim : request.dims) add(size_class(dim.size));
  return key;
}

// Keys are looked up without a copy on the heap.
struct KeyHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
};

// How launches find their numbers.
struct Entry {
  struct Source {
    size_t dim;
    int operand;  // -1: the size; else that operand's stride
    int64_t value(const KernelRequest& request) const {
      const LoopDim& of = request.dims[dim];
      return operand < 0 ? of.size : of.strides[static_cast<size_t>(operand)];
    }
  };
  struct Launch {
    codegen::CompiledKernelRef kernel;
    std::vector<Source> integers;
    std::vector<int> buffers;  // position among the operands; operands.size() is the output, beyond it the partials
    std::vector<runtime::ScalarSource> scalars;
  };
  std::vector<Launch> launches;
  std::vector<schedule::SingleKernel::Partial> partials;
  sym::ExprProgram counts;      // of the partials
  std::vector<Source> symbols;  // by symbol id
  Ref<sym::ShapeEnv> env;       // owns the pool of the counts
};

class Graphs {
 public:
  explicit Graphs(const KernelRequest& request) : request_(request) {
    graph_.env = make_ref<sym::ShapeEnv>();
    for (size_t dim = 0; dim < request.dims.size(); ++dim) {
      sizes_.push_back(graph_.env->create_number(request.dims[dim].size, fmt::format("n{}", dim)));
      graph_.env->pool().refine(sizes_.back().expr(), {0, sym::Range::kMax});
      sources_.push_back({dim, -1});
    }
  }

  Entry build() {
    graph::Node node;
    node.op = request_.op;
    std::vector<graph::ValueId> ids;
    size_t operand = 0;
    auto add_operand = [&](const Tensor& tensor) {
      Tensor meta = make_meta(static_cast<int>(operand++), tensor.dtype(), tensor.dim() == 0 && !has_reduction(), true);
      graph::ValueId id = graph_.add_value(fmt::format("x{}", operand), meta);
      graph_.inputs.push_back(id);
      ids.push_back(id);
      return id;
    };
    for (size_t at = 0; at < request_.args.size(); ++at) {
      const dispatch::Value& value = request_.args[at];
      if (value.is_tensor())
        node.args.push_back(add_operand(value.tensor()));
      else if (request_.op->schema().arguments[at].name == "dim" && has_reduction())
        node.args.push_back(dispatch::Value(reduced_dims()).own());
      else if (request_.op->schema().arguments[at].name == "keepdim")
        node.args.push_back(dispatch::Value(false));
      else
        node.args.push_back(value.own());
    }
    Tensor out = make_meta(static_cast<int>(request_.operands.size()), request_.result, false, false);
    graph::ValueId result = graph_.add_value("out", out);
    node.outputs = {result};
    graph_.nodes.push_back(std::move(node));
    graph_.outputs = {result};
    schedule::SingleKernel single = schedule::compile_single(graph_, is_streamed(request_));
    Entry entry;
    for (schedule::SingleKernel::Launch& each : single.launches) {
      Entry::Launch& launch = entry.launches.emplace_back();
      launch.kernel = std::move(each.kernel);
      launch.scalars = std::move(each.scalars);
      for (sym::Expr integer : each.integers)
        launch.integers.push_back(sources_[static_cast<size_t>(integer.symbol_id())]);
      for (graph::ValueId id : each.buffers) {
        size_t at = 0;
        while (at < ids.size() && ids[at] != id) ++at;
        launch.buffers.push_back(static_cast<int>(id < -1 ? ids.size() + static_cast<size_t>(-1 - id) : at));
      }
    }
    entry.partials = std::move(single.partials);
    std::vector<sym::Expr> counts;
    for (const auto& partial : entry.partials) counts.push_back(partial.count);
    entry.counts = sym::ExprProgram(counts);
    entry.symbols = sources_;
    entry.env = graph_.env;
    return entry;
  }

 private:
  bool has_reduction() const { return !request_.dims.empty() && request_.dims.back().reduced; }
  Ints reduced_dims() const {
    Ints dims;
    for (size_t dim = 0; dim < request_.dims.size(); ++dim)
      if (request_.dims[dim].reduced) dims.push_back(static_cast<int64_t>(dim));
    return dims;
  }

  // A 0-d operand keeps its rank, because promotion looks at it.
  Tensor make_meta(int operand, Dtype dtype, bool zero_dim, bool input) {
    SymInts sizes, strides;
    if (!zero_dim)
      for (size_t dim = 0; dim < request_.dims.size(); ++dim) {
        if (request_.dims[dim].reduced && !input) continue;
        sizes.push_back(sizes_[dim]);
        int64_t stride = request_.dims[dim].strides[static_cast<size_t>(operand)];
        if (classify(stride) != StrideClass::Other) {
          strides.push_back(stride);
        } else {
          strides.push_back(graph_.env->create_number(stride, fmt::format("t{}_{}", operand, dim)));
          sources_.push_back({dim, operand});
        }
      }
    return fake::make(sizes, strides, dtype);
  }

  const KernelRequest& request_;
  graph::Graph graph_;
  SymInts sizes_;
  std::vector<Entry::Source> sources_;  // by symbol id
};

struct Cache {
  support::ForkSafe<std::shared_mutex> mutex;
  std::unordered_map<std::string, std::shared_ptr<const Entry>, KeyHash, std::equal_to<>> entries;
};

Cache& cache() {
  static auto* instance = new Cache;
  return *instance;
}

std::shared_ptr<const Entry> find_or_build(const KernelRequest& request) {
  const Key bytes = key_of(request);
  const std::string_view key(bytes.data(), bytes.size());
  Cache& kernels = cache();
  {
    std::shared_lock lock(kernels.mutex);
    if (auto found = kernels.entries.find(key); found != kernels.entries.end()) return found->second;
  }
  auto entry = std::make_shared<const Entry>(Graphs(request).build());
  std::unique_lock lock(kernels.mutex);
  return kernels.entries.try_emplace(std::string(key), entry).first->second;
}

}  // namespace

void forget_single_kernels() {
  std::unique_lock lock(cache().mutex);
  cache().entries.clear();
}

void run_kernel(const KernelRequest& request, void* output) {
  std::shared_ptr<const Entry> entry = find_or_build(request);
  // Operands, the output, partials.
  SmallVector<void*, 8> memory;
  for (const Tensor* operand : request.operands) memory.push_back(operand->raw_data());
  memory.push_back(output);
  SmallVector<Tensor, 2> partials;
  if (!entry->partials.empty()) {
    SmallVector<int64_t, 16> symbols;
    for (const Entry::Source& source : entry->symbols) symbols.push_back(source.value(request));
    SmallVector<int64_t, 2> counts(entry->partials.size());
    entry->counts.run(symbols.span(), {counts.data(), counts.size()});
    for (size_t at = 0; at < entry->partials.size(); ++at) {
      const int64_t sizes[] = {counts[at]}, strides[] = {1};
      partials.push_back(core::allocate(sizes, strides, entry->partials[at].dtype, kCPU));
      memory.push_back(partials.back().raw_data());
    }
  }
  for (const Entry::Launch& launch : entry->launches) {
    SmallVector<void*, 8> buffers;
    for (int at : launch.buffers) buffers.push_back(memory[static_cast<size_t>(at)]);
    SmallVector<int64_t, 16> integers;
    for (const Entry::Source& source : launch.integers) integers.push_back(source.value(request));
    SmallVector<uint64_t, 8> scalars;
    for (const runtime::ScalarSource& source : launch.scalars) {
      Scalar number = request.args[static_cast<size_t>(source.index)].scalar();
      scalars.push_back(number.is_real() ? std::bit_cast<uint64_t>(number.real())
                                         : static_cast<uint64_t>(number.to_int()));
    }
    runtime::launch(*launch.kernel, {buffers.data(), buffers.size()}, integers.span(), scalars.span());
  }
}

}  // namespace tenon::eager
