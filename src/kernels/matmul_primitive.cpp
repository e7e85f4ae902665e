#include "kernels/matmul_primitive.h"
#include "support/out_of_memory.h"
#include "support/thread_data.h"

#include <tenon/kernels/matmul.h>
#include <tenon/support/error.h>
#include <tenon/support/hash.h>

#include "kernels/onednn.h"

namespace tenon::kernels {
namespace {

using dnnl::memory;
using onednn::Block;
using onednn::data_type;
using onednn::engine;

constexpr size_t kKept = 256;  // primitives per thread
thread_local int64_t made = 0;

memory::desc describe(const MatmulKey& key, const MatmulOperand& operand, int64_t rows, int64_t columns) {
  if (key.batch == 1)
    return {{rows, columns}, data_type(key.dtype), memory::dims{operand.row_stride, operand.column_stride}};
  int64_t batch_stride = operand.batch == 1 ? rows * columns : operand.batch_stride;
  return {{operand.batch, rows, columns},
          data_type(key.dtype),
          memory::dims{batch_stride, operand.row_stride, operand.column_stride}};
}

}  // namespace

size_t MatmulKey::hash() const {
  size_t seed = hash_all(static_cast<int>(dtype), threads, batch, m, k, n, bias, pack_b, alpha, sum_scale);
  for (const MatmulOperand* operand : {&a, &b, &out})
    seed = hash_combine(seed,
                        hash_all(operand->batch, operand->batch_stride, operand->row_stride, operand->column_stride));
  return seed;
}

struct MatmulPrimitive::Parts {
  dnnl::stream stream{engine()};
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  memory a, b, packed, bias, out, scratchpad;
  dnnl::reorder pack;
  bool packs = false;
  std::unordered_map<int, memory> arguments;
};

MatmulPrimitive::MatmulPrimitive(const MatmulKey& key) : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  ++made;
  memory::desc a = describe(key, key.a, key.m, key.k), b = describe(key, key.b, key.k, key.n),
               out = describe(key, key.out, key.m, key.n);
  memory::desc any({key.k, key.n}, data_type(key.dtype), memory::format_tag::any);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.alpha != 1) attributes.set_output_scales(0, {key.alpha});
  if (key.sum_scale != 0) {
    dnnl::post_ops after;
    after.append_sum(key.sum_scale);
    attributes.set_post_ops(after);
  }
  memory::desc bias;
  if (key.bias) {
    memory::dims row = key.batch == 1 ? memory::dims{1, key.n} : memory::dims{1, 1, key.n};
    bias = {row, data_type(key.dtype), key.batch == 1 ? memory::format_tag::ab : memory::format_tag::abc};
  }
  const memory::desc& weights = key.pack_b ? any : b;
  try {
    dnnl::matmul::desc operation =
        key.bias ? dnnl::matmul::desc(a, weights, bias, out) : dnnl::matmul::desc(a, weights, out);
    p.description = dnnl::matmul::primitive_desc(operation, attributes, engine());
    p.primitive = dnnl::matmul(p.description);
    p.packs = p.description.weights_desc() != b;
    p.a = memory(a, engine(), nullptr);
    p.b = memory(b, engine(), nullptr);
    p.out = memory(out, engine(), nullptr);
    p.scratchpad = memory(p.description.scratchpad_desc(), engine(), nullptr);
    if (p.packs) {
      p.packed = memory(p.description.weights_desc(), engine(), nullptr);
      p.pack = dnnl::reorder(dnnl::reorder::primitive_desc(engine(), b, engine(), p.description.weights_desc()));
    }
    if (key.bias) p.bias = memory(bias, engine(), nullptr);
  } catch (const dnnl::error& error) {
    fail("[matmul] oneDNN refused a product of {}×{} and {}×{} ({}): {}", key.m, key.k, key.k, key.n, name(key.dtype),
         error.what());
  }
  p.arguments = {{DNNL_ARG_SRC, p.a},
                 {DNNL_ARG_WEIGHTS, p.packs ? p.packed : p.b},
                 {DNNL_ARG_DST, p.out},
                 {DNNL_ARG_SCRATCHPAD, p.scratchpad}};
  if (key.bias) p.arguments.emplace(DNNL_ARG_BIAS, p.bias);
}

MatmulPrimitive::~MatmulPrimitive() = default;

bool MatmulPrimitive::is_reference() const { return onednn::is_reference(parts_->description.impl_info_str()); }

void MatmulPrimitive::run(const void* a, const void* b, const void* bias, void* out) {
  Parts& p = *parts_;
  Block scratch(p.description.scratchpad_desc().get_size());
  p.scratchpad.set_data_handle(scratch.data());
  p.a.set_data_handle(const_cast<void*>(a));
  p.b.set_data_handle(const_cast<void*>(b));
  p.out.set_data_handle(out);
  if (bias) p.bias.set_data_handle(const_cast<void*>(bias));
  if (p.packs) {
    Block packed(p.description.weights_desc().get_size());
    p.packed.set_data_handle(packed.data());
    p.pack.execute(p.stream, p.b, p.packed);
    p.primitive.execute(p.stream, p.arguments);
    p.packed.set_data_handle(nullptr);
  } else {
    p.primitive.execute(p.stream, p.arguments);
  }
}

MatmulPrimitive& matmul_primitive(const MatmulKey& key) {
  using Cache = onednn::PrimitiveCache<MatmulKey, MatmulPrimitive>;
  return support::thread_data([] { return new Cache(kKept); }).get(key);
}

bool matmul_supports(Dtype dtype) try {
  if (dtype == Dtype::Float32) return true;
  if (dtype != Dtype::BFloat16) return false;
  // oneDNN has bfloat16 from AVX-512 on.
  static const bool supported = [] {
    memory::desc square({16, 16}, memory::data_type::bf16, memory::format_tag::ab);
    try {
      dnnl::matmul::primitive_desc description(dnnl::matmul::desc(square, square, square), engine());
      return !onednn::is_reference(description.impl_info_str());
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) support::raise_no_memory();  // and is asked again
      return false;
    }
  }();
  return supported;
} catch (...) {
  support::rethrow_named("matmul");
}

int64_t matmul_primitives_made() { return made; }

}  // namespace tenon::kernels
