// Arguments by operator: where the schema does not say what fits together.
#include <limits>

#include "ops/sample_maker.h"

#include <tenon/generated/ops.h>

namespace tenon::test {
namespace {

Ints without(Ints shape, int64_t dim) {
  if (shape.empty()) return shape;
  shape.erase(shape.begin() + (dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim));
  return shape;
}

// A view by strides of a dense tensor: pairs of neighbours, or every second element.
struct Strided {
  Tensor self;
  Ints size, stride;
  int64_t offset = 0;
  Value from_storage;
  void apart(Maker& m) {
    size = {m.numel() / 2};
    stride = {2};
    offset = m.numel() > 1 ? 1 : 0;
    if (!from_storage.is_none()) from_storage = Value(self.storage_offset() + offset);
  }
};

Strided strided(Maker& m) {
  if (m.recipe.placement == Placement::Sliced || m.recipe.placement == Placement::Expanded)
    m.recipe.placement = Placement::Contiguous;
  Strided s;
  s.self = m.tensor(m.recipe.shape);
  if (m.recipe.variant % 4 > 1 && m.recipe.placement != Placement::Offset)
    s.from_storage = Value(s.self.storage_offset());
  if (m.even()) {
    s.size = {std::max<int64_t>(0, m.numel() - 1), 2};
    s.stride = {1, 1};
  } else {
    s.apart(m);
  }
  return s;
}

using Indices = std::vector<std::optional<Tensor>>;

// Indices for the recipe's shape, and the sizes of what they pick; `distinct` if no element is to be picked twice.
std::pair<Indices, Ints> some_indices(Maker& m, bool distinct) {
  const Ints& shape = m.recipe.shape;
  if (shape.empty()) return {{m.tensor({}, kInt64)}, {}};
  auto pick = [&](size_t dim, Ints sizes) {
    int64_t count = 1;
    for (int64_t& size : sizes) {
      if (shape[dim] == 0) size = 0;
      count *= size;
    }
    if (distinct) return m.distinct(count, shape[dim]);
    return m.indices(sizes, shape[dim], m.even() ? kInt64 : kInt32);
  };
  Ints rest(shape);
  switch (shape.size() == 1 ? 0 : m.recipe.variant % 3) {
    case 0: {
      Tensor index = pick(0, {4});
      rest[0] = index.sizes()[0];
      return {{index}, rest};
    }
    case 1: {
      Tensor index = pick(shape.size() - 1, distinct ? Ints{3} : Ints{2, 3});
      rest.erase(rest.end() - 1);
      for (int64_t size : index.sizes()) rest.push_back(size);
      Indices list(shape.size());
      list.back() = index;
      return {list, rest};
    }
    default: {
      Tensor first = pick(0, distinct ? Ints{2} : Ints{2, 1}),
             second = pick(shape.size() - 1, distinct ? Ints{2} : Ints{3});
      if (distinct && first.sizes()[0] != second.sizes()[0]) first = second = m.numbers({1}, [](int64_t) { return 0; });
      if (std::find(shape.begin(), shape.end(), 0) != shape.end())
        first = second = m.numbers({0}, [](int64_t) { return 0; });
      Ints both = distinct || first.numel().plain() == 0 ? Ints(first.sizes()) : Ints{2, 3};
      Indices list(shape.size());
      list.front() = first;
      list.back() = second;
      Ints result = both;
      for (size_t dim = 1; dim + 1 < shape.size(); ++dim) result.push_back(shape[dim]);
      return {list, result};
    }
  }
}

Overrides pick_rule(Maker& m) { return {{"indices", some_indices(m, false).first}}; }

Overrides put_rule(Maker& m) {
  bool accumulate = m.recipe.variant % 4 == 1;
  auto [indices, sizes] = some_indices(m, !accumulate);
  if (m.recipe.variant % 5 == 4 && !sizes.empty()) sizes[0] = 1;
  return {{"indices", indices}, {"values", m.tensor(sizes)}, {"accumulate", accumulate}};
}

Overrides split_sizes_rule(Maker& m) {
  int64_t size = m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1), first = size / 3;
  return {
      {"split_sizes", Ints{first, 0, size - first}}, {"split_size", Ints{first, 0, size - first}}, {"dim", m.dim()}};
}

Overrides repeat_rule(Maker& m) {
  Ints repeats(m.recipe.shape);
  for (int64_t& each : repeats) each = 2;
  if (!m.even()) repeats.insert(repeats.begin(), 3);
  if (!repeats.empty()) repeats.back() = m.recipe.variant % 3;
  return {{"repeats", repeats}, {"dims", repeats}};
}

Value norm_order(const Maker& m) {
  constexpr double orders[] = {2, 1, 3, std::numeric_limits<double>::infinity(), 0.5, 0};
  return orders[m.recipe.variant % 6];
}

// Two numbers for each of the last two dimensions; repeated borders must fit into what they repeat.
Ints some_pads(const Maker& m, bool repeated) {
  Ints pads;
  for (int64_t dim = m.rank() - 1; dim >= std::max<int64_t>(0, m.rank() - 2); --dim) {
    int64_t most = repeated ? m.recipe.shape[static_cast<size_t>(dim)] - 1 : 2;
    pads.push_back(std::min<int64_t>(most, 1 + dim % 2));
    pads.push_back(std::min<int64_t>(most, m.even() ? 0 : repeated ? 2 : -1));
  }
  return pads;
}

// Planes of at least 3 by 3, of the recipe's sizes where it has them.
Ints image_shape(const Maker& m) {
  Ints shape = m.even() ? Ints{2, 2} : Ints{3};
  for (size_t dim : {size_t{0}, size_t{1}}) shape.push_back(std::max<int64_t>(3, std::min<int64_t>(9, m.size(dim, 4))));
  return shape;
}

Overrides pool_rule(Maker& m) {
  return {
      {"self", m.tensor(image_shape(m))}, {"kernel_size", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", Ints{1, 1}}};
}

// Numbers and tensors of a convolution over `dims` dimensions, of four channels to four, in one group or two.
struct ConvolutionSample {
  Ints input, weight, result, stride, padding, dilation, output_padding;
  int64_t groups;

  ConvolutionSample(const Maker& m, size_t dims, bool transposed)
      : groups(m.even() ? 1 + m.recipe.variant / 2 % 2 : 1) {
    input = weight = result = Ints{2, 4};
    weight = Ints{4, 4 / groups};
    for (size_t dim = 0; dim < dims; ++dim) {
      bool last = dim + 1 == dims;
      // Small where there are three: the interpreter walks through all windows.
      // No size is the number of channels, where equal ones would be one symbol, and none is 1.
      int64_t size = dims == 3 ? 3 : m.size(dim, 4) <= 3 ? 5 : 9;
      stride.push_back(last ? 1 : 1 + m.recipe.variant % 2);
      padding.push_back(last ? m.recipe.variant % 2 : 1);
      dilation.push_back(last && m.recipe.variant % 3 == 2 ? 2 : 1);
      int64_t kernel = dims == 3 || dilation[dim] == 2 ? 2 : 3;
      // As large as the dilation where that is larger than the stride.
      output_padding.push_back(transposed && (stride[dim] == 2 || dilation[dim] == 2) ? 1 : 0);
      int64_t span = dilation[dim] * (kernel - 1) + 1;
      input.push_back(size);
      weight.push_back(kernel);
      result.push_back(transposed ? (size - 1) * stride[dim] - 2 * padding[dim] + span + output_padding[dim]
                                  : (size + 2 * padding[dim] - span) / stride[dim] + 1);
    }
  }
  Overrides numbers() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
  }
};

void keep_finite(Maker& m) {
  if (m.recipe.values == Values::NotFinite || m.recipe.values == Values::Extreme) m.recipe.values = Values::Ordinary;
}

// Finite: the library skips the padding, products multiply it, and 0 times infinity is NaN.
Overrides convolution_rule(Maker& m, size_t dims, bool transposed) {
  keep_finite(m);
  ConvolutionSample c(m, dims, transposed);
  Overrides rule = c.numbers();
  rule.insert({{"input", m.tensor(c.input)},
               {"weight", m.tensor(c.weight)},
               {"bias", m.even() ? Value(m.tensor({4})) : Value()},
               {"transposed", transposed},
               {"output_padding", c.output_padding}});
  return rule;
}

// What a function of limited meaning takes: numbers that are brought into its range.
Overrides within(Maker& m, Tensor (*bring)(const Tensor&)) {
  keep_finite(m);
  Tensor x = m.tensor(m.recipe.shape);
  return {{"self", is_floating(m.recipe.dtype) ? bring(x).to(m.recipe.dtype) : x}};
}

// Six rows of five, in three bags, one of them empty.
Overrides bag_rule(Maker& m) {
  keep_finite(m);
  if (!is_floating(m.recipe.dtype)) m.recipe.dtype = kFloat32;
  return {{"weight", m.tensor({5, m.size(0, 3) + 7})},
          {"indices", m.indices({6}, 5)},
          {"offsets", m.numbers({3}, [](int64_t at) { return at == 0 ? 0 : 2; })},
          {"mode", Value(int64_t{m.even() ? 0 : 1})}};
}

// Numbers for which Hurwitz' sums converge.
Tensor beyond_two(Maker& m) {
  keep_finite(m);
  Tensor x = m.tensor(m.recipe.shape);
  return m.recipe.dtype == kBool ? x : (tanh(x.to(kFloat64)) + 3).to(m.recipe.dtype);
}

Overrides shift_rule(Maker& m) {
  if (is_floating(m.recipe.dtype) || m.recipe.dtype == kBool) m.recipe.dtype = kInt32;
  return {{"self", m.tensor(m.recipe.shape)}};
}

// The dtype of as many bits that means something else by them.
Overrides bits_rule(Maker& m) {
  constexpr std::pair<Dtype, Dtype> kOther[] = {
      {kBool, kUInt8},     {kUInt8, kInt8},    {kInt8, kUInt8},    {kInt16, kFloat16}, {kFloat16, kInt16},
      {kBFloat16, kInt16}, {kInt32, kFloat32}, {kFloat32, kInt32}, {kInt64, kFloat64}, {kFloat64, kInt64}};
  for (const auto& [dtype, other] : kOther)
    if (dtype == m.recipe.dtype) return {{"dtype", Value(other)}};
  return {};
}

// Two heads of queries, one or two of keys and values.
Overrides attention_rule(Maker& m) {
  keep_finite(m);  // what becomes of infinite scores depends on the order of tiles
  int64_t queries = std::max<int64_t>(1, m.size(0, 3)), keys = std::max<int64_t>(1, m.size(1, 5)), heads = 2;
  int64_t shared = m.recipe.variant % 3 == 1 ? 1 : heads;
  Value mask;
  if (m.recipe.variant % 3 == 2) mask = Value(m.tensor({keys}));
  return {{"query", m.tensor({2, heads, queries, 4})},
          {"key", m.tensor({2, shared, keys, 4})},
          {"value", m.tensor({2, shared, keys, 3})},
          {"dropout_p", 0.0},
          {"enable_gqa", true},
          {"is_causal", m.recipe.variant % 3 == 1},
          {"attn_mask", mask}};
}
// With what the forward pass gives for the same numbers.
Overrides attention_gradient_rule(Maker& m) {
  Overrides rule = attention_rule(m);
  const Tensor &query = rule.at("query").value.tensor(), &value = rule.at("value").value.tensor();
  Ints rows{2, 2, query.sizes()[2]}, results{2, 2, query.sizes()[2], value.sizes()[3]};
  Tensor out = m.tensor(results), logarithms = m.tensor(rows, m.recipe.dtype == kFloat64 ? kFloat64 : kFloat32);
  if (is_floating(m.recipe.dtype)) {
    const Value& mask = rule.at("attn_mask").value;
    std::tie(out, logarithms) = _scaled_dot_product_flash_attention_for_cpu(
        query, rule.at("key").value.tensor(), value, 0.0, rule.at("is_causal").value.boolean(),
        mask.is_none() ? std::nullopt : std::optional(mask.tensor()));
  }
  rule.insert({{"grad_out", m.tensor(results)}, {"out", out}, {"logsumexp", logarithms}});
  return rule;
}

// One index, of which the mask leaves some out.
Overrides masked_index_rule(Maker& m) {
  int64_t size = std::max<int64_t>(1, m.numel());
  return {{"self", m.tensor({size})},
          {"mask", m.tensor({5}, kBool)},
          {"indices", Indices{m.indices({5}, size)}},
          {"fill", int64_t{1}},
          {"values", m.tensor({5})}};
}

Overrides nll_parts_rule(Maker& m) {
  int64_t rows = m.size(0, 3), classes = m.size(1, 4) + 1, reduction = m.recipe.variant % 3;
  return {{"self", m.tensor({rows, classes})},
          {"target", m.indices({rows}, classes)},
          {"weight", m.even() ? Value() : Value(m.tensor({classes}))},
          {"reduction", Value(reduction)},
          {"ignore_index", Value(int64_t{m.recipe.variant % 4 == 2 ? 0 : -100})},
          {"grad_output", m.tensor(reduction == 0 ? Ints{rows} : Ints{})},
          {"total_weight", m.tensor({})}};
}

Overrides softmax_parts_rule(Maker& m) {
  return {{"output", m.tensor(m.recipe.shape)}, {"dim", m.dim()}, {"input_dtype", Value(m.recipe.dtype)}};
}

Overrides upsample_rule(Maker& m) {
  Ints shape = image_shape(m);
  while (shape.size() < 4) shape.insert(shape.begin(), 1);
  return {
      {"self", m.tensor(shape)}, {"input", m.tensor(shape)}, {"output_size", Ints{5, 8}}, {"align_corners", !m.even()}};
}

Overrides scaled_upsample_rule(Maker& m) {
  Overrides rule = upsample_rule(m);
  rule.erase("output_size");
  rule.insert({"output_size", Value()});
  rule.insert({"scale_factors", std::vector<double>{2, 1.5}});
  return rule;
}

}  // namespace

const Rules& special_rules() {
  static const Rules rules = {
      {"mm",
       [](Maker& m) {
         int64_t inner = m.size(1, 5);
         return Overrides{{"self", m.tensor({m.size(0, 3), inner})}, {"mat2", m.tensor({inner, m.size(2, 4)})}};
       }},
      {"addmm",
       [](Maker& m) {
         int64_t inner = m.size(1, 5), rows = m.size(0, 3), columns = m.size(2, 4);
         return Overrides{{"self", m.tensor(m.even() ? Ints{columns} : Ints{rows, 1})},
                          {"mat1", m.tensor({rows, inner})},
                          {"mat2", m.tensor({inner, columns})}};
       }},
      {"bmm",
       [](Maker& m) {
         int64_t inner = m.size(1, 5);
         return Overrides{{"self", m.tensor({2, m.size(0, 3), inner})}, {"mat2", m.tensor({2, inner, m.size(2, 4)})}};
       }},
      {"dot",
       [](Maker& m) { return Overrides{{"self", m.tensor({m.size(0, 3)})}, {"tensor", m.tensor({m.size(0, 3)})}}; }},
      {"mv",
       [](Maker& m) {
         return Overrides{{"self", m.tensor({m.size(0, 3), m.size(1, 5)})}, {"vec", m.tensor({m.size(1, 5)})}};
       }},
      {"matmul",
       [](Maker& m) {
         int64_t inner = m.size(1, 5), rows = m.size(0, 3);
         const std::pair<Ints, Ints> shapes[] = {{{rows, inner}, {inner, 4}},
                                                 {{2, rows, inner}, {inner, 4}},
                                                 {{inner}, {inner, 4}},
                                                 {{2, rows, inner}, {2, inner, 4}},
                                                 {{2, 1, rows, inner}, {3, inner, 4}}};
         auto& [a, b] = shapes[m.recipe.variant % 5];
         return Overrides{{"self", m.tensor(a)}, {"other", m.tensor(b)}};
       }},
      {"linear",
       [](Maker& m) {
         Ints shape = m.rank() > 0 ? m.recipe.shape : Ints{5};
         return Overrides{{"input", m.tensor(shape)},
                          {"weight", m.tensor({4, shape.back()})},
                          {"bias", m.even() ? Value(m.tensor({4})) : Value()}};
       }},
      {"view", [](Maker& m) { return Overrides{{"size", Value(m.even() ? Ints{-1} : Ints{1, -1, 1})}}; }},
      {"reshape",
       [](Maker& m) {
         return Overrides{{"shape", Value(m.even() ? Ints{-1} : Ints{m.size(m.recipe.shape.size() - 1, 1), -1})}};
       }},
      {"empty_strided",
       [](Maker& m) {
         Ints strides;
         int64_t step = 1;
         for (int64_t size : m.recipe.shape) {
           strides.push_back(step);
           step *= std::max<int64_t>(1, size);
         }
         return Overrides{{"stride", strides}};
       }},
      {"expand",
       [](Maker& m) {
         Ints shape = m.recipe.shape, wider = shape;
         if (!shape.empty()) shape[0] = 1;
         wider.insert(wider.begin(), 2);
         return Overrides{{"self", m.tensor(shape)}, {"size", Value(wider)}};
       }},
      {"sum_to_size",
       [](Maker& m) {
         Ints wider = m.recipe.shape, size = m.recipe.shape;
         wider.insert(wider.begin(), 2);
         if (!m.even() && !size.empty()) size[0] = 1;
         return Overrides{{"self", m.tensor(wider)}, {"size", Value(size)}};
       }},
      {"permute",
       [](Maker& m) {
         Ints dims;
         for (int64_t dim = 0; dim < m.rank(); ++dim)
           dims.push_back(m.even() ? m.rank() - 1 - dim : (dim + 1) % m.rank());
         return Overrides{{"dims", Value(dims)}};
       }},
      {"slice",
       [](Maker& m) {
         return m.even() ? Overrides{{"start", Value(int64_t{1})}, {"end", Value(int64_t{-1})}}
                         : Overrides{
                               {"dim", Value(int64_t{-1})}, {"start", Value(int64_t{-5})}, {"step", Value(int64_t{2})}};
       }},
      {"as_strided",
       [](Maker& m) {
         // The evaluator takes composites apart on contiguous copies, where other elements lie at those places.
         if (m.recipe.placement == Placement::Transposed) m.recipe.placement = Placement::Contiguous;
         Strided s = strided(m);
         return Overrides{{"self", s.self}, {"size", s.size}, {"stride", s.stride}, {"storage_offset", s.from_storage}};
       }},
      {"as_strided_scatter",
       [](Maker& m) {
         Strided s = strided(m);
         if (m.even()) s.apart(m);  // what lies at one place twice has two values
         return Overrides{{"self", s.self},
                          {"src", m.tensor(s.size)},
                          {"size", s.size},
                          {"stride", s.stride},
                          {"storage_offset", s.from_storage}};
       }},
      {"_strided_view",
       [](Maker& m) {
         Strided s = strided(m);
         return Overrides{{"self", s.self}, {"size", s.size}, {"stride", s.stride}, {"offset", s.offset}};
       }},
      {"_strided_fold",
       [](Maker& m) {
         Strided s = strided(m);
         return Overrides{{"grad", m.tensor(s.size)},
                          {"self_size", m.recipe.shape},
                          {"self_stride", core::contiguous_strides(m.recipe.shape.span())},
                          {"stride", s.stride},
                          {"offset", s.offset}};
       }},
      {"_strided_gather",
       [](Maker& m) {
         Strided s = strided(m);
         Ints order;
         for (int64_t dim = 0; dim < m.rank(); ++dim) order.push_back(dim);
         return Overrides{{"self_stride", core::contiguous_strides(m.recipe.shape.span())},
                          {"size", s.size},
                          {"stride", s.stride},
                          {"offset", s.offset},
                          {"order", order}};
       }},
      {"_strided_scatter",
       [](Maker& m) {
         Strided s = strided(m);
         s.apart(m);
         return Overrides{{"src", m.tensor(s.size)},
                          {"self_stride", core::contiguous_strides(m.recipe.shape.span())},
                          {"stride", s.stride},
                          {"offset", s.offset},
                          {"order", Ints{0}}};
       }},
      {"slice_scatter",
       [](Maker& m) {
         Ints part = m.recipe.shape;
         if (part.empty()) return Overrides{};
         int64_t last = part.back();
         part.back() = m.even() ? std::max<int64_t>(0, last - 1) : last / 2;
         return Overrides{{"src", m.tensor(part)},
                          {"dim", Value(int64_t{-1})},
                          {"start", Value(int64_t{1})},
                          {"end", Value()},
                          {"step", Value(int64_t{m.even() ? 1 : 2})}};
       }},
      {"select_scatter", [](Maker& m) { return Overrides{{"src", m.tensor(without(m.recipe.shape, m.dim()))}}; }},
      {"cat",
       [](Maker& m) {
         Ints longer = m.recipe.shape, shorter = m.recipe.shape;
         if (!longer.empty()) {
           size_t dim = m.even() ? longer.size() - 1 : 0;
           longer[dim] += 3;
           shorter[dim] = 1;
         }
         Dtype second = m.recipe.pairing == Pairing::Dtype ? kFloat64 : m.recipe.dtype;
         return Overrides{{"tensors", Value(std::vector<Tensor>{m.tensor(m.recipe.shape), m.tensor(longer, second),
                                                                m.tensor(shorter)})}};
       }},
      {"gather",
       [](Maker& m) {
         Ints shape = m.recipe.shape;
         if (m.even() && !shape.empty() && shape.back() > 0) shape.back() += 2;
         return Overrides{{"index", m.indices(shape, m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1),
                                              m.even() ? kInt64 : kInt32)}};
       }},
      {"index",
       [](Maker& m) {
         if (m.recipe.variant % 4 != 3 || m.rank() == 0) return pick_rule(m);
         return Overrides{
             {"indices",
              Indices{m.tensor(m.recipe.variant % 8 == 3 ? m.recipe.shape : Ints{m.recipe.shape[0]}, kBool)}}};
       }},
      {"_index", pick_rule},
      {"index_put", put_rule},
      {"_index_put", put_rule},
      {"index_select",
       [](Maker& m) {
         int64_t size = m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1);
         return Overrides{{"index", m.rank() == 0 ? m.numbers({}, [](int64_t) { return 0; })
                                                  : m.indices({size == 0 ? 0 : 4}, size)}};
       }},
      {"index_add",
       [](Maker& m) {
         Ints shape = m.recipe.shape;
         int64_t size = m.size(m.even() ? shape.size() - 1 : 0, 1);
         if (!shape.empty()) shape[m.even() ? shape.size() - 1 : 0] = size == 0 ? 0 : 4;
         return Overrides{
             {"index", m.rank() == 0 ? m.numbers({}, [](int64_t) { return 0; }) : m.indices({size == 0 ? 0 : 4}, size)},
             {"source", m.tensor(shape)}};
       }},
      {"polygamma", [](Maker& m) { return Overrides{{"n", int64_t{m.recipe.variant % 3}}}; }},
      {"special_polygamma", [](Maker& m) { return Overrides{{"n", int64_t{m.recipe.variant % 3}}}; }},
      {"special_multigammaln",
       [](Maker& m) {
         Overrides rule = within(m, [](const Tensor& x) { return abs(x) + 2; });
         rule.insert({"p", int64_t{1 + m.recipe.variant % 2}});
         return rule;
       }},
      {"mvlgamma", [](Maker& m) { return Overrides{{"p", int64_t{1 + m.recipe.variant % 2}}}; }},
      {"dist", [](Maker& m) { return Overrides{{"p", norm_order(m)}}; }},
      {"trace", [](Maker& m) { return Overrides{{"self", m.tensor({m.size(0, 3), m.size(1, 4)})}}; }},
      {"outer",
       [](Maker& m) { return Overrides{{"self", m.tensor({m.size(0, 3)})}, {"vec2", m.tensor({m.size(1, 4)})}}; }},
      {"searchsorted",
       [](Maker& m) {
         auto rising = [](int64_t at) { return at % 11 * 2 - 4; };
         bool batched = m.even() && m.rank() > 1;
         Ints lines = batched ? m.recipe.shape : Ints{11};
         if (batched) lines.back() = 11;
         Dtype dtype = m.recipe.dtype == kUInt8 || m.recipe.dtype == kBool ? kInt32 : m.recipe.dtype;
         return Overrides{{"sorted_sequence", m.numbers(lines, rising, dtype)},
                          {"self", m.tensor(m.recipe.shape)},
                          {"right", m.recipe.variant % 3 == 1}};
       }},
      {"bucketize",
       [](Maker& m) {
         return Overrides{
             {"boundaries", m.numbers({13}, [](int64_t at) { return at - 6; }, kFloat32)}, {"right", m.even()}};
       }},
      {"one_hot",
       [](Maker& m) {
         return Overrides{{"self", m.indices(m.recipe.shape, 5)}, {"num_classes", int64_t{5 + m.recipe.variant % 2}}};
       }},
      {"masked_scatter",
       [](Maker& m) {
         return Overrides{{"mask", m.tensor(m.recipe.shape, kBool)}, {"source", m.tensor({m.numel() + 1})}};
       }},
      {"hardtanh", [](Maker&) { return Overrides{{"min_val", -0.5}, {"max_val", 0.625}}; }},
      {"prelu",
       [](Maker& m) {
         return Overrides{{"weight", m.tensor(m.even() ? Ints{m.rank() > 1 ? m.size(1, 1) : 1} : Ints{1})}};
       }},
      {"glu",
       [](Maker& m) {
         Ints shape = m.recipe.shape;
         if (shape.empty()) return Overrides{};
         (m.even() ? shape.back() : shape.front()) *= 2;
         return Overrides{{"self", m.tensor(shape)}};
       }},
      {"split", [](Maker&) { return Overrides{{"split_size", int64_t{2}}}; }},
      {"split_with_sizes", split_sizes_rule},
      {"chunk", [](Maker& m) { return Overrides{{"chunks", int64_t{m.even() ? 2 : 3}}}; }},
      {"narrow",
       [](Maker& m) {
         int64_t size = m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1);
         return Overrides{{"start", int64_t{size > 1 ? (m.even() ? 1 : -2) : 0}},
                          {"length", std::min<int64_t>(1, size)}};
       }},
      {"unflatten", [](Maker& m) { return Overrides{{"sizes", m.even() ? Ints{-1, 1} : Ints{1, m.size(0, 1), 1}}}; }},
      {"diagonal",
       [](Maker& m) {
         return Overrides{{"offset", int64_t{m.recipe.variant % 3 - 1}},
                          {"dim1", int64_t{m.even() ? 0 : -1}},
                          {"dim2", int64_t{m.even() ? -1 : 0}}};
       }},
      {"diagonal_scatter",
       [](Maker& m) {
         if (m.rank() < 2) return Overrides{};
         int64_t offset = m.recipe.variant % 3 - 1, rows = m.recipe.shape.front(), columns = m.recipe.shape.back();
         Ints part = m.recipe.shape;
         part.erase(part.begin());
         part.back() =
             std::max<int64_t>(0, offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns));
         return Overrides{{"src", m.tensor(part)}, {"offset", offset}, {"dim1", int64_t{0}}, {"dim2", int64_t{-1}}};
       }},
      {"stack",
       [](Maker& m) {
         Dtype second = m.recipe.pairing == Pairing::Dtype ? kFloat64 : m.recipe.dtype;
         return Overrides{{"tensors", std::vector<Tensor>{m.tensor(m.recipe.shape), m.tensor(m.recipe.shape, second),
                                                          m.tensor(m.recipe.shape)}}};
       }},
      {"swapaxes",
       [](Maker& m) { return Overrides{{"axis0", m.dim()}, {"axis1", m.rank() > 0 ? int64_t{-1} : int64_t{0}}}; }},
      {"einsum",
       [](Maker& m) {
         std::string letters = std::string("abcdefgh").substr(0, m.recipe.shape.size());
         std::string backwards(letters.rbegin(), letters.rend());
         std::vector<Tensor> one{m.tensor(m.recipe.shape)}, two{m.tensor(m.recipe.shape), m.tensor(m.recipe.shape)};
         if (m.recipe.variant % 3 == 0)
           return Overrides{{"equation", letters + "->" + backwards}, {"tensors", one}, {"path", Ints{0}}};
         std::string last = letters.empty() ? "" : letters.substr(letters.size() - 1);
         return Overrides{{"equation", letters + "," + letters + "->" + (m.even() ? last : backwards)},
                          {"tensors", two}};
       }},
      {"repeat", repeat_rule},
      {"tile", repeat_rule},
      {"repeat_interleave",
       [](Maker& m) {
         return Overrides{{"repeats", int64_t{m.recipe.variant % 4}},
                          {"dim", m.recipe.variant % 3 == 2 ? Value() : Value(m.dim())}};
       }},
      {"flip",
       [](Maker& m) {
         return Overrides{{"dims", m.rank() == 0  ? Ints{}
                                   : m.even()     ? Ints{-1}
                                   : m.rank() > 1 ? Ints{0, -1}
                                                  : Ints{0}}};
       }},
      {"roll",
       [](Maker& m) {
         return m.recipe.variant % 3 == 0 || m.rank() == 0 ? Overrides{{"shifts", Ints{2}}}
                                                           : Overrides{{"shifts", Ints{-3}}, {"dims", Ints{m.dim()}}};
       }},
      {"_roll", [](Maker& m) { return Overrides{{"shift", int64_t{m.even() ? 2 : -3}}}; }},
      {"tril", [](Maker& m) { return Overrides{{"diagonal", int64_t{m.recipe.variant % 5 - 2}}}; }},
      {"triu", [](Maker& m) { return Overrides{{"diagonal", int64_t{m.recipe.variant % 5 - 2}}}; }},
      {"_repeated_positions", [](Maker& m) { return Overrides{{"repeats", m.indices({m.size(0, 3)}, 4)}}; }},
      {"_unique", [](Maker& m) { return Overrides{{"return_inverse", m.even()}}; }},
      {"unique_consecutive",
       [](Maker& m) {
         return Overrides{{"return_inverse", m.even()},
                          {"return_counts", !m.even()},
                          {"dim", m.recipe.variant % 3 == 1 ? Value(m.dim()) : Value()}};
       }},
      {"_unique2", [](Maker& m) { return Overrides{{"return_inverse", m.even()}, {"return_counts", !m.even()}}; }},
      {"unique",
       [](Maker& m) {
         return Overrides{{"return_inverse", m.even()},
                          {"return_counts", true},
                          {"dim", m.recipe.variant % 3 == 1 ? Value(m.dim()) : Value()}};
       }},
      // In a compiled function a view looks at no more memory than the function was given: a slice that is the whole.
      {"slice_inverse",
       [](Maker& m) {
         if (m.recipe.placement != Placement::Offset) m.recipe.placement = Placement::Contiguous;  // as `as_strided`
         return Overrides{{"self", m.tensor(m.recipe.shape)},
                          {"src", m.tensor(m.recipe.shape)},
                          {"start", Value(int64_t{0})},
                          {"end", Value()},
                          {"step", Value(int64_t{1})}};
       }},
      {"linalg_eigh",
       [](Maker& m) {
         int64_t size = std::min<int64_t>(6, m.size(0, 3));
         Ints shape = m.even() ? Ints{size, size} : Ints{2, size, size};
         return Overrides{{"self", m.tensor(shape)}, {"UPLO", std::string(m.recipe.variant % 3 == 0 ? "U" : "L")}};
       }},
      {"eye", [](Maker& m) { return Overrides{{"n", m.size(0, 3)}, {"m", m.size(1, 4)}, {"dtype", m.recipe.dtype}}; }},
      {"linspace",
       [](Maker& m) {
         return Overrides{{"start", -1.5}, {"end", int64_t{4}}, {"steps", m.size(0, 1)}, {"dtype", m.recipe.dtype}};
       }},
      {"randint",
       [](Maker& m) { return Overrides{{"low", int64_t{m.even() ? 0 : 2}}, {"high", int64_t{m.even() ? 100 : 3}}}; }},
      {"cumsum", [](Maker& m) { return Overrides{{"dim", m.dim()}}; }},
      {"topk",
       [](Maker& m) {
         int64_t size = m.size(m.even() ? m.recipe.shape.size() - 1 : 0, 1);
         return Overrides{{"k", std::min<int64_t>(3, size)}, {"largest", m.even()}};
       }},
      {"sort", [](Maker& m) { return Overrides{{"descending", !m.even()}}; }},
      {"linalg_vector_norm", [](Maker& m) { return Overrides{{"ord", norm_order(m)}}; }},
      {"norm", [](Maker& m) { return Overrides{{"p", norm_order(m)}}; }},
      {"constant_pad_nd", [](Maker& m) { return Overrides{{"pad", some_pads(m, false)}}; }},
      {"pad",
       [](Maker& m) {
         constexpr std::string_view modes[] = {"constant", "reflect", "replicate", "circular"};
         std::string_view mode = modes[m.recipe.variant % 4];
         return Overrides{{"mode", mode}, {"pad", some_pads(m, mode != "constant")}, {"value", Value()}};
       }},
      {"max_pool2d", pool_rule},
      {"max_pool2d_with_indices", pool_rule},
      {"avg_pool2d", pool_rule},
      {"_avg_pool2d_backward",
       [](Maker& m) {
         Overrides rule = pool_rule(m);
         rule.erase("self");
         Ints image = image_shape(m), small = image;
         for (size_t dim : {small.size() - 2, small.size() - 1}) small[dim] = (image[dim] + 2 - 3) / 2 + 1;
         rule.insert({"grad_output", m.tensor(small)});
         rule.insert({"input_size", image});
         rule.insert({"ceil_mode", false});
         rule.insert({"count_include_pad", m.even()});
         rule.insert({"divisor_override", m.recipe.variant % 3 == 2 ? Value(int64_t{5}) : Value()});
         return rule;
       }},
      {"adaptive_max_pool2d",
       [](Maker& m) { return Overrides{{"self", m.tensor(image_shape(m))}, {"output_size", Ints{2, 3}}}; }},
      {"adaptive_avg_pool2d",
       [](Maker& m) {
         return Overrides{{"self", m.tensor(image_shape(m))}, {"output_size", m.even() ? Ints{2, 3} : Ints{1, 1}}};
       }},
      {"_adaptive_avg_pool2d",
       [](Maker& m) { return Overrides{{"self", m.tensor(image_shape(m))}, {"output_size", Ints{2, 3}}}; }},
      {"_adaptive_avg_pool2d_backward",
       [](Maker& m) {
         Ints image = image_shape(m), small = image;
         small[small.size() - 2] = 2;
         small.back() = 3;
         return Overrides{{"grad_output", m.tensor(small)}, {"input_size", image}};
       }},
      {"adaptive_max_pool3d",
       [](Maker& m) {
         Ints image = image_shape(m);
         image.insert(image.end() - 2, 3);
         return Overrides{{"self", m.tensor(image)}, {"output_size", Ints{2, 3, 2}}};
       }},
      {"layer_norm",
       [](Maker& m) {
         Ints shape = m.rank() == 0 ? Ints{4} : m.recipe.shape, last(shape);
         while (last.size() > (m.even() ? 1u : 2u)) last.erase(last.begin());
         return Overrides{{"input", m.tensor(shape)},
                          {"normalized_shape", last},
                          {"weight", m.recipe.variant % 3 == 0 ? Value() : Value(m.tensor(last))},
                          {"bias", m.recipe.variant % 3 == 1 ? Value(m.tensor(last)) : Value()}};
       }},
      {"_native_batch_norm_legit",
       [](Maker& m) {
         Ints shape{4, m.size(0, 3), 2};
         if (m.even()) shape.push_back(3);
         Ints channels{shape[1]};
         return Overrides{{"input", m.tensor(shape)},
                          {"weight", m.recipe.variant % 3 == 0 ? Value() : Value(m.tensor(channels))},
                          {"bias", m.recipe.variant % 3 == 1 ? Value(m.tensor(channels)) : Value()},
                          {"training", true},
                          {"momentum", 0.1},
                          {"eps", 1e-5}};
       }},
      // The row `padding_idx` has a slope that its gradient leaves out.
      {"embedding",
       [](Maker& m) {
         return Overrides{{"weight", m.tensor({7, m.size(1, 3) + 1})},
                          {"indices", m.indices(m.recipe.shape, 7, m.even() ? kInt64 : kInt32)},
                          {"padding_idx", int64_t{m.even() || m.recipe.dtype == kFloat64 ? -1 : 2}}};
       }},
      // Finite differences would see another draw at every step.
      {"dropout", [](Maker& m) { return Overrides{{"p", 0.4}, {"train", m.recipe.dtype != kFloat64}}; }},
      {"bernoulli", [](Maker&) { return Overrides{{"p", 0.3}}; }},
      {"baddbmm",
       [](Maker& m) {
         int64_t inner = m.size(1, 5), rows = m.size(0, 3), columns = m.size(2, 4);
         return Overrides{{"self", m.tensor(m.even() ? Ints{columns} : Ints{2, rows, 1})},
                          {"batch1", m.tensor({2, rows, inner})},
                          {"batch2", m.tensor({2, inner, columns})}};
       }},
      {"l1_loss", [](Maker& m) { return Overrides{{"reduction", int64_t{m.recipe.variant % 3}}}; }},
      {"unfold",
       [](Maker& m) {
         return Overrides{
             {"dimension", m.dim()}, {"size", int64_t{m.even() ? 2 : 3}}, {"step", int64_t{m.recipe.variant % 3 + 1}}};
       }},
      {"unfold_backward",
       [](Maker& m) {
         int64_t size = m.even() ? 2 : 3, step = m.recipe.variant % 3 + 1;
         Ints sizes = m.rank() == 0 ? Ints{4} : m.recipe.shape, windows = sizes;
         size_t dim = m.even() ? sizes.size() - 1 : 0;
         windows[dim] = std::max<int64_t>(0, (sizes[dim] - size) / step + 1);
         windows.push_back(size);
         return Overrides{
             {"grad_in", m.tensor(windows)}, {"input_sizes", sizes}, {"dim", m.dim()}, {"size", size}, {"step", step}};
       }},
      {"conv2d",
       [](Maker& m) {
         keep_finite(m);
         Ints image = image_shape(m);
         int64_t groups = m.even() ? 1 + m.recipe.variant / 2 % 2 : 1;
         int64_t channels = image[image.size() - 3] / groups;
         return Overrides{{"input", m.tensor(image)},
                          {"weight", m.tensor({4, channels, 3, 2})},
                          {"bias", m.even() ? Value(m.tensor({4})) : Value()},
                          {"stride", Ints{1 + m.recipe.variant % 2, 1}},
                          {"padding", Ints{1, m.recipe.variant % 3}},
                          {"dilation", Ints{1, m.recipe.variant % 3 == 2 ? 2 : 1}},
                          {"groups", groups}};
       }},
      {"conv1d", [](Maker& m) { return convolution_rule(m, 1, false); }},
      {"conv3d", [](Maker& m) { return convolution_rule(m, 3, false); }},
      {"conv_transpose1d", [](Maker& m) { return convolution_rule(m, 1, true); }},
      {"conv_transpose2d", [](Maker& m) { return convolution_rule(m, 2, true); }},
      {"conv_transpose3d", [](Maker& m) { return convolution_rule(m, 3, true); }},
      {"convolution",
       [](Maker& m) {
         return convolution_rule(m, static_cast<size_t>(m.recipe.variant % 3 + 1), m.recipe.variant % 4 == 3);
       }},
      {"_convolution_input_gradient",
       [](Maker& m) {
         keep_finite(m);
         ConvolutionSample c(m, static_cast<size_t>(m.recipe.variant % 3 + 1), false);
         Overrides rule = c.numbers();
         rule.insert({{"grad_output", m.tensor(c.result)}, {"weight", m.tensor(c.weight)}, {"input_size", c.input}});
         return rule;
       }},
      {"_convolution_weight_gradient",
       [](Maker& m) {
         keep_finite(m);
         ConvolutionSample c(m, static_cast<size_t>(m.recipe.variant % 3 + 1), false);
         Overrides rule = c.numbers();
         rule.insert({{"grad_output", m.tensor(c.result)}, {"input", m.tensor(c.input)}, {"weight_size", c.weight}});
         return rule;
       }},
      {"convolution_backward",
       [](Maker& m) {
         const bool transposed = m.recipe.variant % 4 == 3;
         keep_finite(m);
         ConvolutionSample c(m, static_cast<size_t>(m.recipe.variant % 3 + 1), transposed);
         Overrides rule = c.numbers();
         rule.insert({{"grad_output", m.tensor(c.result)},
                      {"input", m.tensor(c.input)},
                      {"weight", m.tensor(c.weight)},
                      {"bias_sizes", Ints{4}},
                      {"transposed", transposed},
                      {"output_padding", c.output_padding},
                      {"output_mask", std::vector<bool>{true, true, true}}});
         return rule;
       }},
      {"im2col",
       [](Maker& m) {
         return Overrides{{"self", m.tensor(image_shape(m))},
                          {"kernel_size", Ints{2, 3}},
                          {"dilation", Ints{1, 1}},
                          {"padding", Ints{1, 0}},
                          {"stride", Ints{1, m.even() ? 1 : 2}}};
       }},
      {"_embedding_bag", bag_rule},
      {"_embedding_bag_forward_only", bag_rule},
      {"new_empty_strided",
       [](Maker& m) { return Overrides{{"stride", Ints(core::contiguous_strides(m.recipe.shape.span()))}}; }},
      {"randint_like", [](Maker&) { return Overrides{{"low", int64_t{-2}}, {"high", int64_t{7}}}; }},
      {"special_ndtri", [](Maker& m) { return within(m, [](const Tensor& x) { return sigmoid(x); }); }},
      {"special_erfcx", [](Maker& m) { return within(m, [](const Tensor& x) { return tanh(x) * 2; }); }},
      {"special_log_ndtr", [](Maker& m) { return within(m, [](const Tensor& x) { return tanh(x) * 2; }); }},
      {"bitwise_left_shift", shift_rule},
      {"bitwise_right_shift", shift_rule},
      {"_bits_as", bits_rule},
      {"scaled_dot_product_attention", attention_rule},
      {"_scaled_dot_product_flash_attention_for_cpu", attention_rule},
      {"_scaled_dot_product_flash_attention_for_cpu_backward", attention_gradient_rule},
      {"nll_loss",
       [](Maker& m) {
         int64_t rows = m.size(0, 3), classes = std::max<int64_t>(1, m.size(1, 5));
         return Overrides{{"self", m.tensor({rows, classes})},
                          {"target", m.indices({rows}, classes)},
                          {"weight", m.even() ? Value() : Value(m.tensor({classes}))},
                          {"reduction", Value(int64_t{m.recipe.variant % 3})},
                          {"ignore_index", Value(int64_t{m.recipe.variant % 4 == 2 ? 0 : -100})}};
       }},
      {"_unsafe_index", pick_rule},
      {"_unsafe_masked_index", masked_index_rule},
      {"_unsafe_masked_index_put_accumulate", masked_index_rule},
      {"_prelu_kernel", [](Maker& m) { return Overrides{{"weight", m.tensor({})}}; }},
      {"native_dropout_backward",
       [](Maker& m) {
         return Overrides{
             {"grad_output", m.tensor(m.recipe.shape)}, {"mask", m.tensor(m.recipe.shape, kBool)}, {"scale", 2.0}};
       }},
      {"nll_loss_forward", nll_parts_rule},
      {"nll_loss_backward", nll_parts_rule},
      {"mse_loss_backward",
       [](Maker& m) {
         int64_t reduction = m.recipe.variant % 3;
         return Overrides{{"grad_output", m.tensor(reduction == 0 ? m.recipe.shape : Ints{})},
                          {"self", m.tensor(m.recipe.shape)},
                          {"target", m.tensor(m.recipe.shape)},
                          {"reduction", Value(reduction)}};
       }},
      {"_softmax", [](Maker& m) { return Overrides{{"dim", m.dim()}, {"half_to_float", false}}; }},
      {"_log_softmax", [](Maker& m) { return Overrides{{"dim", m.dim()}, {"half_to_float", false}}; }},
      {"_softmax_backward_data", softmax_parts_rule},
      {"_log_softmax_backward_data", softmax_parts_rule},
      {"embedding_dense_backward",
       [](Maker& m) {
         Ints rows = m.recipe.shape;
         rows.push_back(3);
         return Overrides{{"grad_output", m.tensor(rows)},
                          {"indices", m.indices(m.recipe.shape, 5)},
                          {"num_weights", int64_t{5}},
                          {"padding_idx", int64_t{m.even() ? -1 : 2}},
                          {"scale_grad_by_freq", m.recipe.variant % 3 == 1}};
       }},
      {"_unsafe_view", [](Maker& m) { return Overrides{{"size", Ints{m.numel()}}}; }},
      {"elu_backward",
       [](Maker& m) {
         return Overrides{{"alpha", 1.5}, {"scale", 2.0}, {"input_scale", 0.5}, {"is_result", !m.even()}};
       }},
      {"leaky_relu_backward",
       [](Maker& m) { return Overrides{{"negative_slope", 0.25}, {"self_is_result", m.even()}}; }},
      {"hardtanh_backward", [](Maker&) { return Overrides{{"min_val", -0.5}, {"max_val", 0.625}}; }},
      {"softplus_backward", [](Maker&) { return Overrides{{"beta", 2.0}, {"threshold", 3.0}}; }},
      {"slice_backward",
       [](Maker& m) {
         Ints sizes = m.recipe.shape.empty() ? Ints{1} : m.recipe.shape, part = sizes;
         part.back() = (sizes.back() + 1) / 2;
         return Overrides{{"grad_output", m.tensor(part)}, {"input_sizes", sizes},         {"dim", int64_t{-1}},
                          {"start", int64_t{0}},           {"end", int64_t{sizes.back()}}, {"step", int64_t{2}}};
       }},
      {"select_backward",
       [](Maker& m) {
         Ints sizes = m.recipe.shape;
         sizes.push_back(4);
         return Overrides{{"grad_output", m.tensor(m.recipe.shape)},
                          {"input_sizes", sizes},
                          {"dim", int64_t{-1}},
                          {"index", int64_t{m.even() ? 1 : -1}}};
       }},
      {"diagonal_backward",
       [](Maker& m) {
         Ints sizes = m.recipe.shape, part = m.recipe.shape;
         sizes.push_back(3);
         sizes.push_back(4);
         part.push_back(3);
         return Overrides{{"grad_output", m.tensor(part)},
                          {"input_sizes", sizes},
                          {"offset", int64_t{1}},
                          {"dim1", int64_t{-2}},
                          {"dim2", int64_t{-1}}};
       }},
      {"cross_entropy_loss",
       [](Maker& m) {
         int64_t rows = m.size(0, 3), classes = std::max<int64_t>(1, m.size(1, 5));
         return Overrides{
             {"self", m.tensor({rows, classes})},
             {"target", m.recipe.variant % 4 == 3 && is_floating(m.recipe.dtype) ? m.tensor({rows, classes})
                                                                                 : m.indices({rows}, classes)},
             {"weight", m.even() ? Value() : Value(m.tensor({classes}))},
             {"reduction", Value(int64_t{m.recipe.variant % 3})},
             {"label_smoothing", Value(m.recipe.variant % 4 > 1 ? 0.1 : 0.0)}};
       }},
      {"arange",
       [](Maker& m) {
         if (m.even())
           return Overrides{{"start", Value(int64_t{-2})},
                            {"end", Value(m.size(0, 4))},
                            {"step", Value(int64_t{1 + m.recipe.variant / 2 % 2})},
                            {"dtype", Value(m.recipe.dtype)}};
         return Overrides{
             {"start", Value(0.5)}, {"end", Value(0.5 + static_cast<double>(m.size(0, 4)))}, {"step", Value(0.75)}};
       }},
  };
  return rules;
}

const Rules& overload_rules() {
  static const Rules rules = {
      {"split.sizes", split_sizes_rule},
      {"view.dtype", bits_rule},
      {"special_zeta.", [](Maker& m) { return Overrides{{"self", beyond_two(m)}, {"other", beyond_two(m)}}; }},
      {"special_zeta.self_scalar", [](Maker& m) { return Overrides{{"self", 2.5}, {"other", beyond_two(m)}}; }},
      {"special_zeta.other_scalar", [](Maker& m) { return Overrides{{"self", beyond_two(m)}, {"other", 1.5}}; }},
      {"repeat_interleave.Tensor", [](Maker& m) { return Overrides{{"repeats", m.indices({m.size(0, 3)}, 4)}}; }},
      {"round.decimals", [](Maker& m) { return Overrides{{"decimals", int64_t{m.recipe.variant % 4 - 1}}}; }},
      {"upsample_nearest2d.", upsample_rule},
      {"upsample_bilinear2d.", upsample_rule},
      {"upsample_nearest2d.vec", scaled_upsample_rule},
      {"upsample_bilinear2d.vec", scaled_upsample_rule},
      {"div.Tensor_mode",
       [](Maker& m) {
         return Overrides{{"rounding_mode", m.recipe.variant % 3 == 0
                                                ? Value()
                                                : Value(std::string_view(m.even() ? "floor" : "trunc"))}};
       }},
      {"clamp.Tensor",
       [](Maker& m) {
         Ints row = m.rank() > 0 ? Ints{m.recipe.shape.back()} : Ints{};
         return Overrides{{"min", m.recipe.variant % 4 == 1 ? Value() : Value(m.tensor(row))},
                          {"max", m.recipe.variant % 4 == 2 ? Value() : Value(m.tensor(m.recipe.shape))}};
       }},
      {"masked_fill.Tensor", [](Maker& m) { return Overrides{{"value", m.tensor({})}}; }},
      {"fill.Tensor", [](Maker& m) { return Overrides{{"value", m.tensor({})}}; }},
      {"scatter.src",
       [](Maker& m) {
         Tensor index = m.rotated(m.recipe.shape, m.dim());
         Ints wider = m.recipe.shape;
         if (m.recipe.variant % 3 == 1 && !wider.empty()) wider[0] += 1;
         return Overrides{{"index", index}, {"src", m.tensor(wider)}};
       }},
      {"movedim.int",
       [](Maker& m) { return Overrides{{"source", m.dim()}, {"destination", int64_t{m.even() ? 0 : -1}}}; }},
      {"movedim.intlist",
       [](Maker& m) {
         return m.rank() < 2 ? Overrides{{"source", Ints{0}}, {"destination", Ints{0}}}
                             : Overrides{{"source", Ints{0, -1}}, {"destination", Ints{-1, m.even() ? 0 : 1}}};
       }},
      {"repeat_interleave.self_Tensor",
       [](Maker& m) {
         size_t dim = m.even() && m.rank() > 0 ? m.recipe.shape.size() - 1 : 0;
         return Overrides{{"repeats", m.indices({m.size(dim, 1)}, 4)}, {"dim", m.dim()}};
       }},
  };
  return rules;
}

}  // namespace tenon::test
