// The kernel IR: loops over buffers.
//
// A `Kernel` is a program over named buffers and integer and scalar parameters. Its body is a list of statements;
// a statement is a loop, which holds statements, or an operation, which produces one SSA value (or none).
//
//   kernel softmax_rows(x: f32 in, out: f32 out; n0: int, n1: int)
//     parallel i0 < n0 {
//       reduction vector i1 < n1 {
//         %0 = load x[n1*i0 + i1] : f32
//         %1 = reduce max %0 : f32
//       }
//       reduction vector i2 < n1 {
//         %2 = load x[n1*i0 + i2] : f32
//         %3 = sub %2, %1 : f32
//         %4 = exp %3 : f32
//         %5 = reduce sum %4 : f32
//       }
//       vector i3 < n1 { ... store out[n1*i0 + i3], %9 }
//     }
//
// Meaning
// * Integers (sizes, strides, offsets) are `sym::Expr` over the kernel's own pool. A symbol of the pool is an integer
//   parameter, a loop's index, or bound by `BindIndex` to a loaded value (an indirect index).
// * A loop runs its body for index = 0, 1, … extent-1. The order of iterations is not observable except through
//   rounding of reductions: no iteration reads what another iteration of the same loop writes. `parallel` says that
//   iterations may run on different threads (outermost loop only; at most one per kernel, a kernel may have none);
//   `vector` says that iterations may run side by side in the lanes of a register: at most one loop on any path from
//   the root is `vector`. A loop may be parallel and vector at once.
// * A `reduction` loop holds `Reduce` operations. `Reduce` combines the value of every iteration, starting from the
//   identity; its result is visible after its loop ends, in the scope that holds the loop, and nowhere inside it.
//   Max and min propagate NaN.
// * Sums and products of floats have one order, so that vectors of any width and any number of threads give the same
//   bits: iteration i goes to accumulator i mod 32 (`kAccumulators`), each of which starts from the identity and takes
//   its values in turn; at the end accumulator j takes j + 16, then j + 8, + 4, + 2, + 1. In a `pairwise` loop the
//   values are the leaves of a tree instead: of n leaves the first p, p the largest power of two below n, are combined,
//   then the rest, then the two. A sum of many terms is a pairwise loop around a loop over at most `kBlock` of them, so
//   that its error grows with the logarithm of their number.
// * Every other value is visible from its operation to the end of the scope that holds it.
// * `Load` reads one element at `index` (in elements from the buffer's start); `Store` writes one. Buffers do not
//   overlap, except that an `InOut` buffer may be read and written at the same index by the same iteration, and a
//   buffer that was stored to by one loop may be read by a later sibling loop in the same scope (`Temporary` ones,
//   `Scratch` and outputs). A `Scratch` buffer is each thread's own: an iteration of the parallel loop finds nothing in
//   it that another has written. A load may have a condition, a Bool: where it does not hold nothing is read, whatever
//   the index, and the value is 0.
// * Arithmetic is that of the dtype: integers wrap (division and remainder by zero yield 0, INT_MIN / -1 yields
//   INT_MIN); floats follow IEEE, round to nearest even, never contracted; narrow floats (halves and floats of 8 bits)
//   never appear in arithmetic: a load from such a buffer widens to f32 and a store rounds; `Cast` to a narrow dtype
//   rounds and keeps f32 as the value's type (`rounded` names the narrow one); it rounds once from f64, and integers go
//   through f32. Bool values are 0 or 1.
//   uint8 is unsigned in comparisons, division and casts.
// * `Cast` float → integer truncates towards zero; NaN gives 0 and values out of range saturate, then wrap for
//   dtypes narrower than 32 bits as PyTorch's x86 builds do (via int32); to bool: != 0.
// * `Check` records the number of a failed condition: the kernel goes on, with undefined results, and its caller turns
//   the smallest recorded number into an Error. Loads that a failed check guards must be clamped by their author.
//
// Values have the dtype of the operation. Operands of arithmetic have the same dtype as the result; comparisons take
// two operands of one dtype and give Bool; `Select` takes a Bool and two operands of the result's dtype.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/sym/expr.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tenon::loop {

enum class OpCode : uint8_t {
  // Sources
  Constant,   // number
  Parameter,  // a scalar parameter of the kernel
  Index,      // the value of an index expression, as int64
  Load,
  Random,  // the element-th 32-bit word of a Philox stream (operands: seed and offset, int64; index: the element)
  // Sinks
  Store,
  Check,
  BindIndex,  // makes an int64 value usable in index expressions, as symbol `index`
  // Unary arithmetic
  Neg,
  Abs,
  Sign,
  Floor,
  Ceil,
  Trunc,
  Round,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Erfc,
  LogGamma,
  Sigmoid,
  IsNan,
  Not,
  Cast,
  // Binary arithmetic
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Rem,
  Mod,
  Pow,
  Atan2,
  Min,
  Max,
  And,
  Or,
  Xor,
  Shl,
  Shr,
  // Comparisons
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  // Ternary
  Select,
  // Over a loop
  Reduce,
  Count_,
};
// Div of integers truncates towards zero; FloorDiv rounds down (floats: floor(a / b)); Rem has the sign of the dividend
// (fmod), Mod that of the divisor (r = rem(a, b), plus b if r is not 0 and their signs differ). Not: logical for Bool,
// bitwise for integers. Max is a if a > b or a is NaN, else b; Min likewise: both propagate NaN, and of zeros of either
// sign give the second. Round is to nearest, ties to even. Sign is (a > 0) - (a < 0): 0 for NaN. Rsqrt is 1 / sqrt(a),
// rounded twice. Integer Pow wraps; a negative exponent gives 0 except for the bases 1 and -1. Shl by the width or
// more, or by a negative count, gives 0; Shr then gives 0, or -1 for a negative number.

enum class ReduceKind : uint8_t { Sum, Product, Max, Min, Any, All };

struct OpTraits {
  std::string_view name;  // "add"
  int operands;
  bool floats, integers, booleans;  // result (comparisons: operand) dtypes that it is defined for
  bool transcendental;              // approximate: within 4 ulp of the true value
};
const OpTraits& traits(OpCode code);

constexpr int64_t kAccumulators = 32;  // of a sum or product of floats
constexpr int64_t kBlock = 1024;       // iterations that they serve: more are combined pairwise

using ValueId = int32_t;  // position in `Kernel::values`; -1 is none
constexpr ValueId kNone = -1;

// The bits of a number of any dtype: integers and bools in `integer`, floats (narrow ones, too) in `real`.
struct Number {
  bool is_real = false;
  int64_t integer = 0;
  double real = 0;
  static Number of(int64_t value) { return {false, value, 0}; }
  static Number of(double value) { return {true, 0, value}; }
  int64_t to_integer() const { return is_real ? static_cast<int64_t>(real) : integer; }
  double to_real() const { return is_real ? real : static_cast<double>(integer); }
};

struct Op {
  OpCode code;
  Dtype dtype = Dtype::Float32;                 // of the result; of the stored value for Store
  ValueId result = kNone;                       // kNone for Store, Check, BindIndex
  ValueId operands[3] = {kNone, kNone, kNone};  // of a Load: its condition, if it has one
  int32_t buffer = -1;                          // Load, Store
  int32_t parameter = -1;                       // Parameter: which scalar; Check: its number
  sym::Expr index = {};                         // Load, Store, Index, Random; BindIndex: the symbol that it binds
  ReduceKind reduce = ReduceKind::Sum;
  Number number = {};         // Constant
  bool has_rounding = false;  // Cast to a narrow float: `rounded` names it, `dtype` is Float32
  Dtype rounded = Dtype::Float32;
};

struct Loop;
using Statement = std::variant<Op, std::unique_ptr<Loop>>;
using Block = std::vector<Statement>;

struct Loop {
  sym::Expr index;   // a symbol of the kernel's pool
  sym::Expr extent;  // does not depend on indices of inner loops; may be 0
  bool parallel = false, vector = false, reduction = false;
  bool pairwise = false;  // of a reduction: sums of floats are a tree over its iterations
  Block body;
};

enum class BufferRole : uint8_t { In, Out, InOut, Temporary, Scratch };

struct Buffer {
  std::string name;
  Dtype dtype = Dtype::Float32;
  BufferRole role = BufferRole::In;
  bool streaming = false;  // Out: written once and too large for the cache; non-temporal stores pay
  sym::Expr extent;        // elements that may be addressed: [0, extent); undefined if not stated. Bounds checks use it
};

struct ScalarParameter {
  std::string name;
  Dtype dtype = Dtype::Float64;  // narrow floats are not allowed
};

struct Kernel {
  std::string name;
  std::shared_ptr<sym::ExprPool> pool = std::make_shared<sym::ExprPool>();
  std::vector<Buffer> buffers;      // Temporary and Scratch ones come last; the launcher provides them all
  std::vector<sym::Expr> integers;  // symbols: the integer parameters, in the order in which they are passed
  std::vector<ScalarParameter> scalars;
  std::vector<std::string> checks;  // what to say when check number i fails
  Block body;
  int32_t value_count = 0;
};

// The kernel as text; `parse` reads it back. The text determines the machine code, so it is what the object cache
// hashes.
std::string to_string(const Kernel& kernel);
Kernel parse(std::string_view text);

// Throws an InternalError that shows the kernel and names the first rule that it breaks.
void verify(const Kernel& kernel);

// How the interpreter is called, and a compiled kernel too (load/kernel.h). `scalars` are 8 bytes each: int64_t for
// integers and bools, double for floats. Iterations [begin, end) of the outermost statement run if that is a single
// parallel loop; otherwise begin and end are ignored. `failed` receives the smallest number of a failed check, and must
// start as -1.
struct Launch {
  void* const* buffers;
  const int64_t* integers;
  const uint64_t* scalars;
  int64_t begin, end;
  int64_t* failed;
};

// The extent of the kernel's parallel loop for these parameters, 0 if nothing is done in it; 1 if it has none.
int64_t parallel_extent(const Kernel& kernel, std::span<const int64_t> integers);

// Runs a kernel slowly and plainly: the oracle. Checks that every access lies inside the stated extents.
void interpret(const Kernel& kernel, const Launch& launch);

}  // namespace tenon::loop
