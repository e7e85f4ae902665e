#include <tenon/schema/schema.h>

#include <tenon/support/error.h>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace tenon::schema {
namespace {

// As ATen declares them, in the form that the printer uses, so that printing must give the same text back.
const char* const kSchemas[] = {
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    "sin(Tensor self) -> Tensor",
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    "empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
    "ceil_mode=False) -> Tensor",
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool "
    "transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] "
    "output_mask) -> (Tensor, Tensor, Tensor)",
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor",
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, "
    "Tensor, Tensor)",
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
    "cudnn_enable=True) -> Tensor",
    "gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    "normal_(Tensor(a!) self, float mean=0.0, float std=1.0, *, Generator? generator=None) -> Tensor(a!)",
    "random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
    "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
    "_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    "_local_scalar_dense(Tensor self) -> Scalar",
    "item(Tensor self) -> Scalar",
    "is_floating_point(Tensor self) -> bool",
    "sym_size.int(Tensor self, int dim) -> SymInt",
    "result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
    "_assert_async.msg(Tensor self, str assert_msg) -> ()",
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    "__and__.Scalar(Tensor self, Scalar other) -> Tensor",
    "seed() -> int",
    "nested(int[2]? a, int[]?[] b, Tensor?[]? c=None, int[2][3] d=[], str[] e=[], bool[2] f=[True, False], "
    "float[2] g=[0.5, -1e+22], Device h=cpu, Device i=\"cuda:1\", Layout j=strided, Scalar k=True, Scalar l=-inf, "
    "float m=inf, ScalarType n=float, bool[3] o=True, int[2]? p=7) -> (int[], Tensor?, Tensor?[])",
    "sets(Tensor(a|b) x, Tensor(a! -> a|b) y, Tensor(*) z, Tensor(c0!)?[] w) -> (Tensor(a|b) out)",
};

TEST(Schema, RealSchemasPrintAsTheyWereWritten) {
  for (const char* text : kSchemas) {
    const Schema schema = parse(text);
    EXPECT_EQ(schema.str(), text);
    EXPECT_EQ(parse(schema.str()), schema);
  }
}

TEST(Schema, Parts) {
  const Schema schema = parse("aten::f.over(Tensor(a!)? x, int[2]? k=3, *, Scalar s=2.5) -> (Tensor(a!) y, int n)");
  EXPECT_EQ(schema.ns, "aten");
  EXPECT_EQ(schema.name, "f");
  EXPECT_EQ(schema.overload, "over");
  EXPECT_EQ(schema.qualified_name(), "aten::f.over");
  ASSERT_EQ(schema.arguments.size(), 3u);
  const Argument& x = schema.arguments[0];
  EXPECT_TRUE(x.type.is_optional());
  EXPECT_TRUE(x.type.is_tensor_like());
  EXPECT_EQ(x.type.element[0].kind, Kind::Tensor);
  EXPECT_EQ(x.alias, (Alias{{"a"}, {"a"}, true}));
  EXPECT_FALSE(x.default_value);
  const Argument& k = schema.arguments[1];
  EXPECT_EQ(k.type.element[0].kind, Kind::List);
  EXPECT_EQ(k.type.element[0].length, 2);
  EXPECT_FALSE(k.type.is_tensor_like());
  EXPECT_EQ(k.default_value, Default(int64_t{3}));
  EXPECT_FALSE(k.keyword_only);
  EXPECT_TRUE(schema.arguments[2].keyword_only);
  EXPECT_EQ(schema.arguments[2].default_value, Default(2.5));
  ASSERT_EQ(schema.returns.size(), 2u);
  EXPECT_EQ(schema.returns[0].name, "y");
  EXPECT_EQ(schema.returns[1].type.kind, Kind::Int);
  EXPECT_EQ(schema.argument_index("s"), 2);
  EXPECT_EQ(schema.argument_index("y"), -1);
}

TEST(Schema, AliasSets) {
  const auto alias = [](const char* text) { return *parse(text).arguments[0].alias; };
  EXPECT_EQ(alias("f(Tensor(a -> *) x) -> ()"), (Alias{{"a"}, {"*"}, false}));
  EXPECT_EQ(alias("f(Tensor(b|a!) x) -> ()"), (Alias{{"a", "b"}, {"a", "b"}, true}));
  EXPECT_EQ(alias("f(Tensor( a ! -> a|b )x)->()"), (Alias{{"a"}, {"a", "b"}, true}));
  EXPECT_EQ(alias("f(Tensor(a -> a) x) -> ()"), alias("f(Tensor(a) x) -> ()"));
}

TEST(Schema, Properties) {
  const auto kinds = [](const char* text) {
    const Schema s = parse(text);
    return std::vector<bool>{s.is_functional(), s.is_view(), s.is_mutable()};
  };
  using Kinds = std::vector<bool>;
  EXPECT_EQ(kinds("f(Tensor x) -> Tensor"), (Kinds{true, false, false}));
  EXPECT_EQ(kinds("f(Tensor(a) x) -> Tensor(a)"), (Kinds{false, true, false}));
  EXPECT_EQ(kinds("f(Tensor(a -> *) x) -> Tensor(a)[]"), (Kinds{false, true, false}));
  EXPECT_EQ(kinds("f(Tensor(a!) x) -> Tensor(a!)"), (Kinds{false, false, true}));
  EXPECT_EQ(kinds("f(Tensor(a!)[] x) -> ()"), (Kinds{false, false, true}));
  EXPECT_EQ(kinds("f(Tensor(a) x) -> Tensor(b)"), (Kinds{true, false, false}));
  EXPECT_EQ(parse("f(Tensor x, Tensor(a!) y, Tensor(b!)? z) -> ()").mutated_arguments(), (std::vector<int>{1, 2}));
}

TEST(Schema, WhiteSpaceIsFree) {
  EXPECT_EQ(parse("  f ( Tensor  x ,\n  int [ 2 ] ? k = None , * , float y = 1 )->( Tensor )  "),
            parse("f(Tensor x, int[2]? k=None, *, float y=1.0) -> Tensor"));
}

TEST(Schema, FloatsRoundTripExactly) {
  std::mt19937_64 random(7);
  std::vector<double> values = {0.1,
                                1e-05,
                                1e300,
                                5e-324,
                                123456789012345680.0,
                                1.0 / 3,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::infinity()};
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) {
    Schema schema = parse("f(float x=0) -> ()");
    schema.arguments[0].default_value = value;
    EXPECT_EQ(parse(schema.str()), schema) << schema.str();
  }
}

TEST(Schema, IntegersReachBothEnds) {
  for (const int64_t value : {INT64_MIN, INT64_MAX, int64_t{0}, int64_t{-1}}) {
    Schema schema = parse("f(int x=0) -> ()");
    schema.arguments[0].default_value = value;
    EXPECT_EQ(parse(schema.str()), schema);
  }
}

TEST(Schema, StringsKeepEveryByte) {
  Schema schema = parse("f(str x='it\\'s \"so\"\\n\\x41') -> ()");
  EXPECT_EQ(schema.arguments[0].default_value, Default(std::string("it's \"so\"\nA")));
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  schema.arguments[0].default_value = all;
  EXPECT_EQ(parse(schema.str()), schema);
}

struct Refusal {
  const char* text;
  int column;
  const char* message;  // a part of it
};

const Refusal kRefusals[] = {
    {"f(double x) -> Tensor", 3, "unknown type specifier `double`. Use `float`"},
    {"f(Tensor x, int64_t y) -> Tensor", 13, "unknown type specifier `int64_t`. Use `SymInt` or `int`"},
    {"f(int64_t[] y) -> Tensor", 3, "unknown type specifier `int64_t`. Use `SymInt` or `int`"},
    {"f(Tensor x) -> double", 16, "unknown type specifier `double`. Use `float`"},
    {"f(tensor x) -> ()", 3, "unknown type specifier `tensor`. Use `Tensor`"},
    {"f(string x) -> ()", 3, "Use `str`"},
    {"f(Foo x) -> ()", 3, "unknown type specifier `Foo`. Known types are Tensor, int, SymInt"},
    {"f(Tensor x) -> void", 16, "An operator without results returns `()`"},
    {"f(Tensor x)", 12, "missing arrow: expected `->` and the returns, got the end of the text"},
    {"f(Tensor x) Tensor", 13, "missing arrow: expected `->` and the returns, got `Tensor`"},
    {"f(Tensor x) - > Tensor", 13, "missing arrow"},
    {"f(Tensor x, int x) -> ()", 13, "duplicate argument name `x`"},
    {"f(Tensor x, *, int x) -> ()", 16, "duplicate argument name `x`"},
    {"f() -> (Tensor a, Tensor a)", 19, "duplicate name `a` of a return"},
    {"", 1, "expected the operator's name, got the end of the text"},
    {"3f() -> ()", 1, "expected the operator's name, got `3f`"},
    {"aten::() -> ()", 7, "expected the operator's name after `::`"},
    {"f.() -> ()", 3, "expected the name of the overload"},
    {"f.default() -> ()", 3, "`default` is the overload without a name. Leave it out"},
    {"f -> ()", 3, "expected `(` after the operator's name, got `-`"},
    {"f(Tensor) -> ()", 9, "expected the argument's name after `Tensor`, got `)`"},
    {"f(Tensor x", 11, "expected `)` or `,` after an argument, got the end of the text"},
    {"f(Tensor x,) -> ()", 12, "expected a type, got `)`"},
    {"f(*) -> ()", 4, "expected `,` and a keyword-only argument after `*`"},
    {"f(*, int a, *, int b) -> ()", 13, "a second `*`"},
    {"f(int a=1, int b) -> ()", 12, "`b` has no default and follows `a`"},
    {"f(int?? a) -> ()", 7, "`int?` is optional already"},
    {"f(int[0] a) -> ()", 7, "expected `]` or the length of the list"},
    {"f(int[x] a) -> ()", 7, "expected `]` or the length of the list"},
    {"f(int[99999999999999999999] a) -> ()", 7, "expected `]` or the length of the list"},
    {"f(int[2 a) -> ()", 9, "expected `]` after the length of a list, got `a`"},
    {"f(int[][][][][][][][][] a) -> ()", 3, "a type nested deeper than 8"},
    {"f(int(a!) x) -> ()", 6, "an alias annotation belongs to a Tensor, not to `int`"},
    {"f(Tensor[](a!) x) -> ()", 11, "`Tensor(a!)[]`, not `Tensor[](a!)`"},
    {"f(Tensor(a x) -> ()", 12, "expected `)` to end an alias annotation"},
    {"f(Tensor() x) -> ()", 10, "expected the name of an alias set or `*`"},
    {"f(int x=None) -> ()", 9, "`None` is no value of `int`. Make the type optional: `int?`"},
    {"f(int x=1.5) -> ()", 9, "expected an integer, got a number with a fraction"},
    {"f(int x=true) -> ()", 9, "expected an integer, got `true`"},
    {"f(int x=9223372036854775808) -> ()", 9, "`9223372036854775808` does not fit 64 bits"},
    {"f(int x=1-2) -> ()", 10, "expected `)` or `,`"},
    {"f(int x=12ab) -> ()", 9, "expected a number, got `12ab`"},
    {"f(int x=-) -> ()", 9, "expected a number, got `-`"},
    {"f(float x=1e999) -> ()", 11, "`1e999` does not fit a double"},
    {"f(float x=nan) -> ()", 11, "expected a number, got `nan`"},
    {"f(float x=-nan) -> ()", 11, "expected a number, got `-nan`"},
    {"f(bool x=true) -> ()", 10, "expected True or False, got `true`"},
    {"f(bool x=1) -> ()", 10, "expected True or False"},
    {"f(str x=none) -> ()", 9, "expected a string in quotes, got `none`"},
    {"f(str x=\"abc) -> ()", 9, "a string that is never closed"},
    {"f(str x=\"\\q\") -> ()", 9, "unknown escape in the string"},
    {"f(str x=\"\\x4\") -> ()", 9, "expected two hexadecimal digits"},
    {"f(Scalar x=abc) -> ()", 12, "expected a number, True or False, got `abc`"},
    {"f(Tensor x=1) -> ()", 12, "a `Tensor` has no default but `None`, which needs the type `Tensor?`"},
    {"f(MemoryFormat x=3) -> ()", 18, "expected the name of a MemoryFormat, got `3`"},
    {"f(int[] x=1) -> ()", 11, "expected a list in `[` `]` for `int[]`, got `1`"},
    {"f(int[2] x=[1, 2, 3]) -> ()", 12, "expected 2 elements for `int[2]`, got 3"},
    {"f(int[2] x=[1, 2) -> ()", 17, "expected `]` or `,` after an element of a list"},
    {"f(Tensor[] x=[1]) -> ()", 15, "the default of `Tensor[]` can only be `[]`"},
    {"f() -> Tensor=1", 14, "a return has no default"},
    {"f() -> (Tensor", 15, "expected `)` or `,` after a return"},
    {"f() -> Tensor;", 14, "expected the end of the schema, got `;`"},
    {"f() -> Tensor \x01", 15, "got the byte 0x01"},
};

TEST(SchemaErrors, NameTheColumnTheTextAndAHint) {
  for (const Refusal& refusal : kRefusals) {
    try {
      parse(refusal.text);
      ADD_FAILURE() << "accepted: " << refusal.text;
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.find(fmt::format("[schema] column {}: ", refusal.column)), 0u) << what;
      EXPECT_NE(what.find(refusal.message), std::string::npos) << what;
    }
  }
}

TEST(SchemaErrors, MarkThePlace) {
  try {
    parse("f(Tensor x, double y) -> Tensor");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[schema] column 13: unknown type specifier `double`. Use `float`\n"
                 "  f(Tensor x, double y) -> Tensor\n"
                 "              ^");
  }
}

TEST(SchemaErrors, LongTextsAreShownInPart) {
  std::string text = "f(";
  for (int i = 0; i < 500; ++i) text += fmt::format("int a{}, ", i);
  try {
    parse(text + "double z) -> ()" + std::string(400, ' '));
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 500u);
    EXPECT_NE(std::string(error.what()).find("double z) -> ()"), std::string::npos);
  }
}

// What the fuzzer does for minutes, for a moment: any text is refused with an Error or round-trips.
TEST(Schema, MutatedTextsAreRefusedOrRoundTrip) {
  std::mt19937 random(20240607);
  const std::string alphabet = "Tensorint?[](),*=->!|.:\"' 019ae_\\\n";
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  int accepted = 0;
  constexpr int kRounds = 30000;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = kSchemas[below(std::size(kSchemas))];
    for (size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0: text.erase(at, 1 + below(4)); break;
        case 1: text.insert(at, 1, alphabet[below(alphabet.size())]); break;
        case 2: text[at] = static_cast<char>(below(256)); break;
        default: text.insert(at, text.substr(below(text.size()), 1 + below(12))); break;
      }
    }
    Schema schema;
    try {
      schema = parse(text);
    } catch (const Error&) {
      continue;
    }
    ++accepted;
    ASSERT_EQ(parse(schema.str()), schema) << text;
  }
  // Both outcomes must be common, or the test tests nothing.
  EXPECT_GT(accepted, kRounds / 50);
  EXPECT_LT(accepted, kRounds);
}

}  // namespace
}  // namespace tenon::schema
