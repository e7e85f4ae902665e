// Second names that PyTorch has for rows.
#include <tenon/ops/table.h>

namespace tenon::ops {
namespace {

Tensor first(const Tensor& self, const char* op_name) {
  TENON_CHECK(self.defined(), "[{}] expected a tensor, got an undefined one", op_name);
  return self;
}

}  // namespace

OPS(aliases) {
  op("absolute(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return abs(first(x, "absolute")); })
      .with_inplace();
  op("negative(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return neg(first(x, "negative")); })
      .with_inplace();
  op("fix(Tensor self) -> Tensor").decompose([](const Tensor& x) { return trunc(first(x, "fix")); }).with_inplace();
  op("arccos(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return acos(first(x, "arccos")); })
      .with_inplace();
  op("arccosh(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return acosh(first(x, "arccosh")); })
      .with_inplace();
  op("arcsin(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return asin(first(x, "arcsin")); })
      .with_inplace();
  op("arcsinh(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return asinh(first(x, "arcsinh")); })
      .with_inplace();
  op("arctan(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return atan(first(x, "arctan")); })
      .with_inplace();
  op("arctanh(Tensor self) -> Tensor")
      .decompose([](const Tensor& x) { return atanh(first(x, "arctanh")); })
      .with_inplace();
  op("arctan2(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& y, const Tensor& x) { return atan2(first(y, "arctan2"), x); })
      .with_inplace();
  op("multiply.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return mul(first(x, "multiply"), y); })
      .with_inplace();
  op("divide.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return div(first(x, "divide"), y); })
      .with_inplace();
  op("true_divide.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return div(first(x, "true_divide"), y); })
      .with_inplace();
  op("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .decompose(
          [](const Tensor& x, const Tensor& y, const Scalar& alpha) { return sub(first(x, "subtract"), y, alpha); })
      .with_inplace();
  op("greater.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return gt(first(x, "greater"), y); })
      .with_inplace();
  op("greater_equal.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return ge(first(x, "greater_equal"), y); })
      .with_inplace();
  op("less.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return lt(first(x, "less"), y); })
      .with_inplace();
  op("less_equal.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return le(first(x, "less_equal"), y); })
      .with_inplace();
  op("not_equal.Tensor(Tensor self, Tensor other) -> Tensor")
      .decompose([](const Tensor& x, const Tensor& y) { return ne(first(x, "not_equal"), y); })
      .with_inplace();
  op("special_erf(Tensor self) -> Tensor").decompose([](const Tensor& x) { return erf(first(x, "special_erf")); });
  op("special_erfc(Tensor self) -> Tensor").decompose([](const Tensor& x) { return erfc(first(x, "special_erfc")); });
  op("special_erfinv(Tensor self) -> Tensor").decompose([](const Tensor& x) {
    return erfinv(first(x, "special_erfinv"));
  });
  op("special_exp2(Tensor self) -> Tensor").decompose([](const Tensor& x) { return exp2(first(x, "special_exp2")); });
  op("special_expm1(Tensor self) -> Tensor").decompose([](const Tensor& x) {
    return expm1(first(x, "special_expm1"));
  });
  op("special_expit(Tensor self) -> Tensor").decompose([](const Tensor& x) {
    return sigmoid(first(x, "special_expit"));
  });
  op("special_log1p(Tensor self) -> Tensor").decompose([](const Tensor& x) {
    return log1p(first(x, "special_log1p"));
  });
  op("special_gammaln(Tensor self) -> Tensor").decompose([](const Tensor& x) {
    return lgamma(first(x, "special_gammaln"));
  });
  op("special_digamma(Tensor self) -> Tensor").decompose([](const Tensor& x) {
    return digamma(first(x, "special_digamma"));
  });
  op("special_polygamma(int n, Tensor self) -> Tensor").decompose([](int64_t n, const Tensor& x) {
    return polygamma(n, first(x, "special_polygamma"));
  });
  op("special_multigammaln(Tensor self, int p) -> Tensor").decompose([](const Tensor& x, int64_t p) {
    return mvlgamma(first(x, "special_multigammaln"), p);
  });
  op("special_logit(Tensor self, float? eps=None) -> Tensor").decompose([](const Tensor& x, std::optional<double> eps) {
    return logit(first(x, "special_logit"), eps);
  });
  op("special_round(Tensor self, *, int decimals=0) -> Tensor").decompose([](const Tensor& x, int64_t decimals) {
    return round(first(x, "special_round"), decimals);
  });
  op("special_psi(Tensor self) -> Tensor").decompose([](const Tensor& x) { return digamma(first(x, "special_psi")); });
  op("special_sinc(Tensor self) -> Tensor").decompose([](const Tensor& x) { return sinc(first(x, "special_sinc")); });
}

}  // namespace tenon::ops
