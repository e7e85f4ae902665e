// Arguments for any row of the operator table, made from its schema.
//
// A recipe says what is tried: a shape, a dtype, a layout in memory, how the other tensors relate to the first, and a
// number that varies dims and flags. Numbers are chosen by the argument's name; where the schema cannot tell (the
// shapes of a matrix product, the sizes of a view) a small table by operator name gives the arguments in question. A
// row may refuse a recipe.
#pragma once

#include <tenon/ops/row.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::test {

enum class Placement : uint8_t {
  Contiguous,
  Transposed,  // column-major
  Sliced,      // every second element in every dimension, from an offset
  Expanded,    // stride 0 in the first dimension
  Offset,      // contiguous from the third element of its storage
};
enum class Pairing : uint8_t {
  Same,     // other tensors have the first one's shape
  Row,      // … its last dimension alone
  Column,   // … with a last dimension of 1
  Wider,    // … with one more dimension in front
  ZeroDim,  // … none
  Dtype,    // the same shape in another dtype
};
enum class Values : uint8_t {
  Ordinary,   // small numbers of either sign
  Extreme,    // NaN, infinities, zeros of either sign, the smallest and the largest
  NotFinite,  // the same without the very large and small
  Near,       // ±[0.3, 0.9]: away from kinks, for finite differences
  Positive,   // [0.4, 1.4]
  AboveOne,   // [1.2, 2.2]
};

struct Recipe {
  Ints shape = {3, 7};
  Dtype dtype = kFloat32;
  Placement placement = Placement::Contiguous;
  Pairing pairing = Pairing::Same;
  Values values = Values::Ordinary;
  int variant = 0;
  std::string str() const;
};

struct Sample {
  dispatch::Values args;        // owned, one per schema argument
  bool data_dependent = false;  // sizes of results depend on data (set by whoever tried it on fakes)
  // Fresh tensors of the same values and geometry, each with a storage of its own.
  dispatch::Values copy() const;
  std::vector<Tensor> tensors() const;
  std::string str() const;
};

// Nothing, with the reason in `why`, if the schema has an argument that neither rule knows.
std::optional<Sample> make_sample(const ops::Row& row, const Recipe& recipe, std::string* why = nullptr);

// What every row is tried with, the short list first.
std::vector<Recipe> short_recipes();
std::vector<Recipe> all_recipes();

// A tensor of that geometry; used by the fuzzer too.
Tensor make_tensor(const Ints& shape, Dtype dtype, Placement placement, Values values, uint64_t seed);

}  // namespace tenon::test
