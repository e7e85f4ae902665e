// Every module against PyTorch's values (tools/reference/peer_modules.py): outputs, gradients of inputs and parameters,
// buffers afterwards. Then once more compiled.
#include <tenon/io/numpy.h>
#include <tenon/nn/modules.h>

#include <gtest/gtest.h>

#include <map>

#include "unit/autograd/helpers.h"

#include <tenon/capture/compile.h>

namespace tenon::testing {
namespace {

using namespace nn;
using Tensors = std::vector<Tensor>;
using Call = std::function<Tensors(const Tensors&)>;

struct Case {
  Module module;
  Call call;
};
using Make = std::function<Case()>;

const std::map<std::string, Tensor>& table() {
  static const auto* loaded = [] {
    io::NamedTensors tensors = io::load_npz(std::string(TENON_SOURCE_DIR) + "/tests/data/modules.npz");
    return new std::map<std::string, Tensor>(tensors.begin(), tensors.end());
  }();
  return *loaded;
}

// The entries of a case: "weight" of "Linear/state/weight".
io::NamedTensors entries(const std::string& name, const std::string& part) {
  io::NamedTensors found;
  std::string prefix = name + "/" + part + "/";
  for (auto at = table().lower_bound(prefix); at != table().end() && at->first.starts_with(prefix); ++at)
    found.emplace_back(at->first.substr(prefix.size()), at->second);
  return found;
}

template <typename M, typename... Args>
Make one(Args... args) {
  return [=] {
    M module(args...);
    return Case{module, [module](const Tensors& x) { return Tensors{module(x[0])}; }};
  };
}
// As it is when it does not train.
template <typename M, typename... Args>
Make evaluated(Args... args) {
  return [=] {
    Case made = one<M>(args...)();
    made.module.eval();
    return made;
  };
}
template <typename M, typename... Args>
Make two(Args... args) {
  return [=] {
    M module(args...);
    return Case{module, [module](const Tensors& x) { return Tensors{module(x[0], x[1])}; }};
  };
}
template <typename M, typename... Args>
Make three(Args... args) {
  return [=] {
    M module(args...);
    return Case{module, [module](const Tensors& x) { return Tensors{module(x[0], x[1], x[2])}; }};
  };
}
template <typename M, typename... Args>
Make sequence(Args... args) {
  return [=] {
    M module(args...);
    return Case{module, [module](const Tensors& x) {
                  auto [outputs, last] = module(x[0]);
                  if constexpr (std::is_same_v<M, LSTM>)
                    return Tensors{outputs, last.h, last.c};
                  else
                    return Tensors{outputs, last};
                }};
  };
}

Tensor entry(const std::string& name) { return table().at(name); }

std::map<std::string, Make> activations() {
  return {
      {"ReLU", one<ReLU>()},
      {"ReLU6", one<ReLU6>()},
      {"LeakyReLU", one<LeakyReLU>(0.1)},
      {"ELU", one<ELU>(2.0)},
      {"SELU", one<SELU>()},
      {"CELU", one<CELU>(2.0)},
      {"GELU", one<GELU>()},
      {"GELU tanh", one<GELU>("tanh")},
      {"SiLU", one<SiLU>()},
      {"Mish", one<Mish>()},
      {"Sigmoid", one<Sigmoid>()},
      {"Tanh", one<Tanh>()},
      {"LogSigmoid", one<LogSigmoid>()},
      {"Softplus", one<Softplus>(2.0, 3.0)},
      {"Softsign", one<Softsign>()},
      {"Softshrink", one<Softshrink>(0.3)},
      {"Hardshrink", one<Hardshrink>(0.3)},
      {"Tanhshrink", one<Tanhshrink>()},
      {"Hardtanh", one<Hardtanh>(-0.5, 0.7)},
      {"Hardsigmoid", one<Hardsigmoid>()},
      {"Hardswish", one<Hardswish>()},
      {"Threshold", one<Threshold>(0.1, 0.5)},
      {"GLU", one<GLU>(1)},
      {"Softmax", one<Softmax>(1)},
      {"LogSoftmax", one<LogSoftmax>(1)},
      {"Softmin", one<Softmin>(1)},
      {"Softmax2d", one<Softmax2d>()},
      {"PReLU", one<PReLU>(4)},
      {"RReLU", evaluated<RReLU>()},
      {"Identity", one<Identity>()},
      {"Dropout", evaluated<Dropout>()},
      {"AlphaDropout", evaluated<AlphaDropout>()},
  };
}

std::map<std::string, Make> layers() {
  Conv1dOptions conv1{.stride = 2, .padding = 1, .dilation = 2, .groups = 2}, same1{.same_padding = true};
  Conv2dOptions conv2{.stride = {1, 2}, .padding = {1, 0}, .groups = 2};
  Conv2dOptions same2{.dilation = {1, 2}, .bias = false, .same_padding = true};
  Conv3dOptions conv3{.stride = {2, 1, 1}, .padding = {1, 1, 0}, .dilation = {1, 2, 1}, .groups = 2};
  ConvTranspose2dOptions wide{.stride = {2, 3}, .padding = {1, 0}, .dilation = {2, 1}};
  return {
      {"Linear", one<Linear>(4, 3)},
      {"Linear plain", one<Linear>(4, 3, LinearOptions{.bias = false})},
      {"Bilinear", two<Bilinear>(4, 3, 2)},
      {"Conv1d", one<Conv1d>(4, 6, 3, conv1)},
      {"Conv1d same", one<Conv1d>(4, 3, 4, same1)},
      {"Conv2d", one<Conv2d>(4, 6, Pair(3, 2), conv2)},
      {"Conv2d same", one<Conv2d>(4, 2, Pair(2, 3), same2)},
      {"Conv3d", one<Conv3d>(4, 6, Triple(2, 3, 2), conv3)},
      {"Conv3d plain", one<Conv3d>(4, 3, 2, Conv3dOptions{.bias = false})},
      {"ConvTranspose1d",
       one<ConvTranspose1d>(4, 6, 3,
                            ConvTranspose1dOptions{.stride = 2, .padding = 1, .output_padding = 1, .groups = 2})},
      {"ConvTranspose2d", one<ConvTranspose2d>(4, 6, Pair(3, 2), wide)},
      {"ConvTranspose2d groups",
       one<ConvTranspose2d>(4, 2, 4, ConvTranspose2dOptions{.stride = 2, .padding = 1, .groups = 2, .bias = false})},
      {"ConvTranspose3d",
       one<ConvTranspose3d>(4, 2, 2, ConvTranspose3dOptions{.stride = {2, 1, 2}, .padding = {0, 1, 0}})},
      {"BatchNorm1d", one<BatchNorm1d>(4)},
      {"BatchNorm1d sequence", one<BatchNorm1d>(4, BatchNormLayerOptions{.momentum = 0.3})},
      {"BatchNorm2d", one<BatchNorm2d>(4, BatchNormLayerOptions{.eps = 1e-3})},
      {"BatchNorm2d eval", evaluated<BatchNorm2d>(4)},
      {"BatchNorm3d", one<BatchNorm3d>(4, BatchNormLayerOptions{.affine = false})},
      {"LayerNorm", one<LayerNorm>(4)},
      {"LayerNorm two", one<LayerNorm>(Ints{5, 4}, LayerNormOptions{.bias = false})},
      {"RMSNorm", one<RMSNorm>(4)},
      {"RMSNorm eps", one<RMSNorm>(Ints{5, 4}, RMSNormOptions{.eps = 0.1})},
      {"GroupNorm", one<GroupNorm>(2, 4)},
      {"InstanceNorm1d", one<InstanceNorm1d>(4, InstanceNormOptions{.affine = true})},
      {"InstanceNorm2d", one<InstanceNorm2d>(4)},
      {"InstanceNorm3d", one<InstanceNorm3d>(4, InstanceNormOptions{.affine = true})},
      {"LocalResponseNorm", one<LocalResponseNorm>(3, 0.5, 0.75, 2.0)},
      {"Embedding", one<Embedding>(7, 4, EmbeddingOptions{.padding_idx = 2})},
      {"EmbeddingBag sum", one<EmbeddingBag>(7, 4, EmbeddingBagOptions{.mode = BagMode::Sum})},
      {"EmbeddingBag mean", one<EmbeddingBag>(7, 4)},
      {"EmbeddingBag max", one<EmbeddingBag>(7, 4, EmbeddingBagOptions{.mode = BagMode::Max})},
      {"EmbeddingBag offsets", two<EmbeddingBag>(7, 4)},
      {"Sequential",
       [] {
         Sequential model(Linear(4, 6), Tanh(), Sequential(Linear(6, 2), Softplus()));
         return Case{model, [model](const Tensors& x) { return Tensors{model(x[0])}; }};
       }},
  };
}

std::map<std::string, Make> moving() {
  InterpolateOptions twice{.scale_factor = std::vector<double>{2}};
  InterpolateOptions bilinear{.size = SymInts{7, 4}, .mode = Interpolation::Bilinear, .align_corners = true};
  return {
      {"MaxPool1d", one<MaxPool1d>(3, MaxPool1dOptions{.stride = 2, .padding = 1})},
      {"MaxPool2d", one<MaxPool2d>(3, MaxPool2dOptions{.stride = Pair(2), .padding = 1, .ceil_mode = true})},
      {"MaxPool2d dilated", one<MaxPool2d>(2, MaxPool2dOptions{.stride = Pair(1), .dilation = 2})},
      {"MaxPool3d", one<MaxPool3d>(Triple(2, 3, 2), MaxPool3dOptions{.padding = 1})},
      {"AvgPool1d", one<AvgPool1d>(3, AvgPool1dOptions{.stride = 2, .padding = 1, .count_include_pad = false})},
      {"AvgPool2d", one<AvgPool2d>(Pair(3, 2), AvgPool2dOptions{.padding = 1})},
      {"AvgPool3d", one<AvgPool3d>(Triple(2, 3, 2), AvgPool3dOptions{.stride = Triple(1), .padding = {1, 1, 0}})},
      {"AdaptiveAvgPool1d", one<AdaptiveAvgPool1d>(3)},
      {"AdaptiveAvgPool2d", one<AdaptiveAvgPool2d>(Pair(3, 2))},
      {"AdaptiveAvgPool3d", one<AdaptiveAvgPool3d>(Triple(3, 2, 2))},
      {"AdaptiveMaxPool1d", one<AdaptiveMaxPool1d>(3)},
      {"AdaptiveMaxPool2d", one<AdaptiveMaxPool2d>(Pair(3, 2))},
      {"AdaptiveMaxPool3d", one<AdaptiveMaxPool3d>(2)},
      {"Flatten", one<Flatten>()},
      {"Unflatten", one<Unflatten>(1, Ints{2, 2})},
      {"PixelShuffle", one<PixelShuffle>(2)},
      {"PixelUnshuffle", one<PixelUnshuffle>(2)},
      {"ChannelShuffle", one<ChannelShuffle>(2)},
      {"Upsample nearest", one<Upsample>(twice)},
      {"Upsample bilinear", one<Upsample>(bilinear)},
      {"ZeroPad1d", one<ZeroPad1d>(Ints{1, 2})},
      {"ZeroPad2d", one<ZeroPad2d>(Ints{1, 2, 0, 1})},
      {"ZeroPad3d", one<ZeroPad3d>(1)},
      {"ConstantPad1d", one<ConstantPad1d>(1, 3.5)},
      {"ConstantPad2d", one<ConstantPad2d>(Ints{1, -1, 2, 0}, 3.5)},
      {"ConstantPad3d", one<ConstantPad3d>(1, 3.5)},
      {"ReflectionPad1d", one<ReflectionPad1d>(Ints{2, 1})},
      {"ReflectionPad2d", one<ReflectionPad2d>(Ints{2, 1, 1, 3})},
      {"ReflectionPad3d", one<ReflectionPad3d>(1)},
      {"ReplicationPad1d", one<ReplicationPad1d>(Ints{2, 1})},
      {"ReplicationPad2d", one<ReplicationPad2d>(Ints{2, 1, 1, 3})},
      {"ReplicationPad3d", one<ReplicationPad3d>(1)},
      {"CircularPad1d", one<CircularPad1d>(Ints{2, 1})},
      {"CircularPad2d", one<CircularPad2d>(Ints{2, 1, 1, 3})},
      {"CircularPad3d", one<CircularPad3d>(1)},
  };
}

std::map<std::string, Make> sequences() {
  RecurrentOptions both{.num_layers = 2, .batch_first = true, .bidirectional = true}, plain = both;
  plain.bias = false;
  TransformerOptions usual{.dim_feedforward = 12, .dropout = 0, .batch_first = true};
  TransformerOptions first{.dim_feedforward = 12, .dropout = 0, .activation = "gelu", .norm_first = true};
  TransformerOptions stacked{.dim_feedforward = 12, .dropout = 0};
  return {
      {"LSTM", sequence<LSTM>(4, 3)},
      {"LSTM layers", sequence<LSTM>(4, 3, both)},
      {"GRU", sequence<GRU>(4, 3)},
      {"GRU layers", sequence<GRU>(4, 3, plain)},
      {"RNN", sequence<RNN>(4, 3)},
      {"RNN relu", sequence<RNN>(4, 3, RecurrentOptions{.num_layers = 2}, "relu")},
      {"RNNCell", one<RNNCell>(4, 3, CellOptions{}, "relu")},
      {"GRUCell", one<GRUCell>(4, 3)},
      {"LSTMCell",
       [] {
         LSTMCell cell(4, 3);
         return Case{cell, [cell](const Tensors& x) {
                       LSTMState state = cell(x[0]);
                       return Tensors{state.h, state.c};
                     }};
       }},
      {"MultiheadAttention",
       [] {
         MultiheadAttention layer(8, 2, {.batch_first = true});
         return Case{layer, [layer](const Tensors& x) {
                       auto [result, weights] = layer(x[0], x[1], x[2]);
                       return Tensors{result, weights};
                     }};
       }},
      {"MultiheadAttention masked",
       [] {
         MultiheadAttention layer(8, 2, {.bias = false});
         return Case{layer, [layer](const Tensors& x) {
                       Tensor padding = tensor({{false, false, true}, {false, false, false}});
                       Tensor causal = triu(ones({3, 3}, kBool), 1);
                       auto [result, weights] =
                           layer(x[0], x[0], x[0], AttentionMasks{.key_padding = padding, .attention = causal});
                       return Tensors{result, weights};
                     }};
       }},
      {"TransformerEncoderLayer", one<TransformerEncoderLayer>(8, 2, usual)},
      {"TransformerEncoderLayer first", one<TransformerEncoderLayer>(8, 2, first)},
      {"TransformerEncoder", one<TransformerEncoder>(TransformerEncoderLayer(8, 2, stacked), 2)},
      {"TransformerDecoderLayer", two<TransformerDecoderLayer>(8, 2, usual)},
  };
}

std::map<std::string, Make> losses() {
  Tensor p = entry("BCELoss/input/0"), t = entry("BCELoss/input/1");
  return {
      {"L1Loss", two<L1Loss>()},
      {"L1Loss sum", two<L1Loss>(Reduction::Sum)},
      {"MSELoss", two<MSELoss>()},
      {"MSELoss none", two<MSELoss>(Reduction::None)},
      {"SmoothL1Loss", two<SmoothL1Loss>(Reduction::Mean, 0.5)},
      {"HuberLoss", two<HuberLoss>(Reduction::Mean, 0.7)},
      {"KLDivLoss", two<KLDivLoss>(Reduction::Sum)},
      {"KLDivLoss log", two<KLDivLoss>(Reduction::Mean, true)},
      {"BCELoss", two<BCELoss>()},
      {"BCELoss weight", two<BCELoss>(t[0], Reduction::Sum)},
      {"BCEWithLogitsLoss", two<BCEWithLogitsLoss>()},
      {"BCEWithLogitsLoss weight", two<BCEWithLogitsLoss>(t[0], Reduction::Mean, p[0] * 3)},
      {"CrossEntropyLoss", two<CrossEntropyLoss>(CrossEntropyOptions{.label_smoothing = 0.1})},
      {"NLLLoss", two<NLLLoss>(p[0])},
      {"PoissonNLLLoss", two<PoissonNLLLoss>(true, true)},
      {"PoissonNLLLoss plain", two<PoissonNLLLoss>(false)},
      {"SoftMarginLoss", two<SoftMarginLoss>()},
      {"HingeEmbeddingLoss", two<HingeEmbeddingLoss>(0.5)},
      {"MultiLabelSoftMarginLoss", two<MultiLabelSoftMarginLoss>()},
      {"MultiMarginLoss", two<MultiMarginLoss>()},
      {"MultiMarginLoss squared", two<MultiMarginLoss>(2.0, 0.5)},
      {"GaussianNLLLoss", three<GaussianNLLLoss>(true)},
      {"MarginRankingLoss", three<MarginRankingLoss>(0.3)},
      {"CosineEmbeddingLoss", three<CosineEmbeddingLoss>(0.1)},
      {"TripletMarginLoss", three<TripletMarginLoss>(1.0, 2.0, 1e-6, true)},
      {"CosineSimilarity", two<CosineSimilarity>(1)},
      {"PairwiseDistance", two<PairwiseDistance>()},
  };
}

void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  SCOPED_TRACE(what);
  ASSERT_TRUE(got.defined());
  ASSERT_EQ(str(got.sym_sizes()), str(expected.sym_sizes()));
  // PyTorch's hardsigmoid has a sixth of float32.
  expect_near(got, values(expected), what.starts_with("Hardsigmoid") ? 1e-7 : 1e-10);
}

// A case as the table has it; `through` runs the call, perhaps compiled.
void check(const std::string& name, const Make& make,
           const std::function<Tensors(const Call&, const Tensors&)>& through) {
  SCOPED_TRACE(name);
  io::NamedTensors inputs = entries(name, "input");
  ASSERT_FALSE(inputs.empty()) << "not in the table";
  Case made = make();
  made.module.to(kFloat64);
  if (io::NamedTensors state = entries(name, "state"); !state.empty()) made.module.load_state_dict(state);
  Tensors leaves;
  for (const auto& [number, input] : inputs)
    leaves.push_back(input.is_floating_point() ? leaf(values(input), input.sym_sizes()) : input);
  Tensors outputs = through(made.call, leaves);
  io::NamedTensors expected = entries(name, "output");
  ASSERT_EQ(outputs.size(), expected.size());
  Tensor total;
  for (size_t at = 0; at < outputs.size(); ++at) {
    expect_same(outputs[at], expected[at].second, "output " + expected[at].first);
    Tensor weighed = weigh(outputs[at]);
    total = at == 0 ? weighed : total + weighed;
  }
  if (!total.requires_grad()) return;
  total.backward();
  for (const auto& [number, gradient] : entries(name, "input grad"))
    expect_same(leaves.at(static_cast<size_t>(std::stoi(number))).grad(), gradient,
                name + ", gradient of input " + number);
  std::map<std::string, Tensor> parameters;
  for (const auto& [key, parameter] : made.module.named_parameters()) parameters[key] = parameter;
  for (const auto& [key, gradient] : entries(name, "grad")) expect_same(parameters[key].grad(), gradient, key);
  std::map<std::string, Tensor> buffers;
  for (const auto& [key, buffer] : made.module.named_buffers()) buffers[key] = buffer;
  for (const auto& [key, buffer] : entries(name, "after")) expect_same(buffers[key], buffer, key);
}

void check_all(const std::map<std::string, Make>& cases) {
  for (const auto& [name, make] : cases)
    check(name, make, [](const Call& call, const Tensors& inputs) { return call(inputs); });
}

void check_all_compiled(const std::map<std::string, Make>& cases) {
  for (const auto& [name, make] : cases)
    check(name, make, [](const Call& call, const Tensors& inputs) {
      auto compiled = compile([call](std::vector<Tensor> x) { return call(x); });
      return compiled(inputs);
    });
}

TEST(PeerModules, Activations) { check_all(activations()); }
TEST(PeerModules, Layers) { check_all(layers()); }
TEST(PeerModules, PoolsPadsAndShapes) { check_all(moving()); }
TEST(PeerModules, Sequences) { check_all(sequences()); }
TEST(PeerModules, Losses) { check_all(losses()); }

TEST(PeerModules, ActivationsCompiled) { check_all_compiled(activations()); }
TEST(PeerModules, LayersCompiled) { check_all_compiled(layers()); }
TEST(PeerModules, PoolsPadsAndShapesCompiled) { check_all_compiled(moving()); }
TEST(PeerModules, SequencesCompiled) { check_all_compiled(sequences()); }
TEST(PeerModules, LossesCompiled) { check_all_compiled(losses()); }

TEST(PeerModules, TheTableHasNoCaseThatIsNotTested) {
  std::map<std::string, Make> known;
  for (const auto& part : {activations(), layers(), moving(), sequences(), losses()})
    known.insert(part.begin(), part.end());
  for (const auto& [key, tensor] : table()) {
    std::string name = key.substr(0, key.find('/'));
    EXPECT_TRUE(known.contains(name)) << name;
  }
}

}  // namespace
}  // namespace tenon::testing
