// How strides lie in memory: in which order, and whether elements share a place.
#include <tenon/ops/strided.h>
#include <tenon/support/error.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tenon::ops {
namespace {

// Whether a step of one dimension is `along` steps of another, both within their sizes.
bool step_over_each_other(const SymInt& outer_size, const SymInt& outer, const SymInt& inner_size,
                          const SymInt& inner) {
  if (outer.is_symbolic() || inner.is_symbolic()) {
    if (outer.same(inner)) return decide_or(outer_size > 1, false) && decide_or(inner_size > 1, false);
    if (!statically_true(inner > 0)) return false;
    SymInt along = outer / inner;
    if (along.is_symbolic() || !statically_true(inner * along == outer)) return false;
    return along.plain() > 0 && decide_or(outer_size > 1, false) && decide_or(inner_size > along, false);
  }
  int64_t common = std::gcd(outer.plain(), inner.plain());
  return decide_or(outer_size > inner.plain() / common, false) && decide_or(inner_size > outer.plain() / common, false);
}

}  // namespace

std::optional<Ints> dense_order(const SymInts& sizes, const SymInts& strides) {
  Ints order;
  std::vector<bool> taken(sizes.size());
  SymInt expected = 1;
  size_t left = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim) left += is_one(sizes[dim]) ? 0 : 1;
  while (left-- > 0) {
    size_t dim = 0;
    for (; dim < sizes.size(); ++dim)
      if (!taken[dim] && !is_one(sizes[dim]) &&
          (strides[dim].same(expected) || statically_true(strides[dim] == expected)))
        break;
    if (dim == sizes.size()) return std::nullopt;
    taken[dim] = true;
    order.insert(order.begin(), static_cast<int64_t>(dim));
    expected = expected * sizes[dim];
  }
  return order;
}

bool may_overlap(const SymInts& sizes, const SymInts& strides) {
  struct Dim {
    SymInt size, stride;
    int64_t hint;
  };
  std::vector<Dim> dims;
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

void check_places_differ(std::string_view op_name, const SymInts& sizes, const SymInts& strides) {
  bool once = true;
  for (size_t a = 0; once && a < sizes.size(); ++a) {
    if (is_one(sizes[a])) continue;
    if (is_zero(strides[a])) {
      once = expect(sizes[a] <= 1);
      continue;
    }
    for (size_t b = 0; once && b < a; ++b)
      once = is_one(sizes[b]) || is_zero(strides[b]) ||
             !(step_over_each_other(sizes[a], strides[a], sizes[b], strides[b]) ||
               step_over_each_other(sizes[b], strides[b], sizes[a], strides[a]));
  }
  // Of nothing there are no two.
  for (size_t dim = 0; !once && dim < sizes.size(); ++dim) once = decide_or(sizes[dim] == 0, false);
  TENON_CHECK(once,
              "[{}] unsupported operation: more than one element of the written-to tensor refers to a single memory "
              "location. Please clone() the tensor before performing the operation.",
              op_name);
}

}  // namespace tenon::ops
