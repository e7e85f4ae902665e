// Products of matrices: what libraries do better than loops.
#include <tenon/kernels/matmul.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

bool equal(const SymInt& a, const SymInt& b) { return same_size(a, b); }

// "32×64"
std::string by(const Tensor& tensor) {
  std::string text;
  for (const SymInt& size : tensor.sym_sizes()) text += (text.empty() ? "" : "×") + size.str();
  return text;
}

// That the last two dimensions can be multiplied, whatever is in front of them.
void check_product(const Tensor& a, const Tensor& b, std::string_view op_name) {
  TENON_CHECK(a.dtype() == b.dtype(), "[{}] expected two tensors of one dtype, got {} and {}", op_name, a.description(),
              b.description());
  TENON_CHECK_IMPLEMENTED(a.dtype() != kBool, "[{}] expected tensors of numbers, got {} and {}", op_name,
                          a.description(), b.description());
  SymInt inner = a.size(-1);
  TENON_CHECK(equal(inner, b.size(-2)), "[{}] {} and {} ({}) cannot be multiplied: expected {} rows", op_name, by(a),
              by(b), name(a.dtype()), inner.str());
}

void check_rank(const Tensor& a, const Tensor& b, int64_t rank, std::string_view op_name) {
  TENON_CHECK(a.defined() && b.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  TENON_CHECK(a.dim() == rank && b.dim() == rank, "[{}] expected tensors of {} dimensions, got {} and {}", op_name,
              rank, a.description(), b.description());
  TENON_CHECK(a.device() == b.device(), "[{}] expected all tensors on one device, got {} and {}", op_name,
              a.device().str(), b.device().str());
}

TensorMeta mm_shape(const Tensor& a, const Tensor& b, std::string_view op_name) {
  check_rank(a, b, 2, op_name);
  check_product(a, b, op_name);
  return TensorMeta::contiguous(SymInts{a.size(0), b.size(1)}, a.dtype(), a.device());
}

TensorMeta addmm_shape(const Arguments& arguments) {
  const Tensor& self = arguments.tensor("self");
  TensorMeta meta = mm_shape(arguments.tensor("mat1"), arguments.tensor("mat2"), "addmm");
  TENON_CHECK(self.defined(), "[addmm] expected a tensor, got an undefined one");
  TENON_CHECK(self.dtype() == meta.dtype, "[addmm] expected self of {}, got {}", name(meta.dtype), self.description());
  SymInts sizes = self.sym_sizes();
  bool fits = sizes.size() <= 2;
  for (size_t dim = 0; fits && dim < sizes.size(); ++dim)
    fits = broadcasts_to(sizes[dim], meta.sizes[2 - sizes.size() + dim]);
  TENON_CHECK(fits, "[addmm] self {} cannot be broadcast to {}", self.description(), str(meta.sizes));
  return meta;
}

bool by_library(const Arguments& arguments, std::string_view operand) {
  return kernels::matmul_supports(arguments.tensor(operand).dtype());
}

// A product and a sum, which become one loop; halves in float32, not yet rounded.
Tensor wide_mm(const Tensor& a, const Tensor& b) {
  Dtype wide = compute_dtype(a.dtype());
  return sum(unsqueeze(a.to(wide), 2) * unsqueeze(b.to(wide), 0), 1, false, wide);
}

bool is_number(const Scalar& scalar, double number) { return !scalar.is_symbolic() && scalar.to_double() == number; }

Tensor scaled(const Tensor& tensor, const Scalar& factor) { return is_number(factor, 1) ? tensor : tensor * factor; }

Tensor t3(const Tensor& matrices) { return transpose(matrices, 1, 2); }

SymInts without_last(const Tensor& tensor, size_t count) {
  SymInts sizes = tensor.sym_sizes();
  for (size_t i = 0; i < count; ++i) sizes.pop_back();
  return sizes;
}

SymInt product(const SymInts& sizes) {
  SymInt result = 1;
  for (const SymInt& size : sizes) result *= size;
  return result;
}

SymInts joined(SymInts sizes, std::initializer_list<SymInt> last) {
  for (const SymInt& size : last) sizes.push_back(size);
  return sizes;
}

// All but the last dimension as rows.
Tensor as_rows(const Tensor& tensor) {
  if (tensor.dim() == 2) return tensor;
  return reshape(tensor, SymInts{product(without_last(tensor, 1)), tensor.size(-1)});
}

// Both with at least two dimensions, one with more: the batch dimensions are broadcast and multiplied as one.
Tensor batched_matmul(const Tensor& a, const Tensor& b) {
  check_product(a, b, "matmul");
  if (b.dim() == 2) return view(mm(as_rows(a), b), joined(without_last(a, 1), {b.size(-1)}));
  const SymInts shapes[] = {without_last(a, 2), without_last(b, 2)};
  SymInts batch = broadcast(shapes, "matmul");
  SymInt count = product(batch), m = a.size(-2), k = a.size(-1), n = b.size(-1);
  Tensor left = reshape(expand(a, joined(batch, {m, k})), SymInts{count, m, k});
  Tensor right = reshape(expand(b, joined(batch, {k, n})), SymInts{count, k, n});
  return view(bmm(left, right), joined(batch, {m, n}));
}

using dispatch::Epilogue;

// What `addmm` adds to the product.
kernels::MatmulEpilogue bias_of(const Arguments& arguments) {
  kernels::MatmulEpilogue epilogue;
  epilogue.bias = &arguments.tensor("self");
  epilogue.alpha = arguments["alpha"].scalar().to_double();
  epilogue.beta = arguments["beta"].scalar().to_double();
  return epilogue;
}

void multiply(const Arguments& arguments, std::string_view left, kernels::MatmulEpilogue added, Tensor& result,
              Epilogue epilogue) {
  added.relu = epilogue == Epilogue::Relu;
  kernels::matmul(arguments.tensor(left), arguments.tensor("mat2"), result, added);
}

}  // namespace

OPS(matmul) {
  op("mm(Tensor self, Tensor mat2) -> Tensor")
      .role(Role::Product)
      .kernel([](const Arguments& arguments,
                 std::span<Tensor> outputs) { multiply(arguments, "self", {}, outputs[0], Epilogue::None); },
              [](const Arguments& arguments) { return by_library(arguments, "self"); })
      .kernel_with({Epilogue::Relu}, [](const Arguments& arguments, std::span<Tensor> outputs,
                                        Epilogue epilogue) { multiply(arguments, "self", {}, outputs[0], epilogue); })
      .decompose([](const Tensor& self, const Tensor& mat2) { return wide_mm(self, mat2).to(self.dtype()); })
      .shape([](const Arguments& arguments) {
        return std::vector{mm_shape(arguments.tensor("self"), arguments.tensor("mat2"), "mm")};
      })
      .grad("self", saves("mat2"), [](Grad& g) { return mm(g.grad(), t(g.saved("mat2"))); })
      .grad("mat2", saves("self"), [](Grad& g) { return mm(t(g.saved("self")), g.grad()); });
  op("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .role(Role::AddedProduct)
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            multiply(arguments, "mat1", bias_of(arguments), outputs[0], Epilogue::None);
          },
          [](const Arguments& arguments) { return by_library(arguments, "mat1"); })
      .kernel_with({Epilogue::Relu},
                   [](const Arguments& arguments, std::span<Tensor> outputs, Epilogue epilogue) {
                     multiply(arguments, "mat1", bias_of(arguments), outputs[0], epilogue);
                   })
      .decompose(
          [](const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
            Tensor result = scaled(wide_mm(mat1, mat2), alpha);
            // A beta of 0 ignores self, NaNs in it included.
            if (!is_number(beta, 0)) result = result + scaled(self.to(compute_dtype(self.dtype())), beta);
            return result.to(self.dtype());
          })
      .shape([](const Arguments& arguments) { return std::vector{addmm_shape(arguments)}; })
      .grad("self", saves(),
            [](Grad& g) { return scaled(sum_to_size(g.grad(), g.sizes("self")), g.argument("beta").scalar()); })
      .grad("mat1", saves("mat2"),
            [](Grad& g) { return scaled(mm(g.grad(), t(g.saved("mat2"))), g.argument("alpha").scalar()); })
      .grad("mat2", saves("mat1"),
            [](Grad& g) { return scaled(mm(t(g.saved("mat1")), g.grad()), g.argument("alpha").scalar()); })
      .with_inplace();
  op("bmm(Tensor self, Tensor mat2) -> Tensor")
      .role(Role::Product)
      .kernel(
          [](const Arguments& arguments, std::span<Tensor> outputs) {
            kernels::matmul(arguments.tensor("self"), arguments.tensor("mat2"), outputs[0]);
          },
          [](const Arguments& arguments) { return by_library(arguments, "self"); })
      .decompose([](const Tensor& self, const Tensor& mat2) {
        Dtype wide = compute_dtype(self.dtype());
        return sum(unsqueeze(self.to(wide), 3) * unsqueeze(mat2.to(wide), 1), 2, false, wide).to(self.dtype());
      })
      .shape([](const Arguments& arguments) {
        const Tensor &self = arguments.tensor("self"), &mat2 = arguments.tensor("mat2");
        check_rank(self, mat2, 3, "bmm");
        TENON_CHECK(equal(self.size(0), mat2.size(0)),
                    "[bmm] {} and {} ({}) cannot be multiplied: expected a batch of {}", by(self), by(mat2),
                    name(self.dtype()), self.size(0).str());
        check_product(self, mat2, "bmm");
        return std::vector{
            TensorMeta::contiguous(SymInts{self.size(0), self.size(1), mat2.size(2)}, self.dtype(), self.device())};
      })
      .grad("self", saves("mat2"), [](Grad& g) { return bmm(g.grad(), t3(g.saved("mat2"))); })
      .grad("mat2", saves("self"), [](Grad& g) { return bmm(t3(g.saved("self")), g.grad()); });
  op("dot(Tensor self, Tensor tensor) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    check_rank(self, other, 1, "dot");
    TENON_CHECK(self.dtype() == other.dtype(), "[dot] expected two tensors of one dtype, got {} and {}",
                self.description(), other.description());
    TENON_CHECK_IMPLEMENTED(self.dtype() != kBool, "[dot] expected tensors of numbers, got {} and {}",
                            self.description(), other.description());
    TENON_CHECK(equal(self.size(0), other.size(0)), "[dot] expected as many elements, got {} and {}",
                self.description(), other.description());
    Dtype wide = compute_dtype(self.dtype());
    return sum(self.to(wide) * other.to(wide), wide).to(self.dtype());
  });
  op("mv(Tensor self, Tensor vec) -> Tensor").decompose([](const Tensor& self, const Tensor& vec) {
    TENON_CHECK(self.dim() == 2 && vec.dim() == 1, "[mv] expected a matrix and a vector, got {} and {}",
                self.description(), vec.description());
    TENON_CHECK(equal(self.size(1), vec.size(0)), "[mv] {} and {} ({}) cannot be multiplied: expected {} elements",
                by(self), by(vec), name(self.dtype()), self.size(1).str());
    return squeeze(mm(self, unsqueeze(vec, 1)), 1);
  });
  op("matmul(Tensor self, Tensor other) -> Tensor").decompose([](const Tensor& self, const Tensor& other) {
    TENON_CHECK(self.defined() && other.defined(), "[matmul] expected a tensor, got an undefined one");
    TENON_CHECK(self.dim() > 0 && other.dim() > 0, "[matmul] expected tensors of at least one dimension, got {} and {}",
                self.description(), other.description());
    if (self.dim() == 1 && other.dim() == 1) return dot(self, other);
    if (self.dim() == 2 && other.dim() == 1) return mv(self, other);
    if (self.dim() == 2 && other.dim() == 2) return mm(self, other);
    // A vector is a matrix of one row, or of one column, for the product.
    if (self.dim() == 1) return squeeze(matmul(unsqueeze(self, 0), other), -2);
    if (other.dim() == 1) return squeeze(matmul(self, unsqueeze(other, 1)), -1);
    return batched_matmul(self, other);
  });
  op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
        TENON_CHECK(input.defined() && weight.defined(), "[linear] expected a tensor, got an undefined one");
        TENON_CHECK(input.dim() > 0 && (weight.dim() == 1 || weight.dim() == 2),
                    "[linear] expected an input of at least one dimension and a weight of one or two, got {} and {}",
                    input.description(), weight.description());
        TENON_CHECK(equal(input.size(-1), weight.size(-1)),
                    "[linear] input {} does not fit weight {}: expected {} features", input.description(),
                    weight.description(), weight.size(-1).str());
        if (weight.dim() == 1) {
          Tensor result = matmul(input, weight);
          return bias ? result + *bias : result;
        }
        // With rows alone, addmm takes whatever can be broadcast.
        TENON_CHECK(!bias || (bias->dim() == 1 && equal(bias->size(0), weight.size(0))) ||
                        (bias->dim() == 2 && input.dim() == 2),
                    "[linear] expected a bias of {} elements, got {}", weight.size(0).str(), bias->description());
        // Halves are rounded once, behind the bias.
        if (input.dim() == 1 && !is_half(input.dtype())) {
          Tensor result = matmul(input, t(weight));
          return bias ? result + *bias : result;
        }
        Tensor rows = as_rows(input);
        Tensor result = bias ? addmm(*bias, rows, t(weight)) : mm(rows, t(weight));
        return input.dim() == 2 ? result : view(result, joined(without_last(input, 1), {weight.size(0)}));
      });
}

}  // namespace tenon::ops
