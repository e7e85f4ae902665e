// States of networks that PyTorch saved (tools/reference/peer_networks.py) load by name, and give PyTorch's outputs.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include "unit/io/files.h"
#include "values_of.h"

namespace tenon::testing {
namespace {

using namespace nn;

constexpr int64_t kWidth = 4, kClasses = 10, kLetters = 50, kPlaces = 16, kFeatures = 16, kHeads = 4, kLayers = 2;

struct BasicBlock : Module {
  Conv2d conv1, conv2;
  BatchNorm2d bn1, bn2;
  std::optional<Sequential> downsample;
  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(submodule("conv1", Conv2d(in, out, 3, {.stride = stride, .padding = 1, .bias = false}))),
        conv2(submodule("conv2", Conv2d(out, out, 3, {.padding = 1, .bias = false}))),
        bn1(submodule("bn1", BatchNorm2d(out))),
        bn2(submodule("bn2", BatchNorm2d(out))) {
    if (stride != 1 || in != out)
      downsample =
          submodule("downsample", Sequential(Conv2d(in, out, 1, {.stride = stride, .bias = false}), BatchNorm2d(out)));
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + (downsample ? (*downsample)(x) : x));
  }
};

struct ResNet18 : Module {
  Conv2d conv1 = submodule("conv1", Conv2d(3, kWidth, 7, {.stride = 2, .padding = 3, .bias = false}));
  BatchNorm2d bn1 = submodule("bn1", BatchNorm2d(kWidth));
  std::vector<Sequential> layers;
  Linear fc = submodule("fc", Linear(8 * kWidth, kClasses));
  ResNet18() {
    int64_t in = kWidth;
    for (int64_t number = 0; number < 4; ++number) {
      int64_t out = kWidth << number;
      Sequential stage(BasicBlock(in, out, number == 0 ? 1 : 2), BasicBlock(out, out, 1));
      layers.push_back(submodule("layer" + std::to_string(number + 1), stage));
      in = out;
    }
  }
  Tensor operator()(const Tensor& images) const {
    Tensor x = max_pool2d(relu(bn1(conv1(images))), 3, 2, 1);
    for (const Sequential& layer : layers) x = layer(x);
    return fc(x.mean({2, 3}));
  }
};

// A linear map whose weight is [in, out], as GPT-2 keeps it.
struct Conv1D : Module {
  Cell<Tensor> weight, bias;
  Conv1D(int64_t out, int64_t in)
      : weight(parameter("weight", zeros({in, out}))), bias(parameter("bias", zeros({out}))) {}
  Tensor operator()(const Tensor& x) const { return matmul(x, weight.get()) + bias.get(); }
};

struct Attention : Module {
  Conv1D c_attn = submodule("c_attn", Conv1D(3 * kFeatures, kFeatures)),
         c_proj = submodule("c_proj", Conv1D(kFeatures, kFeatures));
  Tensor operator()(const Tensor& x) const {
    auto heads = [&](const Tensor& part) { return part.unflatten(2, {kHeads, -1}).transpose(1, 2); };
    std::vector<Tensor> parts = c_attn(x).split(kFeatures, 2);
    Tensor y = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), {.is_causal = true});
    return c_proj(y.transpose(1, 2).flatten(2));
  }
};

struct MLP : Module {
  Conv1D c_fc = submodule("c_fc", Conv1D(4 * kFeatures, kFeatures)),
         c_proj = submodule("c_proj", Conv1D(kFeatures, 4 * kFeatures));
  Tensor operator()(const Tensor& x) const { return c_proj(gelu(c_fc(x), "tanh")); }
};

struct Block : Module {
  LayerNorm ln_1 = submodule("ln_1", LayerNorm(kFeatures)), ln_2 = submodule("ln_2", LayerNorm(kFeatures));
  Attention attn = submodule("attn", Attention());
  MLP mlp = submodule("mlp", MLP());
  Tensor operator()(const Tensor& input) const {
    Tensor x = input + attn(ln_1(input));
    return x + mlp(ln_2(x));
  }
};

struct GPT2 : Module {
  Embedding wte = submodule("wte", Embedding(kLetters, kFeatures)),
            wpe = submodule("wpe", Embedding(kPlaces, kFeatures));
  ModuleList<Block> h;
  LayerNorm ln_f = submodule("ln_f", LayerNorm(kFeatures));
  GPT2() {
    for (int64_t layer = 0; layer < kLayers; ++layer) h.push_back(Block());
    submodule("h", h);
  }
  Tensor operator()(const Tensor& text) const {
    Tensor x = wte(text) + wpe(arange(Scalar(text.size(1))));
    for (const Block& block : h) x = block(x);
    return matmul(ln_f(x), wte.weight.get().t());
  }
};

template <typename M>
void check(const char* file) {
  io::Object saved = io::load_pytorch(data_file(file));
  M model;
  LoadResult result = model.load_state_dict(saved.at("state").tensors());
  EXPECT_TRUE(result.missing.empty() && result.unexpected.empty());
  model.eval();
  NoGrad off;
  Tensor input = saved.at("input").tensor(), expected = saved.at("output").tensor();
  EXPECT_TRUE(allclose(model(input), expected, 1e-4, 1e-4)) << model(input) << expected;
  auto compiled = compile([&](Tensor x) { return model(x); }, {.fullgraph = true});
  EXPECT_TRUE(allclose(compiled(input), expected, 1e-4, 1e-4)) << compiled(input) << expected;
}

TEST(Checkpoints, AResNet18OfPyTorch) { check<ResNet18>("resnet18.pt"); }
TEST(Checkpoints, AGpt2OfPyTorch) { check<GPT2>("gpt2.pt"); }

}  // namespace
}  // namespace tenon::testing
