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

}  // namespace

OPS(data_dependent) {
  op("nonzero(Tensor self) -> Tensor")
      .dynamic_kernel(
          [](const Arguments& arguments) { return std::vector{Tensor(kernels::nonzero(arguments.tensor("self")))}; })
      .shape([](const Arguments& arguments) {
        const Tensor& self = given(arguments, "self");
        return std::vector{TensorMeta::contiguous(SymInts{new_dynamic_size(0, self.numel()), SymInt(self.dim())},
                                                  kInt64, self.device())};
      });
  // The same, as one index for each dimension.
  op("where(Tensor condition) -> Tensor[]").decompose([](const Tensor& condition) {
    TENON_CHECK(condition.defined(), "[where] expected a tensor, got an undefined one");
    return unbind(nonzero(condition.dim() == 0 ? unsqueeze(condition, 0) : condition), 1);
  });
  op("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
     "Tensor)")
      .dynamic_kernel([](const Arguments& arguments) {
        auto [values, inverse, counts] = kernels::unique(arguments.tensor("self"), arguments.boolean("return_inverse"),
                                                         arguments.boolean("return_counts"));
        return std::vector{Tensor(values), Tensor(inverse), Tensor(counts)};
      })
      .shape([](const Arguments& arguments) {
        const Tensor& self = given(arguments, "self");
        SymInt count = new_dynamic_size(0, self.numel());
        SymInts none{SymInt(0)}, all{count};
        return std::vector{
            TensorMeta::contiguous(all, self.dtype(), self.device()),
            TensorMeta::contiguous(arguments.boolean("return_inverse") ? self.sym_sizes() : none, kInt64,
                                   self.device()),
            TensorMeta::contiguous(arguments.boolean("return_counts") ? all : none, kInt64, self.device())};
      });
  op("unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
     "Tensor)")
      .decompose([](const Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
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
