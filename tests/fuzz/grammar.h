// The words of programs: operations, which statements apply to values, and views, through which sources look at bases.
#pragma once

#include "fuzz/features.h"
#include "fuzz/program.h"

#include <tenon/core/tensor.h>

#include <vector>

namespace tenon::fuzz {

enum Trait : int {
  kNone = 0,
  kInexact = 1,   // the order of additions, or a library, decides the last bits
  kUnstable = 2,  // makes small differences large: not applied to inexact values
  kBinary = 4,
  kHalf = 8,       // rounds coarsely
  kInplace = 16,   // writes to x
  kBreaks = 32,    // ends a captured graph
  kData = 64,      // the size of the result depends on the data: ends a graph, unless the switch for it is on
  kMath = 128,     // the interpreter's value may differ in the last bits
  kView = 256,     // the result may share memory with x
  kRandom = 512,   // draws from the generator
  kEffect = 1024,  // changes more than values: may end a graph
};

struct Operation {
  const char* text;
  int traits;
  Feature feature;  // Count: of every program
  Tensor (*run)(const Tensor& x, const Tensor& y, int64_t n);
};
const std::vector<Operation>& operations();
size_t find_operation(std::string_view text);

struct ViewRow {
  const char* text;
  int group;  // views of one group, of one base, have one shape; 0: a shape of its own
  int extra;  // of the base that it is meant for
  Tensor (*run)(const Tensor& base);
};
const std::vector<ViewRow>& views();

// Sizes of the three letters. The first three are large enough for everything; the others have sizes that are 0 and 1,
// or come to that.
constexpr size_t kOrdinarySizes = 3, kAllSizes = 7;
extern const int64_t kSizes[kAllSizes][3];

// Functions that the texts of operations use, as the printed program defines them.
extern const char* const kHelpers;

// An Error where the operation writes to what has no one order: elements that share memory, or that y overlaps.
void check_write(const Operation& operation, const Tensor& x, const Tensor& y);
// Whether two elements of the tensor are in one place.
bool has_shared_elements(const Tensor& tensor);

}  // namespace tenon::fuzz
