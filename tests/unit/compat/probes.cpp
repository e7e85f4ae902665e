// What of libtorch's API compiles here, a line each. tools/from_libtorch makes docs/from_libtorch.md of this file: a
// function is a section, its comment the title; `// missing:` names what is not there.
#include <ATen/AccumulateType.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <torch/extension.h>

#include <map>

namespace {

// Tensors
[[maybe_unused]] void tensors(at::Tensor x, torch::Tensor y) {
  int64_t n = x.size(0), last = x.size(-1), count = x.numel(), rank = x.dim();
  std::vector<int64_t> sizes = x.sizes().vec(), strides = x.strides().vec();
  at::IntArrayRef shape = x.sizes();
  bool same = x.sizes() == y.sizes() && shape.equals(y.sizes());
  c10::SymInt rows = x.sym_size(0);
  c10::SymInts all = x.sym_sizes();
  at::ScalarType type = x.scalar_type();
  bool floats = x.dtype() == torch::kFloat32 && type == at::kFloat && at::isFloatingType(type);
  at::TensorOptions options = x.options();
  bool place = x.device().is_cpu() && x.device() == at::kCPU && !x.is_cuda() && x.device().type() == at::kCPU;
  bool dense = x.is_contiguous() && x.is_contiguous(at::MemoryFormat::Contiguous);
  at::Tensor packed = x.contiguous(), wide = x.to(at::kDouble), there = x.to(x.options()), here = x.cpu();
  float* data = x.data_ptr<float>();
  const float* constant = x.const_data_ptr<float>();
  float* writable = x.mutable_data_ptr<float>();
  auto a = x.accessor<float, 2>();
  float element = a[0][1];
  auto p = x.packed_accessor32<float, 2, at::RestrictPtrTraits>();
  double value = x.sum().item<double>() + x.sum().item().toDouble();
  at::Tensor row = x[0], part = x.index({torch::indexing::Slice(0, 2), "...", 1});
  x.index_put_({0}, 5);
  x.add_(1).mul_(y);
  at::Tensor& self = x.zero_();
  at::Tensor sum = x + y * 2 - 0.5 / x, less = x < y, opposite = -x;
  x += y;
  x *= 2;
  std::cout << x << x.sizes() << x.scalar_type() << x.device();
  at::Tensor leaf = torch::ones({2}).requires_grad_(), slope = leaf.grad(), cut = leaf.detach();
  bool tracks = leaf.requires_grad() && leaf.is_leaf() && leaf.defined();
}
[[maybe_unused]] void more_of_tensors(at::Tensor x, at::Tensor y) {
  x[0] = y[0];
  x[0][1] = 3.0;
  x.slice(0, 0, 1) = y;
  float* old = x.data<float>();
  bool cuda = x.type().is_cuda() || x.type().scalarType() == at::kFloat;
  at::Tensor laid = x.contiguous(x.suggest_memory_format()), part = x[x > 0];
  x.register_hook([](at::Tensor gradient) { return gradient * 2; });
  x.detach_();
  x.set_data(y);
  at::Tensor both = ((x > 0) & (y > 0)) | (0 < x), swapped = 2 > x;
  bool same = torch::equal(x, y) || torch::allclose(x, y, 1e-3) || x.is_alias_of(y);
  c10::SymInt rows = x.sym_size(0);
  at::Tensor made = at::empty_symint({rows, rows * 2}, x.options()), seen = x.view_symint({rows, -1});
  at::Tensor wide = x.new_empty_symint({rows}), spread = x.expand_symint({rows, 3});
  std::map<at::ScalarType, int> counts;
  int number = static_cast<int>(x.scalar_type());
  std::cout << x.options();
}
// missing: `ChannelsLast` and other memory formats; named, sparse, quantized and complex tensors; `storage()`
// missing: `unsafeGetTensorImpl()`, `unsafeReleaseTensorImpl()`; `set_`, `swap`; `SymInt::guard_int`

// Making tensors
[[maybe_unused]] void factories(std::vector<int64_t> sizes, at::Tensor x) {
  at::Tensor a = torch::zeros({2, 3}), b = at::ones(sizes, at::kDouble), c = torch::empty({2}, x.options());
  at::Tensor d = torch::full({2, 2}, 7.0, torch::dtype(torch::kFloat).device(torch::kCPU).requires_grad(true));
  at::Tensor e = torch::arange(0, 5), f = torch::rand({2}),
             g = torch::randn({2}, torch::TensorOptions().dtype<double>());
  at::Tensor h = torch::tensor({1.0, 2.0}), i = torch::tensor(3), j = torch::eye(3), k = torch::linspace(0, 1, 5);
  at::Tensor l = at::empty_like(x), m = torch::zeros_like(x, x.options().dtype(torch::kInt)), n = x.new_zeros({2});
  float numbers[] = {1, 2};
  at::Tensor o = torch::from_blob(numbers, {2}), p = torch::from_blob(numbers, {2}, [](void*) {});
}
[[maybe_unused]] void more_factories(at::Tensor x, c10::SmallVector<int64_t, 4> sizes) {
  at::Tensor a = torch::tensor({{1, 2}, {3, 4}}), b = torch::tensor(std::vector<float>{1, 2}), c = at::empty(sizes);
  at::Tensor d = at::empty_like(x, at::MemoryFormat::Contiguous),
             e = at::zeros_like(x, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  at::Tensor f = torch::scalar_tensor(3, x.options()), g = torch::randint(0, 10, {3}), h = at::full_like(x, 2);
  torch::manual_seed(0);
  auto& generator = at::detail::getDefaultCPUGenerator();
  at::Tensor i = torch::rand({2}, generator), j = torch::randn({2}, generator, torch::kDouble);
}
// missing: `torch::complex`, `torch::sparse_coo_tensor`, `torch::randperm`, `at::make_generator`

// Operators
[[maybe_unused]] void operators(at::Tensor x, at::Tensor y, std::vector<at::Tensor> list) {
  at::Tensor a = torch::sigmoid(x), b = at::matmul(x, y), c = x.mm(y), d = torch::cat({x, y}, 0), e = at::stack(list);
  at::Tensor f = x.sum(0, true), g = x.mean({0, 1}), h = torch::softmax(x, -1), i = x.view({-1}), j = x.transpose(0, 1);
  auto [largest, where] = x.max(0);
  std::vector<at::Tensor> pieces = x.chunk(2, 1);
  at::Tensor k = torch::where(x > 0, x, y), l = x.masked_fill(x < 0, 0.0), m = x.select(0, 1), n = x.unsqueeze(0);
  at::add_out(x, x, y);
  at::Tensor o = x.gather(0, y), q = x.scatter_add(0, y, x), r = at::addmm(x, x, y), s = x.clone(), t = x.t();
  at::mm_out(x, x, y);
  at::sum_out(x, y, 0);
  at::Tensor u = at::where(x > 0, x, 0.0), v = torch::where(x > 0, 1.0, y);
  std::vector<at::Tensor> halves = x.split(2, 0);
}
// missing: operators that Tenon has no row for (`tenon ops` lists those that it has)

// Element types and numbers
[[maybe_unused]] void numbers(at::Scalar number, c10::optional<double> maybe) {
  double d = number.toDouble() + number.to<float>();
  bool kinds = number.isFloatingPoint() || number.isIntegral(false);
  c10::Half half = 1.5f;
  c10::BFloat16 brain = 2.0f;
  half += 1.0f;
  float sum = half * 2 + brain;
  at::acc_type<float, false> wide = 0;
  at::opmath_type<c10::Half> computed = half;
  bool given = maybe.has_value() && maybe != c10::nullopt;
  int64_t bytes = c10::elementSize(at::kHalf);
  const char* name = c10::toString(at::kFloat);
  float most = std::numeric_limits<c10::Half>::max(), least = std::numeric_limits<at::BFloat16>::lowest();
  c10::Half one(0x3C00, c10::Half::from_bits());
  bool three = number.equal(3) && !number.isComplex();
  at::Scalar opposite = -number;
  at::ScalarType both = c10::promoteTypes(at::kInt, at::kFloat), inner = at::toOpMathType(at::kHalf);
  int64_t dim = c10::maybe_wrap_dim(-1, 3), product = c10::multiply_integers(std::vector<int64_t>{2, 3});
}
// missing: `c10::complex`, 8-bit floats, quantized types

// Dispatch on the element type
[[maybe_unused]] void dispatch(at::Tensor x) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>()[0] = scalar_t(1); });
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>()[0] = scalar_t(1); });
  AT_DISPATCH_FLOATING_TYPES_AND(at::ScalarType::BFloat16, x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });
  AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });
  AT_DISPATCH_INDEX_TYPES(x.scalar_type(), "f", [&] { x.data_ptr<index_t>(); });
  AT_DISPATCH_ALL_TYPES(x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });
  AT_DISPATCH_ALL_TYPES_AND2(at::kBool, at::kHalf, x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });
  int64_t size =
      AT_DISPATCH_SWITCH(x.scalar_type(), "f", AT_DISPATCH_CASE(at::kFloat, [&] { return sizeof(scalar_t); }));
}
[[maybe_unused]] void more_dispatch(at::Tensor x, at::Tensor y) {
  AT_DISPATCH_FLOATING_TYPES(x.type(), "f", ([&] { x.data_ptr<scalar_t>(); }));
  AT_DISPATCH_FLOATING_TYPES_AND3(at::kHalf, at::kBFloat16, at::kInt, x.scalar_type(), "f", [&] { scalar_t(1); });
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(at::kHalf, at::kBool, x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });
  AT_DISPATCH_V2(x.scalar_type(), "f", AT_WRAP([&] { x.data_ptr<scalar_t>(); }), AT_EXPAND(AT_ALL_TYPES), at::kHalf);
  AT_DISPATCH_INDEX_TYPES(y.scalar_type(), "i", [&] {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>()[*y.data_ptr<index_t>()] = 0; });
  });
}
// missing: complex types (the macros that name them have the real ones alone), quantized types

// Checks
[[maybe_unused]] void checks(at::Tensor x) {
  TORCH_CHECK(x.dim() == 2, "expected 2 dimensions, got ", x.dim(), " of ", x.sizes());
  TORCH_CHECK(x.defined());
  TORCH_CHECK_VALUE(x.size(0) > 0, "empty");
  TORCH_CHECK_TYPE(x.is_floating_point(), "got ", x.scalar_type());
  TORCH_CHECK_INDEX(x.size(0) > 1, "out of range");
  TORCH_CHECK_NOT_IMPLEMENTED(x.is_cpu(), "only on the CPU");
  TORCH_CHECK_EQ(x.dim(), 2);
  TORCH_INTERNAL_ASSERT(x.numel() >= 0, "never");
  TORCH_WARN("seldom: ", x.dim());
  AT_ASSERTM(true, "fine");
  at::TensorArg arg{x, "x", 1};
  at::checkDim("f", arg, 2);
  at::checkAllSameType("f", {arg, arg});
  at::checkContiguous("f", arg);
  at::checkAllSameSize("f", {arg, arg});
  at::checkScalarTypes("f", arg, {at::kFloat, at::kDouble});
  at::checkDeviceType("f", {x, x}, at::kCPU);
  TORCH_CHECK_ARG(x.dim() == 2, 1, "expected 2 dimensions");
  TORCH_CHECK_LT(x.size(0), 10) << "rows";
}
// missing: c10::Error has what() alone, without backtraces; RECORD_FUNCTION does nothing

// Loops
[[maybe_unused]] void loops(std::vector<float>& v) {
  at::parallel_for(0, 10, 1, [&](int64_t begin, int64_t end) {
    for (const auto i : c10::irange(begin, end)) v[static_cast<size_t>(i)] = 1;
  });
  float sum = at::parallel_reduce(
      0, 10, 1, 0.f, [&](int64_t, int64_t, float start) { return start; }, [](float a, float b) { return a + b; });
  int threads = at::get_num_threads(), mine = at::get_thread_num();
  using Vec = at::vec::Vectorized<float>;
  Vec a = Vec::loadu(v.data()), b(2.f), c = at::vec::fmadd(a, b, a.exp()), d = Vec::blendv(a, b, a < b);
  c.store(v.data(), 3);
  at::vec::map<float>([](Vec x) { return x * x; }, v.data(), v.data(), 10);
  float all = at::vec::reduce_all<float>([](Vec& x, Vec& y) { return x + y; }, v.data(), 10);
}
// missing: `at::TensorIterator`; vectors are plain loops that the compiler makes vectors of

// Autograd
struct Twice : public torch::autograd::Function<Twice> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x, double by) {
    ctx->save_for_backward({x});
    ctx->saved_data["by"] = by;
    ctx->saved_data["sizes"] = x.sizes();
    ctx->saved_data["rows"] = x.sym_size(0);
    ctx->mark_non_differentiable({});
    return x * by;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    torch::Tensor x = ctx->get_saved_variables()[0];
    std::vector<int64_t> sizes = ctx->saved_data["sizes"].toIntVector();
    c10::SymInt rows = ctx->saved_data["rows"].toSymInt(),
                first = ctx->saved_data["sizes"].toList()[0].get().toSymInt();
    return {grads[0] * ctx->saved_data["by"].toDouble(), torch::Tensor()};
  }
};
[[maybe_unused]] void autograd(torch::Tensor x) {
  torch::Tensor y = Twice::apply(x, 2.0);
  y.sum().backward();
  torch::autograd::variable_list slopes = torch::autograd::grad({y.sum()}, {x}, {}, true, true);
  c10::InferenceMode inference;
  torch::NoGradGuard off;
  torch::AutoGradMode on(true);
  at::AutoDispatchBelowAutograd below;
  bool enabled = torch::GradMode::is_enabled();
}
// missing: forward-mode derivatives (`jvp`), `torch::autograd::Node` as a base class, anomaly mode

// Registration
torch::Tensor keep(const torch::Tensor& x) { return x.clone(); }
torch::Tensor& change(torch::Tensor& x, const at::Scalar& by) { return x.mul_(by); }
std::tuple<torch::Tensor, int64_t> both(torch::TensorList list, at::IntArrayRef dims,
                                        c10::optional<torch::Tensor> other, std::string mode) {
  return {list[0].clone(), static_cast<int64_t>(dims.size())};
}
TORCH_LIBRARY(tenon_probes, m) {
  m.def("keep", keep);
  m.def("keep2(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("change(Tensor(a!) x, Scalar by) -> Tensor(a!)");
  m.def("both(Tensor[] list, int[] dims, Tensor? other, str mode) -> (Tensor, int)");
}
TORCH_LIBRARY_FRAGMENT(tenon_probes, m) { m.def("more(Tensor x) -> Tensor", torch::dispatch(at::kCPU, keep)); }
TORCH_LIBRARY_IMPL(tenon_probes, CPU, m) {
  m.impl("keep2", TORCH_FN(keep));
  m.impl("change", change);
  m.impl("both", torch::dispatch(c10::DispatchKey::CPU, both));
}
[[maybe_unused]] void dispatcher(at::Tensor x) {
  auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("tenon_probes::keep2", "").typed<at::Tensor(const at::Tensor&)>();
  at::Tensor y = op.call(x);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("keep", &keep, py::arg("x")); }
// missing: boxed kernels and fallbacks, `torch::class_`, `torch::RegisterOperators`; PYBIND11_MODULE blocks are skipped
// missing: CUDA: `c10::cuda`, streams, `.cu` files; `redispatch`, key sets

// Modules and optimizers
struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(4, 8));
    last = register_module("last", torch::nn::Linear(torch::nn::LinearOptions(8, 2).bias(false)));
    scale = register_parameter("scale", torch::ones({1}));
  }
  torch::Tensor forward(torch::Tensor x) { return last(torch::relu(first->forward(x))) * scale; }
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::Tensor scale;
};
struct BlockImpl : torch::nn::Module {
  BlockImpl() { register_module("norm", norm = torch::nn::BatchNorm2d(8)); }
  torch::Tensor forward(torch::Tensor x) { return norm(conv(x)).relu(); }
  torch::nn::Conv2d conv =
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)));
  torch::nn::BatchNorm2d norm{nullptr};
};
TORCH_MODULE(Block);
[[maybe_unused]] void modules(torch::Tensor x, torch::Tensor target) {
  auto net = std::make_shared<Net>();
  net->train();
  net->to(torch::kFloat);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(1e-3).betas({0.9, 0.99}));
  sgd.zero_grad();
  torch::mse_loss(net->forward(x), target).backward();
  torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
  sgd.step();
  torch::nn::Sequential layers(torch::nn::Linear(3, 4), torch::nn::ReLU(), torch::nn::Functional(torch::tanh));
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 4).num_layers(2).batch_first(true));
  auto [sequence, state] = lstm->forward(x);
  Block block;
  torch::Tensor y = block(x), w = layers->parameters()[0], n = torch::nn::functional::softmax(x, 1);
}
// missing: `ModuleList`, `ModuleDict` and other containers than `Sequential`; options of functional forms
// missing: attention and transformer layers, LBFGS and schedulers (Tenon: tenon::nn, tenon::optim); `torch::save`

}  // namespace
