// Results whose size only the data can tell. Their kernels make them; their shape rules give sizes without a value.
#include <tenon/kernels/selection.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

const Tensor& given(const Arguments& arguments, std::string_view name) {
  const Tensor& tensor = arguments.tensor(name);
  TENON_CHECK(tensor.defined(), "[{}] expected a tensor, got an undefined one", arguments.op().brief_name());
  return tensor;
}

std::vector<Tensor> results(kernels::Distinct distinct) {
  return {Tensor(distinct.values), Tensor(distinct.inverse), Tensor(distinct.counts)};
}

std::vector<TensorMeta> unique_elements_shape(const Arguments& arguments) {
  const Tensor& self = given(arguments, "self");
  bool counts = arguments.has("return_counts") && arguments.boolean("return_counts");
  SymInts none{SymInt(0)}, all{new_dynamic_size(0, self.numel())};
  std::vector<TensorMeta> shapes{
      TensorMeta::contiguous(all, self.dtype(), self.device()),
      TensorMeta::contiguous(arguments.boolean("return_inverse") ? self.sym_sizes() : none, kInt64, self.device()),
      TensorMeta::contiguous(counts ? all : none, kInt64, self.device())};
  shapes.resize(arguments.op().schema().returns.size());
  return shapes;
}

int64_t dimension_of_slices(const Arguments& arguments) {
  const Tensor& self = given(arguments, "self");
  TENON_CHECK(self.dim() > 0, "[{}] expected a tensor with dimensions, got {}", arguments.op().brief_name(),
              self.description());
  int64_t dim = arguments.dim("dim", self.dim());
  SymInts sizes = self.sym_sizes();
  for (size_t other = 0; other < sizes.size(); ++other)
    TENON_CHECK(
        static_cast<int64_t>(other) == dim || !is_zero(sizes[other]),
        "[{}] expected slices of at least one element, got {} along dimension {}: there are 0 sized dimensions, "
        "and they aren't selected, so unique cannot be applied",
        arguments.op().brief_name(), self.description(), dim);
  return dim;
}

// Slices are laid out one after another, as they are found.
std::vector<TensorMeta> unique_slices_shape(const Arguments& arguments) {
  auto dim = static_cast<size_t>(dimension_of_slices(arguments));
  const Tensor& self = arguments.tensor("self");
  SymInts sizes = self.sym_sizes(), along{sizes[dim]}, found{new_dynamic_size(0, sizes[dim])}, dense = found, strides;
  for (size_t each = 0; each < sizes.size(); ++each)
    if (each != dim) dense.push_back(sizes[each]);
  sizes[dim] = found[0];
  dense = core::contiguous_strides(dense.span());
  for (size_t each = 0, next = 1; each < sizes.size(); ++each) strides.push_back(dense[each == dim ? 0 : next++]);
  return {TensorMeta{sizes, strides, self.dtype(), self.device()}, TensorMeta::contiguous(along, kInt64, self.device()),
          TensorMeta::contiguous(found, kInt64, self.device())};
}

// Slices of a vector are its elements; as in PyTorch, if its dimension is named 0 and not -1.
bool by_slices(const Arguments& arguments) {
  if (arguments["dim"].is_none()) return false;
  const int64_t rank = given(arguments, "self").dim();
  arguments.dim("dim", rank);
  return rank != 1 || arguments["dim"].integer() != 0;
}

}  // namespace

OPS(data_dependent) {
  op("nonzero(Tensor self) -> Tensor")
      .dynamic_kernel(
          [](const Arguments& arguments) { return std::vector{Tensor(kernels::nonzero(arguments.tensor("self")))}; })
      .shape([](const Arguments& arguments) {
        const Tensor& self = given(arguments, "self");
        // A column for each dimension, as PyTorch has them.
        const SymInt count = new_dynamic_size(0, self.numel());
        return std::vector{
            TensorMeta{SymInts{count, SymInt(self.dim())}, SymInts{SymInt(1), count}, kInt64, self.device()}};
      });
  // The same, as one index for each dimension.
  op("where(Tensor condition) -> Tensor[]").decompose([](const Tensor& condition) {
    TENON_CHECK(condition.defined(), "[where] expected a tensor, got an undefined one");
    return unbind(nonzero(condition.dim() == 0 ? unsqueeze(condition, 0) : condition), 1);
  });
  op("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
     "Tensor)")
      .dynamic_kernel([](const Arguments& arguments) {
        return results(kernels::unique(arguments.tensor("self"), arguments.boolean("return_inverse"),
                                       arguments.boolean("return_counts")));
      })
      .shape(unique_elements_shape)
      .grad_not_implemented("self")
      .not_differentiable("result1")
      .not_differentiable("result2");
  op("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)")
      .dynamic_kernel([](const Arguments& arguments) {
        std::vector<Tensor> found =
            results(kernels::unique(arguments.tensor("self"), arguments.boolean("return_inverse"), false));
        found.pop_back();
        return found;
      })
      .shape(unique_elements_shape)
      .grad_not_implemented("self")
      .not_differentiable("result1");
  // Slices along a dimension. As in PyTorch, the other two results are there whether they are asked for or not.
  op("unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
     "(Tensor, Tensor, Tensor)")
      .dynamic_kernel([](const Arguments& arguments) {
        return results(kernels::unique_slices(arguments.tensor("self"), dimension_of_slices(arguments), false));
      })
      .shape(unique_slices_shape)
      .grad_not_implemented("self")
      .not_differentiable("result1")
      .not_differentiable("result2");
  op("unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
     "Tensor, Tensor)")
      .dynamic_kernel([](const Arguments& arguments) {
        return results(kernels::unique_slices(arguments.tensor("self"), dimension_of_slices(arguments), true));
      })
      .shape(unique_slices_shape)
      .grad_not_implemented("self")
      .not_differentiable("result1")
      .not_differentiable("result2");
  op("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, "
     "Tensor, Tensor)")
      .dynamic_kernel([](const Arguments& arguments) {
        const Tensor& self = arguments.tensor("self");
        if (by_slices(arguments)) return results(kernels::unique_slices(self, dimension_of_slices(arguments), true));
        return results(
            kernels::unique_consecutive(self, arguments.boolean("return_inverse"), arguments.boolean("return_counts")));
      })
      .shape([](const Arguments& arguments) {
        return by_slices(arguments) ? unique_slices_shape(arguments) : unique_elements_shape(arguments);
      })
      .grad_not_implemented("self")
      .not_differentiable("result1")
      .not_differentiable("result2");
  op("unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
     "(Tensor, Tensor, Tensor)")
      .decompose(
          [](const Tensor& self, bool sorted, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
            if (dim) return unique_dim(self, *dim, sorted, return_inverse, return_counts);
            return _unique2(self, sorted, return_inverse, return_counts);
          });
  // Each position as often as its number says; then, elements at those positions.
  op("_repeated_positions(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
      .dynamic_kernel([](const Arguments& arguments) {
        Tensor positions(kernels::repeated_positions(arguments.tensor("repeats")));
        const dispatch::Value& size = arguments["output_size"];
        TENON_CHECK(size.is_none() || size.integer() == positions.sizes()[0],
                    "[repeat_interleave] expected an output_size of {}, the sum of the repeats, got {}",
                    positions.sizes()[0], size.str());
        return std::vector{positions};
      })
      .shape([](const Arguments& arguments) {
        const Tensor& repeats = given(arguments, "repeats");
        TENON_CHECK(repeats.dim() == 1 && (repeats.dtype() == kInt64 || repeats.dtype() == kInt32),
                    "[repeat_interleave] expected a vector of int64 or int32, got {}", repeats.description());
        const dispatch::Value& size = arguments["output_size"];
        SymInt count = size.is_none() ? new_dynamic_size(0, std::nullopt) : size.sym_int();
        return std::vector{TensorMeta::contiguous(SymInts{count}, kInt64, repeats.device())};
      });
  op("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
      .decompose([](const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                    const std::optional<SymInt>& output_size) {
        Tensor x = dim && self.dim() > 0 ? self : reshape(self, {-1});
        int64_t along = wrap_dim(dim && self.dim() > 0 ? *dim : 0, x.dim(), "repeat_interleave");
        TENON_CHECK(repeats.defined() && repeats.dim() <= 1, "[repeat_interleave] expected a vector of numbers");
        SymInt length = x.size(along);
        bool one = repeats.dim() == 0 || (statically_true(repeats.size(0) == 1) && !statically_true(length == 1));
        TENON_CHECK(one || same_size(repeats.size(0), length),
                    "[repeat_interleave] expected a number for each of {} elements, got {}", length.str(),
                    repeats.description());
        return index_select(x, along,
                            _repeated_positions(one ? expand(repeats, SymInts{length}) : repeats, output_size));
      });
}

}  // namespace tenon::ops
