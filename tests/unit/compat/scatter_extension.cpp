// An extension for libtorch: the largest of the elements that an index sends to one place, and which it was.
#include <torch/extension.h>

#define CHECK_INPUT(x) TORCH_CHECK(x, "Input mismatch")

namespace {

std::tuple<at::Tensor, at::Tensor> scatter_max_cpu(const at::Tensor& src, const at::Tensor& index, int64_t dim,
                                                   int64_t dim_size) {
  CHECK_INPUT(src.sizes() == index.sizes());
  dim = c10::maybe_wrap_dim(dim, src.dim());
  auto from = src.contiguous(), to = index.contiguous();
  auto sizes = src.sizes().vec();
  sizes[static_cast<size_t>(dim)] = dim_size;
  auto out = at::empty(sizes, src.options());
  auto arg = at::full(sizes, src.size(dim), index.options());
  int64_t before = 1, behind = 1;
  for (const auto d : c10::irange(src.dim())) (d < dim ? before : behind) *= d == dim ? 1 : src.size(d);
  AT_DISPATCH_ALL_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, src.scalar_type(), "scatter_max", [&] {
    out.fill_(std::numeric_limits<scalar_t>::lowest());
    auto* values = out.data_ptr<scalar_t>();
    const auto* src_data = from.const_data_ptr<scalar_t>();
    AT_DISPATCH_INDEX_TYPES(to.scalar_type(), "scatter_max_index", [&] {
      auto* places = arg.data_ptr<index_t>();
      const auto* index_data = to.const_data_ptr<index_t>();
      const int64_t length = src.size(dim);
      at::parallel_for(0, before, 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          for (int64_t e = 0; e < length; ++e)
            for (int64_t k = 0; k < behind; ++k) {
              const auto target = static_cast<int64_t>(index_data[(b * length + e) * behind + k]);
              TORCH_CHECK_INDEX(target >= 0 && target < dim_size, "index ", target, " is out of bounds for size ",
                                dim_size);
              auto& value = values[(b * dim_size + target) * behind + k];
              auto& place = places[(b * dim_size + target) * behind + k];
              const scalar_t candidate = src_data[(b * length + e) * behind + k];
              if (static_cast<int64_t>(place) == length || candidate > value) {
                value = candidate;
                place = static_cast<index_t>(e);
              }
            }
      });
    });
  });
  out.masked_fill_(arg == src.size(dim), 0);
  return std::make_tuple(out, arg);
}
std::tuple<at::Tensor, at::Tensor> scatter_max_meta(const at::Tensor& src, const at::Tensor& index, int64_t dim,
                                                    c10::SymInt dim_size) {
  std::vector<c10::SymInt> sizes;
  dim = c10::maybe_wrap_dim(dim, src.dim());
  for (const auto d : c10::irange(src.dim())) sizes.push_back(d == dim ? dim_size : src.sym_size(d));
  return {at::empty(sizes, src.options()), at::empty(sizes, index.options())};
}

class ScatterMax : public torch::autograd::Function<ScatterMax> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx, torch::autograd::Variable src,
                                                torch::autograd::Variable index, int64_t dim, c10::SymInt dim_size) {
    at::AutoDispatchBelowADInplaceOrView guard;
    static auto op =
        c10::Dispatcher::singleton()
            .findSchemaOrThrow("ext_scatter::scatter_max", "")
            .typed<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, int64_t, c10::SymInt)>();
    auto result = op.call(src, index, dim, dim_size);
    auto out = std::get<0>(result), arg = std::get<1>(result);
    ctx->saved_data["dim"] = dim;
    ctx->saved_data["src_shape"] = src.sym_sizes();
    ctx->save_for_backward({arg});
    ctx->mark_non_differentiable({arg});
    return {out, arg};
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    auto arg = ctx->get_saved_variables()[0];
    const auto dim = ctx->saved_data["dim"].toInt();
    auto shape = ctx->saved_data["src_shape"].toSymIntVector();
    auto& length = shape[static_cast<size_t>(c10::maybe_wrap_dim(dim, static_cast<int64_t>(shape.size())))];
    length = length + 1;  // a place for what nothing was sent to
    auto grad = at::zeros_symint(shape, grads[0].options());
    grad = grad.scatter(dim, arg, grads[0]);
    return {grad.narrow_symint(dim, 0, length - 1), torch::autograd::Variable(), torch::autograd::Variable(),
            torch::autograd::Variable()};
  }
};
std::tuple<at::Tensor, at::Tensor> scatter_max_autograd(const at::Tensor& src, const at::Tensor& index, int64_t dim,
                                                        c10::SymInt dim_size) {
  auto both = ScatterMax::apply(src, index, dim, dim_size);
  return std::make_tuple(both[0], both[1]);
}

}  // namespace

TORCH_LIBRARY(ext_scatter, m) {
  m.def("scatter_max(Tensor src, Tensor index, int dim, SymInt dim_size) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(ext_scatter, CPU, m) { m.impl("scatter_max", scatter_max_cpu); }
TORCH_LIBRARY_IMPL(ext_scatter, Meta, m) { m.impl("scatter_max", scatter_max_meta); }
TORCH_LIBRARY_IMPL(ext_scatter, Autograd, m) { m.impl("scatter_max", scatter_max_autograd); }
