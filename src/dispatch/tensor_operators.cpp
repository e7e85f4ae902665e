// The operators of `Tensor`: each is a call of the generated function.
#include <tenon/dispatch/call.h>
#include <tenon/generated/ops.h>

namespace tenon {

#define TENON_ARITHMETIC(symbol, function)                                            \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return function(a, b); } \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { return function(a, b); } \
  const Tensor& Tensor::operator symbol##=(const Tensor & other) const {              \
    tenon::function##_(*this, other);                                                 \
    return *this;                                                                     \
  }                                                                                   \
  const Tensor& Tensor::operator symbol##=(const Scalar & other) const {              \
    tenon::function##_(*this, other);                                                 \
    return *this;                                                                     \
  }
TENON_ARITHMETIC(+, add)
TENON_ARITHMETIC(-, sub)
TENON_ARITHMETIC(*, mul)
TENON_ARITHMETIC(/, div)
TENON_ARITHMETIC(%, remainder)
TENON_ARITHMETIC(&, bitwise_and)
TENON_ARITHMETIC(|, bitwise_or)
TENON_ARITHMETIC(^, bitwise_xor)
#undef TENON_ARITHMETIC

Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
Tensor operator/(const Scalar& a, const Tensor& b) { return mul(reciprocal(b), a); }
Tensor operator-(const Tensor& a) { return neg(a); }
Tensor operator~(const Tensor& a) { return bitwise_not(a); }

#define TENON_COMPARISON(symbol, function)                                            \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return function(a, b); } \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { return function(a, b); }
TENON_COMPARISON(==, eq)
TENON_COMPARISON(!=, ne)
TENON_COMPARISON(<, lt)
TENON_COMPARISON(<=, le)
TENON_COMPARISON(>, gt)
TENON_COMPARISON(>=, ge)
#undef TENON_COMPARISON

Tensor Tensor::operator[](int64_t index) const { return tenon::select(*this, 0, index); }

const Tensor& Tensor::operator=(const Tensor& values) && {
  tenon::copy_(*this, values);
  return *this;
}
const Tensor& Tensor::operator=(Tensor&& values) && {
  tenon::copy_(*this, values);
  return *this;
}
const Tensor& Tensor::operator=(const Scalar& value) && {
  tenon::fill_(*this, value);
  return *this;
}

Tensor Tensor::T() const {
  Ints dims;
  for (int64_t dim = this->dim(); dim-- > 0;) dims.push_back(dim);
  return tenon::permute(*this, dims);
}

Tensor Tensor::mT() const {
  TENON_CHECK(defined() && dim() >= 2, "[mT] expected a tensor of at least 2 dimensions, got {}",
              defined() ? description() : "an undefined one");
  return tenon::transpose(*this, -2, -1);
}

Scalar Tensor::item() const {
  static const dispatch::Operator& op = dispatch::find_operator("aten::_local_scalar_dense");
  const dispatch::Value args[] = {dispatch::Value(*this)};
  return dispatch::call<Scalar>(op, args);
}

std::vector<Scalar> Tensor::tolist() const {
  TENON_CHECK(defined() && dim() == 1, "[tolist] expected a tensor of one dimension, got {}",
              defined() ? description() : "an undefined one");
  std::vector<Scalar> numbers;
  auto count = int64_t(size(0));
  for (int64_t at = 0; at < count; ++at) numbers.push_back((*this)[at].item());
  return numbers;
}

}  // namespace tenon
