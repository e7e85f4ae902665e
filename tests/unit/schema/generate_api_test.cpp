// Needs tools/generate_api/{cpp_types,example,generate,scan,tokens}.cpp beside the library.
#include "../../../tools/generate_api/generate.h"

#include <tenon/support/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tenon::generate_api {
namespace {

Api generate_text(const std::string& text) { return generate(scan("src/ops/rows.cpp", text)); }

std::string header_of(const std::string& text) { return generate_text(text).families.at(0).header; }

// The part after the notice, the includes and the opening of the namespace.
std::string after(const std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  return at == std::string::npos ? "no `" + mark + "` in: " + text : text.substr(at);
}

std::string error_of(const std::string& text) {
  try {
    generate_text(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

const char* const kRows = R"source(
#define OPS(family) /* op("no") */ void family() \
  op("not a row")
// op("not a row") /*
OPS(unary) {
  op("sin(Tensor self) -> Tensor")
      .pointwise(promote::to_float, [](Lane x) { return sin(x); })
      .grad("self", saves("self"), [](Grad& g) { char c = ';'; g.op("no row"); return g.grad() * 1'000; });

  /* between */ op("add.Tensor(Tensor self, Tensor other, "  // two literals
     "*, Scalar alpha=1) -> Tensor").pointwise(promote::common, f);
  op("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor").pointwise(f).no_inplace();
}

OPS(creation) {
  op("zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
     "-> Tensor").decompose(f);
  op("sum.dim_IntList(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .reduce();
  op("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)").pointwise(f);
  op(R"(max.dim(Tensor self, int dim, bool keepdim=False, str mode="a\\b") -> (Tensor values, Tensor indices))")
      .kernel(f);
  op("seed() -> int").kernel(f);
}
)source";

TEST(GenerateApi, AnInPlaceFormByCopying) {
  std::string header =
      generate_text(R"(OPS(f) { op("tril(Tensor self, int diagonal=0) -> Tensor").element(f).with_inplace(); })")
          .families.at(0)
          .header;
  EXPECT_EQ(after(header, "// aten::tril_"), R"(// aten::tril_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)
//   tril_(x);
Tensor tril_(const Tensor& self, int64_t diagonal = 0);

}  // namespace tenon
)");
}

// Whatever the row says before it says that it is pointwise.
TEST(GenerateApi, AnInPlaceFormOfARowThatSaysMore) {
  std::string header = generate_text(R"(OPS(f) { op("neg(Tensor self) -> Tensor").role(Role::Negate).pointwise(f); })")
                           .families.at(0)
                           .header;
  EXPECT_THAT(header, ::testing::HasSubstr("Tensor neg_(const Tensor& self);"));
}

TEST(GenerateApi, Header) {
  EXPECT_EQ(after(header_of(kRows), "namespace tenon {"), R"(namespace tenon {

// unary (rows.cpp)
// aten::sin(Tensor self) -> Tensor
//   sin(x);
Tensor sin(const Tensor& self);
// aten::sin_(Tensor(a!) self) -> Tensor(a!)
//   sin_(x);
Tensor sin_(const Tensor& self);
// aten::sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
//   sin_out(out, x);
Tensor sin_out(const Tensor& out, const Tensor& self);
// aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//   add(x, y);
Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
// aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
//   add_(x, y);
Tensor add_(const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
// aten::add.Tensor_out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
//   add_out(out, x, y);
Tensor add_out(const Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha = 1);
// aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
//   where(x > y, x, y);
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);

// creation (rows.cpp)
// aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, )"
                                                          R"(Device? device=None, bool? pin_memory=None) -> Tensor
//   zeros({2, 3});
Tensor zeros(const SymInts& size, const TensorOptions& options = {});
// aten::sum.dim_IntList(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
//   sum(x);
Tensor sum(const Tensor& self, const OptionalInts& dim = std::nullopt, bool keepdim = false, )"
                                                          R"(std::optional<Dtype> dtype = std::nullopt);
// aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
//   fill_(x, 2);
Tensor fill_(const Tensor& self, const Scalar& value);
// aten::max.dim(Tensor self, int dim, bool keepdim=False, str mode="a\\b") -> (Tensor values, Tensor indices)
//   max(x, 0);
std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false, std::string_view mode = "a\\b");
// aten::seed() -> int
//   seed();
int64_t seed();

}  // namespace tenon
)");
}

TEST(GenerateApi, EachSourceIsAFamily) {
  std::vector<Row> rows = scan("src/ops/one.cpp", "op(\"f(Tensor self) -> Tensor\");");
  for (Row& row : scan("src/ops/two.cpp", "op(\"g(Tensor self) -> Tensor\"); op(\"h() -> Tensor\");"))
    rows.push_back(std::move(row));
  Api api = generate(rows);
  ASSERT_EQ(api.families.size(), 2u);
  EXPECT_EQ(api.families[0].name, "one");
  EXPECT_EQ(api.families[1].name, "two");
  EXPECT_NE(api.families[0].header.find("Tensor f(const Tensor& self);"), std::string::npos);
  EXPECT_EQ(api.families[0].header.find("Tensor g("), std::string::npos);
  EXPECT_NE(api.families[1].source.find("Tensor Tensor::g() const"), std::string::npos);
  EXPECT_EQ(after(api.ops_header, "#include"),
            "#include <tenon/generated/ops/one.h>\n#include <tenon/generated/ops/two.h>\n");
  EXPECT_NE(api.tensor_methods.find("Tensor f() const;"), std::string::npos);
  EXPECT_NE(api.tensor_methods.find("Tensor g() const;"), std::string::npos);
}

TEST(GenerateApi, Methods) {
  EXPECT_EQ(after(generate_text(kRows).tensor_methods, "\n// unary"),
            R"(
// unary (rows.cpp)
// aten::sin(Tensor self) -> Tensor
//   x.sin();
Tensor sin() const;
// aten::sin_(Tensor(a!) self) -> Tensor(a!)
//   x.sin_();
Tensor sin_() const;
// aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//   x.add(y);
Tensor add(const Tensor& other, const Scalar& alpha = 1) const;
// aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
//   x.add_(y);
Tensor add_(const Tensor& other, const Scalar& alpha = 1) const;

// creation (rows.cpp)
// aten::sum.dim_IntList(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
//   x.sum();
Tensor sum(const OptionalInts& dim = std::nullopt, bool keepdim = false, )"
            R"(std::optional<Dtype> dtype = std::nullopt) const;
// aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
//   x.fill_(2);
Tensor fill_(const Scalar& value) const;
// aten::max.dim(Tensor self, int dim, bool keepdim=False, str mode="a\\b") -> (Tensor values, Tensor indices)
//   x.max(0);
std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false, std::string_view mode = "a\\b") const;
)");
}

TEST(GenerateApi, Examples) {
  auto example = [](const std::string& row) {
    std::string header = header_of(row);
    size_t begin = header.find("//   ") + 5;
    return header.substr(begin, header.find('\n', begin) - begin);
  };
  EXPECT_EQ(example("op(\"f(Tensor self, int[] dims, Tensor[] others, Scalar? k) -> Tensor\");"),
            "f(x, Ints{0}, {x, y}, std::nullopt);");
  EXPECT_EQ(example("op(\"mm(Tensor self, Tensor mat2) -> Tensor\");"), "mm(x, ones({3, 2}));");
  // What a row says itself comes first.
  EXPECT_EQ(example("// Example: f(x, 7);\n  op(\"f(Tensor self, int odd) -> Tensor\");"), "f(x, 7);");
  EXPECT_EQ(example("// Example: g(x);\n\nop(\"f(Tensor self) -> Tensor\");"), "f(x);");
}

TEST(GenerateApi, Bodies) {
  const std::string source = generate_text(kRows).families.at(0).source;
  const char* const lines[] = {
      "Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) { static const dispatch::Operator& op "
      "= "
      "dispatch::find_operator(\"aten::add.Tensor\"); const dispatch::Value args[] = {dispatch::Value(self), "
      "dispatch::Value(other), dispatch::Value(alpha)}; return dispatch::call<Tensor>(op, args); }\n",
      "Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const { return tenon::add(*this, other, alpha); "
      "}\n",
      // The schema's order, not the function's.
      "Tensor add_out(const Tensor& out, const Tensor& self, const Tensor& other, const Scalar& alpha) { static const "
      "dispatch::Operator& op = dispatch::find_operator(\"aten::add.Tensor_out\"); const dispatch::Value args[] = "
      "{dispatch::Value(self), dispatch::Value(other), dispatch::Value(alpha), dispatch::Value(out)}; return "
      "dispatch::call<Tensor>(op, args); }\n",
      "const dispatch::Value args[] = {dispatch::Value(size), dispatch::Value(options.dtype), "
      "dispatch::Value(options.layout), dispatch::Value(options.device), dispatch::Value(options.pin_memory)}; return",
      "int64_t seed() { static const dispatch::Operator& op = dispatch::find_operator(\"aten::seed\"); return "
      "dispatch::call<int64_t>(op, {}); }\n",
      "return dispatch::call<std::tuple<Tensor, Tensor>>(op, args); }\n",
  };
  for (const char* line : lines) EXPECT_NE(source.find(line), std::string::npos) << line << "\nin\n" << source;
}

TEST(GenerateApi, EveryTypeAndDefault) {
  const auto declaration = [](const std::string& arguments, const std::string& result = "()") {
    const std::string header = header_of("op(\"f(" + arguments + ") -> " + result + "\").kernel(f);");
    const std::string tail = after(header, result == "()" ? "void f(" : " f(");
    return tail.substr(0, tail.find(");"));
  };
  EXPECT_EQ(
      declaration("Tensor? a, Tensor[] b, Tensor?[] c, int d, SymInt e, int[] f, int[2] g, int[]? h"),
      "void f(const std::optional<Tensor>& a, const std::vector<Tensor>& b, const std::vector<std::optional<Tensor>>& "
      "c, int64_t d, const SymInt& e, const Ints& f, const Ints& g, const OptionalInts& h");
  EXPECT_EQ(
      declaration("SymInt[] a, SymInt[]? b, float c, float[] d, bool e, bool[3] f, str g, Scalar h, ScalarType i"),
      "void f(const SymInts& a, const std::optional<SymInts>& b, double c, const std::vector<double>& d, bool e, "
      "const std::vector<bool>& f, std::string_view g, const Scalar& h, Dtype i");
  EXPECT_EQ(
      declaration("Device a, Layout b, MemoryFormat c, Generator d, int? e, bool? f, str? g, SymInt? h, Scalar? i"),
      "void f(Device a, Layout b, MemoryFormat c, Generator& d, std::optional<int64_t> e, std::optional<bool> f, "
      "std::optional<std::string_view> g, const std::optional<SymInt>& h, const std::optional<Scalar>& i");
  EXPECT_EQ(declaration("float a=2, int b=-9223372036854775808, int[2] c=1, int[] d=[], bool[2] e=[True, False], "
                        "int[1]? g=[3], float h=inf"),
            "void f(double a = 2.0, int64_t b = INT64_MIN, const Ints& c = {1, 1}, const Ints& d = {}, const "
            "std::vector<bool>& e = {true, false}, const OptionalInts& g = Ints{3}, double h = "
            "std::numeric_limits<double>::infinity()");
  EXPECT_EQ(
      declaration("ScalarType a=long, MemoryFormat b=preserve_format, Device c=cpu, Generator? d=None, str? e='x', "
                  "int g=Mean"),
      "void f(Dtype a = kInt64, MemoryFormat b = MemoryFormat::Preserve, Device c = kCPU, Generator* d = nullptr, "
      "std::optional<std::string_view> e = \"x\", int64_t g = 1");
}

TEST(GenerateApi, NamesThatCppHasTaken) {
  const Api api = generate_text("op(\"xor(Tensor self, int default=1, int op=2) -> Tensor\").kernel(f);");
  EXPECT_NE(api.families.at(0).header.find("Tensor xor_(const Tensor& self, int64_t default_ = 1, int64_t op_ = 2);"),
            std::string::npos);
  EXPECT_NE(api.families.at(0).source.find("find_operator(\"aten::xor\")"), std::string::npos);
}

TEST(GenerateApi, DefaultsBeforeARequiredParameterAreDropped) {
  const Api api = generate_text("op(\"f(Tensor self, int a=1, *, Tensor(a!) out, int b=2) -> Tensor(a!)\").kernel(f);");
  EXPECT_NE(
      api.families.at(0).header.find("Tensor f(const Tensor& self, int64_t a, const Tensor& out, int64_t b = 2);"),
      std::string::npos);
}

TEST(GenerateApi, OtherDefaultsThanNoneKeepTheOptionsApart) {
  const Api api = generate_text(
      "op(\"f(*, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor\").kernel(f);");
  EXPECT_NE(
      api.families.at(0).header.find("Tensor f(std::optional<Dtype> dtype = kInt64, std::optional<Layout> layout = "
                                     "std::nullopt, "),
      std::string::npos);
}

TEST(GenerateApi, ErrorsNameTheRow) {
  EXPECT_EQ(error_of("\n\nop(\"f(double x) -> Tensor\");"),
            "src/ops/rows.cpp:3: [schema] column 3: unknown type specifier `double`. Use `float`\n"
            "  f(double x) -> Tensor\n"
            "    ^");
  EXPECT_EQ(error_of("op(\"f() -> ()\");\nop(\"f.a() -> ()\");"),
            "src/ops/rows.cpp:2: `aten::f.a() -> ()`\nsrc/ops/rows.cpp:1: `aten::f() -> ()`\n"
            "  both give the C++ function `f()`");
  EXPECT_EQ(error_of("op(\"f(int a) -> ()\");\nop(\"aten::f(bool a) -> ()\");"),
            "src/ops/rows.cpp:2: `aten::f(bool a) -> ()`\nsrc/ops/rows.cpp:1: `aten::f(int a) -> ()`\n"
            "  both define the operator `aten::f`");
  EXPECT_EQ(error_of("op(\"f(Tensor self) -> Tensor\").pointwise(g);\nop(\"f_(Tensor(a!) self) -> Tensor(a!)\").k();"),
            "src/ops/rows.cpp:2: `aten::f_(Tensor(a!) self) -> Tensor(a!)`\n"
            "src/ops/rows.cpp:1: `aten::f_(Tensor(a!) self) -> Tensor(a!)`\n  both define the operator `aten::f_`");
  EXPECT_EQ(error_of("op(\"f() -> ()\", 1);"),
            "src/ops/rows.cpp:1: expected `op(\"…\")` with nothing but a schema in quotes");
  EXPECT_EQ(error_of("void g() { op(\"f() -> ()\") }"), "src/ops/rows.cpp:1: expected `;` after the row of `f`");
  EXPECT_EQ(error_of("op(\"f(MemoryFormat x=odd) -> ()\");"),
            "src/ops/rows.cpp:1: the default `odd` of a `MemoryFormat` has no counterpart in C++");
  EXPECT_EQ(error_of("\n/* "), "src/ops/rows.cpp:2: a comment that is never closed");
  EXPECT_EQ(error_of("x = \"abc\n\";"), "src/ops/rows.cpp:1: a string that is never closed");
}

TEST(GenerateApi, MembersAndDeclarationsAreNoRows) {
  EXPECT_TRUE(scan("a.cpp", "g.op(\"x\"); p->op(\"x\"); Operator op(\"x\"); op(name); copy_op(\"x\");").empty());
}

TEST(GenerateApi, WritesOnlyWhatChanged) {
  const std::string path = testing::TempDir() + "tenon_generate_api_test.txt";
  std::filesystem::remove(path);
  EXPECT_TRUE(write_if_changed(path, "one"));
  EXPECT_FALSE(write_if_changed(path, "one"));
  EXPECT_TRUE(write_if_changed(path, "two"));
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "two");
  std::filesystem::remove(path);
  try {
    write_if_changed("/nowhere/at/all/file", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot write /nowhere/at/all/file");
  }
}

}  // namespace
}  // namespace tenon::generate_api
