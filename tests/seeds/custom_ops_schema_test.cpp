// Schemas, their inference from C++ types, and definition by name.
#include "seeds/custom_ops.h"

#include <tenon/library/load.h>
#include <tenon/library/schema_checks.h>

namespace tenon::testing {
namespace {

const std::string kNs = "_test_custom_op";

template <typename F>
std::string inferred(const dispatch::SchemaOptions& options) {
  schema::Schema schema = dispatch::schema_of<F>("", options);
  std::string text = schema.str();
  return text.substr(text.find('('));
}

// What the compiler says of lines that do not compile: in C++ the types of a function are the compiler's to check.
std::string compiler_says(const std::string& lines) {
  library::LoadOptions options;
  options.include_paths = {TENON_SOURCE_DIR "/include", TENON_BINARY_DIR "/generated/include"};
  options.flags = {"-O0", "-fsyntax-only", "-fno-diagnostics-show-caret"};
  return error_of<RuntimeError>([&] {
    library::load_inline("does_not_compile",
                         "#include <tenon/library/legacy.h>\n#include <list>\nusing namespace tenon;\n" + lines,
                         options);
  });
}

TEST(TestCustomOp, invalid_schemas) {
  EXPECT_THAT(error_of<RuntimeError>([] { legacy::custom_op(kNs + "::foo", "("); }),
              HasSubstr("Invalid function schema: foo"));
}

TEST(TestCustomOp, invalid_qualname) {
  EXPECT_THAT(error_of<ValueError>([] { legacy::custom_op(kNs + "::foo.Tensor", "() -> ()"); }), HasSubstr("overload"));
}

TEST(TestCustomOp, unsupported_schemas) {
  for (const char* schema : {"(Tensor(a!) x) -> Tensor(a)", "(Tensor(a) x) -> Tensor(a)", "(Tensor x) -> ()"})
    EXPECT_THAT(error_of<ValueError>([&] { legacy::custom_op(kNs + "::foo", schema); }),
                HasSubstr("only supports functional"))
        << schema;
  EXPECT_THAT(error_of<ValueError>([] { legacy::custom_op(kNs + "::foo", "(Tensor self) -> ()"); }), HasSubstr("self"));
}

TEST(TestCustomOp, schema_matches_signature) {
  using One = Tensor(const Tensor&);
  using Two = Tensor(const Tensor&, const Tensor&);
  using Three = Tensor(const Tensor&, const Tensor&, const Tensor&);
  auto given = [](const char* schema, auto type, const char* names) {
    return error_of<ValueError>([&] { legacy::custom_op(kNs + "::blah", schema, type, {.names = names}); });
  };
  std::type_identity<One> one;
  std::type_identity<Two> two;
  std::type_identity<Three> three;
  // Names, where the keyword-only ones begin, and their order.
  EXPECT_THAT(given("(Tensor y) -> Tensor", one, "x"), HasSubstr("signature to match"));
  EXPECT_THAT(given("(Tensor x, *, Tensor y) -> Tensor", two, "x, y"), HasSubstr("signature to match"));
  EXPECT_THAT(given("(Tensor x, *, Tensor w, Tensor z) -> Tensor", three, "x, *, y, z"),
              HasSubstr("signature to match"));
  EXPECT_THAT(given("(Tensor x, *, Tensor z, Tensor y) -> Tensor", three, "x, *, y, z"),
              HasSubstr("signature to match"));
  EXPECT_THAT(given("(Tensor x) -> Tensor", one, "*args"), HasSubstr("not supported"));
  EXPECT_THAT(given("(*, Tensor z, Tensor y) -> Tensor", two, "**kwargs"), HasSubstr("not supported"));
  EXPECT_THAT(given("(Tensor x, *, Tensor y) -> Tensor", two, "x=1, *, y"), HasSubstr("default arguments"));
  EXPECT_THAT(given("(Tensor x, *, Tensor y) -> Tensor", two, "x, *, y=1"), HasSubstr("default arguments"));
  // What is C++'s own: the types.
  EXPECT_THAT(given("(Tensor y, Tensor z) -> Tensor", one, ""), HasSubstr("signature to match"));
  EXPECT_THAT(given("(Tensor x, *, float y) -> Tensor", two, "x, *, y"), HasSubstr("signature to match"));
  EXPECT_THAT(given("(Tensor x) -> (Tensor, Tensor)", one, "x"), HasSubstr("signature to match"));
  EXPECT_THAT(given("(Tensor x) -> int", one, "x"), HasSubstr("result 0 is Tensor, expected int"));
  // The same where the function is given: arguments would be swapped without a word.
  auto function = [](const Tensor& a, const Tensor& b) { return a - b; };
  EXPECT_THAT(error_of<ValueError>([&] {
                custom_op("_tenon_testing::minus", function,
                          {.schema = "(Tensor b, Tensor a) -> Tensor", .names = "a, b"});
              }),
              HasSubstr("signature to match"));
  EXPECT_EQ(given("(Tensor x, *, Tensor y) -> Tensor", two, "x, *, y"), "no error");
  legacy::destroy(kNs + "::blah");
}

TEST(TestCustomOp, infer_schema_supported) {
  using Optional = std::optional<Tensor>;
  EXPECT_EQ(inferred<Tensor(Tensor)>({.names = "x"}), "(Tensor x) -> Tensor");
  EXPECT_EQ((inferred<Tensor(Tensor, int64_t, double)>({.names = "x, *, y, z"})),
            "(Tensor x, *, SymInt y, float z) -> Tensor");
  EXPECT_EQ(inferred<Tensor(Tensor)>({.names = "*, y"}), "(*, Tensor y) -> Tensor");
  EXPECT_EQ(
      (inferred<std::tuple<Tensor, int64_t, double, bool>(const Tensor&, SymInt, bool, double, Dtype, Device, Scalar)>(
          {.names = "x, y, z, a, b, c, d"})),
      "(Tensor x, SymInt y, bool z, float a, ScalarType b, Device c, Scalar d) -> (Tensor, SymInt, float, bool)");
  EXPECT_EQ((inferred<std::vector<Tensor>(Tensor, std::vector<Tensor>, Optional, std::vector<Optional>)>(
                {.names = "x, y, z, w"})),
            "(Tensor x, Tensor[] y, Tensor? z, Tensor?[] w) -> Tensor[]");
  EXPECT_EQ((inferred<std::tuple<std::vector<Tensor>, Tensor>(Tensor)>({.names = "x"})),
            "(Tensor x) -> (Tensor[], Tensor)");
  EXPECT_EQ(inferred<Tensor()>({}), "() -> Tensor");
  EXPECT_EQ(inferred<void(Tensor)>({.names = "x"}), "(Tensor x) -> ()");
  using G = void(Tensor, std::vector<Tensor>, std::vector<Tensor>, std::vector<Optional>);
  EXPECT_EQ(inferred<G>({.names = "x, y, z, w"}), "(Tensor x, Tensor[] y, Tensor[] z, Tensor?[] w) -> ()");
  EXPECT_EQ(inferred<G>({.names = "x, y, z, w", .mutates = {"x", "w", "z"}}),
            "(Tensor(a0!) x, Tensor[] y, Tensor(a2!)[] z, Tensor(a3!)?[] w) -> ()");
}

TEST(TestCustomOp, infer_schema_unsupported) {
  EXPECT_THAT(error_of<ValueError>([] { inferred<Tensor(std::vector<Tensor>)>({.names = "*args"}); }),
              HasSubstr("varargs"));
  EXPECT_THAT(error_of<ValueError>([] { inferred<Tensor(Tensor)>({.names = "**kwargs"}); }), HasSubstr("varkwargs"));
  EXPECT_THAT(error_of<ValueError>([] { inferred<Tensor(Tensor, int64_t)>({.names = "x, y", .mutates = {"y"}}); }),
              HasSubstr("can be mutated"));
  EXPECT_THAT(error_of<ValueError>([] { inferred<Tensor(Tensor, int64_t)>({.names = "x"}); }),
              HasSubstr("names were given"));
  std::string said = compiler_says(
      "auto generic = [](auto x) { return x; };\n"
      "auto a = dispatch::schema_of<decltype(generic)>(\"mylib::a\");\n"
      "auto b = dispatch::schema_of<std::list<Tensor> (*)(Tensor)>(\"mylib::b\");\n"
      "auto c = dispatch::schema_of<Tensor (*)(Tensor, ...)>(\"mylib::c\");\n");
  EXPECT_THAT(said, HasSubstr("must have a type annotation"));
  EXPECT_THAT(said, HasSubstr("unsupported type"));
  EXPECT_THAT(said, ContainsRegex("UnsupportedType<std::.*list<tenon::Tensor"));
  EXPECT_THAT(said, HasSubstr("varargs are not supported"));
}

// Defines an operator that returns `example` (twice, with Twice), and calls it.
template <typename T>
void returns_single(const T& example) {
  auto& op = legacy::custom_op<T(const Tensor&)>(kNs + "::foo", {.names = "x"});
  legacy::impl(kNs + "::foo", [example](const Tensor&) { return example; });
  Tensor x = randn({});
  const Value args[] = {Value(x)};
  dispatch::Results results = dispatch::call_boxed(op, args);
  EXPECT_EQ(AnyValue(results[0]), AnyValue(dispatch::to_value(example))) << op.schema().str();
  legacy::destroy(kNs + "::foo");
}
template <typename T>
void returns_multi(const T& example) {
  auto& op = legacy::custom_op<std::tuple<T, T>(const Tensor&)>(kNs + "::foo", {.names = "x"});
  legacy::impl(kNs + "::foo", [example](const Tensor&) { return std::tuple<T, T>(example, example); });
  Tensor x = randn({});
  const Value args[] = {Value(x)};
  dispatch::Results results = dispatch::call_boxed(op, args);
  ASSERT_EQ(results.size(), 2u);
  for (const Value& result : results)
    EXPECT_EQ(AnyValue(result), AnyValue(dispatch::to_value(example))) << op.schema().str();
  legacy::destroy(kNs + "::foo");
}

TEST(TestCustomOp, supported_return_types_single_return) {
  returns_single(tensor(3));
  for (int example = 0; example < 3; ++example) returns_single(std::vector<Tensor>{tensor(3)});
  returns_single(int64_t{17});
  returns_single(3.14);
  returns_single(true);
  returns_single(Scalar(2.718));
}

TEST(TestCustomOp, supported_return_types_multi_return) {
  returns_multi(tensor(3));
  for (int example = 0; example < 3; ++example) returns_multi(std::vector<Tensor>{tensor(3)});
  returns_multi(int64_t{17});
  returns_multi(3.14);
  returns_multi(true);
  returns_multi(Scalar(2.718));
}

template <typename T>
void takes(const std::vector<T>& examples) {
  auto& op = legacy::custom_op<Tensor(const Tensor&, T)>(kNs + "::foo", {.names = "x, y"});
  std::optional<AnyValue> seen;
  legacy::impl(kNs + "::foo",
               [&](const Tensor& x, const T& y) {
                 seen = AnyValue(dispatch::to_value(y));
                 return x.clone();
               },
               {"cpu"});
  Tensor x = randn({});
  for (const T& example : examples) {
    const Value args[] = {Value(x), dispatch::to_value(example)};
    dispatch::call_boxed(op, args);
    ASSERT_TRUE(seen) << op.schema().str();
    EXPECT_EQ(*seen, AnyValue(dispatch::to_value(example))) << op.schema().str();
    seen.reset();
  }
  legacy::destroy(kNs + "::foo");
}

TEST(TestCustomOp, supported_param_types) {
  takes<Tensor>({randn({2})});
  takes<std::optional<Tensor>>({randn({2}), std::nullopt});
  takes<std::vector<Tensor>>({{randn({2}), randn({})}, {}});
  takes<std::vector<std::optional<Tensor>>>({{randn({2}), std::nullopt}});
  takes<int64_t>({17, -3});
  takes<std::optional<int64_t>>({17, std::nullopt});
  takes<std::vector<int64_t>>({{1, 2, 3}, {}});
  takes<std::optional<std::vector<int64_t>>>({std::vector<int64_t>{1, 2}, std::nullopt});
  takes<double>({3.14});
  takes<std::optional<double>>({3.14, std::nullopt});
  takes<std::vector<double>>({{0.5, 1.5}});
  takes<std::optional<std::vector<double>>>({std::vector<double>{3.14, 3.14}, std::nullopt});
  takes<bool>({true, false});
  takes<std::optional<bool>>({true, std::nullopt});
  takes<std::vector<bool>>({{true, false}});
  takes<std::optional<std::vector<bool>>>({std::vector<bool>{true, true}, std::nullopt});
  takes<std::string>({"foo"});
  takes<std::optional<std::string>>({"foo", std::nullopt});
  takes<std::vector<Scalar>>({{Scalar(2.718), Scalar(2.718)}, {Scalar(1), Scalar(2)}, {Scalar(true)}});
  takes<Dtype>({kFloat32, kInt64});
  takes<std::optional<Dtype>>({kFloat32, std::nullopt});
  takes<Device>({kCPU});
  takes<std::optional<Device>>({kCPU, std::nullopt});
  takes<Scalar>({Scalar(2.718), Scalar(3)});
  takes<std::optional<Scalar>>({Scalar(2.718), std::nullopt});
}

TEST(TestCustomOp, sequences) {
  // Neither a vector nor made of one.
  struct MySequence {
    int64_t container[3] = {1, 2, 3};
    const int64_t* begin() const { return container; }
    const int64_t* end() const { return container + 3; }
  };
  int called = 0;
  auto op = custom_op("_tenon_testing::sequences",
                      [&](const Tensor& x, const std::vector<int64_t>& sizes) {
                        ++called;
                        EXPECT_EQ(sizes, (std::vector<int64_t>{1, 2, 3}));
                        return x.clone();
                      },
                      {.device_types = {"cpu"}, .names = "x, sizes"});
  EXPECT_EQ(op.op().schema().str(), "_tenon_testing::sequences(Tensor x, SymInt[] sizes) -> Tensor");
  Tensor x = randn({});
  op(x, MySequence());
  EXPECT_EQ(called, 1);
  const std::array<int64_t, 3> array = {1, 2, 3};
  op(x, array);
  op(x, std::span<const int64_t>(array));
  op(x, std::vector<int>{1, 2, 3});
  op(x, Ints{1, 2, 3});
  op(x, SymInts{1, 2, 3});
  op(x, {1, 2, 3});
  EXPECT_EQ(called, 7);
  auto sum = custom_op("_tenon_testing::sum_list", [](const std::vector<Tensor>& list) { return list[0] + list[1]; },
                       {.names = "list"});
  expect_equal(sum({x, x}), x * 2);
  expect_equal(sum(std::array<Tensor, 2>{x, x}), x * 2);
  // The same of values without a type.
  for (const Value& sizes : {Value(std::span<const int64_t>(array)), Value(SymInts{1, 2, 3}).own()}) {
    const Value args[] = {Value(x), sizes};
    dispatch::call_boxed(op.op(), args);
  }
  EXPECT_EQ(called, 9);
}

TEST(TestCustomOp, unsupported_param_types) {
  using dispatch::HasSchemaType;
  using dispatch::SuggestedType;
  static_assert(!HasSchemaType<std::vector<std::optional<int64_t>>> && !HasSchemaType<std::tuple<int64_t, int64_t>>);
  static_assert(!HasSchemaType<std::function<void()>>);
  std::string said = compiler_says(
      "auto a = dispatch::schema_of<Tensor (*)(Tensor, std::vector<std::optional<int64_t>>)>(\"mylib::a\");\n"
      "auto b = dispatch::schema_of<Tensor (*)(Tensor, std::tuple<int64_t, int64_t>)>(\"mylib::b\");\n"
      "auto c = dispatch::schema_of<Tensor (*)(Tensor, std::function<void()>)>(\"mylib::c\");\n");
  EXPECT_THAT(said, HasSubstr("unsupported type"));
  EXPECT_THAT(said, ContainsRegex("UnsupportedType<std::vector<std::optional<long"));
  EXPECT_THAT(said, ContainsRegex("UnsupportedType<std::function<void"));
  // What is said of a tuple is a type that would do.
  EXPECT_THAT(said, HasSubstr("For example"));
  EXPECT_THAT(said, ContainsRegex("ParameterHasNoSchemaType<std::tuple<long( int)?, long( int)?>, std::vector<long"));
  static_assert(HasSchemaType<SuggestedType<std::tuple<int64_t, int64_t>>>);
  // Elements of different types have no list that would: nothing is offered.
  said =
      compiler_says("auto a = dispatch::schema_of<Tensor (*)(Tensor, std::tuple<int64_t, double>)>(\"mylib::a\");\n");
  EXPECT_THAT(said, HasSubstr("unsupported type"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("example")));
  // The same from a schema's text.
  EXPECT_THAT(error_of<RuntimeError>([] { schema::parse("foo(Tensor x, Callable y) -> Tensor"); }),
              HasSubstr("unknown type specifier"));
}

TEST(TestCustomOp, supported_schemas) {
  const char* schemas[] = {"(Tensor x) -> Tensor",
                           "(Tensor x) -> Tensor y",
                           "(Tensor[] x) -> Tensor y",
                           "(Tensor x) -> (Tensor, Tensor)",
                           "(Tensor x) -> (Tensor y, Tensor z)",
                           "(Tensor x, Tensor w) -> (Tensor y, Tensor z)",
                           "(Tensor x, Tensor w) -> (Tensor, Tensor)",
                           "(Tensor x, Tensor w) -> Tensor",
                           "(Tensor? x, Tensor w) -> Tensor",
                           "(Tensor? x, Tensor[] w) -> Tensor",
                           "(Tensor x, int[] w) -> Tensor",
                           "(Tensor x, SymInt[] w) -> Tensor",
                           "(Tensor x, Scalar w) -> Tensor",
                           "(Tensor x, float w) -> Tensor",
                           "(Tensor x, float? w) -> Tensor",
                           "(Tensor x, bool[] w) -> Tensor"};
  for (const char* schema : schemas) {
    auto& op = legacy::custom_op(kNs + "::foo", schema);
    EXPECT_EQ(op.schema(), schema::parse(kNs + "::foo" + schema));
    EXPECT_EQ(schema::parse(op.schema().str()), op.schema());
    legacy::destroy(kNs + "::foo");
    EXPECT_EQ(dispatch::find_operator_or_null(kNs + "::foo"), nullptr);
  }
}

TEST(TestCustomOp, reserved_ns) {
  for (const char* ns : {"prim", "prims", "aten", "at", "torch", "pytorch"}) {
    std::string name = std::string(ns) + "::foo";
    EXPECT_THAT(error_of<ValueError>([&] { legacy::custom_op(name, "(Tensor x) -> Tensor"); }),
                HasSubstr("is a reserved namespace"));
    EXPECT_THAT(error_of<ValueError>([&] { custom_op(name + "2", plain_sin); }), HasSubstr("is a reserved namespace"));
    EXPECT_THAT(error_of<ValueError>([&] { Library(ns, Library::Kind::Fragment).def("foo(Tensor x) -> Tensor"); }),
                HasSubstr("is a reserved namespace"));
  }
}

TEST(TestCustomOp, private_ctor) {
  // A handle comes from custom_op alone.
  using Handle = library::CustomOp<Tensor, Tensor>;
  static_assert(!std::is_default_constructible_v<Handle> && !std::is_constructible_v<Handle, dispatch::Operator&>);
  static_assert(!std::is_constructible_v<Handle, std::string_view> && !std::is_constructible_v<Handle, std::nullptr_t>);
  static_assert(!std::is_constructible_v<Handle, std::shared_ptr<library::detail::CustomOpState>>);
  EXPECT_THAT(compiler_says("library::CustomOp<Tensor, Tensor> made(nullptr);\n"),
              ContainsRegex("CustomOp<.*CustomOp\\(.* is private"));
}

TEST(TestCustomOp, is_functional_schema) {
  auto functional = [](const char* text) { return library::is_functional_operator(schema::parse(text)); };
  EXPECT_TRUE(functional("foo(Tensor x) -> Tensor"));
  EXPECT_TRUE(functional("foo(Tensor(a) x) -> Tensor"));
  EXPECT_FALSE(functional("foo(Tensor(a!) x) -> Tensor"));
  EXPECT_FALSE(functional("foo(Tensor(a) x) -> Tensor(a)"));
  EXPECT_FALSE(functional("foo(Tensor x) -> ()"));
}

TEST(TestCustomOp, incorrect_schema_types) {
  Library lib("mylib");
  EXPECT_THAT(error_of<RuntimeError>([&] { lib.def("foo12(Tensor a) -> asdfasdf"); }),
              HasSubstr("unknown type specifier"));
  EXPECT_THAT(error_of<RuntimeError>([&] { lib.def("foo12(asdf a) -> Tensor"); }), HasSubstr("unknown type specifier"));
  EXPECT_THAT(error_of<RuntimeError>([&] { lib.def("foo12(int64_t a) -> Tensor"); }),
              HasSubstr("Use `SymInt` or `int`"));
  EXPECT_THAT(error_of<RuntimeError>([&] { lib.def("foo12(double a) -> Tensor"); }), HasSubstr("Use `float`"));
}

TEST(TestCustomOp, is_tensorlist_like_type) {
  using library::is_tensorlist_like;
  auto argument = [](const char* text) { return schema::parse(text).arguments[0].type; };
  EXPECT_TRUE(is_tensorlist_like(dispatch::find_operator("aten::where").schema().returns[0].type));
  EXPECT_TRUE(is_tensorlist_like(dispatch::find_operator("aten::index.Tensor").schema().arguments[1].type));
  EXPECT_TRUE(is_tensorlist_like(argument("foo(Tensor[]? x) -> ()")));
  EXPECT_TRUE(is_tensorlist_like(argument("foo(Tensor?[]? x) -> ()")));
  EXPECT_FALSE(is_tensorlist_like(dispatch::find_operator("aten::sin").schema().arguments[0].type));
  EXPECT_FALSE(is_tensorlist_like(dispatch::find_operator("aten::sum.dim_IntList").schema().arguments[1].type));
}

TEST(TestCustomOp, define_with_tags) {
  Library lib(kNs);
  const std::vector<Tag> expected = {Tag::pointwise};
  auto& single = library::define(kNs + "::foo", "(Tensor x) -> Tensor", &lib, Tag::pointwise);
  EXPECT_EQ(dispatch::tags(single), expected);
  auto& braces = library::define(kNs + "::bar", "(Tensor x) -> Tensor", &lib, {Tag::pointwise});
  EXPECT_EQ(dispatch::tags(braces), expected);
  auto& list = library::define(kNs + "::baz", "(Tensor x) -> Tensor", &lib, expected);
  EXPECT_EQ(dispatch::tags(list), expected);
}

TEST(TestCustomOp, builtin_aten_ops_are_pt2_compliant) {
  for (const char* name : {"aten::sin", "aten::sum.dim_IntList"})
    EXPECT_TRUE(dispatch::has_tag(dispatch::find_operator(name), Tag::pt2_compliant_tag)) << name;
}

TEST(TestCustomOp, builtin_torchscript_ops) {
  for (const char* name : {"aten::sub.complex", "aten::mul.complex"})
    EXPECT_TRUE(dispatch::has_tag(dispatch::find_operator(name), Tag::pt2_compliant_tag)) << name;
  std::complex<double> a(1, 2), b(3, -1);
  EXPECT_EQ(call_by_name("aten::sub.complex", {Value(a), Value(b)})[0].complex(), a - b);
  EXPECT_EQ(call_by_name("aten::mul.complex", {Value(a), Value(2)})[0].complex(), a * 2.0);
  EXPECT_EQ(Value(b).str(), "3-1j");
}

TEST(TestCustomOp, autogen_aten_ops_are_pt2_compliant) {
  for (const char* name : {"aten::fill.Tensor_out", "aten::add.Tensor_out"}) {
    const dispatch::Operator& op = dispatch::find_operator(name);
    EXPECT_TRUE(dispatch::has_tag(op, Tag::generated)) << name;
    EXPECT_TRUE(dispatch::has_tag(op, Tag::pt2_compliant_tag)) << name;
  }
  EXPECT_FALSE(dispatch::has_tag(dispatch::find_operator("aten::sin"), Tag::generated));
}

TEST(TestCustomOp, resolve_packet) {
  Tensor x = randn({3});
  const Value one[] = {Value(x)}, three[] = {Value(x), Value(x), Value(x)};
  EXPECT_EQ(dispatch::resolve_overload("aten::sum", one).name(), "aten::sum");
  const dispatch::Keyword dim[] = {{"dim", Value(1)}};
  EXPECT_EQ(dispatch::resolve_overload("aten::sum", one, dim).name(), "aten::sum.dim_IntList");
  std::string message = error_of<RuntimeError>([&] { dispatch::resolve_overload("aten::sum", three); });
  EXPECT_THAT(message, HasSubstr("failed to match any schema"));
  EXPECT_THAT(message, HasSubstr("aten::sum.dim_IntList"));
}

TEST(TestCustomOp, define_bad_schema) {
  EXPECT_THAT(error_of<ValueError>([] { library::define(kNs + "::foo", "foo(Tensor x) -> Tensor"); }),
              HasSubstr("expected schema to look like"));
}

Tensor call_one(const std::string& name, const Tensor& x) { return call_by_name(name, {Value(x)})[0].tensor(); }

TEST(TestCustomOp, define_and_impl) {
  Library lib(kNs);
  library::define(kNs + "::foo", "(Tensor x) -> Tensor", &lib);
  library::impl(kNs + "::foo", {"CPU"}, [](const Tensor& x) { return plain_sin(x); }, &lib);
  Tensor x = randn({3});
  expect_equal(call_one(kNs + "::foo", x), plain_sin(x));
}

TEST(TestCustomOp, define_validation) {
  EXPECT_THAT(error_of<ValueError>([] { library::define("foo", "(Tensor x) -> Tensor"); }), HasSubstr("namespace"));
}

TEST(TestCustomOp, legacy_define) {
  Library lib(kNs);
  lib.def("foo(Tensor x) -> Tensor", plain_sin);
  Tensor x = randn({3});
  expect_equal(call_one(kNs + "::foo", x), plain_sin(x));
}

TEST(TestCustomOp, impl_function) {
  Library lib(kNs);
  library::define(kNs + "::foo", "(Tensor x) -> Tensor", &lib);
  library::impl(kNs + "::foo", {"CPU"}, plain_sin, &lib);
  Tensor x = randn({3});
  expect_equal(call_one(kNs + "::foo", x), plain_sin(x));
}

TEST(TestCustomOp, legacy_impl) {
  Library lib(kNs);
  library::define(kNs + "::foo", "(Tensor x) -> Tensor", &lib);
  lib.impl("foo", plain_sin, "CPU");
  Tensor x = randn({3});
  expect_equal(call_one(kNs + "::foo", x), plain_sin(x));
}

TEST(TestCustomOp, impl_device_cpu) {
  const std::vector<std::vector<std::string>> types = {{"default"}, {"cpu"}, {"cpu", "cuda"}};
  for (size_t at = 0; at < types.size(); ++at) {
    Library lib(kNs);
    std::string name = fmt::format("{}::foo{}", kNs, at);
    library::define(name, "(Tensor x) -> Tensor", &lib);
    library::impl(name, types[at], plain_sin, &lib);
    Tensor x = randn({3});
    expect_equal(call_one(name, x), plain_sin(x));
  }
}

TEST(TestCustomOp, impl_device_function) {
  Library lib(kNs);
  library::define(kNs + "::foo", "(Tensor x) -> Tensor", &lib);
  library::impl(kNs + "::foo", {"default"}, plain_sin, &lib);
  Tensor x = randn({3});
  expect_equal(call_one(kNs + "::foo", x), plain_sin(x));
}

TEST(TestCustomOp, impl_device_invalid) {
  EXPECT_THAT(error_of<RuntimeError>([] { library::impl("blah::blah", {"somethingsomething"}, plain_sin); }),
              HasSubstr("Expected one of cpu, cuda"));
}

// What to write where a parameter is a tuple: a list of its elements' type.
TEST(TestTypeConversion, simple_tuple) {
  static_assert(std::is_same_v<dispatch::SuggestedType<std::pair<int64_t, int64_t>>, std::vector<int64_t>>);
  static_assert(std::is_same_v<dispatch::SuggestedType<std::array<double, 3>>, std::vector<double>>);
}

template <typename T>
constexpr bool becomes_list = std::is_same_v<dispatch::SuggestedType<std::tuple<T, T, T>>, std::vector<T>> &&
                              std::is_same_v<dispatch::SuggestedType<std::tuple<T>>, std::vector<T>>;
template <typename T>
constexpr bool becomes_optional_list =
    std::is_same_v<dispatch::SuggestedType<std::tuple<T, std::optional<T>>>, std::vector<std::optional<T>>> &&
    std::is_same_v<dispatch::SuggestedType<std::tuple<T, T, std::optional<T>>>, std::vector<std::optional<T>>>;

TEST(TestTypeConversion, supported_types) {
  static_assert(becomes_list<int64_t> && becomes_list<double> && becomes_list<bool> && becomes_list<std::string>);
  static_assert(becomes_list<Device> && becomes_list<Tensor> && becomes_list<Dtype> && becomes_list<Scalar>);
}

TEST(TestTypeConversion, optional) {
  static_assert(becomes_optional_list<int64_t> && becomes_optional_list<double> && becomes_optional_list<bool>);
  static_assert(becomes_optional_list<std::string> && becomes_optional_list<Device> && becomes_optional_list<Tensor>);
  static_assert(becomes_optional_list<Dtype> && becomes_optional_list<Scalar>);
}

TEST(TestTypeConversion, mixed_types) {
  static_assert(
      std::is_same_v<dispatch::SuggestedType<std::tuple<int64_t, double>>, std::vector<std::variant<int64_t, double>>>);
  static_assert(std::is_same_v<dispatch::SuggestedType<std::tuple<int64_t, double, std::string>>,
                               std::vector<std::variant<int64_t, double, std::string>>>);
}

}  // namespace
}  // namespace tenon::testing
