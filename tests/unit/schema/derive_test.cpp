#include <tenon/schema/derive.h>

#include <tenon/support/error.h>

#include <gtest/gtest.h>

namespace tenon::schema {
namespace {

std::string inplace(const char* text) { return inplace_form(parse(text)).str(); }
std::string out(const char* text) { return out_form(parse(text)).str(); }

TEST(Derive, Inplace) {
  EXPECT_EQ(inplace("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  EXPECT_EQ(inplace("sin(Tensor self) -> Tensor"), "sin_(Tensor(a!) self) -> Tensor(a!)");
}

TEST(Derive, Out) {
  EXPECT_EQ(out("sin(Tensor self) -> Tensor"), "sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(out("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"),
            "add.Tensor_out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(
      out("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)"),
      "frexp.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!) mantissa, Tensor(b!) exponent)");
}

TEST(Derive, DerivedSchemasParseBack) {
  for (const char* text : {"sin(Tensor self) -> Tensor", "add.Tensor(Tensor self, int dim=0, *, int k=1) -> Tensor"}) {
    const Schema schema = parse(text);
    EXPECT_EQ(parse(inplace_form(schema).str()), inplace_form(schema));
    EXPECT_EQ(parse(out_form(schema).str()), out_form(schema));
    EXPECT_TRUE(out_form(schema).is_mutable());
    EXPECT_EQ(inplace_form(schema).mutated_arguments(), std::vector<int>{0});
  }
}

TEST(Derive, WhichFormsExist) {
  struct Case {
    const char* text;
    bool inplace, out;
  };
  const Case cases[] = {
      {"sin(Tensor self) -> Tensor", true, true},
      {"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", false, true},
      {"fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", false, false},
      {"t(Tensor(a) self) -> Tensor(a)", false, false},
      {"__and__.Tensor(Tensor self, Tensor other) -> Tensor", false, false},
      {"item(Tensor self) -> Scalar", false, false},
      {"f(Tensor[] self) -> Tensor", false, true},
      {"f(Tensor self) -> ()", false, false},
      {"f(Tensor self) -> (Tensor, Tensor)", false, true},
      {"f() -> Tensor", false, true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(has_inplace_form(parse(c.text)), c.inplace) << c.text;
    EXPECT_EQ(has_out_form(parse(c.text)), c.out) << c.text;
  }
}

TEST(Derive, ErrorsShowTheSchema) {
  try {
    inplace("where(Tensor condition, Tensor self) -> Tensor");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[schema] expected a functional operator on `Tensor self` that returns one Tensor, to derive its "
                 "in-place form; got `where(Tensor condition, Tensor self) -> Tensor`");
  }
  try {
    out("item(Tensor self) -> Scalar");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[schema] expected a functional operator that returns Tensors, to derive its out form; got "
                 "`item(Tensor self) -> Scalar`");
  }
  try {
    out("f(Tensor out) -> Tensor");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[schema] the out form of `f(Tensor out) -> Tensor` has an argument `out` already");
  }
}

}  // namespace
}  // namespace tenon::schema
