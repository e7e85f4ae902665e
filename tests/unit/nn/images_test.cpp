// Inputs in other sizes, and read at places: by closed forms, eager and compiled.
#include "unit/capture/testing.h"

#include <gmock/gmock.h>

namespace tenon {
namespace {

using testing::difference;
using testing::error_of;
using ::testing::HasSubstr;

// [N, 1, …], each element the sum of its places along the dimensions behind the channels.
Tensor ramp(const Ints& sizes) {
  Tensor made = zeros(SymInts(sizes.size() + 2, SymInt(1)), kFloat64);
  for (size_t at = 0; at < sizes.size(); ++at) {
    SymInts shape(sizes.size() + 2, SymInt(1));
    shape[at + 2] = sizes[at];
    made = made + arange(sizes[at]).to(kFloat64).view(shape);
  }
  return made;
}

// Between aligned corners a linear function stays one.
TEST(Interpolate, LinearModesKeepLinearFunctions) {
  const std::pair<Interpolation, Ints> kCases[] = {
      {Interpolation::Linear, {5}}, {Interpolation::Bilinear, {5, 3}}, {Interpolation::Trilinear, {5, 3, 2}}};
  for (const auto& [mode, sizes] : kCases) {
    SymInts larger;
    for (int64_t size : sizes) larger.push_back(2 * size - 1);
    Ints fine(sizes);
    for (int64_t& size : fine) size = 2 * size - 1;
    Tensor found = interpolate(ramp(sizes), {.size = larger, .mode = mode, .align_corners = true});
    EXPECT_LT(difference(found, ramp(fine) / 2), 1e-12) << name(mode);
  }
}

TEST(Interpolate, EachModeHasItsPlaces) {
  Tensor row = arange(4).to(kFloat64).view({1, 1, 4});
  auto to = [&](int64_t size, Interpolation mode) { return interpolate(row, {.size = SymInts{size}, .mode = mode}); };
  auto is = [](const Tensor& found, const std::vector<double>& expected) {
    EXPECT_LT(difference(found.flatten(), tensor(expected, kFloat64)), 1e-12) << found.str();
  };
  is(to(2, Interpolation::Area), {0.5, 2.5});
  is(to(3, Interpolation::Nearest), {0, 1, 2});
  is(to(3, Interpolation::NearestExact), {0, 2, 3});
  is(to(2, Interpolation::Linear), {0.5, 2.5});
  // A cubic goes through what is there, and is a constant where that is one.
  Tensor image = row.view({1, 1, 2, 2});
  is(interpolate(image, {.size = SymInts{2, 2}, .mode = Interpolation::Bicubic}), {0, 1, 2, 3});
  is(interpolate(ones({1, 1, 3, 3}, kFloat64),
                 {.scale_factor = std::vector<double>{2}, .mode = Interpolation::Bicubic}),
     std::vector<double>(36, 1));
  // Smoothed, an image that becomes smaller loses what is finer than its elements.
  Tensor stripes = arange(8).remainder(2).to(kFloat64).view({1, 1, 1, 8}).expand({1, 1, 2, 8});
  Tensor smooth = interpolate(stripes, {.size = SymInts{2, 2}, .mode = Interpolation::Bilinear, .antialias = true});
  EXPECT_LT(difference(smooth, full({1, 1, 2, 2}, 0.5, kFloat64)), 0.1) << smooth.str();
}

TEST(Interpolate, SaysWhatIsWrong) {
  Tensor row = ones({1, 1, 4});
  EXPECT_THAT(error_of([&] { interpolate(row, {.size = SymInts{2}, .mode = Interpolation::Bilinear}); }),
              HasSubstr("expected an input of 4 dimensions for the mode bilinear, got float32[1, 1, 4]"));
  EXPECT_THAT(error_of([&] { interpolate(row, {}); }), HasSubstr("either a size or a scale_factor"));
  EXPECT_THAT(error_of([&] { interpolate(row, {.size = SymInts{2}, .align_corners = true}); }),
              HasSubstr("not for nearest"));
  EXPECT_THAT(error_of([&] { interpolate(row, {.size = SymInts{2, 2}}); }), HasSubstr("expected 1 or 1 numbers"));
  EXPECT_THAT(error_of([&] { interpolate(ones({2, 2}), {.size = SymInts{2}}); }), HasSubstr("got float32[2, 2]"));
}

TEST(GridSample, ReadsThroughAffineMaps) {
  Tensor image = ramp({4, 5}), volume = ramp({3, 4, 5});
  Tensor same = eye(2, 3, TensorOptions(kFloat64)).unsqueeze(0),
         still = eye(3, 4, TensorOptions(kFloat64)).unsqueeze(0);
  Tensor mirrored = same * tensor(std::vector<double>{-1, 1}, kFloat64).view({1, 2, 1});
  for (bool aligned : {false, true})
    for (Interpolation mode : {Interpolation::Bilinear, Interpolation::Nearest, Interpolation::Bicubic}) {
      GridSampleOptions options{.mode = mode, .padding = GridPadding::Border, .align_corners = aligned};
      auto read = [&](const Tensor& from, const Tensor& theta) {
        return grid_sample(from, affine_grid(theta, from.sym_sizes(), aligned), options);
      };
      EXPECT_LT(difference(read(image, same), image), 1e-12) << name(mode) << aligned;
      EXPECT_LT(difference(read(image, mirrored), image.flip({3})), 1e-12) << name(mode) << aligned;
      if (mode == Interpolation::Bicubic) continue;
      EXPECT_LT(difference(read(volume, still), volume), 1e-12) << name(mode);
    }
  // Half an element to the right of the last column there is nothing.
  Tensor edge = full({1, 1, 1, 2}, 0.0, kFloat64);
  edge.select(3, 0).fill_(1);
  EXPECT_DOUBLE_EQ(grid_sample(image, edge).item<double>(), (4 + 4 + 1 + 2) / 4.0);
}

TEST(GridSample, SaysWhatIsWrong) {
  EXPECT_THAT(error_of([] { grid_sample(ones({1, 1, 4}), ones({1, 2, 1})); }), HasSubstr("got float32[1, 1, 4] and"));
  EXPECT_THAT(error_of([] { grid_sample(ones({1, 1, 2, 2}), ones({1, 1, 1, 2}), {.mode = Interpolation::Area}); }),
              HasSubstr("expected the mode Bilinear, Nearest or Bicubic, got area"));
  EXPECT_THAT(error_of([] { affine_grid(ones({1, 2, 2}), {1, 1, 2, 2}); }),
              HasSubstr("expected floating point maps [1, 2, 3]"));
}

TEST(GridSample, CompiledIsEagerWithOtherSizes) {
  auto warp = [](Tensor image, Tensor theta) {
    Tensor grid = affine_grid(theta, {image.size(0), image.size(1), image.size(2) * 2, image.size(3)});
    Tensor read = grid_sample(image, grid, {.padding = GridPadding::Reflection});
    return interpolate(read, {.scale_factor = std::vector<double>{0.5}, .mode = Interpolation::Area});
  };
  auto compiled = compile(warp, {.fullgraph = true, .dynamic = Dynamic::On});
  for (int64_t size : {4, 6, 9}) {
    manual_seed(static_cast<uint64_t>(size));
    Tensor image = rand({2, 3, size, size + 1}), theta = rand({2, 2, 3}).set_requires_grad();
    Tensor expected = warp(image, theta), found = compiled(image, theta);
    EXPECT_LT(difference(found.detach(), expected.detach()), 1e-5) << size;
    Tensor wanted = autograd::grad({expected.sum()}, {theta})[0], got = autograd::grad({found.sum()}, {theta})[0];
    EXPECT_LT(difference(got, wanted), 1e-2) << size;
  }
  EXPECT_EQ(compiled.compile_count(), 1);
}

}  // namespace
}  // namespace tenon
