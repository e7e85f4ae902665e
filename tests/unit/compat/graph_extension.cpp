// An extension for libtorch: reductions of rows by segment with the place of the largest, and nearest neighbours.
#include <torch/script.h>

#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace {

std::tuple<torch::Tensor, torch::Tensor> segment_max_cpu(const torch::Tensor& src, const torch::Tensor& index,
                                                         int64_t segments) {
  TORCH_CHECK(src.dim() == 2, "segment_max: expected a matrix, got ", src.dim(), " dimensions");
  TORCH_CHECK(index.scalar_type() == torch::kLong, "segment_max: expected int64 indices, got ", index.scalar_type());
  auto from = src.contiguous(), where = index.contiguous();
  const auto rows = from.size(0), columns = from.size(1);
  auto out = torch::zeros({segments, columns}, from.options());
  auto arg = torch::full({segments, columns}, rows, where.options());
  AT_DISPATCH_ALL_TYPES(from.scalar_type(), "segment_max", [&] {
    auto src_data = from.data_ptr<scalar_t>();
    auto out_data = out.data_ptr<scalar_t>();
    auto arg_data = arg.data_ptr<int64_t>();
    auto index_data = where.data_ptr<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t segment = index_data[row];
      TORCH_CHECK_INDEX(segment >= 0 && segment < segments, "segment_max: segment ", segment, " of ", segments);
      for (int64_t column = 0; column < columns; ++column) {
        auto& best = arg_data[segment * columns + column];
        const scalar_t value = src_data[row * columns + column];
        if (best == rows || value > out_data[segment * columns + column]) {
          out_data[segment * columns + column] = value;
          best = row;
        }
      }
    }
  });
  return std::make_tuple(out, arg);
}
std::tuple<torch::Tensor, torch::Tensor> segment_max_meta(const torch::Tensor& src, const torch::Tensor& index,
                                                          c10::SymInt segments) {
  return {torch::empty({segments, src.sym_size(1)}, src.options()),
          torch::empty({segments, src.sym_size(1)}, index.options())};
}

class SegmentMax : public torch::autograd::Function<SegmentMax> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx, torch::Tensor src,
                                                torch::Tensor index, c10::SymInt segments) {
    at::AutoDispatchBelowADInplaceOrView guard;
    static auto op =
        c10::Dispatcher::singleton()
            .findSchemaOrThrow("ext_graph::segment_max", "")
            .typed<std::tuple<torch::Tensor, torch::Tensor>(const torch::Tensor&, const torch::Tensor&, c10::SymInt)>();
    auto [out, arg] = op.call(src, index, segments);
    ctx->saved_data["rows"] = src.sym_size(0);
    ctx->save_for_backward({arg});
    ctx->mark_non_differentiable({arg});
    return {out, arg};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    auto arg = ctx->get_saved_variables()[0];
    auto rows = ctx->saved_data["rows"].sym_int();
    // One row more, for segments that had none.
    auto grad = torch::zeros({rows + 1, arg.sym_size(1)}, grads[0].options());
    return {grad.scatter_add(0, arg, grads[0]).slice(0, 0, rows), torch::Tensor(), torch::Tensor()};
  }
};
std::tuple<torch::Tensor, torch::Tensor> segment_max_autograd(const torch::Tensor& src, const torch::Tensor& index,
                                                              c10::SymInt segments) {
  auto results = SegmentMax::apply(src, index, segments);
  return {results[0], results[1]};
}

torch::Tensor nearest(torch::Tensor points, torch::Tensor queries, int64_t k) {
  TORCH_CHECK(points.size(1) == queries.size(1), "nearest: points have ", points.size(1), " coordinates, queries ",
              queries.size(1));
  points = points.contiguous();
  queries = queries.contiguous();
  auto found = torch::empty({queries.size(0), k}, torch::dtype(torch::kLong));
  AT_DISPATCH_FLOATING_TYPES(points.scalar_type(), "nearest", [&] {
    auto p = points.packed_accessor64<scalar_t, 2>();
    auto q = queries.packed_accessor32<scalar_t, 2>();
    auto out = found.accessor<int64_t, 2>();
    for (int32_t i = 0; i < q.size(0); ++i) {
      std::vector<std::pair<scalar_t, int64_t>> distances;
      for (int64_t j = 0; j < p.size(0); ++j) {
        scalar_t sum = 0;
        for (int32_t c = 0; c < q.size(1); ++c) sum += (p[j][c] - q[i][c]) * (p[j][c] - q[i][c]);
        distances.emplace_back(sum, j);
      }
      std::partial_sort(distances.begin(), distances.begin() + k, distances.end());
      for (int64_t n = 0; n < k; ++n) out[i][n] = distances[static_cast<size_t>(n)].second;
    }
  });
  return found;
}
torch::Tensor nearest_meta(torch::Tensor, torch::Tensor queries, c10::SymInt k) {
  return torch::empty({queries.sym_size(0), k}, torch::dtype(torch::kLong));
}

}  // namespace

TORCH_LIBRARY(ext_graph, m) {
  m.def("segment_max(Tensor src, Tensor index, SymInt segments) -> (Tensor, Tensor)");
  m.def("nearest(Tensor points, Tensor queries, SymInt k) -> Tensor");
}
TORCH_LIBRARY_IMPL(ext_graph, CPU, m) {
  m.impl("segment_max", segment_max_cpu);
  m.impl("nearest", nearest);
}
TORCH_LIBRARY_IMPL(ext_graph, Meta, m) {
  m.impl("segment_max", segment_max_meta);
  m.impl("nearest", nearest_meta);
}
TORCH_LIBRARY_IMPL(ext_graph, Autograd, m) { m.impl("segment_max", segment_max_autograd); }
