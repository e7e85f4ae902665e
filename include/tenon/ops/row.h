// One operator, one row: everything that the system knows of an operator.
//
// A row says what the operator computes in one of these ways:
//   Pointwise    a scalar expression over the broadcast elements of its inputs
//   Reduction    one `ReduceKind` over some dimensions
//   Element      an expression for one output element, with the freedom to read any input element
//   View         the same storage under another geometry
//   Composite    a function of other operators
//   Opaque       a kernel that fusion cannot see into
// The eager kernel, the shape rule, the in-place form, the lowering and the generic test are derived from it. Gradients
// are functions of other operators, one per input, and declare what they save.
#pragma once

#include <tenon/dispatch/opaque_kernel.h>
#include <tenon/loop/builder.h>
#include <tenon/ops/arguments.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace tenon::ops {

using loop::Lane;
using sym::Expr;

// What is known of a tensor without its data.
struct TensorMeta {
  SymInts sizes, strides;
  Dtype dtype = Dtype::Float32;
  Device device;
  // A contiguous one.
  static TensorMeta contiguous(SymInts sizes, Dtype dtype, Device device);
  // One of as many dimensions as `images`, with the channels last where they are last in these.
  static TensorMeta in_order_of(const Tensor& images, SymInts sizes, Dtype dtype);
};

// How the dtypes of inputs become the dtype in which a pointwise row computes, and the dtype of its result.
enum class Promotion : uint8_t {
  Same,      // PyTorch's promotion of all inputs; computes in it
  ToFloat,   // the same, but integers and bools become float32
  Compare,   // computes in the promoted dtype, gives bool
  Logical,   // inputs become bool, gives bool
  Branch,    // the first input is a condition (bool), the rest are promoted
  Self,      // the dtype of `self`
  Argument,  // computes in the dtype of `self`, unless that is ignored; the argument `dtype`, if given, is the result's
};

struct Dtypes {
  Dtype compute, result;
};

struct PointwiseRule {
  Promotion promotion = Promotion::Same;
  // One lane per lane argument, in schema order. The dtype is the one that they were promoted to: of halves, whose
  // lanes are float32, it says which.
  std::function<Lane(std::span<const Lane>, Dtype)> body;
  size_t lanes = 0;  // how many `body` takes
  // What a library's kernel may do in its place, to each element that it has just computed.
  dispatch::Epilogue epilogue = dispatch::Epilogue::None;
  // Halves are computed as float: whether numbers and tensors of other dtypes are halves first, or as exact as they
  // come.
  bool rounds_operands = false;
};

struct ReductionRule {
  loop::ReduceKind kind = loop::ReduceKind::Sum;
  Dtype (*result)(Dtype self) =
      nullptr;  // null: the same dtype. The argument `dtype`, if the schema has one, overrides it
};

// What an Element row's body works with: coordinates of the output element, inputs at any coordinates.
class Element {
 public:
  virtual ~Element() = default;
  virtual loop::Builder& builder() = 0;
  virtual const Arguments& arguments() const = 0;
  virtual Expr index(size_t dim) = 0;              // coordinate of the output element
  virtual Expr linear_index() = 0;                 // its position in row-major order
  virtual Expr integer(const SymInt& number) = 0;  // a size or number as an index expression
  virtual Lane load(const Tensor& input, std::span<const Expr> index) = 0;
  virtual Lane scalar(std::string_view argument, Dtype dtype) = 0;  // a number argument
  // Word number `word` of this call's random stream, uniform 32 bits in an int64.
  virtual Lane random_bits(Expr word) = 0;
  virtual Dtype dtype() const = 0;  // what the output computes in (halves: float32)
};

struct ElementRule {
  std::function<Lane(Element&)> body;
  bool random = false;
  bool uninitialised =
      false;  // eager leaves the memory as it is; in a graph, where only its geometry is read, it costs nothing
  // Of a row whose result is `self` but for `src`: the view of a whole that `src` replaces. Empty: it is no such row.
  std::function<Tensor(const Tensor& whole, const Arguments&)> place;
  // Whether one kernel is to compute it for these arguments; when not, the row's decomposition is used. Empty: always.
  std::function<bool(const Arguments&)> whole;
};

// How a view addresses: output coordinates to input coordinates.
class ViewIndex {
 public:
  virtual ~ViewIndex() = default;
  virtual const Arguments& arguments() const = 0;
  virtual Expr integer(const SymInt& number) = 0;
  std::vector<Expr> index;  // coordinates of the view's element
};

struct Geometry {
  SymInts sizes, strides;
  SymInt offset;
  std::optional<Dtype> dtype = std::nullopt;  // what the bits are taken for, if not for what `self` takes them
};

struct ViewRule {
  std::function<Geometry(const Arguments&)> geometry;
  std::function<std::vector<Expr>(ViewIndex&)> index;
  // The base with the view's elements replaced, as functionalization puts a mutation back.
  std::function<Tensor(const Tensor& base, const Tensor& view, const Arguments&)> scatter;
  // The same elements of another tensor that has the sizes of `self` but not its memory. Empty: the operator itself.
  std::function<Tensor(const Tensor& other, const Arguments&)> replay;
  // The view names places in memory, whatever elements `self` has there. `scatter` and `replay` read the strides of the
  // arguments' `self`; its data may be gone.
  bool of_storage = false;
};

using ShapeRule = std::function<std::vector<TensorMeta>(const Arguments&)>;

// (Of a kernel that makes its results the shape rule serves fakes alone.)
struct OpaqueRule {
  dispatch::OpaqueKernel cpu;
  // Whether the kernel takes these arguments; when not, the row's decomposition is used. Empty: always.
  std::function<bool(const Arguments&)> supports;
};

// A size in a shape rule that only the data can tell, from `min` to `max` (if that is known). The fake room says where
// such sizes can be had: `fake/dynamic_size.h`.
SymInt new_dynamic_size(const SymInt& min, const std::optional<SymInt>& max);
using DynamicSizeSource = SymInt (*)(const SymInt& min, const std::optional<SymInt>& max);
void set_dynamic_size_source(DynamicSizeSource source);

// What a gradient formula may read: the gradients of the outputs, what it declared to save, and everything that is not
// a tensor. Reading anything else is an InternalError.
class Grad {
 public:
  virtual ~Grad() = default;
  virtual Tensor grad(size_t output = 0) const = 0;
  virtual size_t outputs() const = 0;  // how many there are: one for each tensor of a list
  virtual Tensor saved(std::string_view name) const = 0;
  virtual std::vector<std::optional<Tensor>> saved_list(std::string_view name) const = 0;  // of a list of tensors
  virtual bool has(std::string_view name) const = 0;  // whether an optional saved tensor was given
  virtual const dispatch::Value& argument(std::string_view name) const = 0;  // not a tensor
  virtual const SymInts& sizes(std::string_view name) const = 0;    // free: of any tensor argument, and "result"
  virtual const SymInts& strides(std::string_view name) const = 0;  // of `self` of a view of storage
  virtual Dtype dtype(std::string_view name) const = 0;
  virtual const std::vector<SymInts>& list_sizes(std::string_view name) const = 0;  // of a tensor list
  // What the gradients of several inputs have in common: computed for the first formula of the node that asks.
  virtual const std::vector<Tensor>& once(const std::function<std::vector<Tensor>()>& compute) = 0;
  // Whether the gradient will be differentiated: then it must be made of operators that have gradients.
  virtual bool is_recorded() const = 0;
};

struct GradRule {
  std::string input;               // an argument's name; of a tensor list: the formula gives one gradient each
  std::vector<std::string> saves;  // arguments, and "result" (or "result1", …)
  std::function<std::vector<Tensor>(Grad&)> formula;
  bool implemented = true;  // false: results require grad, and the formula is a NotImplementedError
};

enum class Kind : uint8_t { Pointwise, Reduction, Element, View, Composite, Opaque };

// What passes over graphs know a row by: they match roles, never names. Overloads of one role agree in the places of
// the arguments that are named here.
enum class Role : uint8_t {
  None,
  Add,           // (self, other, alpha)
  Subtract,      // (self, other, alpha)
  Multiply,      // (self, other)
  Divide,        // (self, other); not the ways of dividing that round
  Negate,        // (self)
  Convert,       // (self): to another dtype
  Copy,          // (self, src): the elements of `src`
  Zeros,         // 0 in every element
  Ones,          // 1 in every element
  Full,          // (size, fill_value)
  Clone,         // (self)
  Reshape,       // (self, size)
  Expand,        // (self, size)
  Permute,       // (self, dims)
  Product,       // (self, mat2): of matrices, or of batches of them
  AddedProduct,  // (self, mat1, mat2, beta, alpha): the same, and `self`
  Convolution,   // (input, weight, bias, …)
};

// What somebody made of a row when first asked, kept with it for good. A copy of the row begins anew.
class Derived {
 public:
  Derived() = default;
  Derived(const Derived&) {}
  Derived& operator=(const Derived&) { return *this; }
  const void* get() const { return made_.load(std::memory_order_acquire); }
  void set(const void* made) const { made_.store(made, std::memory_order_release); }

 private:
  mutable std::atomic<const void*> made_{nullptr};
};

struct Row final : dispatch::OperatorTraits {
  schema::Schema schema;
  Kind kind = Kind::Opaque;
  Role role = Role::None;
  std::string family;  // the file's section: "unary", "reduction", …
  const char* file = nullptr;
  int line = 0;

  PointwiseRule pointwise;
  ReductionRule reduction;
  ElementRule element;
  ViewRule view;
  OpaqueRule opaque;
  // Of a Composite; beside an Opaque kernel or an Element; of a View whose elements loops cannot address.
  dispatch::KernelFunction decomposition;
  ShapeRule shape;                              // of Element and Opaque rows
  std::function<void(const Arguments&)> check;  // of Pointwise rows: refuses what broadcasting and promotion would take
  std::vector<GradRule> grads;
  std::vector<std::string> not_differentiable;  // results that carry no gradient, by name or "result"
  std::vector<std::string> ignored;             // tensor arguments whose elements are never read (only their geometry)
  bool derives_inplace = true;                  // of Pointwise rows
  bool captured_in_parts = false;               // of Composite rows: it asks what only the user's tensors know
  bool gives_pieces = false;                    // of Composite rows: views of `self`, with a gradient of all of them
  bool moves_self = false;                      // of Composite rows: `self` gets another shape
  bool moves_elements = false;                  // elements go to the result as they are, at most converted
  bool inplace_by_copy = false;                 // of others: the in-place form copies the result into self
  const Row* functional = nullptr;              // of an in-place form: the row that it was derived from
  const dispatch::Operator* functional_op = nullptr;
  const dispatch::Operator* inplace_op = nullptr;  // the derived form of this row

  const dispatch::Operator* op = nullptr;
  Derived gradient_plan;  // what autograd made of `grads`
  bool inplace() const { return functional != nullptr; }
  bool ignores(std::string_view argument) const;
  bool dynamic() const { return static_cast<bool>(opaque.cpu.make); }  // sizes depend on data
  const dispatch::OpaqueKernel* opaque_kernel() const override;
  bool differentiable() const { return !grads.empty(); }
  const GradRule* grad_of(std::string_view input) const;
  // Whether each input that has a gradient has a formula for it.
  bool implements_gradients() const;
};

// Makes the results of a row that gives pieces, with what autograd keeps of that; without one, the row is taken apart.
using PieceMaker = void (*)(const Row& row, dispatch::Call& call);
void set_piece_maker(PieceMaker maker);

// The row of an operator; null for operators that are not in the table (custom ones).
const Row* row_of(const dispatch::Operator& op);

// `None` for operators that are not in the table.
Role role_of(const dispatch::Operator& op);

// PyTorch's promotion over tensors with dimensions, 0-d tensors and numbers, in that order of precedence.
Dtype result_type(const Arguments& arguments, size_t first_lane = 0);
Dtypes pointwise_dtypes(const Row& row, const Arguments& arguments);
// Which arguments are lanes: tensors and numbers.
bool is_lane(const schema::Argument& argument);

// Sizes after broadcasting; an Error naming the operator and the shapes if they do not fit.
SymInts broadcast(std::span<const SymInts> shapes, std::string_view op_name);

// Strides of a result computed element by element from these inputs: dense, in the order of their dimensions in memory.
// `converted`: by input, whether it is converted to another dtype first.
SymInts pointwise_strides(const SymInts& sizes, std::span<const Tensor> inputs,
                          const std::vector<bool>& converted = {});

// The order of dimensions that the argument memory_format asks for; none where it is that of the inputs.
std::optional<MemoryFormat> order_in(const Arguments& arguments);

// A NotImplementedError where floats of 8 bits, which are stored but not computed with, are among the tensors of a call
// or what it gives, and the row does more than move elements.
void refuse_stored_only(const Row& row, const Arguments& arguments, std::span<const TensorMeta> results = {});

// Metadata of the outputs of a non-view, non-composite row.
std::vector<TensorMeta> infer(const Row& row, const Arguments& arguments);

}  // namespace tenon::ops
