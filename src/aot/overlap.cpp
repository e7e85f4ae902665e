#include "overlap.h"

#include <tenon/sym/sym_int.h>

#include <algorithm>

namespace tenon::aot {

bool may_overlap(const Tensor& meta) {
  struct Dim {
    SymInt size, stride;
    int64_t hint;
  };
  std::vector<Dim> dims;
  SymInts sizes = meta.sym_sizes(), strides = meta.sym_strides();
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (statically_true(sizes[dim] == 0)) return false;
    if (statically_true(sizes[dim] == 1)) continue;
    // A stride from data has no hint: it goes where the others leave room for it, or nothing is shown.
    dims.push_back({sizes[dim], strides[dim], strides[dim].hint().value_or(0)});
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.hint < b.hint; });
  SymInt reach = 1;
  for (const Dim& dim : dims) {
    if (!dim.stride.same(reach) && !statically_true(dim.stride >= reach)) return true;
    reach = dim.stride * dim.size;
  }
  return false;
}

}  // namespace tenon::aot
