// Arguments of operators over images, their gradients, and writes that are combined: by name and overload.
#include "ops/sample_maker.h"

#include <tenon/generated/ops.h>

namespace tenon::test {
namespace {

// Two planes or three of two dimensions, or of three; small, where the interpreter walks through all windows.
Ints image(const Maker& m, size_t dims) {
  Ints shape = m.even() ? Ints{2, 2} : Ints{3};
  for (size_t dim = 0; dim < dims; ++dim)
    shape.push_back(dims == 3 ? 4 : std::max<int64_t>(3, std::min<int64_t>(9, m.size(dim, 4))));
  if (dims == 2) shape.back() += 3;  // or one size would happen to be the number of windows along the other
  return shape;
}

Ints all(size_t dims, int64_t number) { return Ints(std::vector<int64_t>(dims, number)); }

// Windows of 3, every second, beside one element of padding.
Overrides sliding_rule(size_t dims) {
  return {{"kernel_size", all(dims, 3)}, {"stride", all(dims, 2)}, {"padding", all(dims, 1)}};
}
Ints slid(Ints shape, size_t dims) {
  for (size_t dim = shape.size() - dims; dim < shape.size(); ++dim) shape[dim] = (shape[dim] + 2 - 3) / 2 + 1;
  return shape;
}

Overrides largest_backward(Maker& m, const Ints& shape, const Ints& small, size_t dims) {
  int64_t plane = 1;
  for (size_t dim = shape.size() - dims; dim < shape.size(); ++dim) plane *= shape[dim];
  return {{"grad_output", m.tensor(small)}, {"self", m.tensor(shape)}, {"indices", m.indices(small, plane)}};
}

Overrides averages_rule(Maker& m, size_t dims) {
  Overrides rule = sliding_rule(dims);
  Ints shape = image(m, dims);
  rule.insert({{"self", m.tensor(shape)},
               {"grad_output", m.tensor(slid(shape, dims))},
               {"input_size", shape},
               {"ceil_mode", false},
               {"count_include_pad", m.even()},
               {"divisor_override", m.recipe.variant % 3 == 2 ? Value(int64_t{5}) : Value()}});
  return rule;
}

// Numbers of [0, 1).
Tensor fractions(Maker& m, const Ints& shape) {
  Tensor made = m.numbers(shape, [](int64_t) { return 0; }, m.recipe.dtype);
  if (!is_floating(m.recipe.dtype)) return made;
  for (int64_t at = 0; at < made.numel().plain(); ++at)
    loop::store_element(made.raw_data(), made.dtype(), at, loop::Number::of(static_cast<double>(at * 7 % 16) / 16));
  return made;
}

Overrides fractional_rule(Maker& m) {
  Ints shape = image(m, 2);
  shape[shape.size() - 2] += 1;
  Ints planes = m.even() ? Ints{2, 2, 2} : Ints{1, 3, 2};
  return {{"self", m.tensor(shape)},
          {"kernel_size", Ints{2, 1}},
          {"output_size", Ints{2, 3}},
          {"random_samples", fractions(m, planes)}};
}

// Of `dims` dimensions, to sizes or by factors, forward and backward.
Overrides resampling_rule(Maker& m, size_t dims) {
  Ints shape{2, 2}, sizes;
  for (size_t dim = 0; dim < dims; ++dim) {
    shape.push_back(dims == 3 ? 3 : std::max<int64_t>(2, std::min<int64_t>(9, m.size(dim, 4))));
    sizes.push_back(dim == 0 ? 5 : 4);
  }
  Ints result{2, 2};
  for (int64_t size : sizes) result.push_back(size);
  return {{"self", m.tensor(shape)}, {"input", m.tensor(shape)},        {"output_size", sizes},
          {"input_size", shape},     {"grad_output", m.tensor(result)}, {"align_corners", !m.even()}};
}
Overrides factors_rule(Maker& m, size_t dims) {
  Overrides rule = resampling_rule(m, dims);
  rule.erase("output_size");
  rule.insert({"output_size", Value()});
  const std::vector<double> factors{2, 1.5, 1};
  rule.insert({"scale_factors", std::vector<double>(factors.begin(), factors.begin() + static_cast<int64_t>(dims))});
  return rule;
}
template <size_t dims>
Overrides resampling(Maker& m) {
  return resampling_rule(m, dims);
}
template <size_t dims>
Overrides by_factors(Maker& m) {
  return factors_rule(m, dims);
}

Overrides grid_rule(Maker& m) {
  return {{"input", m.tensor({2, 2, 3, 4})},
          {"grid", m.tensor({2, 3, 2, 2})},
          {"interpolation_mode", int64_t{m.recipe.variant % 3}},
          {"padding_mode", int64_t{m.recipe.variant / 3 % 3}},
          {"align_corners", m.even()}};
}

Overrides volume_rule(Maker& m) {
  return {{"input", m.tensor({2, 2, 3, 2, 4})},
          {"grid", m.tensor({2, 2, 3, 2, 3})},
          {"interpolation_mode", int64_t{m.recipe.variant % 2}},
          {"padding_mode", int64_t{m.recipe.variant / 2 % 3}},
          {"align_corners", m.even()}};
}

Overrides reflection_rule(Maker& m) {
  Ints shape = image(m, 2), wider = shape;
  wider[wider.size() - 2] += 1;
  wider[wider.size() - 1] += 1;
  return {{"self", m.tensor(shape)}, {"grad_output", m.tensor(wider)}, {"padding", Ints{2, -1, 0, 1}}};
}

Overrides combining(Maker& m, std::initializer_list<std::string_view> words) {
  Ints wider = m.recipe.shape;
  if (m.recipe.variant % 3 == 1 && !wider.empty()) wider[0] += 1;
  int64_t size = m.size(m.even() && m.rank() > 0 ? m.recipe.shape.size() - 1 : 0, 1);
  return {{"index", m.indices(m.recipe.shape, size)},
          {"src", m.tensor(wider)},
          {"reduce", std::data(words)[static_cast<size_t>(m.recipe.variant) % words.size()]},
          {"include_self", m.recipe.variant / 2 % 2 == 0}};
}
Overrides older_combining(Maker& m) { return combining(m, {"add", "multiply"}); }

}  // namespace

const Rules& image_rules() {
  static const Rules rules = {
      {"max_pool2d_with_indices_backward.",
       [](Maker& m) {
         Ints shape = image(m, 2);
         Overrides rule = largest_backward(m, shape, slid(shape, 2), 2);
         rule.merge(sliding_rule(2));
         rule.insert({{"dilation", Ints{1, 1}}, {"ceil_mode", false}});
         return rule;
       }},
      {"adaptive_max_pool2d_backward.",
       [](Maker& m) {
         Ints shape = image(m, 2), small = shape;
         small[small.size() - 2] = 2;
         small.back() = 3;
         return largest_backward(m, shape, small, 2);
       }},
      {"adaptive_max_pool3d_backward.",
       [](Maker& m) {
         Ints shape = image(m, 3), small = shape;
         small.back() = 3;
         return largest_backward(m, shape, small, 3);
       }},
      {"avg_pool2d_backward.", [](Maker& m) { return averages_rule(m, 2); }},
      {"avg_pool3d.", [](Maker& m) { return averages_rule(m, 3); }},
      {"avg_pool3d_backward.", [](Maker& m) { return averages_rule(m, 3); }},
      {"_avg_pool3d_backward.", [](Maker& m) { return averages_rule(m, 3); }},
      {"fractional_max_pool2d.", fractional_rule},
      {"fractional_max_pool2d_backward.",
       [](Maker& m) {
         Ints shape = image(m, 2), small = shape;
         small[small.size() - 2] = 2;
         small.back() = 3;
         Overrides rule = largest_backward(m, shape, small, 2);
         rule.insert({{"kernel_size", Ints{2, 1}}, {"output_size", Ints{2, 3}}});
         return rule;
       }},
      {"fractional_max_pool3d.",
       [](Maker& m) {
         Ints shape = image(m, 3);
         shape[shape.size() - 3] += 1;
         return Overrides{{"self", m.tensor(shape)},
                          {"kernel_size", Ints{2, 1, 1}},
                          {"output_size", Ints{2, 1, 2}},
                          {"random_samples", fractions(m, m.even() ? Ints{2, 2, 3} : Ints{1, 3, 3})}};
       }},
      {"fractional_max_pool3d_backward.",
       [](Maker& m) {
         Ints shape = image(m, 3), small = shape;
         small.back() = 3;
         Overrides rule = largest_backward(m, shape, small, 3);
         rule.insert({{"kernel_size", Ints{1, 1, 1}}, {"output_size", Ints{1, 1, 3}}});
         return rule;
       }},
      {"upsample_nearest1d.", resampling<1>},
      {"upsample_nearest1d.vec", by_factors<1>},
      {"upsample_nearest1d_backward.", resampling<1>},
      {"upsample_nearest2d_backward.", resampling<2>},
      {"upsample_nearest3d.", resampling<3>},
      {"upsample_nearest3d.vec", by_factors<3>},
      {"upsample_nearest3d_backward.", resampling<3>},
      {"_upsample_nearest_exact1d.", resampling<1>},
      {"_upsample_nearest_exact1d.vec", by_factors<1>},
      {"_upsample_nearest_exact1d_backward.", resampling<1>},
      {"_upsample_nearest_exact2d.", resampling<2>},
      {"_upsample_nearest_exact2d.vec", by_factors<2>},
      {"_upsample_nearest_exact2d_backward.", resampling<2>},
      {"_upsample_nearest_exact3d.", resampling<3>},
      {"_upsample_nearest_exact3d.vec", by_factors<3>},
      {"_upsample_nearest_exact3d_backward.", resampling<3>},
      {"upsample_linear1d.", resampling<1>},
      {"upsample_linear1d.vec", by_factors<1>},
      {"upsample_linear1d_backward.", resampling<1>},
      {"upsample_bilinear2d_backward.", resampling<2>},
      {"upsample_trilinear3d.", resampling<3>},
      {"upsample_trilinear3d.vec", by_factors<3>},
      {"upsample_trilinear3d_backward.", resampling<3>},
      {"upsample_bicubic2d.", resampling<2>},
      {"upsample_bicubic2d.vec", by_factors<2>},
      {"upsample_bicubic2d_backward.", resampling<2>},
      {"_upsample_bilinear2d_aa.", resampling<2>},
      {"_upsample_bilinear2d_aa.vec", by_factors<2>},
      {"_upsample_bilinear2d_aa_backward.", resampling<2>},
      {"_upsample_bicubic2d_aa.", resampling<2>},
      {"_upsample_bicubic2d_aa.vec", by_factors<2>},
      {"_upsample_bicubic2d_aa_backward.", resampling<2>},
      {"grid_sampler_2d.", grid_rule},
      {"grid_sampler_3d.", volume_rule},
      {"grid_sampler.", volume_rule},
      {"reflection_pad2d_backward.", reflection_rule},
      {"scatter_reduce.two", [](Maker& m) { return combining(m, {"sum", "prod", "mean", "amax", "amin"}); }},
      {"scatter.reduce", older_combining},
      {"scatter.value_reduce", older_combining},
  };
  return rules;
}

}  // namespace tenon::test
