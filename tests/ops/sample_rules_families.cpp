// Arguments of rows by ATen's further names: stacks, splits, losses, normalisation, pooling, histograms, distances.
#include "ops/sample_maker.h"

#include <tenon/generated/ops.h>

namespace tenon::test {
namespace {

using Tensors = std::vector<Tensor>;

void keep_finite(Maker& m) {
  if (m.recipe.values == Values::NotFinite || m.recipe.values == Values::Extreme) m.recipe.values = Values::Ordinary;
}

// Rows that take floating point numbers alone.
void keep_real(Maker& m) {
  keep_finite(m);
  if (!is_floating(m.recipe.dtype)) m.recipe.dtype = kFloat32;
}

Overrides list_rule(Maker& m) {
  Tensors list{m.tensor(m.recipe.shape), m.tensor(m.recipe.shape)};
  return {{"tensors", list}, {"indexing", std::string(m.even() ? "ij" : "xy")}};
}

Overrides vectors_rule(Maker& m) {
  Tensors list{m.tensor({m.size(0, 3)}), m.tensor({2})};
  return {{"tensors", list}, {"indexing", std::string(m.even() ? "ij" : "xy")}};
}

Overrides chain_rule(Maker& m) {
  keep_finite(m);
  const int64_t first = m.size(0, 3) + 1, second = m.size(1, 5) + 8;
  Tensors list{m.tensor({first, second}), m.tensor({second, 4}), m.tensor({4, 3})};
  return {{"tensors", list}, {"matrices", list}};
}

// A tensor of at least three dimensions, whose second and third are even.
Overrides cut_rule(Maker& m) {
  return {{"self", m.tensor({2 * m.size(0, 2), 4, 6})},
          {"sections", int64_t{2}},
          {"indices", Ints{1, 2}},
          {"split_size", int64_t{2}},
          {"chunks", int64_t{2}},
          {"dim", int64_t{1}}};
}

Overrides places_rule(Maker& m) {
  Overrides rule = cut_rule(m);
  rule.erase("indices");
  rule.insert({"indices", Ints{1, 3}});
  return rule;
}

Overrides channels_rule(Maker& m) {
  keep_finite(m);
  const int64_t channels = 4, samples = std::max<int64_t>(2, m.size(0, 3));
  // Statistics that are written to have no gradient, and are not read while they are.
  const bool training = m.recipe.dtype != kFloat64 && m.recipe.variant % 2 == 1;
  auto positive = [&] {
    Tensor made = m.tensor({channels});
    return is_floating(m.recipe.dtype) ? (abs(made) + 0.5).to(m.recipe.dtype) : made;
  };
  return {{"input", m.tensor({samples, channels, 3})},
          {"weight", m.tensor({channels})},
          {"bias", m.tensor({channels})},
          {"running_mean", m.tensor({channels})},
          {"running_var", positive()},
          {"training", training},
          {"use_input_stats", true},
          {"momentum", 0.1},
          {"eps", 1e-3},
          {"cudnn_enabled", false},
          {"N", samples},
          {"C", channels},
          {"HxW", int64_t{3}},
          {"group", int64_t{2}},
          {"num_groups", int64_t{2}}};
}

// By the batch itself, with nothing to write to.
Overrides own_statistics_rule(Maker& m) {
  Overrides rule = channels_rule(m);
  for (const char* name : {"running_mean", "running_var", "training"}) rule.erase(name);
  rule.insert({{"running_mean", Value()}, {"running_var", Value()}, {"training", true}});
  return rule;
}

Overrides last_dimension_rule(Maker& m) {
  keep_finite(m);
  const int64_t size = m.size(1, 5) + 2;
  return {{"input", m.tensor({m.size(0, 3) + 1, size})},
          {"normalized_shape", Ints{size}},
          {"weight", m.tensor({size})},
          {"bias", m.tensor({size})},
          {"eps", 1e-3}};
}

// A pair of numbers each; targets between 0 and 1.
Overrides shares_rule(Maker& m) {
  keep_real(m);
  Tensor x = m.tensor(m.recipe.shape), y = m.tensor(m.recipe.shape);
  return {{"self", (sigmoid(x) * 0.8 + 0.1).to(m.recipe.dtype)},
          {"target", (sigmoid(y) * 0.8 + 0.1).to(m.recipe.dtype)},
          {"input", (sigmoid(x) + 0.5).to(m.recipe.dtype)},
          {"log_input", m.even()},
          {"full", false},
          {"eps", 1e-8},
          {"reduction", int64_t{m.recipe.variant % 3}}};
}

Overrides rows_rule(Maker& m) {
  keep_real(m);
  const int64_t rows = m.size(0, 3) + 1, columns = m.size(1, 5) + 2;
  return {{"self", m.tensor({rows, columns})},
          {"input1", m.tensor({rows, columns})},
          {"input2", m.tensor({rows, columns})},
          {"target", m.numbers({rows}, [](int64_t at) { return at % 2 * 2 - 1; }, kInt64)}};
}

Overrides classes_rule(Maker& m) {
  keep_real(m);
  const int64_t rows = m.size(0, 3) + 1, columns = m.size(1, 5) + 2;
  return {{"self", m.tensor({rows, columns})},
          {"target", m.indices({rows}, columns)},
          {"p", int64_t{1 + m.recipe.variant % 2}},
          {"margin", 1.0},
          {"weight", Value()},
          {"reduction", int64_t{m.recipe.variant % 3}}};
}

Overrides labels_rule(Maker& m) {
  keep_real(m);
  const int64_t rows = m.size(0, 3) + 1, columns = m.size(1, 5) + 3;
  return {{"self", m.tensor({rows, columns})},
          {"target", m.numbers({rows, columns}, [&](int64_t at) { return at % columns < 2 ? at % columns : -1; })},
          {"reduction", int64_t{m.recipe.variant % 3}}};
}

Overrides planes_rule(Maker& m) {
  keep_real(m);
  return {{"self", m.tensor({2, 4, m.size(0, 3) + 1, 3})},
          {"target", m.indices({2, m.size(0, 3) + 1, 3}, 4)},
          {"weight", Value()},
          {"reduction", int64_t{m.recipe.variant % 3}},
          {"ignore_index", int64_t{m.even() ? -100 : 1}}};
}

template <size_t dims>
Overrides windows_rule(Maker& m) {
  keep_finite(m);
  Ints shape = m.even() ? Ints{2, 2} : Ints{3}, three, two, one, none, sizes;
  for (size_t dim = 0; dim < dims; ++dim) {
    shape.push_back(4 + static_cast<int64_t>(dim));
    three.push_back(3);
    two.push_back(2);
    one.push_back(1);
    sizes.push_back(2 + static_cast<int64_t>(dim));
  }
  return {{"self", m.tensor(shape)}, {"kernel_size", three}, {"stride", two},
          {"padding", one},          {"dilation", one},      {"output_size", sizes}};
}

template <size_t dims>
Overrides unpool_rule(Maker& m) {
  Ints shape{2, 2}, larger, one;
  int64_t count = 1;
  for (size_t dim = 0; dim < dims; ++dim) {
    shape.push_back(2);
    larger.push_back(4);
    one.push_back(1);
    count *= 2;
  }
  return {{"self", m.tensor(shape)},
          {"indices", m.numbers(shape, [&](int64_t at) { return at % count * 2; })},
          {"output_size", larger},
          {"stride", one},
          {"padding", one}};
}

Overrides quantile_rule(Maker& m) {
  keep_finite(m);
  Overrides rule{{"self", m.tensor(m.recipe.shape)}};
  Tensor q = m.tensor({2});
  if (is_floating(m.recipe.dtype)) q = (sigmoid(q) * 0.5 + 0.2).to(m.recipe.dtype).detach();
  rule.insert({"q", q});
  return rule;
}

Overrides share_rule(Maker& m) {
  keep_finite(m);
  return {{"self", m.tensor(m.recipe.shape)}, {"q", 0.3}};
}

// Points of two dimensions.
Overrides points_rule(Maker& m) {
  keep_finite(m);
  Tensor points = m.tensor({m.size(0, 3) + 2, 2}), low = m.tensor({4}), high = m.tensor({3});
  auto ordered = [&](const Tensor& edges) { return cumsum(abs(edges) + 0.1, 0).to(m.recipe.dtype); };
  if (is_floating(m.recipe.dtype)) low = ordered(low), high = ordered(high);
  return {{"self", points}, {"bins", Ints{3, 2}}, {"min", int64_t{0}}, {"max", int64_t{0}}};
}

Overrides edges_rule(Maker& m) {
  keep_finite(m);
  Tensor edges = m.tensor({4});
  if (is_floating(m.recipe.dtype)) edges = cumsum(abs(edges) + 0.1, 0).to(m.recipe.dtype);
  return {{"self", m.tensor(m.recipe.shape)}, {"bins", edges}};
}

Overrides edge_lists_rule(Maker& m) {
  keep_finite(m);
  auto edges = [&](int64_t count) {
    Tensor made = m.tensor({count});
    return is_floating(m.recipe.dtype) ? cumsum(abs(made) + 0.1, 0).to(m.recipe.dtype) : made;
  };
  return {{"self", m.tensor({m.size(0, 3) + 2, 2})}, {"bins", Tensors{edges(4), edges(3)}}};
}

Overrides few_bins_rule(Maker& m) {
  keep_finite(m);
  return {{"self", m.tensor(m.recipe.shape)}, {"bins", int64_t{4}}, {"min", int64_t{0}}, {"max", int64_t{0}}};
}

Overrides points_apart_rule(Maker& m) {
  keep_finite(m);
  constexpr double orders[] = {2, 1, 3, 2};
  return {{"self", m.tensor({m.size(0, 3) + 1, 5})},
          {"x1", m.tensor({m.size(0, 3) + 1, 5})},
          {"x2", m.tensor({m.size(1, 4) + 2, 5})},
          {"p", orders[m.recipe.variant % 4]},
          {"compute_mode", Value()}};
}

// Three numbers along the last dimension.
Overrides threes_rule(Maker& m) {
  Ints shape = m.recipe.shape;
  shape.push_back(3);
  return {{"self", m.tensor(shape)}, {"other", m.tensor(shape)}, {"dim", int64_t{-1}}};
}

Overrides inner_rule(Maker& m) {
  keep_finite(m);
  const int64_t inner = m.size(1, 5) + 8;
  return {{"self", m.tensor({m.size(0, 3), inner})},
          {"other", m.tensor({4, inner})},
          {"dims_self", Ints{1}},
          {"dims_other", Ints{-1}}};
}

Overrides vector_pair_rule(Maker& m) {
  keep_finite(m);
  return {{"self", m.tensor({m.size(0, 3)})}, {"other", m.tensor({m.size(0, 3)})}};
}

Overrides bilinear_rule(Maker& m) {
  keep_finite(m);
  const int64_t rows = m.size(0, 3) + 1;
  return {{"input1", m.tensor({rows, 3})},
          {"input2", m.tensor({rows, 2})},
          {"weight", m.tensor({4, 3, 2})},
          {"bias", m.even() ? Value(m.tensor({4})) : Value()}};
}

Overrides trilinear_rule(Maker& m) {
  keep_finite(m);
  const int64_t rows = m.size(0, 3) + 1;
  return {{"i1", m.tensor({rows, 3})}, {"i2", m.tensor({4, 3, 2})}, {"i3", m.tensor({rows, 2})},
          {"expand1", Ints{1, 3}},     {"expand2", Ints{0}},        {"expand3", Ints{1, 2}},
          {"sumdim", Ints{2, 3}}};
}

Overrides image_rule(Maker& m) {
  return {{"self", m.tensor({2, 8, 4, 6})},
          {"upscale_factor", int64_t{2}},
          {"downscale_factor", int64_t{2}},
          {"groups", int64_t{2}}};
}

Overrides along_rule(Maker& m) {
  const int64_t rows = m.size(0, 3) + 1, columns = m.size(1, 5) + 2;
  return {{"self", m.tensor({rows, columns})},
          {"indices", m.indices({rows, 2}, columns)},
          {"dim", int64_t{1}},
          {"index", m.distinct(2, rows * columns)},
          {"source", m.tensor({2})}};
}

Overrides index_reduce_rule(Maker& m) {
  keep_finite(m);
  constexpr std::string_view kinds[] = {"amax", "mean", "amin", "prod"};
  const int64_t rows = m.size(0, 3) + 2;
  return {{"self", m.tensor({rows, 3})},
          {"dim", int64_t{0}},
          {"index", m.distinct(2, rows)},
          {"source", m.tensor({2, 3})},
          {"reduce", std::string(kinds[m.recipe.variant % 4])}};
}

Overrides samples_rule(Maker& m) {
  keep_finite(m);
  Ints shape = m.recipe.shape;
  while (shape.size() < 2) shape.push_back(3);
  for (int64_t& size : shape) size = std::max<int64_t>(3, size);
  return {{"self", m.tensor(shape)}, {"dim", int64_t{-1}}};
}

Overrides sample_places_rule(Maker& m) {
  Overrides rule = samples_rule(m);
  const Tensor& self = rule.at("self").value.tensor();
  rule.erase("dim");
  Tensor steps = m.tensor({self.sizes().back()});
  if (is_floating(m.recipe.dtype)) steps = cumsum(abs(steps) + 0.5, 0).to(m.recipe.dtype);
  rule.insert({{"spacing", Tensors{steps}}, {"dim", Ints{-1}}});
  return rule;
}

Overrides ends_rule(Maker& m) {
  return {
      {"start", m.tensor({}, kFloat32)}, {"end", m.tensor({}, kFloat32)}, {"steps", int64_t{m.recipe.variant % 4 + 2}}};
}
Overrides start_rule(Maker& m) {
  return {{"start", m.tensor({}, kFloat32)}, {"end", 2.5}, {"steps", int64_t{m.recipe.variant % 4 + 2}}};
}
Overrides end_rule(Maker& m) {
  return {{"start", -1.5}, {"end", m.tensor({}, kFloat32)}, {"steps", int64_t{m.recipe.variant % 4 + 2}}};
}
Overrides numbers_rule(Maker& m) {
  return {{"start", -1.5}, {"end", 2.5}, {"steps", int64_t{m.recipe.variant % 4 + 2}}};
}

Overrides draws_rule(Maker& m) {
  keep_real(m);
  Tensor weights = m.tensor({m.size(0, 3) + 1, 23});
  return {{"self", (abs(weights) + 0.1).to(m.recipe.dtype)}, {"num_samples", int64_t{2}}, {"replacement", m.even()}};
}

Overrides dropped_rule(Maker& m) {
  keep_real(m);
  // Another draw at every call has no slope.
  return {{"input", m.tensor({m.size(0, 3), 13, 37})}, {"p", 0.25}, {"train", m.recipe.dtype != kFloat64}};
}

template <size_t dims>
Overrides named_border_rule(Maker& m) {
  keep_real(m);
  // Small: a difference is taken for every element.
  Ints input{1, 2}, weight{2, 2}, one;
  for (size_t dim = 0; dim < dims; ++dim) {
    input.push_back(3);
    weight.push_back(2);
    one.push_back(1);
  }
  return {{"input", m.tensor(input)},
          {"weight", m.tensor(weight)},
          {"bias", m.even() ? Value(m.tensor({2})) : Value()},
          {"stride", one},
          {"dilation", one},
          {"groups", int64_t{1}},
          {"padding", std::string(m.recipe.variant % 3 == 2 ? "valid" : "same")}};
}

Overrides chance_rule(Maker& m) {
  keep_finite(m);
  return {{"self", m.tensor(m.recipe.shape)}, {"p", 0.3}};
}

Overrides deviation_rule(Maker& m) {
  return {{"mean", 0.5}, {"std", m.tensor(m.recipe.shape)}, {"size", m.recipe.shape}};
}

Overrides two_numbers_rule(Maker& m) { return {{"mean", 0.5}, {"std", 1.5}, {"size", m.recipe.shape}}; }

Overrides mean_rule(Maker& m) { return {{"mean", m.tensor(m.recipe.shape)}, {"std", 1.5}}; }

Overrides integers_rule(Maker& m) {
  if (is_floating(m.recipe.dtype) || m.recipe.dtype == kBool) m.recipe.dtype = kInt32;
  return {{"self", m.tensor(m.recipe.shape)}};
}

Overrides counted_rule(Maker& m) {
  return {{"self", m.indices({m.numel()}, 6, m.even() ? kInt64 : kInt32)}, {"weights", Value()}};
}

}  // namespace

const Rules& family_rules() {
  static const Rules rules = {
      {"atleast_1d.Sequence", list_rule},
      {"atleast_2d.Sequence", list_rule},
      {"atleast_3d.Sequence", list_rule},
      {"hstack.", list_rule},
      {"vstack.", list_rule},
      {"dstack.", list_rule},
      {"column_stack.", list_rule},
      {"block_diag.", list_rule},
      {"broadcast_tensors.", list_rule},
      {"cartesian_prod.", vectors_rule},
      {"meshgrid.indexing", vectors_rule},
      {"linalg_multi_dot.", chain_rule},
      {"chain_matmul.", chain_rule},
      {"tensor_split.sections", cut_rule},
      {"tensor_split.indices", places_rule},
      {"hsplit.int", cut_rule},
      {"hsplit.array", cut_rule},
      {"vsplit.int", cut_rule},
      {"vsplit.array", cut_rule},
      {"dsplit.int", cut_rule},
      {"dsplit.array", cut_rule},
      {"unsafe_split.Tensor", cut_rule},
      {"unsafe_chunk.", cut_rule},
      {"native_batch_norm.", own_statistics_rule},
      {"batch_norm.", own_statistics_rule},
      {"instance_norm.", own_statistics_rule},
      {"_native_batch_norm_legit.", channels_rule},
      {"_batch_norm_with_update.", channels_rule},
      {"native_group_norm.", channels_rule},
      {"group_norm.", channels_rule},
      {"native_layer_norm.", last_dimension_rule},
      {"rms_norm.", last_dimension_rule},
      {"binary_cross_entropy.", shares_rule},
      {"kl_div.", shares_rule},
      {"poisson_nll_loss.", shares_rule},
      {"cosine_embedding_loss.", rows_rule},
      {"multi_margin_loss.", classes_rule},
      {"multilabel_margin_loss.", labels_rule},
      {"multilabel_margin_loss_forward.", labels_rule},
      {"nll_loss2d_forward.", planes_rule},
      {"max_pool3d_with_indices.", windows_rule<3>},
      {"max_pool3d.", windows_rule<3>},
      {"max_pool1d_with_indices.", windows_rule<1>},
      {"max_pool1d.", windows_rule<1>},
      {"avg_pool1d.", windows_rule<1>},
      {"adaptive_max_pool1d.", windows_rule<1>},
      {"adaptive_avg_pool1d.", windows_rule<1>},
      {"_adaptive_avg_pool3d.", windows_rule<3>},
      {"adaptive_avg_pool3d.", windows_rule<3>},
      {"max_unpool2d.", unpool_rule<2>},
      {"max_unpool3d.", unpool_rule<3>},
      {"kthvalue.",
       [](Maker& m) {
         keep_finite(m);
         return Overrides{{"self", m.tensor(m.recipe.shape)}, {"k", int64_t{1}}};
       }},
      {"quantile.", quantile_rule},
      {"nanquantile.", quantile_rule},
      {"quantile.scalar", share_rule},
      {"nanquantile.scalar", share_rule},
      {"argsort.stable", [](Maker& m) { return Overrides{{"stable", m.even()}}; }},
      {"histc.", few_bins_rule},
      {"histogram.bin_ct", few_bins_rule},
      {"histogram.bins_tensor", edges_rule},
      {"_histogramdd_bin_edges.", points_rule},
      {"_histogramdd_from_bin_cts.", points_rule},
      {"_histogramdd_from_bin_tensors.", edge_lists_rule},
      {"histogramdd.", points_rule},
      {"histogramdd.TensorList_bins", edge_lists_rule},
      {"bincount.", counted_rule},
      {"_cdist_forward.", points_apart_rule},
      {"cdist.", points_apart_rule},
      {"_euclidean_dist.", points_apart_rule},
      {"_pdist_forward.", points_apart_rule},
      {"pdist.", points_apart_rule},
      {"renorm.",
       [](Maker& m) {
         keep_finite(m);
         return Overrides{{"self", m.tensor(m.recipe.shape)}, {"p", int64_t{2}}, {"maxnorm", 0.75}};
       }},
      {"linalg_cross.", threes_rule},
      {"cross.", threes_rule},
      {"linalg_vecdot.", threes_rule},
      {"inner.", inner_rule},
      {"tensordot.", inner_rule},
      {"vdot.", vector_pair_rule},
      {"linalg_diagonal.",
       [](Maker& m) {
         return Overrides{{"A", m.tensor(m.recipe.shape)}, {"dim1", int64_t{-2}}, {"dim2", int64_t{-1}}};
       }},
      {"linalg_vander.",
       [](Maker& m) {
         keep_finite(m);
         return Overrides{{"x", m.tensor(m.recipe.shape)}, {"N", Value(int64_t{4})}};
       }},
      {"bilinear.", bilinear_rule},
      {"_trilinear.", trilinear_rule},
      {"pixel_shuffle.", image_rule},
      {"pixel_unshuffle.", image_rule},
      {"channel_shuffle.", image_rule},
      {"native_channel_shuffle.", image_rule},
      {"take_along_dim.", along_rule},
      {"put.", along_rule},
      {"index_reduce.", index_reduce_rule},
      {"trapezoid.dx", [](Maker& m) { return Overrides{{"y", m.tensor(m.recipe.shape)}, {"dx", 0.5}}; }},
      {"trapz.dx", [](Maker& m) { return Overrides{{"y", m.tensor(m.recipe.shape)}, {"dx", 0.5}}; }},
      {"cumulative_trapezoid.dx", [](Maker& m) { return Overrides{{"y", m.tensor(m.recipe.shape)}, {"dx", 0.5}}; }},
      {"where.Scalar",
       [](Maker& m) {
         return Overrides{{"condition", m.tensor(m.recipe.shape, kBool)}, {"self", 1.5}, {"other", int64_t{2}}};
       }},
      {"where.ScalarSelf",
       [](Maker& m) {
         return Overrides{
             {"condition", m.tensor(m.recipe.shape, kBool)}, {"self", 1.5}, {"other", m.tensor(m.recipe.shape)}};
       }},
      {"where.ScalarOther",
       [](Maker& m) {
         return Overrides{
             {"condition", m.tensor(m.recipe.shape, kBool)}, {"self", m.tensor(m.recipe.shape)}, {"other", 1.5}};
       }},
      {"tril_indices.",
       [](Maker& m) {
         return Overrides{{"row", int64_t{4}}, {"col", int64_t{3}}, {"offset", int64_t{m.recipe.variant % 3 - 1}}};
       }},
      {"triu_indices.",
       [](Maker& m) {
         return Overrides{{"row", int64_t{4}}, {"col", int64_t{3}}, {"offset", int64_t{m.recipe.variant % 3 - 1}}};
       }},
      {"nonzero_static.", [](Maker&) { return Overrides{{"size", int64_t{5}}}; }},
      {"searchsorted.Scalar",
       [](Maker& m) {
         keep_finite(m);
         Tensor numbers = m.tensor({m.numel()});
         return Overrides{{"sorted_sequence", std::get<0>(sort(numbers))}, {"self", 0.5}};
       }},
      {"gcd.", integers_rule},
      {"lcm.", integers_rule},
      {"gradient.scalarint",
       [](Maker& m) {
         Overrides rule = samples_rule(m);
         rule.insert({"spacing", 0.5});
         return rule;
       }},
      {"gradient.tensorarray", sample_places_rule},
      {"cov.",
       [](Maker& m) {
         keep_finite(m);
         return Overrides{{"self", m.tensor({m.size(0, 3) + 1, m.size(1, 5) + 2})}};
       }},
      {"corrcoef.",
       [](Maker& m) {
         keep_finite(m);
         return Overrides{{"self", m.tensor({m.size(0, 3) + 1, m.size(1, 5) + 2})}};
       }},
      {"linspace.Tensor_Tensor", ends_rule},
      {"linspace.Tensor_Scalar", start_rule},
      {"linspace.Scalar_Tensor", end_rule},
      {"logspace.", numbers_rule},
      {"logspace.Tensor_Tensor", ends_rule},
      {"logspace.Tensor_Scalar", start_rule},
      {"logspace.Scalar_Tensor", end_rule},
      {"empty_permuted.",
       [](Maker&) { return Overrides{{"size", Ints{2, 3, 4}}, {"physical_layout", Ints{1, 2, 0}}}; }},
      {"multinomial.", draws_rule},
      {"alpha_dropout.", dropped_rule},
      {"feature_alpha_dropout.", dropped_rule},
      {"feature_dropout.", dropped_rule},
      {"conv1d.padding", named_border_rule<1>},
      {"conv2d.padding", named_border_rule<2>},
      {"conv3d.padding", named_border_rule<3>},
      {"nll_loss_nd.", planes_rule},
      {"combinations.",
       [](Maker& m) {
         return Overrides{{"self", m.tensor({m.size(0, 4)})},
                          {"r", int64_t{1 + m.recipe.variant % 3}},
                          {"with_replacement", m.recipe.variant % 2 == 0}};
       }},
      {"geometric.", chance_rule},
      {"normal.float_Tensor", deviation_rule},
      {"normal.float_float", two_numbers_rule},
      {"normal.Tensor_float", mean_rule},
      {"embedding_bag.padding_idx",
       [](Maker& m) {
         keep_real(m);
         return Overrides{{"weight", m.tensor({5, m.size(0, 3) + 7})},
                          {"indices", m.indices({6}, 5)},
                          {"offsets", m.numbers({3}, [](int64_t at) { return at == 0 ? 0 : 2; })},
                          {"scale_grad_by_freq", false},
                          {"mode", int64_t{m.recipe.variant % 3}},
                          {"sparse", false},
                          {"per_sample_weights", Value()},
                          {"include_last_offset", false},
                          {"padding_idx", m.even() ? Value() : Value(int64_t{1})}};
       }},
  };
  return rules;
}

}  // namespace tenon::test
