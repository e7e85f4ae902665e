// Floats of 8 bits are moved and converted by kernels, eager, compiled and interpreted, and computed with by none.
#include <tenon/core/dlpack.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <filesystem>

#include "bits_as.h"

namespace tenon {
namespace {

using testing::bits_as;

constexpr Dtype kDtypes[] = {kFloat8E4M3FN, kFloat8E5M2};

std::string short_name(Dtype dtype) { return std::string(name(dtype)).substr(std::string("float8_").size()); }

// Written by PyTorch: tools/reference/peer_float8.py.
Tensor table(const std::string& name) {
  static const io::NamedTensors all = io::load_npz(std::string(TENON_SOURCE_DIR) + "/tests/data/float8.npz");
  for (const auto& [each, tensor] : all)
    if (each == name) return tensor;
  fail("no '{}' in float8.npz", name);
}

Tensor every_pattern(Dtype dtype) { return bits_as(arange(256, TensorOptions(kInt32)).to(kUInt8), dtype); }

void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  ASSERT_EQ(got.numel().plain(), expected.numel().plain()) << what;
  if (got.dtype() == kFloat32) {
    EXPECT_TRUE(got.allclose(expected, 0, 0, true)) << what;
    return;
  }
  EXPECT_EQ((got != expected).sum().item().to_int(), 0) << what;
}

// A conversion, eager and compiled; a kernel of both by the interpreter (TENON_ORACLE) is among the runs of this test.
void expect_converted(const Tensor& given, Dtype to, const Tensor& expected, const std::string& what) {
  auto bits = [](const Tensor& tensor) { return is_float8(tensor.dtype()) ? bits_as(tensor, kUInt8) : tensor; };
  expect_same(bits(given.to(to)), expected, what);
  auto compiled = compile([to](Tensor x) { return x.to(to); });
  expect_same(bits(compiled(given)), expected, what + ", compiled");
  // As the first of two operators, and not along memory.
  auto strided = compile([to](Tensor x) { return x.view({2, -1}).t().to(to).contiguous(); });
  Tensor even = given.narrow(0, 0, given.numel().plain() / 2 * 2), known = expected.narrow(0, 0, even.numel().plain());
  expect_same(bits(strided(even)), known.view({2, -1}).t().contiguous(), what + ", transposed");
}

TEST(Float8Kernels, convert_as_pytorch_does) {
  for (Dtype dtype : kDtypes) {
    const std::string format = short_name(dtype);
    expect_converted(every_pattern(dtype), kFloat32, table(format + " values"), format);
    Tensor halves = arange(65536, TensorOptions(kInt32)).to(kInt16);
    expect_converted(bits_as(halves, kFloat16), dtype, table(format + " from float16"), format + " from float16");
    expect_converted(bits_as(halves, kBFloat16), dtype, table(format + " from bfloat16"), format + " from bfloat16");
    Tensor floats = table(format + " from float32, given"), bits = table(format + " from float32");
    expect_converted(floats, dtype, bits, format + " from float32");
    expect_converted(floats.to(kFloat64), dtype, bits, format + " from float64");
    expect_converted(every_pattern(dtype), kBool, table(format + " to bool"), format + " to bool");
    for (Dtype integers : {kUInt8, kInt8, kInt16, kInt32, kInt64}) {
      const std::string name(tenon::name(integers));
      expect_converted(table(format + " from " + name + ", given"), dtype, table(format + " from " + name), name);
      Tensor patterns = table(format + " to " + name + ", given");
      expect_converted(bits_as(patterns, dtype), integers, table(format + " to " + name), format + " to " + name);
    }
  }
}

TEST(Float8Kernels, widen_to_every_float_exactly) {
  for (Dtype dtype : kDtypes)
    for (Dtype wide : {kFloat16, kBFloat16, kFloat64}) {
      Tensor values = every_pattern(dtype).to(wide);
      EXPECT_TRUE(values.to(kFloat32).allclose(table(short_name(dtype) + " values"), 0, 0, true)) << name(wide);
    }
  // From one to the other, by way of no third.
  Tensor from = every_pattern(kFloat8E5M2);
  expect_converted(from, kFloat8E4M3FN, bits_as(from.to(kFloat32).to(kFloat8E4M3FN), kUInt8), "e5m2 to e4m3fn");
}

// Values that are rounded in the midst of a kernel are rounded as if they had been stored.
TEST(Float8Kernels, round_between_operators) {
  Tensor x = randn({300}) * 100;
  for (Dtype dtype : kDtypes) {
    auto function = [dtype](Tensor a) { return (a * 3).to(dtype).to(kFloat32) + 1; };
    EXPECT_TRUE(compile(function)(x).equal(function(x)));
    EXPECT_FALSE(function(x).equal(x * 3 + 1));
  }
}

TEST(Float8Kernels, are_made_moved_and_seen) {
  for (Dtype dtype : kDtypes) {
    EXPECT_EQ(zeros({2, 3}, dtype).dtype(), dtype);
    EXPECT_EQ(full({2}, 0.3, TensorOptions(dtype)).to(kFloat32)[1].item().to_double(), 0.3125);
    Tensor x = tensor({1.0, -2.0, 0.5, 448.0, 1e9, 3.0}, dtype).view({2, 3}), wide = x.to(kFloat32);
    EXPECT_EQ(x[0][1].item().to_double(), -2);
    Tensor places = tensor({1, 0, 2, 0, 1, 1}).view({2, 3});
    auto moved = [&](const Tensor& a) {
      return std::vector<Tensor>{a.t().contiguous(),
                                 cat({a, a}, 1),
                                 a.flip({1}),
                                 a.index_select(1, places[0]),
                                 a.gather(1, places),
                                 a.masked_fill(places == 1, 2),
                                 a.tril(),
                                 a.repeat({2, 1}),
                                 where(places == 1, a, a.clone())};
    };
    std::vector<Tensor> narrow = moved(x), expected = moved(wide);
    std::vector<Tensor> compiled = compile(moved)(x);
    for (size_t at = 0; at < narrow.size(); ++at) {
      EXPECT_EQ(narrow[at].dtype(), dtype);
      EXPECT_TRUE(narrow[at].to(kFloat32).allclose(expected[at], 0, 0, true)) << at;
      EXPECT_TRUE(bits_as(compiled[at], kUInt8).equal(bits_as(narrow[at], kUInt8))) << at;
    }
    Tensor written = zeros({2, 3}, dtype);
    written.copy_(places);
    EXPECT_TRUE(written.to(kInt64).equal(places));
    written.fill_(-1.5);
    EXPECT_EQ(written[1][1].item().to_double(), -1.5);
    EXPECT_EQ(bits_as(written, kUInt8).dtype(), kUInt8);
  }
  EXPECT_EQ(tensor({1.0, -0.25}, kFloat8E5M2).str(), "tensor([ 1.0000, -0.2500], dtype=float8_e5m2)");
}

template <typename F>
std::string error_of(const F& call) {
  try {
    call();
  } catch (const NotImplementedError& error) {
    return error.what();
  }
  return "no NotImplementedError";
}

TEST(Float8Kernels, nothing_is_computed_with_them) {
  Tensor x = zeros({2, 2}, kFloat8E4M3FN), i = zeros({2}, kInt64);
  auto text = [](const std::string& op) {
    return "[" + op + "] is not computed with floats of 8 bits, got float8_e4m3fn[2, 2]: convert first, to(kFloat32)";
  };
  EXPECT_EQ(error_of([&] { x + 1; }), text("add"));
  EXPECT_EQ(error_of([&] { x + zeros({2, 2}); }), text("add"));
  EXPECT_EQ(error_of([&] { x == x; }), text("eq"));
  EXPECT_EQ(error_of([&] { x.sum(); }), text("sum"));
  EXPECT_EQ(error_of([&] { mm(x, x); }), text("mm"));
  EXPECT_EQ(error_of([&] { sort(x); }), text("sort"));
  EXPECT_EQ(error_of([&] { nonzero(x); }), text("nonzero"));
  EXPECT_EQ(error_of([&] { compile([](Tensor a) { return a.sin(); })(x); }), text("sin"));
  EXPECT_EQ(error_of([&] { rand({2}, kFloat8E5M2); }),
            "[rand] is not computed with floats of 8 bits, got dtype float8_e5m2: convert first, to(kFloat32)");
}

TEST(Float8Kernels, gradients_pass_conversions) {
  Tensor x = randn({5}).set_requires_grad();
  auto function = [](Tensor a) { return a.to(kFloat8E5M2).to(kFloat32).sum(); };
  function(x).backward();
  EXPECT_TRUE(x.grad().equal(ones({5})));
}

TEST(Float8Kernels, travel_by_file_and_by_dlpack) {
  const std::string path = (std::filesystem::temp_directory_path() / "tenon_float8.safetensors").string();
  for (Dtype dtype : kDtypes) {
    Tensor x = every_pattern(dtype);
    io::save_safetensors(path, {{"x", x}});
    Tensor read = io::load_safetensors(path).tensors[0].second;
    EXPECT_EQ(read.dtype(), dtype);
    EXPECT_TRUE(bits_as(read, kUInt8).equal(bits_as(x, kUInt8)));
    Tensor lent = from_dlpack(to_dlpack(x));
    EXPECT_EQ(lent.dtype(), dtype);
    EXPECT_EQ(lent.raw_data(), x.raw_data());
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon
