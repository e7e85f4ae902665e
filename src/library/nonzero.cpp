// `aten::nonzero`: where the elements are that are not zero. Its result's size depends on the data, which no row of the
// table can say; so it is registered like an operator of a user's.
#include "fake_kernel.h"

#include <tenon/dispatch/function.h>
#include <tenon/dispatch/registration.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/generated/ops.h>

namespace tenon::library {
namespace {

// Row by row, in row-major order of the elements.
Tensor nonzero_cpu(const Tensor& self) {
  Tensor flags = ne(self, 0).contiguous();
  const bool* flag = flags.data<bool>();
  int64_t elements = flags.numel().plain(), count = 0;
  for (int64_t at = 0; at < elements; ++at) count += flag[at];
  auto rank = static_cast<size_t>(flags.dim());
  Tensor result = empty({count, flags.dim()}, TensorOptions(kInt64));
  int64_t* row = result.data<int64_t>();
  std::vector<int64_t> index(rank);
  for (int64_t at = 0; at < elements; ++at) {
    if (flag[at]) row = std::copy(index.begin(), index.end(), row);
    for (size_t dim = rank; dim-- > 0;) {
      if (++index[dim] < flags.sizes()[dim]) break;
      index[dim] = 0;
    }
  }
  return result;
}

Tensor nonzero_fake(const Tensor& self) {
  return empty({fake::new_dynamic_size(), SymInt(self.dim())}, TensorOptions(kInt64, self.device()));
}

[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op = dispatch::define(schema::parse("aten::nonzero(Tensor self) -> Tensor"));
  dispatch::add_tags(op, {dispatch::Tag::pt2_compliant_tag, dispatch::Tag::dynamic_output_shape});
  dispatch::register_kernel(op, DispatchKey::CPU, dispatch::to_kernel(nonzero_cpu));
  dispatch::register_kernel(op, DispatchKey::Fake, fake_kernel(dispatch::to_kernel(nonzero_fake)));
  return true;
}();

}  // namespace
}  // namespace tenon::library
