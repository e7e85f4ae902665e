// Arguments of rows that only graphs name, by operator.
#include "ops/sample_maker.h"

#include <tenon/generated/ops.h>

namespace tenon::test {
namespace {

void keep_finite(Maker& m) {
  if (m.recipe.values == Values::NotFinite || m.recipe.values == Values::Extreme) m.recipe.values = Values::Ordinary;
}

// Different places along a dimension, and what goes there.
Overrides replaced_rule(Maker& m) {
  Ints shape = m.recipe.shape;
  const size_t dim = m.even() && !shape.empty() ? shape.size() - 1 : 0;
  Tensor index = m.rank() == 0 ? m.numbers({1}, [](int64_t) { return 0; }) : m.distinct(2, shape[dim]);
  if (!shape.empty()) shape[dim] = index.sizes()[0];
  return {{"index", index}, {"source", m.tensor(shape)}, {"value", m.tensor({})}};
}

// Images of at least 4 in each of `dims` dimensions, and borders that fit into them.
template <size_t dims>
Overrides border_rule(Maker& m) {
  Ints shape = m.even() ? Ints{2, 3} : Ints{3}, pads;
  for (size_t dim = 0; dim < dims; ++dim) {
    shape.push_back(4 + static_cast<int64_t>(dim) + m.size(dim, 2) % 4);
    pads.push_back(1 + m.recipe.variant % 2);
    pads.push_back(static_cast<int64_t>(dim) % 2 * 2);
  }
  return {{"self", m.tensor(shape)}, {"padding", pads}};
}

// What lies in memory, in its order: of tensors in the usual order that is the order of elements.
Overrides in_memory_rule(Maker& m) {
  Ints sizes{2, 1};
  for (int64_t size : m.recipe.shape) sizes.push_back(size);
  return {{"self", m.numbers(
                       m.recipe.shape, [](int64_t at) { return at % 5; }, m.recipe.dtype)},
          {"size", m.even() ? sizes : Ints{m.numel() / 2}},
          {"the_template", m.tensor(m.even() ? sizes : Ints{m.numel() / 2})},
          {"memory_format", Value()}};
}

// Slopes that were drawn, or are to be written.
Overrides noise_rule(Maker& m) {
  return {{"self", m.tensor(m.recipe.shape)},
          {"grad_output", m.tensor(m.recipe.shape)},
          {"noise", m.tensor(m.recipe.shape)},
          {"lower", 0.125},
          {"upper", 0.375},
          {"training", false},
          {"self_is_result", false}};
}

// Three entries of up to four steps and two classes to meet, and what the gradient is given. The last has too few
// steps: its loss is infinite, so that no differences are taken. (The gradient is, as in PyTorch, that of logarithms
// whose exponentials add up to 1.)
Overrides ctc_rule(Maker& m) {
  keep_finite(m);
  const int64_t classes = m.size(0, 3) % 8 + 3;
  const Ints inputs{4, 3, 1}, lengths{2, 0, 2};
  Tensor in_rows = m.numbers({3, 2}, [](int64_t at) { return at % 2 + 1; });
  Overrides rule{{"log_probs", m.tensor({4, 3, classes})},
                 {"targets", in_rows},
                 {"blank", int64_t{0}},
                 {"grad", m.tensor({3})},
                 {"neg_log_likelihood", m.tensor({3})},
                 {"log_alpha", m.tensor({3, 4, 5})},
                 {"reduction", int64_t{m.recipe.variant % 3}},
                 {"zero_infinity", false}};
  rule.insert({{"input_lengths", inputs}, {"target_lengths", lengths}});
  return rule;
}
Overrides ctc_tensor_rule(Maker& m) {
  Overrides rule = ctc_rule(m);
  rule.erase("input_lengths");
  rule.erase("target_lengths");
  rule.insert({{"input_lengths", m.numbers({3}, [](int64_t at) { return Ints{4, 3, 1}[static_cast<size_t>(at)]; })},
               {"target_lengths", m.numbers({3}, [](int64_t at) { return Ints{2, 0, 2}[static_cast<size_t>(at)]; })}});
  return rule;
}

}  // namespace

const Rules& below_rules() {
  static const Rules rules = {
      {"index_fill.int_Scalar",
       [](Maker& m) {
         Overrides rule = replaced_rule(m);
         rule.erase("value");
         return rule;
       }},
      {"_ctc_loss.", ctc_rule},
      {"_ctc_loss.Tensor", ctc_tensor_rule},
      {"_ctc_loss_backward.", ctc_rule},
      {"_ctc_loss_backward.Tensor", ctc_tensor_rule},
      {"ctc_loss.IntList", ctc_rule},
      {"ctc_loss.Tensor", ctc_tensor_rule},
      {"rrelu_with_noise.", noise_rule},
      {"resize.", in_memory_rule},
      {"resize_as.", in_memory_rule},
      {"rrelu_with_noise_backward.", noise_rule},
      {"embedding_renorm.",
       [](Maker& m) {
         const int64_t rows = m.size(0, 3) + 1;
         return Overrides{{"self", m.tensor({rows, m.size(1, 5)})},
                          {"indices", m.indices({2}, rows)},
                          {"max_norm", 1.5},
                          {"norm_type", 2.0}};
       }},
      {"index_fill.int_Tensor", replaced_rule},
      {"index_copy.", replaced_rule},
      {"take.", [](Maker& m) { return Overrides{{"index", m.indices({m.numel() == 0 ? 0 : 3, 2}, m.numel())}}; }},
      {"addmv.",
       [](Maker& m) {
         keep_finite(m);
         const int64_t rows = m.size(0, 3) + 1, inner = m.size(1, 5) + 8;
         return Overrides{{"self", m.tensor(m.even() ? Ints{rows} : Ints{})},
                          {"mat", m.tensor({rows, inner})},
                          {"vec", m.tensor({inner})}};
       }},
      {"addr.",
       [](Maker& m) {
         const int64_t rows = m.size(0, 3), columns = m.size(1, 5) + 40;
         return Overrides{{"self", m.tensor(m.even() ? Ints{rows, columns} : Ints{columns})},
                          {"vec1", m.tensor({rows})},
                          {"vec2", m.tensor({columns})}};
       }},
      {"addbmm.",
       [](Maker& m) {
         keep_finite(m);
         const int64_t rows = m.size(0, 3) + 2, inner = 19;
         return Overrides{{"self", m.tensor(m.even() ? Ints{rows, 23} : Ints{23})},
                          {"batch1", m.tensor({2, rows, inner})},
                          {"batch2", m.tensor({2, inner, 23})}};
       }},
      {"diag_embed.",
       [](Maker& m) {
         return Overrides{{"self", m.tensor(m.recipe.shape.empty() ? Ints{3} : m.recipe.shape)},
                          {"offset", int64_t{m.recipe.variant % 3 - 1}},
                          {"dim1", int64_t{m.even() ? -2 : 0}},
                          {"dim2", int64_t{-1}}};
       }},
      {"rot90.",
       [](Maker& m) {
         Ints shape = m.recipe.shape;
         while (shape.size() < 2) shape.push_back(3);
         return Overrides{{"self", m.tensor(shape)}, {"k", int64_t{m.recipe.variant % 5 - 1}}, {"dims", Ints{0, -1}}};
       }},
      {"reflection_pad1d.", border_rule<1>},
      {"reflection_pad2d.", border_rule<2>},
      {"reflection_pad3d.", border_rule<3>},
      {"replication_pad1d.", border_rule<1>},
      {"replication_pad2d.", border_rule<2>},
      {"replication_pad3d.", border_rule<3>},
  };
  return rules;
}

}  // namespace tenon::test
