// How strides lie in memory.
#pragma once

#include <tenon/core/lists.h>
#include <tenon/sym/sym_int.h>

#include <optional>
#include <string_view>

namespace tenon::ops {

// Dimensions from the outermost in, if the elements lie one behind the other in that order without gaps; dimensions of
// one element are left out. Nothing where that is not known; asks nothing.
std::optional<Ints> dense_order(const SymInts& sizes, const SymInts& strides);

// Whether two elements may lie at one place, as far as sizes and strides tell for all values of their symbols.
bool may_overlap(const SymInts& sizes, const SymInts& strides);

// An Error if one place in memory is more than one element, as far as two dimensions at a time tell.
void check_places_differ(std::string_view op_name, const SymInts& sizes, const SymInts& strides);

}  // namespace tenon::ops
