// What LAPACK's callers ask: whether all matrices of a batch could be factored. It has no row, because it has no
// result.
#include "ops/linalg/matrices.h"

#include <tenon/dispatch/call.h>
#include <tenon/dispatch/registration.h>

namespace tenon::ops {
namespace {

[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op =
      dispatch::define(schema::parse("aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()"));
  dispatch::add_tags(op, {dispatch::Tag::pt2_compliant_tag});
  dispatch::register_kernel(op, DispatchKey::CPU, dispatch::boxed([](const Tensor& info, std::string_view name, bool) {
                              TENON_CHECK(info.defined() && info.dtype() == kInt32,
                                          "[_linalg_check_errors] expected numbers of int32, got {}",
                                          info.defined() ? info.description() : "an undefined tensor");
                              check_factored(info, name, "matrices that can be factored, whose pivots are not zero");
                            }));
  for (DispatchKey key : {DispatchKey::Meta, DispatchKey::Fake})
    dispatch::register_kernel(op, key, dispatch::boxed([](const Tensor&, std::string_view, bool) {}));
  return true;
}();

}  // namespace
}  // namespace tenon::ops
