// Forms of an operator that follow from its functional one. The operator table registers them and `tools/generate_api`
// declares them, both from here.
//
//   add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor                              the row
//   add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)                     inplace_form
//   add.Tensor_out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)      out_form
#pragma once

#include <tenon/schema/schema.h>

namespace tenon::schema {

// The first argument is `Tensor self`.
bool has_self(const Schema& schema);

// Whether the form exists. Both need a functional schema whose name does not end in `_`; the in-place form needs
// `Tensor self` first and one Tensor returned, the out form one or more Tensors returned and nothing else.
bool has_inplace_form(const Schema& schema);
bool has_out_form(const Schema& schema);

// `name_`, with the same overload, that writes to `self`. An Error if there is no such form.
Schema inplace_form(const Schema& schema);
// Overload `out`, or `<overload>_out`, with a keyword-only `out` at the end (`out0`, `out1`, … for several returns).
Schema out_form(const Schema& schema);

}  // namespace tenon::schema
