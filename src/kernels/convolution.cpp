#include <tenon/kernels/convolution.h>
#include <tenon/support/counters.h>
#include <tenon/support/parallel.h>

#include "kernels/convolution_primitive.h"
#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

// Multiplications and additions below which waking another thread costs more than it gives.
constexpr int64_t kSharedWork = 1 << 19;

int64_t count_of(std::span<const int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

// Dense strides with dimension 1 innermost.
Ints channels_last_strides(std::span<const int64_t> sizes) {
  Ints strides(sizes);
  strides[1] = 1;
  int64_t next = sizes[1];
  for (size_t dim = sizes.size(); dim-- > 2; next *= sizes[dim]) strides[dim] = next;
  strides[0] = next;
  return strides;
}

// Strides along dimensions of one element say nothing.
bool is_laid_out(const TensorBase& tensor, const Ints& strides) {
  for (size_t dim = 0; dim < strides.size(); ++dim)
    if (tensor.sizes()[dim] != 1 && tensor.strides()[dim] != strides[dim]) return false;
  return true;
}

void copy(const TensorBase& from, const TensorBase& to) {
  if (size_of(to.dtype()) == 4)
    copy_elements(static_cast<const uint32_t*>(from.raw_data()), Strided(from), static_cast<uint32_t*>(to.raw_data()),
                  Strided(to));
  else
    copy_elements(static_cast<const uint16_t*>(from.raw_data()), Strided(from), static_cast<uint16_t*>(to.raw_data()),
                  Strided(to));
}

// An operand that oneDNN can read or write: dense, in one of the two orders.
struct Dense {
  TensorBase tensor;
  ConvolutionOperand operand;
  bool channels_last = false, is_copy = false;

  explicit Dense(const TensorBase& given, bool written = false) : tensor(given) {
    operand.sizes = Ints(given.sizes());
    Ints plain = core::contiguous_strides(given.sizes()), last = channels_last_strides(given.sizes());
    is_copy = !is_laid_out(given, plain) && !is_laid_out(given, last);
    channels_last = !is_copy && !is_laid_out(given, plain);
    operand.strides = channels_last ? last : plain;
    if (!is_copy) return;
    tensor = core::allocate_base(operand.sizes, operand.strides, given.dtype(), kCPU);
    if (!written) copy(given, tensor);
  }
  void* data() const { return tensor.raw_data(); }
};

template <typename T>
void fill_channels(const TensorBase& out, const TensorBase* bias) {
  Strided all(out);
  T* to = out.data<T>();
  const T* from = bias ? bias->data<T>() : nullptr;
  const int64_t step = bias && bias->sizes()[0] > 1 ? bias->strides()[0] : 0;
  const int64_t length = all.sizes.back(), stride = all.strides.back();
  const size_t last = all.sizes.size() - 1;
  const Ints sizes = without(all.sizes, last), strides = without(all.strides, last);
  int64_t inside = 1;  // rows of a channel
  for (size_t dim = 2; dim < last; ++dim) inside *= all.sizes[dim];
  parallel_for(all.count / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* at = to + offset_of(row, sizes, strides);
      T number = from ? from[row / inside % all.sizes[1] * step] : T{};
      for (int64_t column = 0; column < length; ++column) at[column * stride] = number;
    }
  });
}

// Each channel's number, or zero, in all of its elements.
void set_channels(const TensorBase& out, const TensorBase* bias) {
  if (count_of(out.sizes()) == 0) return;
  if (out.dtype() == kFloat32)
    fill_channels<float>(out, bias);
  else
    fill_channels<BFloat16>(out, bias);
}

void check(const TensorBase& input, const TensorBase& weight, const TensorBase& result) {
  const Dtype dtype = input.dtype();
  TENON_ASSERT(convolution_supports(dtype) && weight.dtype() == dtype && result.dtype() == dtype &&
                   input.dim() == weight.dim() && input.dim() == result.dim() && input.dim() >= 3 && input.dim() <= 5,
               "a convolution of {} and {} to {}", input.description(), weight.description(), result.description());
}

ConvolutionKey key_of(ConvolutionKind kind, const Dense& input, const Dense& weight, const Dense& result,
                      const ConvolutionWindows& windows, int threads) {
  ConvolutionKey key;
  key.kind = kind;
  key.dtype = input.tensor.dtype();
  key.threads = threads;
  key.channels_last = input.channels_last || result.channels_last;
  key.groups = windows.groups;
  key.stride = windows.stride;
  key.padding = windows.padding;
  key.dilation = windows.dilation;
  key.input = input.operand;
  key.weight = weight.operand;
  key.result = result.operand;
  return key;
}

bool is_small(const TensorBase& result, const TensorBase& weight) {
  return static_cast<double>(count_of(result.sizes())) * static_cast<double>(count_of(weight.sizes().subspan(1))) <
         kSharedWork;
}

Counter& library_calls() {
  static Counter& calls = counter("library_calls");
  return calls;
}

}  // namespace

void convolution(const TensorBase& input, const TensorBase& weight, const TensorBase* bias,
                 const ConvolutionWindows& windows, const TensorBase& out) {
  check(input, weight, out);
  if (count_of(out.sizes()) == 0) return;
  if (count_of(weight.sizes()) == 0) return set_channels(out, bias);
  library_calls().add();
  Dense in(input), by(weight), to(out, true);
  std::optional<TensorBase> row;
  if (bias && bias->sizes()[0] > 1 && bias->strides()[0] != 1) {
    row = core::allocate_base(bias->sizes(), Ints{1}, bias->dtype(), kCPU);
    copy(*bias, *row);
  }
  {
    support::ThreadLease lease(is_small(out, weight));
    ConvolutionKey key = key_of(ConvolutionKind::Forward, in, by, to, windows, lease.threads());
    key.bias = bias != nullptr;
    convolution_primitive(key).run(in.data(), by.data(),
                                   row    ? row->raw_data()
                                   : bias ? bias->raw_data()
                                          : nullptr,
                                   to.data());
  }
  if (to.is_copy) copy(to.tensor, out);
}

void convolution_input_gradient(const TensorBase& grad, const TensorBase& weight, const ConvolutionWindows& windows,
                                const TensorBase& out) {
  check(out, weight, grad);
  if (count_of(out.sizes()) == 0) return;
  if (count_of(weight.sizes()) == 0 || count_of(grad.sizes()) == 0) return set_channels(out, nullptr);
  library_calls().add();
  Dense in(out, true), by(weight), to(grad);
  {
    support::ThreadLease lease(is_small(grad, weight));
    convolution_primitive(key_of(ConvolutionKind::InputGradient, in, by, to, windows, lease.threads()))
        .run(in.data(), by.data(), nullptr, to.data());
  }
  if (in.is_copy) copy(in.tensor, out);
}

void convolution_weight_gradient(const TensorBase& grad, const TensorBase& input, const ConvolutionWindows& windows,
                                 const TensorBase& out) {
  check(input, out, grad);
  if (count_of(out.sizes()) == 0) return;
  if (count_of(grad.sizes()) == 0 || count_of(input.sizes()) == 0) return set_channels(out, nullptr);
  library_calls().add();
  Dense in(input), by(out, true), to(grad);
  {
    support::ThreadLease lease(is_small(grad, out));
    convolution_primitive(key_of(ConvolutionKind::WeightGradient, in, by, to, windows, lease.threads()))
        .run(in.data(), by.data(), nullptr, to.data());
  }
  if (by.is_copy) copy(by.tensor, out);
}

}  // namespace tenon::kernels
