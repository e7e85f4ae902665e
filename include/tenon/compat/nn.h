// `torch::nn` and `torch::optim`: Tenon's modules and optimizers under libtorch's names and options. The values, names
// of parameters and states are those of tenon::nn and tenon::optim.
#pragma once

#include <tenon/compat/tensor.h>
#include <tenon/io/tensors.h>
#include <tenon/nn/activations.h>
#include <tenon/nn/convolution.h>
#include <tenon/nn/dropout.h>
#include <tenon/nn/embedding.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/linear.h>
#include <tenon/nn/losses.h>
#include <tenon/nn/normalization.h>
#include <tenon/nn/pooling.h>
#include <tenon/nn/recurrent.h>
#include <tenon/nn/shape.h>
#include <tenon/nn/utils.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/adaptive.h>
#include <tenon/optim/sgd.h>

#include <memory>

namespace torch::nn {

template <typename M>
class ModuleHolder;

// The base of modules that a program writes: struct Net : torch::nn::Module { … torch::Tensor forward(torch::Tensor x);
// }
class Module : public tenon::nn::Module {
 public:
  using Base = tenon::nn::Module;
  Module() = default;
  explicit Module(const std::string& name) { describe(name); }
  Module(const Module&) = default;
  Module(Module&&) noexcept = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module() = default;

  template <typename M>
  ModuleHolder<M> register_module(std::string name, ModuleHolder<M> module) {
    submodule(std::move(name), static_cast<const Base&>(*module));
    return module;
  }
  template <typename M>
    requires std::derived_from<M, Base>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    submodule(std::move(name), static_cast<const Base&>(*module));
    return module;
  }
  at::Tensor register_parameter(std::string name, const at::Tensor& tensor, bool requires_grad = true) {
    at::Tensor kept = parameter(std::move(name), tensor).get();
    if (!requires_grad) kept.set_requires_grad(false);
    return kept;
  }
  at::Tensor register_buffer(std::string name, const at::Tensor& tensor) {
    return buffer(std::move(name), tensor).get();
  }

  std::vector<at::Tensor> parameters(bool = true) const { return at::compat::wrap(Base::parameters()); }
  std::vector<at::Tensor> buffers(bool = true) const {
    std::vector<at::Tensor> list;
    for (const auto& [name, tensor] : named_buffers()) list.push_back(tensor);
    return list;
  }
  // The tensors stay the same, with numbers of another type: members that hold them follow.
  void to(at::ScalarType type, bool = false) const {
    for (const auto& tensors : {named_parameters(), named_buffers()})
      for (const auto& [name, tensor] : tensors)
        if (tensor.is_floating_point()) tenon::autograd::set_data(tensor, tensor.detach().to(tenon::Dtype(type)));
  }
  void to(const at::Device& place, bool = false) const {
    TORCH_CHECK(place.is_cpu(), "to(): modules are on the CPU, not on ", place);
  }
  void to(at::DeviceType place) const { to(at::Device(place)); }
};

// A module of Tenon's as one that is called by `forward`, its tensors as members.
namespace compat {
template <typename M>
struct Wrapped : M {
  using M::M;
  template <typename Options>
    requires requires(const Options& options) { options.template make<M>(); }
  Wrapped(const Options& options) : M(options.template make<M>()) {}
  Wrapped(const M& module) : M(module) {}
  at::Tensor forward(const at::Tensor& input) const { return M::operator()(input); }
  std::vector<at::Tensor> parameters(bool = true) const { return at::compat::wrap(M::parameters()); }
};
// With a weight, and a bias that may be undefined.
template <typename M>
struct Weighted : Wrapped<M> {
  template <typename... Args>
    requires std::constructible_from<Wrapped<M>, Args...>
  Weighted(Args&&... args) : Wrapped<M>(std::forward<Args>(args)...), weight(M::weight.get()) {
    if constexpr (requires { this->M::bias.get(); }) bias = M::bias.get();
  }
  at::Tensor weight, bias;
};
}  // namespace compat

// Shares a module; empty until one is assigned.
template <typename M>
class ModuleHolder {
 public:
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<M> module) : module_(std::move(module)) {}
  template <typename... Args>
    requires(std::constructible_from<M, Args...> &&
             !(std::derived_from<std::remove_cvref_t<Args>, ModuleHolder> || ...))
  explicit(sizeof...(Args) == 1) ModuleHolder(Args&&... args)
      : module_(std::make_shared<M>(std::forward<Args>(args)...)) {}
  M* operator->() const { return &**this; }
  M& operator*() const {
    TORCH_CHECK(module_, "Accessing empty ModuleHolder: assign a module to it first");
    return *module_;
  }
  M* get() const { return module_.get(); }
  std::shared_ptr<M> ptr() const { return module_; }
  bool is_empty() const { return !module_; }
  explicit operator bool() const { return !is_empty(); }
  template <typename... Args>
  auto operator()(Args&&... args) const {
    return (**this).forward(std::forward<Args>(args)...);
  }

 private:
  std::shared_ptr<M> module_;
};
template <typename M>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<M>& module) {
  return out << module->str();
}
// Net, a handle, for a module NetImpl.
#define TORCH_MODULE_IMPL(Name, Impl)                    \
  class Name : public ::torch::nn::ModuleHolder<Impl> {  \
   public:                                               \
    using ::torch::nn::ModuleHolder<Impl>::ModuleHolder; \
    using Impl##Type [[maybe_unused]] = Impl;            \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)

// ---- Options, step by step --------------------------------------------------------------------------------------

#define TENON_COMPAT_OPTION_(type, name) \
  auto& name(const type& value) {        \
    values_.name = value;                \
    return *this;                        \
  }
struct LinearOptions {
  LinearOptions(int64_t in, int64_t out) : in_(in), out_(out) {}
  TENON_COMPAT_OPTION_(bool, bias)
  template <typename M>
  M make() const {
    return M(in_, out_, values_);
  }

 private:
  int64_t in_, out_;
  tenon::nn::LinearOptions values_;
};
template <typename Size>
struct ConvOptions {
  ConvOptions(int64_t in, int64_t out, Size kernel_size) : in_(in), out_(out), kernel_(kernel_size) {}
  TENON_COMPAT_OPTION_(Size, stride)
  TENON_COMPAT_OPTION_(Size, padding)
  TENON_COMPAT_OPTION_(Size, dilation)
  TENON_COMPAT_OPTION_(int64_t, groups)
  TENON_COMPAT_OPTION_(bool, bias)
  template <typename M>
  M make() const {
    return M(in_, out_, kernel_, values_);
  }

 private:
  int64_t in_, out_;
  Size kernel_;
  tenon::nn::ConvOptions<Size> values_;
};
using Conv1dOptions = ConvOptions<int64_t>;
using Conv2dOptions = ConvOptions<tenon::nn::Pair>;
using Conv3dOptions = ConvOptions<tenon::nn::Triple>;
struct BatchNormOptions {
  BatchNormOptions(int64_t features) : features_(features) {}
  TENON_COMPAT_OPTION_(double, eps)
  TENON_COMPAT_OPTION_(double, momentum)
  TENON_COMPAT_OPTION_(bool, affine)
  TENON_COMPAT_OPTION_(bool, track_running_stats)
  template <typename M>
  M make() const {
    return M(features_, values_);
  }

 private:
  int64_t features_;
  tenon::nn::BatchNormLayerOptions values_;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;
struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> shape) : shape_(std::move(shape)) {}
  TENON_COMPAT_OPTION_(double, eps)
  TENON_COMPAT_OPTION_(bool, elementwise_affine)
  template <typename M>
  M make() const {
    return M(tenon::Ints(std::span<const int64_t>(shape_)), values_);
  }

 private:
  std::vector<int64_t> shape_;
  tenon::nn::LayerNormOptions values_;
};
struct EmbeddingOptions {
  EmbeddingOptions(int64_t count, int64_t size) : count_(count), size_(size) {}
  TENON_COMPAT_OPTION_(int64_t, padding_idx)
  template <typename M>
  M make() const {
    return M(count_, size_, values_);
  }

 private:
  int64_t count_, size_;
  tenon::nn::EmbeddingOptions values_;
};
struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  template <typename M>
  M make() const {
    return M(p_);
  }

 private:
  double p_;
};
struct RNNOptionsBase {
  RNNOptionsBase(int64_t input, int64_t hidden) : input_(input), hidden_(hidden) {}
  TENON_COMPAT_OPTION_(int64_t, num_layers)
  TENON_COMPAT_OPTION_(bool, bias)
  TENON_COMPAT_OPTION_(bool, batch_first)
  TENON_COMPAT_OPTION_(double, dropout)
  TENON_COMPAT_OPTION_(bool, bidirectional)
  template <typename M>
  M make() const {
    return M(input_, hidden_, values_);
  }

 private:
  int64_t input_, hidden_;
  tenon::nn::RecurrentOptions values_;
};
using LSTMOptions = RNNOptionsBase;
using GRUOptions = RNNOptionsBase;
template <typename Size>
struct MaxPoolOptions {
  MaxPoolOptions(Size kernel_size) : kernel_(kernel_size) {}
  TENON_COMPAT_OPTION_(Size, stride)
  TENON_COMPAT_OPTION_(Size, padding)
  TENON_COMPAT_OPTION_(Size, dilation)
  TENON_COMPAT_OPTION_(bool, ceil_mode)
  template <typename M>
  M make() const {
    return M(kernel_, values_);
  }

 private:
  Size kernel_;
  tenon::nn::MaxPoolOptions<Size> values_;
};
template <typename Size>
struct AvgPoolOptions {
  AvgPoolOptions(Size kernel_size) : kernel_(kernel_size) {}
  TENON_COMPAT_OPTION_(Size, stride)
  TENON_COMPAT_OPTION_(Size, padding)
  TENON_COMPAT_OPTION_(bool, ceil_mode)
  TENON_COMPAT_OPTION_(bool, count_include_pad)
  template <typename M>
  M make() const {
    return M(kernel_, values_);
  }

 private:
  Size kernel_;
  tenon::nn::AvgPoolOptions<Size> values_;
};
using MaxPool1dOptions = MaxPoolOptions<int64_t>;
using MaxPool2dOptions = MaxPoolOptions<tenon::nn::Pair>;
using MaxPool3dOptions = MaxPoolOptions<tenon::nn::Triple>;
using AvgPool1dOptions = AvgPoolOptions<int64_t>;
using AvgPool2dOptions = AvgPoolOptions<tenon::nn::Pair>;
using AvgPool3dOptions = AvgPoolOptions<tenon::nn::Triple>;

// ---- Modules ------------------------------------------------------------------------------------------------------

#define TENON_COMPAT_MODULE_(Name, Wrapper)            \
  using Name##Impl = compat::Wrapper<tenon::nn::Name>; \
  using Name = ModuleHolder<Name##Impl>;
TENON_COMPAT_MODULE_(Linear, Weighted)
TENON_COMPAT_MODULE_(Conv1d, Weighted)
TENON_COMPAT_MODULE_(Conv2d, Weighted)
TENON_COMPAT_MODULE_(Conv3d, Weighted)
TENON_COMPAT_MODULE_(BatchNorm1d, Weighted)
TENON_COMPAT_MODULE_(BatchNorm2d, Weighted)
TENON_COMPAT_MODULE_(BatchNorm3d, Weighted)
TENON_COMPAT_MODULE_(LayerNorm, Weighted)
TENON_COMPAT_MODULE_(GroupNorm, Weighted)
TENON_COMPAT_MODULE_(Embedding, Weighted)
#define TENON_COMPAT_LAYER_(Name) TENON_COMPAT_MODULE_(Name, Wrapped)
TENON_COMPAT_LAYER_(ReLU)
TENON_COMPAT_LAYER_(ReLU6)
TENON_COMPAT_LAYER_(LeakyReLU)
TENON_COMPAT_LAYER_(ELU)
TENON_COMPAT_LAYER_(SELU)
TENON_COMPAT_LAYER_(GELU)
TENON_COMPAT_LAYER_(SiLU)
TENON_COMPAT_LAYER_(Mish)
TENON_COMPAT_LAYER_(Sigmoid)
TENON_COMPAT_LAYER_(Tanh)
TENON_COMPAT_LAYER_(Softplus)
TENON_COMPAT_LAYER_(Softmax)
TENON_COMPAT_LAYER_(LogSoftmax)
TENON_COMPAT_LAYER_(Dropout)
TENON_COMPAT_LAYER_(Dropout2d)
TENON_COMPAT_LAYER_(Flatten)
TENON_COMPAT_LAYER_(Identity)
TENON_COMPAT_LAYER_(MaxPool1d)
TENON_COMPAT_LAYER_(MaxPool2d)
TENON_COMPAT_LAYER_(MaxPool3d)
TENON_COMPAT_LAYER_(AvgPool1d)
TENON_COMPAT_LAYER_(AvgPool2d)
TENON_COMPAT_LAYER_(AvgPool3d)
TENON_COMPAT_LAYER_(AdaptiveAvgPool2d)
#undef TENON_COMPAT_LAYER_
#undef TENON_COMPAT_MODULE_

struct LSTMImpl : compat::Wrapped<tenon::nn::LSTM> {
  using State = std::tuple<at::Tensor, at::Tensor>;
  using Wrapped::Wrapped;
  std::tuple<at::Tensor, State> forward(const at::Tensor& input, const std::optional<State>& before = {}) const {
    std::optional<tenon::nn::LSTMState> given;
    if (before) given = tenon::nn::LSTMState{std::get<0>(*before), std::get<1>(*before)};
    auto [sequence, state] = tenon::nn::LSTM::operator()(input, given);
    return {sequence, State(state.h, state.c)};
  }
};
using LSTM = ModuleHolder<LSTMImpl>;
struct GRUImpl : compat::Wrapped<tenon::nn::GRU> {
  using Wrapped::Wrapped;
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& input, const at::Tensor& before = {}) const {
    auto [sequence, state] = tenon::nn::GRU::operator()(input, at::compat::plain(std::optional<at::Tensor>(before)));
    return {sequence, state};
  }
};
using GRU = ModuleHolder<GRUImpl>;

// A layer of a Sequential that is a function.
struct FunctionalImpl : Module {
  explicit FunctionalImpl(std::function<at::Tensor(at::Tensor)> function) : function_(std::move(function)) {
    describe("Functional");
  }
  at::Tensor forward(const at::Tensor& input) const { return function_(input); }

 private:
  std::function<at::Tensor(at::Tensor)> function_;
};
using Functional = ModuleHolder<FunctionalImpl>;

class SequentialImpl : public Module {
 public:
  SequentialImpl() { describe("Sequential"); }
  template <typename... Layers>
    requires(sizeof...(Layers) > 0)
  explicit SequentialImpl(ModuleHolder<Layers>... layers) : SequentialImpl() {
    (push_back(std::move(layers)), ...);
  }
  template <typename M>
  void push_back(ModuleHolder<M> layer) {
    register_module(std::to_string(layers_.size()), layer);
    layers_.push_back([layer](const at::Tensor& input) { return layer(input); });
  }
  at::Tensor forward(at::Tensor input) const {
    TORCH_CHECK(!layers_.empty(), "Cannot call forward() on an empty Sequential");
    for (const auto& layer : layers_) input = layer(input);
    return input;
  }
  size_t size() const { return layers_.size(); }

 private:
  std::vector<std::function<at::Tensor(const at::Tensor&)>> layers_;
};
using Sequential = ModuleHolder<SequentialImpl>;

namespace utils {
inline double clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm) {
  return tenon::nn::clip_grad_norm_(at::compat::plain(parameters), max_norm).item<double>();
}
}  // namespace utils

// Functions of tensors alone are those of torch::.
namespace functional {
using at::elu;
using at::gelu;
using at::hardtanh;
using at::leaky_relu;
using at::log_softmax;
using at::mse_loss;
using at::nll_loss;
using at::relu;
using at::sigmoid;
using at::silu;
using at::softmax;
using at::softplus;
using at::tanh;
inline at::Tensor cross_entropy(const at::Tensor& input, const at::Tensor& target) {
  return tenon::cross_entropy(input, target);
}
}  // namespace functional

}  // namespace torch::nn

namespace torch::optim {

struct SGDOptions {
  SGDOptions(double lr) { values_.lr = lr; }
  TENON_COMPAT_OPTION_(double, momentum)
  TENON_COMPAT_OPTION_(double, dampening)
  TENON_COMPAT_OPTION_(double, weight_decay)
  TENON_COMPAT_OPTION_(bool, nesterov)
  operator const tenon::optim::SGDOptions&() const { return values_; }

 private:
  tenon::optim::SGDOptions values_;
};
template <typename Values>
struct AdamOptionsOf {
  AdamOptionsOf(double lr = 1e-3) { values_.lr = lr; }
  TENON_COMPAT_OPTION_(double, lr)
  TENON_COMPAT_OPTION_(double, eps)
  TENON_COMPAT_OPTION_(double, weight_decay)
  TENON_COMPAT_OPTION_(bool, amsgrad)
  auto& betas(const std::tuple<double, double>& both) {
    values_.betas = {std::get<0>(both), std::get<1>(both)};
    return *this;
  }
  operator const Values&() const { return values_; }

 private:
  Values values_;
};
using AdamOptions = AdamOptionsOf<tenon::optim::AdamOptions>;
using AdamWOptions = AdamOptionsOf<tenon::optim::AdamWOptions>;
struct RMSpropOptions {
  RMSpropOptions(double lr = 1e-2) { values_.lr = lr; }
  TENON_COMPAT_OPTION_(double, alpha)
  TENON_COMPAT_OPTION_(double, eps)
  TENON_COMPAT_OPTION_(double, weight_decay)
  TENON_COMPAT_OPTION_(double, momentum)
  TENON_COMPAT_OPTION_(bool, centered)
  operator const tenon::optim::RMSpropOptions&() const { return values_; }

 private:
  tenon::optim::RMSpropOptions values_;
};
struct AdagradOptions {
  AdagradOptions(double lr = 1e-2) { values_.lr = lr; }
  TENON_COMPAT_OPTION_(double, lr_decay)
  TENON_COMPAT_OPTION_(double, weight_decay)
  TENON_COMPAT_OPTION_(double, eps)
  operator const tenon::optim::AdagradOptions&() const { return values_; }

 private:
  tenon::optim::AdagradOptions values_;
};
#undef TENON_COMPAT_OPTION_

#define TENON_COMPAT_OPTIMIZER_(Name)                                                           \
  struct Name : tenon::optim::Name {                                                            \
    explicit Name(const std::vector<at::Tensor>& parameters, const Name##Options& options = {}) \
        : tenon::optim::Name(at::compat::plain(parameters), options) {}                         \
    using tenon::optim::Name::step;                                                             \
    at::Tensor step(const std::function<at::Tensor()>& closure) {                               \
      at::Tensor loss = closure();                                                              \
      step();                                                                                   \
      return loss;                                                                              \
    }                                                                                           \
  };
struct SGD : tenon::optim::SGD {
  SGD(const std::vector<at::Tensor>& parameters, const SGDOptions& options)
      : tenon::optim::SGD(at::compat::plain(parameters), options) {}
};
TENON_COMPAT_OPTIMIZER_(Adam)
TENON_COMPAT_OPTIMIZER_(AdamW)
TENON_COMPAT_OPTIMIZER_(RMSprop)
TENON_COMPAT_OPTIMIZER_(Adagrad)
#undef TENON_COMPAT_OPTIMIZER_

}  // namespace torch::optim
