#include "kernels/convolution_primitive.h"
#include "support/thread_data.h"

#include <tenon/kernels/convolution.h>
#include <tenon/support/error.h>
#include <tenon/support/hash.h>

#include <fmt/format.h>

#include <optional>

#include "kernels/onednn.h"

namespace tenon::kernels {
namespace {

using dnnl::memory;
using onednn::Block;
using onednn::data_type;
using onednn::engine;

constexpr size_t kKept = 256;  // primitives per thread
thread_local int64_t made = 0;

memory::dims dims_of(const Ints& list) { return {list.begin(), list.end()}; }

memory::desc image(const ConvolutionOperand& operand, Dtype dtype) {
  return {dims_of(operand.sizes), data_type(dtype), dims_of(operand.strides)};
}

// [out, in, …] as [groups, out / groups, in, …] where there are groups.
memory::desc weight(const ConvolutionKey& key) {
  memory::dims sizes = dims_of(key.weight.sizes), strides = dims_of(key.weight.strides);
  if (key.groups > 1) {
    sizes[0] /= key.groups;
    sizes.insert(sizes.begin(), key.groups);
    strides.insert(strides.begin(), strides[0] * sizes[1]);
  }
  return {sizes, data_type(key.dtype), strides};
}

memory::desc in_order(const memory::desc& plain, memory::format_tag tag) {
  return {plain.dims(), plain.data_type(), tag};
}

memory::format_tag channels_last(size_t rank) {
  return rank == 3 ? memory::format_tag::nwc : rank == 4 ? memory::format_tag::nhwc : memory::format_tag::ndhwc;
}

// One of the three, as the caller has it and as the primitive wants it.
struct Operand {
  memory given, wanted;
  std::optional<dnnl::reorder> change;  // none: they are the same

  Operand() = default;
  Operand(const memory::desc& as_given, const memory::desc& as_wanted, bool written)
      : given(as_given, engine(), nullptr), wanted(as_wanted, engine(), nullptr) {
    if (as_given == as_wanted) return;
    const memory::desc &from = written ? as_wanted : as_given, &to = written ? as_given : as_wanted;
    change.emplace(dnnl::reorder::primitive_desc(engine(), from, engine(), to));
  }
  const memory& used() const { return change ? wanted : given; }
};

}  // namespace

size_t ConvolutionKey::hash() const {
  size_t seed = hash_all(static_cast<int>(kind), static_cast<int>(dtype), threads, bias, channels_last, groups);
  for (const Ints* list : {&stride, &padding, &dilation, &input.sizes, &input.strides, &weight.sizes, &weight.strides,
                           &result.sizes, &result.strides})
    for (int64_t number : *list) seed = hash_combine(seed, hash_all(number));
  return seed;
}

struct ConvolutionPrimitive::Parts {
  dnnl::stream stream{engine()};
  dnnl::primitive primitive;
  Operand input, weight, result;
  Operand* written = nullptr;
  memory bias, scratchpad;
  std::string implementation;

  template <typename Description, typename Primitive>
  void keep(const Description& description, const memory::desc& in, const memory::desc& by, const memory::desc& out,
            const ConvolutionKey& key) {
    primitive = Primitive(description);
    implementation = description.impl_info_str();
    input = Operand(image(key.input, key.dtype), in, key.kind == ConvolutionKind::InputGradient);
    weight = Operand(kernels::weight(key), by, key.kind == ConvolutionKind::WeightGradient);
    result = Operand(image(key.result, key.dtype), out, key.kind == ConvolutionKind::Forward);
    scratchpad = memory(description.scratchpad_desc(), engine(), nullptr);
  }
  void make(const ConvolutionKey& key);
};

void ConvolutionPrimitive::Parts::make(const ConvolutionKey& key) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const size_t rank = key.input.sizes.size();
  const memory::format_tag any = memory::format_tag::any, order = key.channels_last ? channels_last(rank) : any;
  const memory::desc in = in_order(image(key.input, key.dtype), order), by = in_order(kernels::weight(key), any),
                     out = in_order(image(key.result, key.dtype), order);
  const memory::dims stride = dims_of(key.stride), padding = dims_of(key.padding);
  memory::dims dilation = dims_of(key.dilation);
  for (memory::dim& each : dilation) --each;  // oneDNN counts what lies between
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  memory::desc row;
  if (key.bias) row = {{key.result.sizes[1]}, data_type(key.dtype), memory::format_tag::a};
  using Forward = dnnl::convolution_forward;
  const auto kind = dnnl::prop_kind::forward;
  Forward::desc operation = key.bias
                                ? Forward::desc(kind, algorithm, in, by, row, out, stride, dilation, padding, padding)
                                : Forward::desc(kind, algorithm, in, by, out, stride, dilation, padding, padding);
  Forward::primitive_desc forward(operation, attributes, engine());
  written = key.kind == ConvolutionKind::Forward         ? &result
            : key.kind == ConvolutionKind::InputGradient ? &input
                                                         : &weight;
  switch (key.kind) {
    case ConvolutionKind::Forward:
      keep<Forward::primitive_desc, Forward>(forward, forward.src_desc(), forward.weights_desc(), forward.dst_desc(),
                                             key);
      if (key.bias) bias = memory(row, engine(), nullptr);
      break;
    case ConvolutionKind::InputGradient: {
      using Backward = dnnl::convolution_backward_data;
      Backward::primitive_desc backward(Backward::desc(algorithm, in, by, out, stride, dilation, padding, padding),
                                        attributes, engine(), forward);
      keep<Backward::primitive_desc, Backward>(backward, backward.diff_src_desc(), backward.weights_desc(),
                                               backward.diff_dst_desc(), key);
      break;
    }
    case ConvolutionKind::WeightGradient: {
      using Backward = dnnl::convolution_backward_weights;
      Backward::primitive_desc backward(Backward::desc(algorithm, in, by, out, stride, dilation, padding, padding),
                                        attributes, engine(), forward);
      keep<Backward::primitive_desc, Backward>(backward, backward.src_desc(), backward.diff_weights_desc(),
                                               backward.diff_dst_desc(), key);
      break;
    }
  }
}

ConvolutionPrimitive::ConvolutionPrimitive(const ConvolutionKey& key) : parts_(std::make_unique<Parts>()) {
  ++made;
  try {
    parts_->make(key);
  } catch (const dnnl::error& error) {
    fail("[convolution] oneDNN refused an input of [{}] and a weight of [{}] ({}): {}",
         fmt::join(key.input.sizes, ", "), fmt::join(key.weight.sizes, ", "), name(key.dtype), error.what());
  }
}

ConvolutionPrimitive::~ConvolutionPrimitive() = default;

const char* ConvolutionPrimitive::implementation() const { return parts_->implementation.c_str(); }

void ConvolutionPrimitive::run(void* input, void* weight, const void* bias, void* result) {
  Parts& p = *parts_;
  const std::pair<Operand*, void*> operands[] = {{&p.input, input}, {&p.weight, weight}, {&p.result, result}};
  Block scratch(p.scratchpad.get_desc().get_size());
  p.scratchpad.set_data_handle(scratch.data());
  std::optional<Block> rearranged[3];
  for (size_t at = 0; at < 3; ++at) {
    auto& [operand, data] = operands[at];
    operand->given.set_data_handle(data);
    if (!operand->change) continue;
    rearranged[at].emplace(operand->wanted.get_desc().get_size());
    operand->wanted.set_data_handle(rearranged[at]->data());
    if (operand != p.written) operand->change->execute(p.stream, operand->given, operand->wanted);
  }
  auto role = [&](const Operand& operand, int plain, int gradient) {
    return &operand == p.written && &operand != &p.result ? gradient : plain;
  };
  const bool forward = p.written == &p.result;
  std::unordered_map<int, memory> arguments = {
      {role(p.input, DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC), p.input.used()},
      {role(p.weight, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_WEIGHTS), p.weight.used()},
      {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, p.result.used()},
      {DNNL_ARG_SCRATCHPAD, p.scratchpad}};
  if (bias) {
    p.bias.set_data_handle(const_cast<void*>(bias));
    arguments.emplace(DNNL_ARG_BIAS, p.bias);
  }
  p.primitive.execute(p.stream, arguments);
  if (p.written->change) p.written->change->execute(p.stream, p.written->wanted, p.written->given);
}

ConvolutionPrimitive& convolution_primitive(const ConvolutionKey& key) {
  using Cache = onednn::PrimitiveCache<ConvolutionKey, ConvolutionPrimitive>;
  return support::thread_data([] { return new Cache(kKept); }).get(key);
}

bool convolution_supports(Dtype dtype) {
  if (dtype == Dtype::Float32) return true;
  if (dtype != Dtype::BFloat16) return false;
  // oneDNN has bfloat16 from AVX-512 on.
  static const bool supported = [] {
    ConvolutionKey key;
    key.dtype = Dtype::BFloat16;
    key.stride = key.dilation = Ints{1, 1};
    key.padding = Ints{0, 0};
    key.input = {Ints{1, 16, 8, 8}, Ints{1024, 64, 8, 1}};
    key.weight = {Ints{16, 16, 3, 3}, Ints{144, 9, 3, 1}};
    key.result = {Ints{1, 16, 6, 6}, Ints{576, 36, 6, 1}};
    for (ConvolutionKind kind :
         {ConvolutionKind::Forward, ConvolutionKind::InputGradient, ConvolutionKind::WeightGradient}) {
      key.kind = kind;
      try {
        if (onednn::is_reference(ConvolutionPrimitive(key).implementation())) return false;
      } catch (const Error&) {
        return false;
      }
    }
    return true;
  }();
  return supported;
}

int64_t convolution_primitives_made() { return made; }

}  // namespace tenon::kernels
