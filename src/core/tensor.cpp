#include "core/erased.h"
#include "core/rebind.h"
#include "core/size_reader.h"
#include "support/checked.h"
#include "support/out_of_memory.h"
#include "support/thread_context.h"

#include <tenon/core/tensor.h>
#include <tenon/sym/size_rules.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tenon {

void TensorImpl::release_resources() {
  autograd.reset();
  functional.reset();
  storage = nullptr;
}

namespace {

TensorImpl& need(const TensorBase& tensor, const char* what) {
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", what);
  return *tensor.impl();
}

bool (*inside_operator)() = nullptr;

bool runs_own_code() { return support::thread_context.runs_own_code || (inside_operator && inside_operator()); }

TensorImpl& stand_in(const core::SizeReader& reader, TensorImpl& impl) {
  if (impl.keys.has(DispatchKey::Fake) || runs_own_code()) return impl;
  support::OwnCode own;
  Tensor fake = reader(Tensor(Ref<TensorImpl>(&impl)));
  return *fake.impl();  // the capture holds it
}

// The tensor whose sizes the user reads: a capture has another in its place.
TensorImpl& sized(const TensorBase& tensor, const char* what) {
  TensorImpl& impl = need(tensor, what);
  const auto* reader = support::thread_context.get<const core::SizeReader>(support::ContextSlot::SizeReader);
  return reader ? stand_in(*reader, impl) : impl;
}

// The plain numbers of symbolic ones, each pinned to what it is at capture. They are kept beside the symbolic ones,
// where a span can look at them; asked again, they are the same, because a pinned number does not change.
std::span<const int64_t> pinned(const SymInts& numbers, Ints& plain) {
  plain.resize(numbers.size());
  for (size_t at = 0; at < numbers.size(); ++at) plain[at] = numbers[at].plain();
  return plain.span();
}

int64_t rank_of(const TensorImpl& impl) {
  return static_cast<int64_t>(impl.symbolic ? impl.symbolic->sizes.size() : impl.sizes.size());
}

size_t wrap(int64_t dim, int64_t rank, const char* what) {
  int64_t positive = dim < 0 ? dim + rank : dim;
  TENON_CHECK_INDEX(positive >= 0 && positive < rank, "[{}] expected a dimension from {} to {}, got {}", what, -rank,
                    rank - 1, dim);
  return static_cast<size_t>(positive);
}

}  // namespace

int64_t TensorBase::dim() const { return rank_of(sized(*this, "dim")); }

IntSpan TensorBase::sizes() const {
  TensorImpl& impl = sized(*this, "sizes");
  return impl.symbolic ? pinned(impl.symbolic->sizes, impl.sizes) : impl.sizes.span();
}
IntSpan TensorBase::strides() const {
  TensorImpl& impl = sized(*this, "strides");
  return impl.symbolic ? pinned(impl.symbolic->strides, impl.strides) : impl.strides.span();
}
int64_t TensorBase::storage_offset() const {
  TensorImpl& impl = sized(*this, "storage_offset");
  return impl.symbolic ? impl.symbolic->offset.plain() : impl.offset;
}

SymInts TensorBase::sym_sizes() const {
  TensorImpl& impl = sized(*this, "sym_sizes");
  return impl.symbolic ? impl.symbolic->sizes : SymInts(impl.sizes.span());
}
SymInts TensorBase::sym_strides() const {
  TensorImpl& impl = sized(*this, "sym_strides");
  return impl.symbolic ? impl.symbolic->strides : SymInts(impl.strides.span());
}
SymInt TensorBase::sym_storage_offset() const {
  TensorImpl& impl = sized(*this, "sym_storage_offset");
  return impl.symbolic ? impl.symbolic->offset : SymInt(impl.offset);
}

SymInt TensorBase::size(int64_t dim) const {
  TensorImpl& impl = sized(*this, "size");
  size_t at = wrap(dim, rank_of(impl), "size");
  return impl.symbolic ? impl.symbolic->sizes[at] : SymInt(impl.sizes[at]);
}
SymInt TensorBase::stride(int64_t dim) const {
  TensorImpl& impl = sized(*this, "stride");
  size_t at = wrap(dim, rank_of(impl), "stride");
  return impl.symbolic ? impl.symbolic->strides[at] : SymInt(impl.strides[at]);
}

SymInt TensorBase::numel() const {
  TensorImpl& impl = sized(*this, "numel");
  if (impl.symbolic) {
    SymInt product = 1;
    for (const SymInt& size : impl.symbolic->sizes) product *= size;
    return product;
  }
  return checked::element_count(impl.sizes.span());
}

bool TensorBase::is_contiguous() const {
  TensorImpl& impl = sized(*this, "is_contiguous");
  if (!impl.symbolic) {
    int64_t expected = 1;
    bool dense = true;
    for (size_t dim = impl.sizes.size(); dim-- > 0;) {
      if (impl.sizes[dim] == 0) return true;
      if (impl.sizes[dim] == 1) continue;
      dense &= impl.strides[dim] == expected;
      expected *= impl.sizes[dim];
    }
    return dense;
  }
  const SymInts& sizes = impl.symbolic->sizes;
  SymInt expected = 1;
  bool dense = true;
  for (size_t dim = sizes.size(); dim-- > 0 && dense;) {
    if (is_one(sizes[dim])) continue;
    const SymInt& stride = impl.symbolic->strides[dim];
    // A size that is computed from others may come to 1, which is asked only where it matters.
    if (!stride.same(expected) && !decide_or(stride == expected, false)) dense = decide_or(sizes[dim] == 1, false);
    expected *= sizes[dim];
  }
  // The same goes for 0: where there is nothing, nothing lies apart.
  return dense ||
         std::any_of(sizes.begin(), sizes.end(), [](const SymInt& size) { return decide_or(size == 0, false); });
}

bool TensorBase::is_contiguous(MemoryFormat format) const {
  TENON_CHECK(format != MemoryFormat::Preserve, "[is_contiguous] expected an order of dimensions, got preserve");
  if (format == MemoryFormat::Contiguous) return is_contiguous();
  if (dim() != (format == MemoryFormat::ChannelsLast ? 4 : 5)) return false;
  SymInts sizes = sym_sizes(), strides = sym_strides();
  SymInt expected = 1;
  for (size_t at : core::dims_in(format, sizes.size(), "is_contiguous")) {
    if (is_one(sizes[at])) continue;
    if (!strides[at].same(expected) && !decide_or(strides[at] == expected, false) && !decide_or(sizes[at] == 1, false))
      return false;
    expected *= sizes[at];
  }
  return true;
}

// What could be either order is the usual one.
MemoryFormat TensorBase::suggested_format() const {
  const MemoryFormat last = dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
  if (dim() != 4 && dim() != 5) return MemoryFormat::Contiguous;
  SymInts sizes = sym_sizes(), strides = sym_strides();
  if (decide_or(strides[1] == 0, false)) return MemoryFormat::Contiguous;
  SymInt least = 0;
  for (size_t at : core::dims_in(last, sizes.size(), "suggested_format")) {
    if (decide_or(sizes[at] == 0, false) || decide_or(strides[at] < least, true)) return MemoryFormat::Contiguous;
    if (at == 0 && decide_or(least == strides[1], false)) return MemoryFormat::Contiguous;
    least = strides[at];
    if (decide_or(sizes[at] > 1, true)) least *= sizes[at];
  }
  return last;
}

int64_t TensorBase::version() const {
  const TensorImpl& impl = need(*this, "version");
  TENON_CHECK(impl.version, "[version] an inference tensor has no version");
  return impl.version->count;
}

void* TensorBase::raw_data() const {
  const TensorImpl& impl = need(*this, "data");
  if (!impl.storage->has_data() && core::is_erased(*this)) core::refuse_erased(description());
  TENON_CHECK(impl.storage->has_data(), "[data] Cannot access data pointer of a {} tensor {}: it has no data",
              is_fake() ? "fake" : impl.device.str(), description());
  return static_cast<std::byte*>(impl.storage->data()) + impl.offset * size_of(impl.dtype);
}

std::string TensorBase::description() const try {
  if (!defined()) return "undefined";
  return fmt::format("{}{}", name(dtype()), tenon::str(sym_sizes()));
} catch (...) {
  support::rethrow_named("description");
}

namespace core {

void set_inside_operator(bool (*inside)()) { inside_operator = inside; }

void note_rebind(TensorImpl& held) {
  if (runs_own_code()) return;
  held.rebinds.fetch_add(1, std::memory_order_relaxed);
}

void no_such_dimension(size_t at, size_t count) {
  throw IndexError(fmt::format("[sizes] expected a dimension below {}, got {}", count, static_cast<int64_t>(at)));
}

void undefined_tensor(const char* asked) { fail("[{}] expected a tensor, got an undefined one", asked); }

void wrong_data_type(const TensorBase& tensor, Dtype asked) {
  fail("[data] expected a tensor of {}, got {}", name(asked), tensor.description());
}

Ints contiguous_strides(std::span<const int64_t> sizes) {
  Ints strides;
  strides.resize(sizes.size());
  int64_t step = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = step;
    // The outermost size steps over nothing.
    if (dim > 0) step = checked::multiply(step, std::max<int64_t>(sizes[dim], 1));
  }
  return strides;
}

SymInts contiguous_strides(std::span<const SymInt> sizes) {
  SymInts strides;
  strides.resize(sizes.size());
  SymInt step = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = step;
    if (dim == 0) break;
    // A symbolic size is at least 2, or treated as such, so the maximum with 1 matters for plain zeros only.
    step *= !sizes[dim].is_symbolic() && sizes[dim].plain() == 0 ? SymInt(1) : sizes[dim];
  }
  return strides;
}

std::span<const size_t> dims_in(MemoryFormat format, size_t rank, std::string_view op_name) {
  static constexpr size_t kImages[] = {1, 3, 2, 0}, kVolumes[] = {1, 4, 3, 2, 0};
  const bool volumes = format == MemoryFormat::ChannelsLast3d;
  TENON_ASSERT(volumes || format == MemoryFormat::ChannelsLast, "{} is no order of channels last", name(format));
  TENON_CHECK(rank == (volumes ? 5 : 4), "[{}] expected a tensor of {} dimensions for the format {}, got one of {}",
              op_name, volumes ? 5 : 4, name(format), rank);
  return volumes ? std::span<const size_t>(kVolumes) : std::span<const size_t>(kImages);
}

SymInts strides_in(MemoryFormat format, std::span<const SymInt> sizes, std::string_view op_name) {
  if (format == MemoryFormat::Contiguous) return contiguous_strides(sizes);
  SymInts strides;
  strides.resize(sizes.size());
  SymInt step = 1;
  for (size_t dim : dims_in(format, sizes.size(), op_name)) {
    strides[dim] = step;
    // The outermost size steps over nothing.
    if (dim > 0) step *= !sizes[dim].is_symbolic() && sizes[dim].plain() == 0 ? SymInt(1) : sizes[dim];
  }
  return strides;
}

int64_t reach(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 0) return 0;
    last = checked::add(last, checked::multiply(sizes[dim] - 1, strides[dim]));
  }
  return checked::add(last, 1);
}

namespace {

KeySet keys_of(Device device) {
  DispatchKey backend = device.type == DeviceType::CPU    ? DispatchKey::CPU
                        : device.type == DeviceType::CUDA ? DispatchKey::CUDA
                                                          : DispatchKey::Meta;
  return KeySet{backend, DispatchKey::ADInplaceOrView, DispatchKey::Autograd};
}

}  // namespace

TensorBase allocate_base(std::span<const int64_t> sizes, std::span<const int64_t> strides, Dtype dtype, Device device) {
  TENON_CHECK(sizes.size() == strides.size(), "[empty] expected a stride for each size, got [{}] and [{}]",
              fmt::join(sizes, ", "), fmt::join(strides, ", "));
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    TENON_CHECK(sizes[dim] >= 0 && strides[dim] >= 0,
                "[empty] expected sizes and strides of at least 0, got [{}] and [{}]", fmt::join(sizes, ", "),
                fmt::join(strides, ", "));
  checked::element_count(sizes);
  if (device.type == DeviceType::Meta)
    return make_without_data(SymInts(sizes), SymInts(strides), dtype, device, keys_of(device));
  auto impl = make_ref<TensorImpl>();
  impl->storage = make_ref<Storage>(checked::multiply(reach(sizes, strides), size_of(dtype)), device);
  impl->sizes = Ints(sizes);
  impl->strides = Ints(strides);
  impl->dtype = dtype;
  impl->device = device;
  impl->keys = keys_of(device);
  impl->version = make_ref<Version>();
  return TensorBase(impl);
}

Tensor allocate(std::span<const int64_t> sizes, std::span<const int64_t> strides, Dtype dtype, Device device) {
  return Tensor(allocate_base(sizes, strides, dtype, device));
}

namespace {

void set_geometry(TensorImpl& impl, const SymInts& sizes, const SymInts& strides, const SymInt& offset) {
  auto symbolic = [](const SymInt& number) { return number.is_symbolic(); };
  bool any = offset.is_symbolic() || std::any_of(sizes.begin(), sizes.end(), symbolic) ||
             std::any_of(strides.begin(), strides.end(), symbolic);
  if (any) {
    impl.symbolic = std::make_unique<SymGeometry>(SymGeometry{sizes, strides, offset});
    return;
  }
  for (const SymInt& size : sizes) impl.sizes.push_back(size.plain());
  for (const SymInt& stride : strides) impl.strides.push_back(stride.plain());
  impl.offset = offset.plain();
  for (int64_t size : impl.sizes)
    TENON_CHECK(size >= 0, "[view] expected sizes of at least 0, got [{}]", fmt::join(impl.sizes, ", "));
  checked::element_count(impl.sizes.span());
}

// Whatever rule made a view: every element of it lies in its storage.
void check_in_storage(const TensorImpl& view) {
  if (!view.storage->has_data() || view.symbolic) return;
  int64_t first = view.offset, last = view.offset;
  for (size_t dim = 0; dim < view.sizes.size(); ++dim) {
    if (view.sizes[dim] == 0) return;
    int64_t& end = view.strides[dim] < 0 ? first : last;
    end = checked::add(end, checked::multiply(view.sizes[dim] - 1, view.strides[dim]));
  }
  TENON_CHECK(first >= 0 && last < view.storage->bytes() / size_of(view.dtype),
              "[view] sizes [{}], strides [{}] and offset {} lead out of a storage of {} bytes",
              fmt::join(view.sizes, ", "), fmt::join(view.strides, ", "), view.offset, view.storage->bytes());
}

}  // namespace

Tensor make_view(const Tensor& base, const SymInts& sizes, const SymInts& strides, const SymInt& offset) {
  return make_view(base, sizes, strides, offset, base.dtype());
}

Tensor make_view(const Tensor& base, const SymInts& sizes, const SymInts& strides, const SymInt& offset, Dtype dtype) {
  auto impl = make_ref<TensorImpl>();
  impl->storage = base.impl()->storage;
  impl->dtype = dtype;
  impl->device = base.device();
  impl->keys = base.impl()->keys - KeySet{DispatchKey::Functionalize};
  impl->version = base.impl()->version;
  set_geometry(*impl, sizes, strides, offset);
  check_in_storage(*impl);
  return Tensor(impl);
}

Tensor make_without_data(const SymInts& sizes, const SymInts& strides, Dtype dtype, Device device, KeySet keys) {
  auto impl = make_ref<TensorImpl>();
  impl->storage = Storage::without_data(device);
  impl->dtype = dtype;
  impl->device = device;
  impl->keys = keys_of(device) | keys;
  impl->version = make_ref<Version>();
  set_geometry(*impl, sizes, strides, 0);
  return Tensor(impl);
}

Tensor tensor_from(const void* values, int64_t count, Dtype from, bool zero_dim, const TensorOptions& options) {
  Dtype dtype = options.dtype.value_or(from);
  Ints sizes = zero_dim ? Ints{} : Ints{count};
  Tensor out = allocate(sizes, contiguous_strides(sizes.span()), dtype, kCPU);
  auto read = [&](int64_t i) -> double {
    switch (from) {
      case Dtype::Bool: return static_cast<const bool*>(values)[i];
      case Dtype::Int64: return static_cast<double>(static_cast<const int64_t*>(values)[i]);
      default: return static_cast<const double*>(values)[i];
    }
  };
  for (int64_t i = 0; i < count; ++i) {
    if (from == Dtype::Int64 && dtype == Dtype::Int64) {
      out.data<int64_t>()[i] = static_cast<const int64_t*>(values)[i];
      continue;
    }
    double value = read(i);
    switch (dtype) {
      case Dtype::Bool: out.data<bool>()[i] = value != 0; break;
      case Dtype::UInt8: out.data<uint8_t>()[i] = static_cast<uint8_t>(static_cast<int64_t>(value)); break;
      case Dtype::Int8: out.data<int8_t>()[i] = static_cast<int8_t>(value); break;
      case Dtype::Int16: out.data<int16_t>()[i] = static_cast<int16_t>(value); break;
      case Dtype::Int32: out.data<int32_t>()[i] = static_cast<int32_t>(value); break;
      case Dtype::Int64: out.data<int64_t>()[i] = static_cast<int64_t>(value); break;
      case Dtype::Float16: out.data<Half>()[i] = to_half(value); break;
      case Dtype::BFloat16: out.data<BFloat16>()[i] = to_bfloat16(value); break;
      case Dtype::Float8E4M3FN: out.data<Float8E4M3FN>()[i] = to_float8_e4m3fn(value); break;
      case Dtype::Float8E5M2: out.data<Float8E5M2>()[i] = to_float8_e5m2(value); break;
      case Dtype::Float32: out.data<float>()[i] = static_cast<float>(value); break;
      case Dtype::Float64: out.data<double>()[i] = value; break;
    }
  }
  TENON_CHECK(!options.device || *options.device == kCPU, "[tensor] expected device cpu, got {}",
              options.device->str());
  return out;
}

Tensor shaped(const Tensor& flat, const Ints& sizes) {
  Ints strides = contiguous_strides(sizes.span());
  return make_view(flat, SymInts(sizes.span()), SymInts(strides.span()), 0);
}

void ragged_list(size_t expected, size_t given) {
  fail<ValueError>("[tensor] expected lists of one length, got one of {} and one of {} elements", expected, given);
}

}  // namespace core

Tensor tensor(const std::vector<double>& values, const TensorOptions& options) {
  TensorOptions real = options;
  if (!real.dtype) real.dtype = kFloat32;
  return core::tensor_from(values.data(), static_cast<int64_t>(values.size()), kFloat64, false, real);
}

Tensor from_blob(void* data, const Ints& sizes, const TensorOptions& options) {
  return from_blob(data, sizes, core::contiguous_strides(sizes.span()), nullptr, options);
}

Tensor from_blob(void* data, const Ints& sizes, const Ints& strides, std::function<void(void*)> deleter,
                 const TensorOptions& options) {
  TENON_CHECK(sizes.size() == strides.size(), "[from_blob] expected as many strides as sizes, got {} and {}",
              strides.size(), sizes.size());
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    TENON_CHECK(sizes[dim] >= 0 && strides[dim] >= 0,
                "[from_blob] expected sizes and strides of at least 0, got [{}] and [{}]", fmt::join(sizes, ", "),
                fmt::join(strides, ", "));
  checked::element_count(sizes.span());
  const int64_t elements = core::reach(sizes.span(), strides.span());
  TENON_CHECK(data || elements == 0, "[from_blob] expected memory, got a null pointer");
  Dtype dtype = options.dtype.value_or(kFloat32);
  Device device = options.device.value_or(kCPU);
  TENON_CHECK(device == kCPU, "[from_blob] expected device cpu, got {}", device.str());
  if (!deleter) deleter = [](void*) {};
  auto impl = make_ref<TensorImpl>();
  impl->storage = make_ref<Storage>(data, checked::multiply(elements, size_of(dtype)), device, std::move(deleter));
  impl->sizes = sizes;
  impl->strides = strides;
  impl->dtype = dtype;
  impl->device = device;
  impl->keys = core::keys_of(device);
  impl->version = make_ref<Version>();
  return Tensor(impl);
}

}  // namespace tenon
