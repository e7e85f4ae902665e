// Two or three numbers for the dimensions of images and volumes; one stands for all.
//
//   nn::Pair square = 3, flat = {1, 5};
//   bool right = square.rows == 3 && square.columns == 3 && flat.columns == 5;
//   nn::Triple cube = 3, box = {1, 2, 3};
//   bool deep = cube.depth == 3 && box.rows == 2 && box.columns == 3;
#pragma once

#include <tenon/core/lists.h>

namespace tenon::nn {

struct Pair {
  int64_t rows, columns;
  Pair(int64_t both) : rows(both), columns(both) {}
  Pair(int both) : Pair(int64_t{both}) {}
  Pair(int64_t for_rows, int64_t for_columns) : rows(for_rows), columns(for_columns) {}
};

struct Triple {
  int64_t depth, rows, columns;
  Triple(int64_t all) : depth(all), rows(all), columns(all) {}
  Triple(int all) : Triple(int64_t{all}) {}
  Triple(int64_t for_depth, int64_t for_rows, int64_t for_columns)
      : depth(for_depth), rows(for_rows), columns(for_columns) {}
};

namespace detail {
inline Ints list_of(int64_t size) { return {size}; }
inline Ints list_of(Pair size) { return {size.rows, size.columns}; }
inline Ints list_of(Triple size) { return {size.depth, size.rows, size.columns}; }
}  // namespace detail

}  // namespace tenon::nn
