// The DLPack convention: plain structs, laid out as every library that speaks it lays them out.
#include <tenon/core/dlpack.h>

#include <fmt/format.h>

#include <cstddef>

// Version 0 of the convention; the layout is fixed.
struct DLManagedTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, manager_ctx) == 48);

namespace tenon {
namespace {

constexpr int32_t kDeviceCpu = 1;
enum Code : uint8_t { kSigned = 0, kUnsigned = 1, kReal = 2, kBrain = 4, kTruth = 6, kE4M3FN = 10, kE5M2 = 12 };

struct DtypeCode {
  Dtype dtype;
  uint8_t code;
};
constexpr DtypeCode kCodes[] = {
    {Dtype::Bool, kTruth},   {Dtype::UInt8, kUnsigned}, {Dtype::Int8, kSigned},         {Dtype::Int16, kSigned},
    {Dtype::Int32, kSigned}, {Dtype::Int64, kSigned},   {Dtype::Float16, kReal},        {Dtype::BFloat16, kBrain},
    {Dtype::Float32, kReal}, {Dtype::Float64, kReal},   {Dtype::Float8E4M3FN, kE4M3FN}, {Dtype::Float8E5M2, kE5M2},
};

// What a lent tensor holds on to.
struct Lent {
  DLManagedTensor managed;
  Tensor tensor;
  Ints sizes, strides;
};

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  TENON_CHECK(tensor.defined() && tensor.device() == kCPU, "[to_dlpack] expected a tensor on the CPU, got {}",
              tensor.defined() ? tensor.description() : "an undefined one");
  TENON_CHECK(!tensor.requires_grad(), "[to_dlpack] expected a tensor that requires no grad, got {}: detach() it",
              tensor.description());
  auto lent = std::make_unique<Lent>();
  lent->tensor = tensor;
  lent->sizes = Ints(tensor.sizes());
  lent->strides = Ints(tensor.strides());
  DLManagedTensor& managed = lent->managed;
  managed.data = tensor.raw_data();
  managed.device = {kDeviceCpu, 0};
  managed.ndim = static_cast<int32_t>(tensor.dim());
  for (const DtypeCode& each : kCodes)
    if (each.dtype == tensor.dtype()) managed.dtype = {each.code, static_cast<uint8_t>(8 * tensor.element_size()), 1};
  managed.shape = lent->sizes.data();
  managed.strides = lent->strides.data();
  managed.byte_offset = 0;
  managed.manager_ctx = lent.get();
  managed.deleter = [](DLManagedTensor* self) { delete static_cast<Lent*>(self->manager_ctx); };
  return &lent.release()->managed;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  TENON_CHECK(managed, "[from_dlpack] expected a tensor, got a null pointer");
  TENON_CHECK(managed->device.type == kDeviceCpu, "[from_dlpack] expected a tensor on the CPU, got device type {}",
              managed->device.type);
  std::optional<Dtype> dtype;
  for (const DtypeCode& each : kCodes)
    if (each.code == managed->dtype.code && size_of(each.dtype) * 8 == managed->dtype.bits && managed->dtype.lanes == 1)
      dtype = each.dtype;
  TENON_CHECK_TYPE(dtype, "[from_dlpack] expected elements of a dtype that we have, got code {}, {} bits, {} lanes",
                   managed->dtype.code, managed->dtype.bits, managed->dtype.lanes);
  TENON_CHECK(managed->ndim >= 0, "[from_dlpack] expected at least 0 dimensions, got {}", managed->ndim);
  std::span<const int64_t> shape(managed->shape, static_cast<size_t>(managed->ndim));
  Ints sizes(shape);
  Ints strides = managed->strides ? Ints(std::span<const int64_t>(managed->strides, shape.size()))
                                  : core::contiguous_strides(shape);
  auto* first = static_cast<std::byte*>(managed->data) + managed->byte_offset;
  auto give_back = [managed](void*) {
    if (managed->deleter) managed->deleter(managed);
  };
  return from_blob(static_cast<void*>(first), sizes, strides, give_back, TensorOptions(*dtype));
}

}  // namespace tenon
