// Fake implementations: meta and fake tensors, sizes that depend on data, tracing and compiling.
#include "seeds/custom_ops.h"

#include <tenon/support/counters.h>

namespace tenon::testing {
namespace {

const std::string kNs = "_test_custom_op";
const std::string kFoo = kNs + "::foo";

Tensor call_one(const dispatch::Operator& op, const Tensor& x) {
  const Value args[] = {Value(x)};
  return dispatch::call_boxed(op, args)[0].take_tensor();
}

// Without one dimension.
Tensor drop_dim(const Tensor& x, int64_t dim) {
  SymInts sizes;
  for (int64_t at = 0; at < x.dim(); ++at)
    if (at != dim) sizes.push_back(x.size(at));
  return empty(sizes, TensorOptions(x.dtype(), x.device()));
}

TEST(TestCustomOp, impl_abstract_overload) {
  Library lib(kNs);
  auto& op = lib.def("sin.blah(Tensor x) -> Tensor");
  library::register_fake(kNs + "::sin.blah", [](const Tensor& x) { return empty_like(x); }, &lib);
  Tensor x = empty({3}, TensorOptions(kFloat32, kMeta));
  Tensor y = call_one(op, x);
  EXPECT_EQ(y.description(), x.description());
  EXPECT_EQ(y.device(), kMeta);
}

TEST(TestCustomOp, impl_meta) {
  Library lib(kNs);
  lib.def("foo(Tensor x, int dim) -> Tensor");
  library::register_fake(kFoo, drop_dim, &lib);
  Tensor x = empty({2, 3}, TensorOptions(kFloat32, kMeta));
  Tensor result = call_by_name(kFoo, {Value(x), Value(1)})[0].tensor();
  EXPECT_EQ(result.description(), "float32[2]");
  EXPECT_EQ(result.device(), kMeta);
}

TEST(TestCustomOp, duplicate_impl) {
  Library lib(kNs);
  lib.def("foo(Tensor x, int dim) -> Tensor");
  library::register_fake(kFoo, drop_dim, &lib);
  // Both places are told.
  EXPECT_THAT(error_of<RuntimeError>([&] { library::register_fake(kFoo, drop_dim, &lib); }),
              ContainsRegex("custom_ops_fake_test.cpp:[0-9]+.*custom_ops_fake_test.cpp:[0-9]+"));
}

TEST(TestCustomOp, new_data_dependent_symint) {
  auto foo = custom_op(kFoo, plain_sin, {.names = "x"});
  int ran = 0;
  foo.register_fake([&](const Tensor& x) {
    ++ran;
    SymInt size = fake::new_dynamic_size(1);
    EXPECT_TRUE(size.is_symbolic());
    EXPECT_FALSE(size.hint());
    EXPECT_TRUE(statically_true(size >= 1));
    EXPECT_THAT(error_of<ValueError>([] { fake::new_dynamic_size(-1); }), HasSubstr("greater than or equal to 0"));
    EXPECT_THAT(error_of<ValueError>([&] { fake::new_dynamic_size(0, x.numel()); }), HasSubstr("SymInt"));
    return empty({size});
  });
  graph::Graph graph = trace([&](Tensor x) { return foo(x); }, Tracing::Symbolic, randn({2, 3}));
  EXPECT_EQ(ran, 1);
  EXPECT_THAT(graph::to_string(graph), HasSubstr("float32[u0]"));
  library::destroy_custom_op(kFoo);
}

TEST(TestCustomOp, meta_for_data_dependent_shape_operation) {
  auto nonzero = sample_nonzero();
  Tensor x = empty({10}, TensorOptions(kFloat32, kMeta));
  EXPECT_THAT(error_of<RuntimeError>([&] { nonzero(x); }), HasSubstr("data-dependent output shape"));
}

TEST(TestCustomOp, basic_make_fx) {
  Library lib(kNs);
  auto& op = lib.def("foo(Tensor x) -> Tensor");
  library::register_fake(kFoo, [](const Tensor& x) { return x.sum(); }, &lib);
  graph::Graph graph = trace([&](Tensor x) { return call_one(op, x); }, Tracing::Symbolic, randn({3}));
  EXPECT_EQ(graph::to_string(graph),
            "graph(%arg0: float32[s0])\n"
            "  %1 = _test_custom_op::foo(%arg0) : float32[]\n"
            "  return (%1)\n");
}

TEST(TestCustomOp, not_implemented_error) {
  auto& foo = legacy::custom_op(kFoo, "(Tensor x) -> Tensor");
  EXPECT_THAT(error_of<NotImplementedError>([&] { call_one(foo, randn({3})); }), HasSubstr("cpu impl registered"));
  EXPECT_THAT(error_of<NotImplementedError>([&] { call_one(foo, empty({3}, TensorOptions(kFloat32, kMeta))); }),
              HasSubstr("no fake impl or Meta kernel"));
  legacy::destroy(kFoo);
  legacy::custom_op(kNs + "::bar", "(int[] sizes) -> Tensor");
  const Ints sizes = {1, 2, 3};
  EXPECT_THAT(error_of<NotImplementedError>([&] { call_by_name(kNs + "::bar", {Value(sizes)}); }),
              HasSubstr("no Tensor inputs"));
  legacy::destroy(kNs + "::bar");
}

TEST(TestCustomOp, data_dependent_basic) {
  auto nonzero = sample_nonzero();
  Tensor x = tensor({0.f, 1.f, 2.f, 0.f}).view({2, 2});
  EXPECT_EQ(values(nonzero(x)), (std::vector<double>{0, 1, 1, 0}));
  graph::Graph graph = trace([&](Tensor t) { return nonzero(t); }, Tracing::Symbolic, randn({5, 5}));
  EXPECT_THAT(graph::to_string(graph), HasSubstr("_tenon_testing::nonzero(%arg0) : int64[u0, 2]"));
}

TEST(TestCustomOp, data_dependent_fake_tracing) {
  auto nonzero = sample_nonzero();
  graph::Graph graph = trace([&](Tensor t) { return nonzero(t); }, Tracing::Fake, randn({5, 5}));
  EXPECT_THAT(graph::to_string(graph), HasSubstr("graph(%arg0: float32[5, 5])"));
}

TEST(TestCustomOp, symints) {
  auto view_copy = sample_view_copy();
  auto f = [&](Tensor x) { return view_copy(x, x.sym_sizes()); };
  Tensor x = randn({2, 3, 4});
  graph::Graph graph = trace(f, Tracing::Symbolic, x);
  EXPECT_EQ(graph::to_string(graph),
            "graph(%arg0: float32[s0, s1, s2])\n"
            "  %1 = _tenon_testing::view_copy(%arg0, [s0, s1, s2]) : float32[s0, s1, s2]\n"
            "  return (%1)\n");
  // The traced graph computes what the function does, for other sizes too.
  for (const Tensor& given : {x, randn({3, 5, 2})}) {
    const Tensor inputs[] = {given};
    std::vector<int64_t> symbols = graph::bind_symbols(graph, inputs);
    graph::InterpretOptions options;
    options.symbols = symbols;
    expect_equal(graph::interpret(graph, inputs, options)[0].tensor(), f(given));
  }
}

TEST(TestCustomOp, data_dependent_compile) {
  auto nonzero = sample_nonzero();
  int64_t breaks = counter("graph_breaks").value();
  auto f = compile([&](Tensor x) { return nonzero(x.clone()).clone(); });
  Tensor x = tensor({0.f, 3.f, 0.f, 4.f});
  EXPECT_EQ(values(f(x)), (std::vector<double>{1, 3}));
  EXPECT_EQ(counter("graph_breaks").value() - breaks, 1);
  EXPECT_EQ(f.explain().breaks, std::vector<std::string>{"dynamic shape operator: _tenon_testing::nonzero; with "
                                                         "capture_dynamic_output_shape_ops it would be captured"});
}

// The document expects this to fail to be one graph, and so do we: sizes from data break the graph however dynamic it
// is.
TEST(TestCustomOp, data_dependent_nms_dynamic_compile) {
  auto nms = sample_nms();
  auto f = compile([&](Tensor boxes, Tensor scores, double limit) { return nms(boxes.clone(), scores, limit).clone(); },
                   {.dynamic = Dynamic::On});
  Tensor boxes = tensor({0.f, 0.f, 2.f, 2.f, 0.f, 0.f, 2.f, 1.9f, 5.f, 5.f, 6.f, 6.f}).view({3, 4});
  EXPECT_EQ(values(f(boxes, tensor({0.5f, 0.9f, 0.7f}), 0.1)), (std::vector<double>{1, 2}));
  EXPECT_EQ(
      f.explain().breaks,
      std::vector<std::string>{
          "dynamic shape operator: _tenon_testing::nms; with capture_dynamic_output_shape_ops it would be captured"});
}

TEST(TestCustomOp, abstract_impl_on_existing_op) {
  Library lib(kNs);
  auto& op = lib.def("foo(Tensor x) -> Tensor");
  library::register_fake(kFoo, [](const Tensor& x) { return x.sin(); }, &lib);
  FakeMode fakes;
  Tensor x = randn({3});
  Tensor result = call_one(op, x);
  EXPECT_TRUE(result.is_fake());
  EXPECT_EQ(result.description(), x.description());
  EXPECT_EQ(str(result.sym_strides()), str(x.sym_strides()));
  EXPECT_THAT(error_of<RuntimeError>([&] { result.data<float>(); }), HasSubstr("has no data"));
}

TEST(TestCustomOp, abstract_impl_on_existing_op_with_meta) {
  Library lib(kNs);
  lib.def("foo(Tensor x) -> Tensor");
  auto sine = [](const Tensor& x) { return x.sin(); };
  lib.impl("foo", sine, "Meta");
  EXPECT_THAT(error_of<RuntimeError>([&] { library::register_fake(kFoo, sine, &lib); }),
              ContainsRegex("already has .*Meta implementation"));
}

TEST(TestCustomOp, abstract_impl_on_existing_op_with_CompositeImplicitAutograd) {
  Library lib(kNs);
  lib.def("foo(Tensor x) -> Tensor");
  auto sine = [](const Tensor& x) { return x.sin(); };
  lib.impl("foo", sine, "CompositeImplicitAutograd");
  EXPECT_THAT(error_of<RuntimeError>([&] { library::register_fake(kFoo, sine, &lib); }),
              HasSubstr("CompositeImplicitAutograd"));
}

TEST(TestCustomOp, abstract_impl_on_existing_op_with_CompositeExplicitAutograd) {
  Library lib(kNs);
  auto& op = lib.def("foo(Tensor x) -> Tensor");
  lib.impl("foo", [](const Tensor& x) { return x.sin(); }, "CompositeExplicitAutograd");
  library::register_fake(kFoo, [](const Tensor& x) { return x.sum(); }, &lib);
  FakeMode fakes;
  EXPECT_EQ(call_one(op, randn({10})).description(), "float32[]");
}

TEST(TestCustomOp, functionalize_error) {
  Library lib(kNs);
  auto& foo = lib.def("foo(Tensor(a!) x) -> Tensor(a!)");
  lib.impl("foo", [](const Tensor& x) { return x.sin_(); }, "CompositeExplicitAutograd");
  auto& bar = lib.def("bar(Tensor(a) x) -> Tensor(a)");
  lib.impl("bar", [](const Tensor& x) { return x.view({-1}); }, "CompositeExplicitAutograd");
  for (auto* op : {&foo, &bar}) {
    auto f = compile([&](Tensor x) { return call_one(*op, x); }, {.fullgraph = true, .backend = "aot_eager"});
    EXPECT_THAT(error_of<RuntimeError>([&] { f(randn({3})); }),
                HasSubstr("We only support functionalizing operators whose outputs do not have alias annotations"))
        << op->name();
  }
}

}  // namespace
}  // namespace tenon::testing
