// Seed 000's operator cases: images with the channels last, and bits taken for another dtype.
#include "freeze.h"
#include "operators.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/random.h>

#include "bits_as.h"

namespace tenon::operators {
namespace {

using dispatch::Value;
constexpr MemoryFormat kLast = MemoryFormat::ChannelsLast, kLast3d = MemoryFormat::ChannelsLast3d;

Tensor channels_last(const Tensor& images) { return images.contiguous(images.dim() == 5 ? kLast3d : kLast); }

TEST(CommonTemplate, to_memory_format) {
  Tensor x = rand({2, 2, 10, 10});
  auto in_format = [](MemoryFormat format) {
    return [format](Tensor a) {
      return std::tuple(by_name("aten::to.dtype_layout", {Value(a)}, {{"memory_format", Value(format)}}),
                        a.to(kFloat32, false, false, format));
    };
  };
  for (const Tensor& result : check(in_format(kLast), {x})) {
    EXPECT_TRUE(result.is_contiguous(kLast));
    EXPECT_TRUE(same_bits(result.contiguous(), x));
  }
  for (const Tensor& result : check(in_format(MemoryFormat::Contiguous), {channels_last(x)})) {
    EXPECT_TRUE(result.is_contiguous());
    EXPECT_TRUE(same_bits(result, x));
  }
}

TEST(CommonTemplate, like_channels_last) {
  auto made = [] {
    Tensor x = randn({4, 3, 8, 8}), last = channels_last(x);
    return std::tuple(last, zeros_like(last, {}, MemoryFormat::Preserve), rand_like(x));
  };
  Tensors results = check(made, {}, {.backward = false, .values = false});
  EXPECT_TRUE(results[0].is_contiguous(kLast));
  EXPECT_TRUE(results[1].is_contiguous(kLast));
  EXPECT_TRUE(results[2].is_contiguous());
}

TEST(CommonTemplate, pixel_shuffle_channels_last) {
  Tensor x = channels_last(randn({1, 16, 64, 72}));
  Tensor result = check([](Tensor a) { return relu(pixel_shuffle(a, 2)); }, {x})[0];
  EXPECT_TRUE(result.is_contiguous(kLast)) << "as in PyTorch";
  EXPECT_TRUE(same_bits(result.contiguous(), relu(pixel_shuffle(x.contiguous(), 2))));
}

template <typename Layer>
void check_channels_last(const SymInts& sizes) {
  Tensor x = randn(sizes);
  const MemoryFormat format = sizes.size() == 5 ? kLast3d : kLast;
  const Check close{.rtol = 1e-4, .atol = 1e-4};
  Layer layer(3, 3, 1);
  Tensor expected = layer(x).detach();
  layer.to(format);
  EXPECT_TRUE(layer.weight.get().is_contiguous(format));
  auto run = [layer](Tensor a) { return layer(a); };
  // Of a kernel of one element either order is both, so that the images decide.
  for (const Tensor& input : {x, channels_last(x)})
    EXPECT_TRUE(operators::close(check(run, {input}, close)[0].contiguous(), expected, close));
  EXPECT_TRUE(check(run, {channels_last(x)}, close)[0].is_contiguous(format));
}
TEST(CommonTemplate, conv2d_channels_last) { check_channels_last<nn::Conv2d>({2, 3, 16, 16}); }
TEST(CommonTemplate, conv3d_channels_last) { check_channels_last<nn::Conv3d>({2, 3, 16, 16, 16}); }

TEST(CommonTemplate, cat_of_loops_and_extern_kernel) {
  nn::Conv2d layer(64, 5, 1);
  layer.to(kLast);
  nn::MaxPool2d pool(2);
  Tensor x = channels_last(randn({1, 64, 16, 16})), y = channels_last(randn({1, 64, 32, 32}));
  Tensor result = check([layer, pool](Tensor a, Tensor b) { return cat({layer(a), pool(b)}, 1); }, {x, y},
                        {.rtol = 1e-4, .atol = 1e-4})[0];
  EXPECT_TRUE(result.is_contiguous(kLast));
}

TEST(CommonTemplate, require_stride_expanded) {
  Tensor x = channels_last(randn({1, 3, 224, 224})).squeeze(0), w = channels_last(randn({64, 3, 11, 11}));
  check([](Tensor a, Tensor b) { return convolution(a.unsqueeze(0), b, {}, {4, 4}, {2, 2}, {1, 1}, false, {0, 0}, 1); },
        {x, w}, {.rtol = 1e-3, .atol = 1e-3, .backward = false, .kernels = 0});
}

// Dilation is a size of an input.
TEST(CommonTemplate, convolution5) {
  Tensor x = randn({2, 1, 16, 20}), w = randn({1, 1, 5, 5});
  auto function = [](Tensor a, Tensor b) { return conv2d(a, b, {}, {1}, {0}, {a.size(0)}).sum(); };
  check(function, {x, w}, {.rtol = 1e-4, .atol = 1e-3});
  auto compiled = compile(function);
  for (int64_t batch : {2, 3, 2}) {
    Tensor images = randn({batch, 1, 16, 20});
    mark_dynamic(images, 0);
    EXPECT_NEAR(compiled(images, w).item<double>(), function(images, w).item<double>(), 1e-3) << batch;
  }
  EXPECT_LE(compiled.compile_count(), 2);
}

Tensors gradients(const Tensors& all, const Ints& stride, const std::vector<bool>& mask) {
  Ints none = stride, channels{all[2].sizes()[0]};
  for (int64_t& number : none) number = 0;
  return by_name("aten::convolution_backward",
                 {Value(all[0]), Value(all[1]), Value(all[2]), Value(channels), Value(stride), Value(none),
                  Value(stride), Value(false), Value(none), Value(1), Value(mask)});
}
// What autograd gives for the same.
Tensors expected_gradients(const Tensors& all, const Ints& stride) {
  Tensor x = all[1].detach().clone().set_requires_grad(), w = all[2].detach().clone().set_requires_grad();
  Tensor bias = zeros({w.sizes()[0]}).set_requires_grad();
  Tensor result =
      x.dim() == 4 ? conv2d(x, w, bias, SymInts(stride.span())) : conv3d(x, w, bias, SymInts(stride.span()));
  result.backward(all[0]);
  return {x.grad(), w.grad(), bias.grad()};
}
void check_gradients(const Tensors& all, const Ints& stride, const std::vector<bool>& mask) {
  const Check how{.rtol = 1e-4, .atol = 1e-4};
  Tensors results = check([&](const Tensors& given) { return gradients(given, stride, mask); }, all, how);
  Tensors expected = expected_gradients(all, stride);
  ASSERT_EQ(results.size(), static_cast<size_t>(std::count(mask.begin(), mask.end(), true)));
  for (size_t at = 0; at < results.size(); ++at)
    EXPECT_TRUE(close(results[at].contiguous(), expected[at].contiguous(), how));
}

TEST(CommonTemplate, conv2d_backward_channels_last) {
  check_gradients({randn({2, 320, 8, 8}), randn({2, 2048, 8, 8}), channels_last(randn({320, 2048, 1, 1}))}, {1, 1},
                  {true, true, true});
}
TEST(CommonTemplate, conv_backward) {
  for (const std::vector<bool>& mask : {std::vector{true, true, true}, std::vector{true, false, false}})
    for (const Ints& stride : {Ints{1, 1}, Ints{1}})
      check_gradients({randn({3, 4, 3, 3}), randn({3, 4, 5, 5}), randn({4, 4, 3, 3})}, stride, mask);
  for (const std::vector<bool>& mask : {std::vector{true, true, true}, std::vector{true, false, false}})
    check_gradients({randn({3, 4, 3, 3, 3}), randn({3, 4, 5, 5, 5}), randn({4, 4, 3, 3, 3})}, {1, 1, 1}, mask);
}

// A convolution and the norm behind it, frozen: one call of the library is left.
template <typename Conv, typename Norm, typename Window>
void check_folded(const SymInts& image, const std::vector<int64_t>& groups_of) {
  for (bool bias : {true, false})
    for (int64_t kernel : {1, 3})
      for (int64_t dilation : {1, 2})
        for (int64_t groups : groups_of) {
          SCOPED_TRACE(fmt::format("bias {}, kernel {}, dilation {}, groups {}", bias, kernel, dilation, groups));
          Conv conv(3 * groups, 32 * groups, Window(kernel),
                    {.dilation = Window(dilation), .groups = groups, .bias = bias});
          Norm norm(32 * groups);
          norm.running_mean.get().copy_(randn({32 * groups}));
          norm.running_var.get().copy_(rand({32 * groups}) + 0.5);
          conv.eval();
          norm.eval();
          SymInts sizes{1, 3 * groups};
          for (const SymInt& size : image) sizes.push_back(size);
          Tensor plain = randn(sizes);
          Tensors inputs{plain};
          if (image.size() > 1) inputs.push_back(channels_last(plain));
          NoGrad off;
          Tensor expected = norm(conv(plain));
          for (const Tensor& x : inputs) {
            auto frozen = compile([conv, norm](Tensor a) { return norm(conv(a)); }, {.freeze = Freeze::On});
            EXPECT_TRUE(close(frozen(x).contiguous(), expected, {.rtol = 1e-3, .atol = 1e-3}));
            testing::Launched launched = testing::launched_by([&] { frozen(x); });
            EXPECT_EQ(launched.kernels, 0);
            EXPECT_EQ(launched.library_calls, 1);
          }
        }
}
TEST(CommonTemplate, conv_bn_fuse) {
  check_folded<nn::Conv1d, nn::BatchNorm1d, int64_t>({112}, {1, 4});
  check_folded<nn::Conv2d, nn::BatchNorm2d, nn::Pair>({112, 112}, {1, 4});
  check_folded<nn::Conv3d, nn::BatchNorm3d, nn::Triple>({55, 55, 55}, {1, 4});
}

// Versions of the running statistics grow as in eager: by one each.
TEST(CommonTemplate, buffer_batch_norm) {
  auto grown = [](bool compiled) {
    nn::BatchNorm1d norm(100);
    Tensors buffers{norm.running_mean.get(), norm.running_var.get(), norm.num_batches_tracked.get()};
    std::vector<int64_t> before, after;
    for (const Tensor& buffer : buffers) before.push_back(buffer.version());
    Tensor x = ones({20, 100}).set_requires_grad();
    Tensor result = compiled ? compile([norm](Tensor a) { return norm(a); })(x) : norm(x);
    result.sum().backward();
    for (size_t at = 0; at < buffers.size(); ++at) after.push_back(buffers[at].version() - before[at]);
    EXPECT_EQ(buffers[2].item<int64_t>(), 1);
    EXPECT_NEAR(buffers[0][7].item<double>(), 0.1, 1e-6);
    EXPECT_NEAR(buffers[1][7].item<double>(), 0.9, 1e-6);
    return after;
  };
  EXPECT_EQ(grown(true), grown(false));
}

// Bits.
Tensor as(const Tensor& x, Dtype dtype) { return testing::bits_as(x, dtype); }

TEST(CommonTemplate, views7) {
  Tensor x = randn({2, 3}), y = randint(1000000000, {2, 3}, kInt32);
  Tensors results =
      check([](Tensor a, Tensor b) { return std::tuple(as(a + 1, kInt32), as(b + 1, kFloat32)); }, {x, y});
  for (int64_t row : {0, 1})
    for (int64_t column : {0, 1, 2}) {
      EXPECT_EQ(results[0][row][column].item<int64_t>(),
                std::bit_cast<int32_t>(static_cast<float>((x + 1)[row][column].item<double>())));
      EXPECT_EQ(static_cast<float>(results[1][row][column].item<double>()),
                std::bit_cast<float>(static_cast<int32_t>(y[row][column].item<int64_t>() + 1)));
    }
}
TEST(CommonTemplate, float16_to_int16) {
  Tensor result = check([](Tensor x) { return as(x, kInt16) * 2; }, {ones({4}, kFloat16)})[0];
  EXPECT_EQ(result.description(), "int16[4]");
  EXPECT_EQ(result[0].item<int64_t>(), 0x3c00 * 2);
}
// One and one is a number of bfloat16, so is 1 + 1/256 not: it is rounded before its bits are looked at.
TEST(CommonTemplate, bfloat16_to_int16) {
  auto function = [](Tensor a, Tensor b) { return as(a + b, kInt16) * 2; };
  Tensor one = ones({4}, kBFloat16);
  EXPECT_EQ(check(function, {one, one})[0][3].item<int64_t>(), static_cast<int16_t>(0x4000 * 2));
  EXPECT_EQ(check(function, {one, one / 512})[0][3].item<int64_t>(), 0x3f80 * 2);
}
TEST(CommonTemplate, float32_to_int32) {
  Tensor result = check([](Tensor a, Tensor b) { return as(a + b, kInt32) * 2; }, {ones({4}), ones({4})})[0];
  EXPECT_EQ(result.description(), "int32[4]");
  EXPECT_EQ(result[1].item<int64_t>(), static_cast<int32_t>(uint32_t{0x40000000} * 2));
}
TEST(CommonTemplate, view_uint8_through_differing_bitwidths) {
  Tensor x = randint(256, {4096, 4096}, kUInt8);
  for (Dtype dtype : {kInt16, kInt32, kInt64}) {
    Tensors results = check([dtype](Tensor a) { return std::tuple(as(a, dtype), as(as(a, dtype), kUInt8)); }, {x});
    EXPECT_EQ(results[0].sizes()[1], 4096 / size_of(dtype));
    EXPECT_TRUE(same_bits(results[1], x));
  }
}

}  // namespace
}  // namespace tenon::operators
