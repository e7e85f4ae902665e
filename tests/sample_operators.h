// Sample operators, as an author would write them: what each computes in plain loops, its fake, and its gradient in
// terms of other operators. Each function defines its operator anew and gives the handle.
#pragma once

#include <tenon/fake/dynamic_size.h>
#include <tenon/library/custom_op.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <numeric>

namespace tenon::testing {

using library::AutogradContext;
using library::Inputs;
using library::Outputs;

// Coordinates of the elements that are not zero, one row each.
inline Tensor plain_nonzero(const Tensor& x) {
  Tensor from = x.to(kFloat32).contiguous();
  std::vector<int64_t> rows;
  int64_t count = 0;
  for (int64_t at = 0; at < from.numel().plain(); ++at) {
    if (from.data<float>()[at] == 0) continue;
    ++count;
    size_t start = rows.size();
    rows.resize(start + static_cast<size_t>(from.dim()));
    int64_t rest = at;
    for (int64_t dim = from.dim(); dim-- > 0;) {
      rows[start + static_cast<size_t>(dim)] = rest % from.sizes()[static_cast<size_t>(dim)];
      rest /= from.sizes()[static_cast<size_t>(dim)];
    }
  }
  Tensor result = empty({count, from.dim()}, TensorOptions(kInt64));
  std::copy(rows.begin(), rows.end(), result.data<int64_t>());
  return result;
}

// An operator whose result's size depends on the data.
inline auto sample_nonzero() {
  auto op = custom_op("_tenon_testing::nonzero", plain_nonzero, {.names = "x"});
  op.register_fake(
      [](const Tensor& x) { return empty({fake::new_dynamic_size(), SymInt(x.dim())}, TensorOptions(kInt64)); });
  return op;
}

inline auto sample_view_copy() {
  auto op =
      custom_op("_tenon_testing::view_copy",
                [](const Tensor& x, const SymInts& sizes) { return x.view(sizes).clone(); }, {.names = "x, sizes"});
  op.register_fake([](const Tensor& x, const SymInts& sizes) { return x.view(sizes).clone(); });
  op.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) -> std::vector<Tensor> {
        SymInts sizes;
        for (const AnyValue& size : ctx.saved_data["sizes"].list()) sizes.push_back(size.sym_int());
        return {grad.reshape(sizes), Tensor()};
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) {
        SymInts sizes = inputs["x"].tensor().sym_sizes();
        ctx.saved_data["sizes"] = AnyValue::List(sizes.begin(), sizes.end());
      });
  return op;
}

// Greedy selection of boxes in order of their scores; returns the chosen indices.
inline Tensor plain_nms(const Tensor& boxes, const Tensor& scores, double limit) {
  int64_t count = scores.numel().plain();
  std::vector<int64_t> order(static_cast<size_t>(count)), kept;
  for (int64_t at = 0; at < count; ++at) order[static_cast<size_t>(at)] = at;
  const float* score = scores.data<float>();
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
  auto box = [&](int64_t at, int corner) { return boxes.data<float>()[at * 4 + corner]; };
  auto area = [&](int64_t at) { return (box(at, 2) - box(at, 0)) * (box(at, 3) - box(at, 1)); };
  for (int64_t at : order) {
    bool overlaps = false;
    for (int64_t other : kept) {
      float width = std::min(box(at, 2), box(other, 2)) - std::max(box(at, 0), box(other, 0));
      float height = std::min(box(at, 3), box(other, 3)) - std::max(box(at, 1), box(other, 1));
      float shared = std::max(width, 0.f) * std::max(height, 0.f);
      overlaps = overlaps || shared / (area(at) + area(other) - shared) > static_cast<float>(limit);
    }
    if (!overlaps) kept.push_back(at);
  }
  Tensor result = empty({static_cast<int64_t>(kept.size())}, TensorOptions(kInt64));
  std::copy(kept.begin(), kept.end(), result.data<int64_t>());
  return result;
}

inline auto sample_nms() {
  auto op = custom_op("_tenon_testing::nms", plain_nms, {.names = "boxes, scores, limit"});
  op.register_fake(
      [](const Tensor&, const Tensor&, double) { return empty({fake::new_dynamic_size()}, TensorOptions(kInt64)); });
  return op;
}

namespace sample {

// A contiguous copy of double numbers, and the way back to a tensor like `like`.
inline std::vector<double> numbers(const Tensor& tensor) {
  Tensor plain = tensor.to(kFloat64).contiguous();
  return {plain.data<double>(), plain.data<double>() + plain.numel().plain()};
}
inline Tensor from_numbers(const std::vector<double>& list, const SymInts& sizes, Dtype dtype) {
  Tensor result = empty(sizes, TensorOptions(kFloat64));
  std::copy(list.begin(), list.end(), result.data<double>());
  return result.to(dtype);
}

// A tensor's elements as outer × size × inner, around one dimension.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;
  Around(const Tensor& x, int64_t dim) {
    for (int64_t at = 0; at < x.dim(); ++at)
      (at < dim ? outer : at == dim ? size : inner) *= x.sizes()[static_cast<size_t>(at)];
  }
  size_t at(int64_t o, int64_t s, int64_t i) const { return static_cast<size_t>((o * size + s) * inner + i); }
};

inline SymInts with_size(const Tensor& x, int64_t dim, const SymInt& size) {
  SymInts sizes = x.sym_sizes();
  sizes[static_cast<size_t>(dim)] = size;
  return sizes;
}

}  // namespace sample

// The cube and its derivative, which backward uses.
inline auto sample_cube() {
  auto op = custom_op("_tenon_testing::cube",
                      [](const Tensor& x) {
                        std::vector<double> cubes = sample::numbers(x), slopes = cubes;
                        for (double& each : cubes) each *= each * each;
                        for (double& each : slopes) each *= 3 * each;
                        return std::pair(sample::from_numbers(cubes, x.sym_sizes(), x.dtype()),
                                         sample::from_numbers(slopes, x.sym_sizes(), x.dtype()));
                      },
                      {.names = "x"});
  op.register_fake([](const Tensor& x) {
    return std::pair(empty(x.sym_sizes(), TensorOptions(x.dtype())), empty(x.sym_sizes(), TensorOptions(x.dtype())));
  });
  op.register_autograd(
      [](AutogradContext& ctx, const std::vector<Tensor>& grads) {
        std::vector<Tensor> saved = ctx.saved_tensors();
        return grads[0] * saved[1] + grads[1] * saved[0] * 6;
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs outputs) {
        ctx.save_for_backward({inputs["x"].tensor(), outputs[1].tensor()});
      });
  return op;
}

inline auto sample_mul() {
  auto op = custom_op("_tenon_testing::mul",
                      [](const Tensor& x, const Tensor& y) {
                        std::vector<double> products = sample::numbers(x), factors = sample::numbers(y);
                        for (size_t at = 0; at < products.size(); ++at) products[at] *= factors[at];
                        return sample::from_numbers(products, x.sym_sizes(), x.dtype());
                      },
                      {.names = "x, y"});
  op.register_fake([](const Tensor& x, const Tensor&) { return empty(x.sym_sizes(), TensorOptions(x.dtype())); });
  op.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) -> std::vector<Tensor> {
        std::vector<Tensor> saved = ctx.saved_tensors();
        return {ctx.needs_input_grad(0) ? grad * saved[1] : Tensor(),
                ctx.needs_input_grad(1) ? grad * saved[0] : Tensor()};
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) {
        ctx.save_for_backward({inputs["x"].tensor(), inputs["y"].tensor()});
      });
  return op;
}

// Elements by index along a dimension; `inverse` undoes it.
inline auto sample_take() {
  auto op = custom_op("_tenon_testing::take",
                      [](const Tensor& x, const Tensor& index, const Tensor&, int64_t dim) {
                        std::vector<double> from = sample::numbers(x), places = sample::numbers(index), to(from.size());
                        sample::Around around(x, dim);
                        for (int64_t o = 0; o < around.outer; ++o)
                          for (int64_t s = 0; s < around.size; ++s)
                            for (int64_t i = 0; i < around.inner; ++i)
                              to[around.at(o, s, i)] =
                                  from[around.at(o, static_cast<int64_t>(places[around.at(o, s, i)]), i)];
                        return sample::from_numbers(to, x.sym_sizes(), x.dtype());
                      },
                      {.names = "x, index, inverse, dim"});
  op.register_fake([](const Tensor& x, const Tensor&, const Tensor&, const SymInt&) {
    return empty(x.sym_sizes(), TensorOptions(x.dtype()));
  });
  op.register_autograd(
      [op](AutogradContext& ctx, const Tensor& grad) -> std::vector<Tensor> {
        std::vector<Tensor> saved = ctx.saved_tensors();
        return {op(grad, saved[1], saved[0], ctx.saved_data["dim"].integer()), Tensor(), Tensor()};
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) {
        ctx.save_for_backward({inputs["index"].tensor(), inputs["inverse"].tensor()});
        ctx.saved_data["dim"] = inputs["dim"].integer();
      });
  return op;
}

// Sorted along a dimension, with the places that the elements came from and those that they went to.
inline auto sample_sort() {
  auto take = sample_take();
  auto op = custom_op("_tenon_testing::sort",
                      [](const Tensor& x, int64_t dim) {
                        std::vector<double> from = sample::numbers(x), sorted(from.size()), index(from.size()),
                                            inverse(from.size());
                        sample::Around around(x, dim);
                        std::vector<int64_t> order(static_cast<size_t>(around.size));
                        for (int64_t o = 0; o < around.outer; ++o)
                          for (int64_t i = 0; i < around.inner; ++i) {
                            std::iota(order.begin(), order.end(), 0);
                            std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
                              return from[around.at(o, a, i)] < from[around.at(o, b, i)];
                            });
                            for (int64_t s = 0; s < around.size; ++s) {
                              int64_t source = order[static_cast<size_t>(s)];
                              sorted[around.at(o, s, i)] = from[around.at(o, source, i)];
                              index[around.at(o, s, i)] = static_cast<double>(source);
                              inverse[around.at(o, source, i)] = static_cast<double>(s);
                            }
                          }
                        return std::tuple(sample::from_numbers(sorted, x.sym_sizes(), x.dtype()),
                                          sample::from_numbers(index, x.sym_sizes(), kInt64),
                                          sample::from_numbers(inverse, x.sym_sizes(), kInt64));
                      },
                      {.names = "x, dim"});
  op.register_fake([](const Tensor& x, const SymInt&) {
    Tensor places = empty(x.sym_sizes(), TensorOptions(kInt64));
    return std::tuple(empty(x.sym_sizes(), TensorOptions(x.dtype())), places, empty_like(places));
  });
  op.register_autograd(
      [take](AutogradContext& ctx, const std::vector<Tensor>& grads) {
        std::vector<Tensor> saved = ctx.saved_tensors();
        return take(grads[0], saved[1], saved[0], ctx.saved_data["dim"].integer());
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs outputs) {
        ctx.save_for_backward({outputs[1].tensor(), outputs[2].tensor()});
        ctx.mark_non_differentiable({outputs[1].tensor(), outputs[2].tensor()});
        ctx.saved_data["dim"] = inputs["dim"].integer();
      });
  return op;
}

// One behind the other along a dimension.
inline auto sample_cat() {
  auto op = custom_op("_tenon_testing::cat",
                      [](const std::vector<Tensor>& list, int64_t dim) {
                        int64_t total = 0;
                        for (const Tensor& each : list) total += each.sizes()[static_cast<size_t>(dim)];
                        Tensor like = list[0];
                        std::vector<double> joined(
                            static_cast<size_t>(like.numel().plain() / like.sizes()[static_cast<size_t>(dim)] * total));
                        int64_t start = 0;
                        for (const Tensor& each : list) {
                          std::vector<double> from = sample::numbers(each);
                          sample::Around around(each, dim);
                          for (int64_t o = 0; o < around.outer; ++o)
                            for (int64_t s = 0; s < around.size; ++s)
                              for (int64_t i = 0; i < around.inner; ++i)
                                joined[static_cast<size_t>((o * total + start + s) * around.inner + i)] =
                                    from[around.at(o, s, i)];
                          start += around.size;
                        }
                        return sample::from_numbers(joined, sample::with_size(like, dim, total), like.dtype());
                      },
                      {.names = "list, dim"});
  op.register_fake([](const std::vector<Tensor>& list, int64_t dim) {
    SymInt total = 0;
    for (const Tensor& each : list) total = total + each.size(dim);
    return empty(sample::with_size(list[0], dim, total), TensorOptions(list[0].dtype()));
  });
  op.register_autograd(
      [](AutogradContext& ctx, const Tensor& grad) -> std::vector<AnyValue> {
        AnyValue::List gradients;
        int64_t dim = ctx.saved_data["dim"].integer();
        SymInt start = 0;
        for (const AnyValue& size : ctx.saved_data["sizes"].list()) {
          gradients.emplace_back(slice(grad, dim, start, start + size.sym_int()).clone());
          start = start + size.sym_int();
        }
        return {AnyValue(std::move(gradients)), AnyValue()};
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) {
        AnyValue::List sizes;
        for (const Tensor& each : inputs["list"].tensors()) sizes.emplace_back(each.size(inputs["dim"].integer()));
        ctx.saved_data["sizes"] = AnyValue(std::move(sizes));
        ctx.saved_data["dim"] = inputs["dim"].integer();
      });
  return op;
}

// Cut before the given places along a dimension; every piece is a copy.
inline auto sample_split_copy() {
  auto join = sample_cat();
  auto pieces = [](const Tensor& x, const SymInts& splits, int64_t dim) {
    std::vector<Tensor> list;
    SymInt start = 0;
    for (size_t at = 0; at <= splits.size(); ++at) {
      SymInt end = at < splits.size() ? splits[at] : x.size(dim);
      list.push_back(slice(x, dim, start, end).clone(MemoryFormat::Contiguous));
      start = end;
    }
    return list;
  };
  auto op = custom_op("_tenon_testing::split_copy", pieces, {.names = "x, splits, dim"});
  op.register_fake(pieces);
  op.register_autograd(
      [join](AutogradContext& ctx, const std::vector<Tensor>& grads) -> std::vector<Tensor> {
        return {join(grads, ctx.saved_data["dim"].integer()), Tensor(), Tensor()};
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.saved_data["dim"] = inputs["dim"].integer(); });
  return op;
}

// The same, and the number of places that it was cut at.
inline auto sample_split_copy_with_int() {
  auto join = sample_cat();
  auto pieces = [](const Tensor& x, const SymInts& splits, int64_t dim) {
    std::vector<Tensor> list;
    SymInt start = 0;
    for (size_t at = 0; at <= splits.size(); ++at) {
      SymInt end = at < splits.size() ? splits[at] : x.size(dim);
      list.push_back(slice(x, dim, start, end).clone(MemoryFormat::Contiguous));
      start = end;
    }
    return std::pair(std::move(list), static_cast<int64_t>(splits.size()));
  };
  auto op = custom_op("_tenon_testing::split_copy_with_int", pieces, {.names = "x, splits, dim"});
  op.register_fake(pieces);
  op.register_autograd(
      [join](AutogradContext& ctx, const std::vector<AnyValue>& grads) -> std::vector<Tensor> {
        std::vector<Tensor> list;
        for (const AnyValue& each : grads[0].list()) list.push_back(each.tensor());
        return {join(list, ctx.saved_data["dim"].integer()), Tensor(), Tensor()};
      },
      [](AutogradContext& ctx, const Inputs& inputs, Outputs) { ctx.saved_data["dim"] = inputs["dim"].integer(); });
  return op;
}

}  // namespace tenon::testing
