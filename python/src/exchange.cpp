#include "exchange.h"

#include <array>

namespace tenon::python {
namespace {

struct DlDevice {
  int32_t type, id;
};
struct DlDtype {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDtype dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlVersion {
  uint32_t major, minor;
};
struct DlManagedTensor {
  DlVersion version;
  void* manager_ctx;
  void (*deleter)(DlManagedTensor*);
  uint64_t flags;
  DlTensor tensor;
};
static_assert(sizeof(DlTensor) == 48 && sizeof(DlManagedTensor) == 80);

constexpr uint32_t kMajor = 1, kMinor = 0;
constexpr int32_t kCpu = 1;
constexpr uint8_t kSigned = 0, kUnsigned = 1, kReal = 2, kBrain = 4, kTruth = 6, kE4M3FN = 10, kE5M2 = 12;

struct DtypeCode {
  uint8_t code, bits;
};
// By `Dtype`.
constexpr std::array<DtypeCode, kDtypeCount> kCodes = {{{kTruth, 8},
                                                        {kUnsigned, 8},
                                                        {kSigned, 8},
                                                        {kSigned, 16},
                                                        {kSigned, 32},
                                                        {kSigned, 64},
                                                        {kReal, 16},
                                                        {kBrain, 16},
                                                        {kReal, 32},
                                                        {kReal, 64},
                                                        {kE4M3FN, 8},
                                                        {kE5M2, 8}}};

Dtype dtype_of(const DlTensor& tensor) {
  for (size_t at = 0; at < kCodes.size(); ++at)
    if (kCodes[at].code == tensor.dtype.code && kCodes[at].bits == tensor.dtype.bits && tensor.dtype.lanes == 1)
      return static_cast<Dtype>(at);
  fail<TypeError>("[exchange] expected elements of a dtype that we have, got code {}, {} bits, {} lanes",
                  tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
}

// What `from_blob` makes, without the questions that it asks: a tensor of the other library's is sound.
Tensor tensor_on(const DlTensor& tensor) {
  TENON_CHECK(tensor.device.type == kCpu, "[exchange] expected a tensor on the CPU, got device type {}",
              tensor.device.type);
  static constexpr auto not_ours = [](void*) {};
  static const KeySet keys = core::allocate({}, {}, Dtype::Float32, kCPU).impl()->keys;
  std::span<const int64_t> shape(tensor.shape, static_cast<size_t>(tensor.ndim));
  auto impl = make_ref<TensorImpl>();
  impl->sizes = Ints(shape);
  impl->strides =
      tensor.strides ? Ints(std::span<const int64_t>(tensor.strides, shape.size())) : core::contiguous_strides(shape);
  impl->dtype = dtype_of(tensor);
  impl->device = kCPU;
  impl->keys = keys;
  impl->storage = make_ref<Storage>(static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
                                    core::reach(shape, impl->strides.span()) * size_of(impl->dtype), kCPU, not_ours);
  return Tensor(impl);
}

struct Lent {
  DlManagedTensor managed;
  Tensor tensor;
};

}  // namespace

struct ExchangeTable {
  DlVersion version;
  ExchangeTable* previous;
  int (*allocate)(DlTensor*, DlManagedTensor**, void*, void (*)(void*, const char*, const char*));
  int (*managed_from_object)(void*, DlManagedTensor**);
  int (*managed_to_object)(DlManagedTensor*, void**);
  int (*tensor_from_object)(void*, DlTensor*);
  int (*current_work_stream)(int32_t, int32_t, void**);
};

Exchange::Exchange(PyObject* capsule)
    : table_(static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"))) {
  if (!table_) throw PythonError();
  while (table_->version.major > kMajor && table_->previous) table_ = table_->previous;
  TENON_CHECK(table_->version.major == kMajor && table_->tensor_from_object,
              "[exchange] expected DLPack's exchange table, version {}.x, got {}.{}", kMajor, table_->version.major,
              table_->version.minor);
}

Tensor Exchange::borrow(PyObject* object) const {
  DlTensor tensor;
  if (table_->tensor_from_object(object, &tensor) != 0) throw PythonError();
  return tensor_on(tensor);
}

PyObject* Exchange::give(Tensor tensor) const {
  auto lent = std::make_unique<Lent>();
  TensorImpl& impl = *tensor.impl();
  const DtypeCode code = kCodes[static_cast<size_t>(impl.dtype)];
  lent->managed = {{kMajor, kMinor},
                   lent.get(),
                   [](DlManagedTensor* self) { delete static_cast<Lent*>(self->manager_ctx); },
                   0,
                   // The sizes live in the tensor that is held.
                   {tensor.raw_data(),
                    {kCpu, 0},
                    static_cast<int32_t>(impl.sizes.size()),
                    {code.code, code.bits, 1},
                    impl.sizes.data(),
                    impl.strides.data(),
                    0}};
  lent->tensor = std::move(tensor);
  void* object = nullptr;
  DlManagedTensor* managed = &lent.release()->managed;
  if (table_->managed_to_object(managed, &object) != 0) throw PythonError();
  return static_cast<PyObject*>(object);
}

}  // namespace tenon::python
