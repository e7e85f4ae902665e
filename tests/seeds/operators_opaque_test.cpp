// Seed 000's operator cases: operators that the compiler cannot look into, and tensors beyond 2³¹ elements.
#include "operators.h"

#include <tenon/dispatch/packet.h>
#include <tenon/library/custom_op.h>
#include <tenon/library/define.h>

#include <cmath>
#include <fstream>

namespace tenon::operators {
namespace {

using library::custom_op;

// A function of every element, computed here and not by an operator.
template <typename F>
Tensor each(const Tensor& x, F function) {
  Tensor from = x.contiguous(), to = empty_like(from);
  for (int64_t at = 0; at < from.numel().plain(); ++at) to.data<float>()[at] = function(from.data<float>()[at]);
  return to;
}
Tensor triple(const Tensor& x) {
  return each(x, [](float v) { return 3 * v; });
}
std::tuple<Tensor, Tensor> scaled_and_cosine(const Tensor& x, double scale) {
  return {each(x, [=](float v) { return static_cast<float>(scale) * v; }),
          each(x, [](float v) { return std::cos(v); })};
}
Tensor sum_of_list(const std::vector<Tensor>& list) {
  Tensor total = list.at(0).clone();
  for (size_t i = 1; i < list.size(); ++i)
    for (int64_t at = 0; at < total.numel().plain(); ++at)
      total.data<float>()[at] += list[i].contiguous().data<float>()[at];
  return total;
}

TEST(CommonTemplate, custom_op_1) {
  auto foo = custom_op("_operator_cases::foo", triple, {.names = "x"});
  foo.register_fake([](const Tensor& x) { return empty_like(x); });
  check([&](Tensor x) { return foo(relu(x)).cos(); }, {randn({16, 32})}, {.backward = false});
}
TEST(CommonTemplate, custom_op_2) {
  auto foo = custom_op("_operator_cases::foo2", scaled_and_cosine, {.names = "x, scale"});
  foo.register_fake([](const Tensor& x, double) { return std::tuple(empty_like(x), empty_like(x)); });
  check([&](Tensor x) { return foo(relu(x), 2.0); }, {randn({16, 32})}, {.backward = false});
}
TEST(CommonTemplate, custom_op_3) {
  auto foo = custom_op("_operator_cases::foo3", sum_of_list, {.names = "list"});
  foo.register_fake([](const std::vector<Tensor>& list) { return empty_like(list.at(0)); });
  check([&](Tensor a, Tensor b, Tensor c) { return foo(std::vector<Tensor>{a, b, c}); },
        {randn({16, 32}), randn({16, 32}), randn({16, 32})}, {.backward = false});
}

// a += b[0] * c * e; d += b[1], if there is one.
void write_both(const Tensor& a, const std::vector<Tensor>& b, int64_t c, const std::optional<Tensor>& d, int64_t e) {
  auto add = [](const Tensor& to, const Tensor& from, double factor) {
    for (int64_t at = 0; at < to.numel().plain(); ++at)
      to.data<float>()[at] += static_cast<float>(factor) * from.data<float>()[at];
  };
  add(a, b.at(0), static_cast<double>(c * e));
  if (d) add(*d, b.at(1), 1);
}
using dispatch::KernelKey;
using dispatch::Library;
using dispatch::Value;

// Runs `name(a, [b0, b1], 2, d=d)` on copies of `a` and `d`, which are then copied back.
dispatch::Results write_copies(const char* name, const Tensor& a, const Tensor& b0, const Tensor& b1, const Tensor& d) {
  Tensor mine = a.clone(), other = d.clone();
  dispatch::Results results =
      dispatch::call_by_name(name, {Value(mine), Value(std::vector<Tensor>{b0, b1}), Value(2)}, {{"d", Value(other)}});
  a.copy_(mine);
  d.copy_(other);
  return results;
}
Tensors written() {
  return {tensor({0.0, 1.0, 2.0}), tensor({2.0, 3.0, 5.0}), tensor({1.0, 4.0, 6.0}), tensor({2.0, 1.0, 0.0})};
}
TEST(CommonTemplate, fallback_mutable_op_basic) {
  Library lib("_operator_cases");
  lib.def("inplace_(Tensor(a!) a, Tensor[] b, SymInt c, *, Tensor(b!)? d, SymInt e=2) -> ()");
  lib.impl("inplace_", write_both, KernelKey::CPU);
  library::register_fake(
      "_operator_cases::inplace_",
      [](const Tensor&, const std::vector<Tensor>&, const SymInt&, const std::optional<Tensor>&, const SymInt&) {},
      &lib);
  check(
      [](Tensor a, Tensor b0, Tensor b1, Tensor d) {
        write_copies("_operator_cases::inplace_", a, b0, b1, d);
        return Tensors{};
      },
      written());
  Tensors eager = written();
  write_copies("_operator_cases::inplace_", eager[0], eager[1], eager[2], eager[3]);
  EXPECT_TRUE(same_bits(eager[0], tensor({8.0, 13.0, 22.0})));
  EXPECT_TRUE(same_bits(eager[3], tensor({3.0, 5.0, 6.0})));
}
TEST(CommonTemplate, fallback_mutable_op_with_return) {
  Library lib("_operator_cases");
  lib.def("inplace_sum_(Tensor(a!) a, Tensor[] b, SymInt c, *, Tensor(b!)? d, SymInt e=2) -> Tensor");
  lib.impl(
      "inplace_sum_",
      [](const Tensor& a, const std::vector<Tensor>& b, int64_t c, const std::optional<Tensor>& d, int64_t e) {
        write_both(a, b, c, d, e);
        return sum_of_list(b);
      },
      KernelKey::CPU);
  library::register_fake(
      "_operator_cases::inplace_sum_",
      [](const Tensor&, const std::vector<Tensor>& b, const SymInt&, const std::optional<Tensor>&, const SymInt&) {
        return empty_like(b.at(0));
      },
      &lib);
  Tensors results =
      check([](Tensor a, Tensor b0, Tensor b1,
               Tensor d) { return write_copies("_operator_cases::inplace_sum_", a, b0, b1, d)[0].tensor(); },
            written());
  EXPECT_TRUE(same_bits(results[0], tensor({3.0, 7.0, 11.0})));
}
TEST(CommonTemplate, fallback_mutable_op_no_mutated_tensors) {
  Library lib("_operator_cases");
  lib.def("maybe_(Tensor a, Tensor(b!)? b) -> ()");
  lib.impl(
      "maybe_",
      [](const Tensor& a, const std::optional<Tensor>& b) {
        if (b) b->add_(a);
      },
      KernelKey::CPU);
  library::register_fake("_operator_cases::maybe_", [](const Tensor&, const std::optional<Tensor>&) {}, &lib);
  check(
      [](Tensor a) {
        dispatch::call_by_name("_operator_cases::maybe_", {Value(a), Value()});
        return Tensors{};
      },
      {tensor({0.0, 1.0, 2.0})});
}

// Of the list only what it holds is written.
TEST(CommonTemplate, fallback_mutable_op_list) {
  Library lib("_operator_cases");
  lib.def("inplace_list_(Tensor a, Tensor(b!)[] b) -> ()");
  lib.impl(
      "inplace_list_",
      [](const Tensor& a, const std::vector<Tensor>& b) {
        for (const Tensor& each : b) each.add_(a);
      },
      KernelKey::CPU);
  library::register_fake("_operator_cases::inplace_list_", [](const Tensor&, const std::vector<Tensor>&) {}, &lib);
  auto add_to_both = [](Tensor a, Tensor b0, Tensor b1) {
    dispatch::call_by_name("_operator_cases::inplace_list_", {Value(a), Value(std::vector<Tensor>{b0, b1})});
    return Tensors{};
  };
  Tensors eager = written();
  add_to_both(eager[0], eager[1], eager[2]);
  EXPECT_TRUE(same_bits(eager[1], tensor({2.0, 4.0, 7.0})));
  check(add_to_both, {written()[0], written()[1], written()[2]});

  lib.def("sin_out(Tensor x, Tensor(a!)[] outs) -> ()");
  lib.impl(
      "sin_out",
      [](const Tensor& x, const std::vector<Tensor>& outs) {
        for (const Tensor& out : outs)
          for (int64_t at = 0; at < x.numel().plain(); ++at) out.data<float>()[at] = std::sin(x.data<float>()[at]);
      },
      KernelKey::CPU);
  library::register_fake("_operator_cases::sin_out", [](const Tensor&, const std::vector<Tensor>&) {}, &lib);
  Tensor x = randn({3});
  Tensors results = check(
      [](Tensor given) {
        Tensors outs = {empty_like(given), empty_like(given)};
        dispatch::call_by_name("_operator_cases::sin_out", {Value(given), Value(outs)});
        return outs;
      },
      {x}, {.backward = false});
  for (const Tensor& each : results) EXPECT_TRUE(close(each, sin(x), {}));
}

// Means of boxes of images, by the places between their pixels, as an operator of somebody else's. Each of `bins` by
// `bins` parts of a box is the mean of `ratio` by `ratio` places.
Tensor means_of_boxes(const Tensor& images, const Tensor& boxes, double scale, int64_t bins, int64_t ratio) {
  const int64_t channels = images.sizes()[1], rows = images.sizes()[2], columns = images.sizes()[3];
  const int64_t count = boxes.sizes()[0], plane = rows * columns;
  Tensor means = empty({count, channels, bins, bins});
  auto place = [](double at, int64_t size) {  // the pixel before it, and how far behind that it is
    const double inside = std::clamp(at, 0.0, static_cast<double>(size - 1));
    const auto before = std::min(static_cast<int64_t>(inside), std::max<int64_t>(0, size - 2));
    return std::pair(before, static_cast<float>(inside - static_cast<double>(before)));
  };
  for (int64_t box = 0; box < count; ++box) {
    const float* corner = boxes.data<float>() + box * 5;
    const double left = corner[1] * scale, top = corner[2] * scale;
    const double width = std::max(corner[3] * scale - left, 1.0), height = std::max(corner[4] * scale - top, 1.0);
    const float* image = images.data<float>() + static_cast<int64_t>(corner[0]) * channels * plane;
    float* to = means.data<float>() + box * channels * bins * bins;
    const double step = 1.0 / static_cast<double>(bins * ratio);
    for (int64_t bin = 0; bin < bins * bins; ++bin)
      for (int64_t channel = 0; channel < channels; ++channel) {
        const float* from = image + channel * plane;
        float total = 0;
        for (int64_t part = 0; part < ratio * ratio; ++part) {
          const double i = static_cast<double>(bin / bins * ratio + part / ratio) + 0.5,
                       j = static_cast<double>(bin % bins * ratio + part % ratio) + 0.5;
          const auto [row, below] = place(top + i * step * height, rows);
          const auto [column, right] = place(left + j * step * width, columns);
          const float* at = from + row * columns + column;
          total += (1 - below) * ((1 - right) * at[0] + right * at[1]) +
                   below * ((1 - right) * at[columns] + right * at[columns + 1]);
        }
        to[channel * bins * bins + bin] = total / static_cast<float>(ratio * ratio);
      }
  }
  return means;
}
TEST(CommonTemplate, roi_align) {
  Library lib("_operator_cases");
  lib.def(
      "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int "
      "sampling_ratio, bool aligned) -> Tensor");
  lib.impl(
      "roi_align",
      [](const Tensor& images, const Tensor& boxes, double scale, int64_t bins, int64_t, int64_t ratio, bool) {
        return means_of_boxes(images, boxes, scale, bins, ratio);
      },
      KernelKey::CPU);
  library::register_fake(
      "_operator_cases::roi_align",
      [](const Tensor& images, const Tensor& boxes, double, const SymInt& rows, const SymInt& columns, int64_t, bool) {
        return images.new_empty({boxes.size(0), images.size(1), rows, columns});
      },
      &lib);
  auto function = [](Tensor images, Tensor boxes) {
    return by_name("_operator_cases::roi_align",
                   {Value(images), Value(boxes), Value(0.25), Value(7), Value(7), Value(2), Value(false)});
  };
  // Pixels that count from 0 on: the mean of a part is what stands in its middle.
  Tensor ramp = arange(64, kFloat32).view({1, 1, 8, 8}), box = tensor({0.0, 4.0, 8.0, 18.0, 22.0}).view({1, 5});
  Tensor middle = check(function, {ramp, box}, {.backward = false})[0];
  EXPECT_NEAR(middle[0][0][3][3].item<double>(), 3.75 * 8 + 2.75, 1e-4);
  Tensor result = check(function, {zeros({4, 256, 296, 304}), zeros({2292, 5})}, {.backward = false})[0];
  EXPECT_EQ(result.description(), "float32[2292, 256, 7, 7]");
  EXPECT_FALSE(result.any().item<bool>());
}

// Elements that need 64-bit places. Where there is not enough memory, nothing can be said. (The thread sanitizer keeps
// up to four bytes about each that it sees.)
bool room_for(int64_t gibibytes) {
#ifdef __SANITIZE_THREAD__
  gibibytes *= 5;
#endif
  std::ifstream memory("/proc/meminfo");
  for (std::string line; std::getline(memory, line);)
    if (line.starts_with("MemAvailable:")) return std::stoll(line.substr(13)) >> 20 >= gibibytes;
  return false;
}
constexpr int64_t kMany = (int64_t{1} << 31) + 1;

TEST(CommonTemplate, large_pointwise) {
  if (!room_for(12)) GTEST_SKIP() << "needs 12 GiB";
  auto f = compile([](Tensor a) { return a + 1; });
  Tensor result = f(ones({kMany}, kInt8));
  EXPECT_EQ(result.numel().plain(), kMany);
  EXPECT_TRUE((result == 2).all().item<bool>());
}
TEST(CommonTemplate, large_offset_pointwise) {
  if (!room_for(12)) GTEST_SKIP() << "needs 12 GiB";
  auto f = compile([](Tensor a) { return a + 4; });
  Tensor t = ones({kMany}, kInt8);
  t.slice(0, int64_t{1} << 30).fill_(0);
  Tensor result = f(t.slice(0, int64_t{1} << 30));
  EXPECT_TRUE((result == 4).all().item<bool>());
}
TEST(CommonTemplate, large_strided_reduction) {
  if (!room_for(12)) GTEST_SKIP() << "needs 12 GiB";
  auto f = compile([](Tensor a) { return a.max(); });
  Tensor storage = ones({kMany}, kInt8), view = storage.slice(0, {}, {}, 32);
  view[-1] = 2;
  EXPECT_EQ(f(view).item<int64_t>(), 2);
}
TEST(CommonTemplate, large_grid) {
  if (!room_for(12)) GTEST_SKIP() << "needs 12 GiB";
  auto f = compile([](Tensor x) { return x.reshape({-1, 2, 4}).permute({0, 2, 1}).contiguous(); });
  EXPECT_TRUE((f(ones({16777472, 8})) == 1).all().item<bool>());
}

}  // namespace
}  // namespace tenon::operators
