// The one-call way: library::custom_op and the registrations that go with it.
#include "seeds/custom_ops.h"

#include <array>

namespace tenon::testing {
namespace {

auto make_add() { return custom_op("_tenon_testing::add", plain_add, {.names = "x, y"}); }

TEST(TestCustomOpAPI, basic) {
  auto add = make_add();
  Tensor x = randn({3});
  expect_equal(add(x, 3.14), x + 3.14);
  bool called = false;
  add.register_kernel("cpu", [&](const Tensor& a, double b) {
    called = true;
    return plain_add(a, b);
  });
  expect_equal(add(x, 3.14), x + 3.14);
  EXPECT_TRUE(called);
  EXPECT_EQ(add.op().schema().str(), "_tenon_testing::add(Tensor x, float y) -> Tensor");
}

TEST(TestCustomOpAPI, no_grad_skips_autograd) {
  auto add = make_add();
  int called = 0;
  add.register_autograd([](AutogradContext&, const Tensor&) -> Tensor { fail("must not be reached"); },
                        [&](AutogradContext&, const Inputs&, Outputs) { ++called; });
  Tensor x = leaf({3});
  {
    NoGrad off;
    expect_equal(add(x, 2.0), x + 2.0);
  }
  EXPECT_EQ(called, 0);
  Tensor plain = x.detach();
  expect_equal(add(plain, 2.0), plain + 2.0);
  EXPECT_EQ(called, 0);
  EXPECT_FALSE(add(plain, 2.0).requires_grad());
  Tensor y = add(x, 2.0);
  EXPECT_EQ(called, 1);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_EQ(values(y), values(x + 2.0));
}

TEST(TestCustomOpAPI, manual_schema) {
  auto add = custom_op("_tenon_testing::add", plain_add, {.schema = "(Tensor x, float y) -> Tensor"});
  Tensor x = randn({3});
  expect_equal(add(x, 3.14), x + 3.14);
  auto sin_ = custom_op("_tenon_testing::sin_", [](const Tensor& t) { t.copy_(plain_sin(t)); },
                        {.mutates = {"x"}, .schema = "(Tensor(a!) x) -> ()"});
  Tensor expected = plain_sin(x);
  sin_(x);
  expect_equal(x, expected);
  EXPECT_THAT(
      error_of<ValueError>([] { custom_op("_tenon_testing::bad", plain_add, {.schema = "(Tensor x) -> Tensor"}); }),
      HasSubstr("signature to match"));
}

TEST(TestCustomOpAPI, kwarg_only_tensors) {
  auto define = [](auto function) {
    return error_of<NotImplementedError>([&] { custom_op("_tenon_testing::foo", function, {.names = "x, *, y, z"}); });
  };
  EXPECT_THAT(define([](const Tensor& x, int64_t, const Tensor&) { return x.clone(); }),
              HasSubstr("kwarg-only Tensor args"));
  EXPECT_THAT(define([](const Tensor& x, int64_t, const std::optional<Tensor>&) { return x.clone(); }),
              HasSubstr("kwarg-only Tensor args"));
  EXPECT_THAT(define([](const Tensor& x, int64_t, const std::vector<Tensor>&) { return x.clone(); }),
              HasSubstr("kwarg-only Tensor args"));
  Library lib("_tenon_testing");
  lib.def("foo(Tensor x, *, Tensor y) -> Tensor");
  EXPECT_THAT(error_of<NotImplementedError>([&] {
                library::register_autograd(
                    "_tenon_testing::foo", [](AutogradContext&, const Tensor& grad) { return grad; }, &lib);
              }),
              HasSubstr("kwarg-only Tensor args"));
}

TEST(TestCustomOpAPI, register_autograd_kwargonly_low_level) {
  Library lib("_tenon_testing");
  lib.def("foo(Tensor x, *, float y) -> Tensor");
  lib.impl("foo", [](const Tensor& x, double y) { return x * y; }, KernelKey::CPU);
  bool called = false;
  library::register_autograd(
      "_tenon_testing::foo",
      [&](AutogradContext& ctx, const Tensor& grad) {
        called = true;
        return grad * ctx.saved_data["y"].real();
      },
      [](AutogradContext& ctx, const Inputs& inputs, const Inputs& keyword_only, Outputs) {
        EXPECT_EQ(inputs.size(), 1u);
        EXPECT_THAT(keyword_only.names(), ::testing::ElementsAre("y"));
        ctx.saved_data["y"] = keyword_only["y"].real();
      },
      &lib);
  Tensor x = leaf({3});
  call_by_name("_tenon_testing::foo", {Value(x)}, {{"y", Value(3.14)}})[0].tensor().sum().backward();
  EXPECT_TRUE(called);
  expect_equal(x.grad(), full({3}, 3.14));
}

TEST(TestCustomOpAPI, register_autograd_defaults) {
  Library lib("_tenon_testing");
  lib.def("foo(Tensor w, int x = 2, *, int y = 3, int z) -> Tensor");
  lib.impl("foo", [](const Tensor& w, int64_t x, int64_t y, int64_t z) { return w * (x * y * z); }, KernelKey::CPU);
  bool called = false;
  library::register_autograd(
      "_tenon_testing::foo",
      [&](AutogradContext& ctx, const Tensor& grad) {
        called = true;
        return grad * ctx.saved_data["c"].integer();
      },
      [](AutogradContext& ctx, const Inputs& inputs, const Inputs& keyword_only, Outputs) {
        EXPECT_EQ(inputs.size(), 2u);
        EXPECT_EQ(inputs[1].integer(), 2);
        EXPECT_EQ(keyword_only.size(), 2u);
        EXPECT_EQ(keyword_only["y"].integer(), 3);
        EXPECT_EQ(keyword_only["z"].integer(), 42);
        ctx.saved_data["c"] = keyword_only["y"].integer() * keyword_only["z"].integer() * inputs[1].integer();
      },
      &lib);
  Tensor w = leaf({3});
  call_by_name("_tenon_testing::foo", {Value(w)}, {{"z", Value(42)}})[0].tensor().sum().backward();
  EXPECT_TRUE(called);
  expect_equal(w.grad(), full_like(w.detach(), 2 * 3 * 42));
}

TEST(TestCustomOpAPI, manual_schema_error) {
  EXPECT_THAT(error_of<ValueError>([] {
                custom_op("_tenon_testing::sin_", [](const Tensor& x) { x.copy_(plain_sin(x)); },
                          {.schema = "(Tensor(a!) x) -> ()"});
              }),
              HasSubstr("the op mutates {'x'}"));
}

// The tensors of a list, one behind the other.
struct Stack : autograd::Function<Stack> {
  static Tensor forward(AutogradContext* ctx, const std::vector<Tensor>& xs) {
    ctx->saved_data["count"] = xs.size();
    return stack(xs);
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, std::vector<Tensor> grads) {
    auto count = static_cast<size_t>(ctx->saved_data["count"].integer());
    EXPECT_EQ(ctx->needs_input_grads(0), std::vector<bool>(count, true));
    return grads[0].unbind(0);
  }
};

// Hands all but the first element on to itself.
struct LastSine : autograd::Function<LastSine> {
  static Tensor forward(AutogradContext*, const std::vector<Tensor>& xs) {
    if (xs.size() > 1) return LastSine::apply(std::vector<Tensor>(xs.begin() + 1, xs.end()));
    return xs[0].sin();
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) { return {grads[0].cos()}; }
};

// Adds its position to each element; its backward calls it again on both halves of the gradients.
struct AddPosition : autograd::Function<AddPosition> {
  static std::vector<Tensor> forward(AutogradContext*, const std::vector<Tensor>& xs) {
    std::vector<Tensor> ys;
    for (size_t at = 0; at < xs.size(); ++at) ys.push_back(xs[at] + static_cast<double>(at));
    return ys;
  }
  static std::vector<Tensor> backward(AutogradContext*, std::vector<Tensor> grads) {
    std::vector<Tensor> first = AddPosition::apply(std::vector<Tensor>(grads.begin(), grads.begin() + 2));
    for (Tensor& each : AddPosition::apply(std::vector<Tensor>(grads.begin() + 2, grads.end()))) first.push_back(each);
    return first;
  }
};

TEST(TestCustomOpAPI, supports_tensorlist) {
  auto leaves = [](size_t count) {
    std::vector<Tensor> list;
    for (size_t at = 0; at < count; ++at) list.push_back(leaf({}));
    return list;
  };
  std::vector<Tensor> three = leaves(3), four = leaves(4);
  // Applied twice, backward through the first.
  Tensor y0 = Stack::apply(three), y1 = Stack::apply(four);
  EXPECT_EQ(y1.description(), "float32[4]");
  for (const Tensor& gradient : autograd::grad(std::vector<Tensor>{y0.sum()}, three))
    EXPECT_EQ(values(gradient), std::vector<double>{1});
  // Applied once, backward several times.
  Tensor again = Stack::apply(three);
  for (int round = 0; round < 3; ++round)
    for (const Tensor& gradient : autograd::grad(std::vector<Tensor>{again.sum()}, three, {}, true))
      EXPECT_EQ(values(gradient), std::vector<double>{1});
  EXPECT_EQ(values(LastSine::apply(three)), values(three[2].sin()));
  std::vector<Tensor> five;
  for (int at = 0; at < 5; ++at) five.push_back(zeros({}).set_requires_grad());
  std::vector<Tensor> moved = AddPosition::apply(five);
  Tensor sum = moved[0];
  for (size_t at = 1; at < moved.size(); ++at) sum = sum + moved[at];
  sum.backward();
  std::vector<double> gradients;
  for (const Tensor& each : five) gradients.push_back(values(each.grad())[0]);
  EXPECT_EQ(gradients, (std::vector<double>{1, 2, 1, 2, 3}));
}

TEST(TestCustomOpAPI, default_values) {
  std::string seen;
  auto f = custom_op("_tenon_testing::f",
                     [&](const Tensor& x, std::optional<int64_t> a, double b, bool c, int64_t d, std::string_view e,
                         Dtype g, Dtype h, Dtype i) {
                       seen =
                           fmt::format("{} {} {} {} {} {} {} {}", a.has_value(), b, c, d, e, name(g), name(h), name(i));
                       return x.clone();
                     },
                     {.names = "x, a=None, b=3.14, c=True, d=3, e=\"foo, bar\", g=float, h=float32, i=int"});
  f(randn({3}));
  EXPECT_EQ(seen, "false 3.14 true 3 foo, bar float32 float32 int32");
  f(randn({3}), 7, 1.5);
  EXPECT_EQ(seen, "true 1.5 true 3 foo, bar float32 float32 int32");
}

TEST(TestCustomOpAPI, mutated_error) {
  EXPECT_THAT(error_of<ValueError>([] {
                custom_op("_tenon_testing::sin_inplace", [](const Tensor& x) { x.copy_(plain_sin(x)); },
                          {.mutates = {"y"}, .device_types = {"cpu"}, .names = "x"});
              }),
              ContainsRegex("\\{'y'\\} in mutates_args were not found"));
}

TEST(TestCustomOpAPI, mutated) {
  auto sin_inplace = custom_op("_tenon_testing::sin_inplace",
                               [](const Tensor& x) {
                                 for (int64_t at = 0; at < x.numel().plain(); ++at)
                                   x.data<float>()[at] = std::sin(x.data<float>()[at]);
                               },
                               {.mutates = {"x"}, .device_types = {"cpu"}, .names = "x"});
  Tensor x = randn({3});
  Tensor expected = plain_sin(x);
  int64_t version = x.version();
  sin_inplace(x);
  expect_equal(x, expected);
  EXPECT_GT(x.version(), version);
  auto f = custom_op("_tenon_testing::f",
                     [](const Tensor&, const std::optional<Tensor>&, const std::vector<Tensor>&,
                        const std::vector<std::optional<Tensor>>&) {},
                     {.mutates = {"y", "z", "w"}, .names = "x, y, z, w"});
  EXPECT_EQ(f.op().schema().str(),
            "_tenon_testing::f(Tensor x, Tensor(a1!)? y, Tensor(a2!)[] z, Tensor(a3!)?[] w) -> ()");
  Tensor a = randn({3}), b = randn({3});
  std::vector<Tensor> z = {randn({3}), randn({3})};
  std::vector<std::optional<Tensor>> w = {randn({3}), std::nullopt, randn({3})};
  std::vector<int64_t> before = {b.version(), z[0].version(), z[1].version(), w[0]->version(), w[2]->version()};
  int64_t untouched = a.version();
  f(a, b, z, w);
  EXPECT_EQ(a.version(), untouched);
  std::vector<int64_t> after = {b.version(), z[0].version(), z[1].version(), w[0]->version(), w[2]->version()};
  for (size_t at = 0; at < before.size(); ++at) EXPECT_GT(after[at], before[at]) << at;
}

TEST(TestCustomOpAPI, library_register_fake_source) {
  auto fake = [](const Tensor& x) { return empty_like(x); };
  auto cloned = [](const Tensor& x) { return x.clone(); };
  Library lib("_tenon_sources");
  lib.def("low(Tensor x) -> Tensor");
  lib.def("low.overload(Tensor x, Tensor y) -> Tensor");
  library::register_fake("_tenon_sources::low", fake, &lib);
  library::register_fake(
      "_tenon_sources::low.overload", [](const Tensor& x, const Tensor&) { return empty_like(x); }, &lib);
  auto method = custom_op("_tenon_sources::method", cloned, {.names = "x"});
  method.register_fake(fake);
  auto by_handle = custom_op("_tenon_sources::handle", cloned, {.names = "x"});
  library::register_fake(by_handle, fake);
  auto by_name = custom_op("_tenon_sources::name", cloned, {.names = "x"});
  library::register_fake("_tenon_sources::name", fake);
  auto none = custom_op("_tenon_sources::none", cloned, {.names = "x"});
  for (const char* name : {"low", "low.overload", "method", "handle", "name"})
    EXPECT_THAT(library::fake_source(std::string("_tenon_sources::") + name),
                ContainsRegex("custom_ops_api_test.cpp:[0-9]+"))
        << name;
  EXPECT_EQ(library::fake_source(none), "");
}

TEST(TestCustomOpAPI, library_register_fake) {
  for (int mode = 0; mode < 3; ++mode) {
    auto add = make_add();
    bool called = false;
    auto fake = [&](const Tensor& x, double) {
      called = true;
      return empty_like(x);
    };
    if (mode == 0) library::register_fake(add, fake);
    if (mode == 1) library::register_fake("_tenon_testing::add", fake);
    if (mode == 2) library::register_fake(add.op(), fake);
    FakeMode fakes;
    Tensor x = randn({3});
    Tensor z = add(x, 3.14);
    EXPECT_TRUE(z.is_fake());
    EXPECT_EQ(z.description(), x.description());
    EXPECT_TRUE(called);
  }
}

TEST(TestCustomOpAPI, library_register_kernel) {
  for (int mode = 0; mode < 3; ++mode)
    for (const std::vector<std::string>& devices : {std::vector<std::string>{"cpu"}, std::vector<std::string>{}}) {
      auto add = custom_op("_tenon_testing::add", plain_add, {.device_types = {"cuda"}, .names = "x, y"});
      EXPECT_THAT(error_of<NotImplementedError>([&] { add(randn({3}), 1.0); }), HasSubstr("cpu impl registered"));
      bool called = false;
      auto kernel = [&](const Tensor& x, double y) {
        called = true;
        return plain_add(x, y);
      };
      if (mode == 0) library::register_kernel(add, devices, kernel);
      if (mode == 1) library::register_kernel("_tenon_testing::add", devices, kernel);
      if (mode == 2) library::register_kernel(add.op(), devices, kernel);
      Tensor x = randn({3});
      expect_equal(add(x, 3.14), x + 3.14);
      EXPECT_TRUE(called);
    }
}

TEST(TestCustomOpAPI, library_register_kernel_low_level) {
  const std::vector<std::vector<std::string>> options = {{"cpu", "cuda"}, {"cpu"}, {}};
  for (bool by_name : {true, false})
    for (const std::vector<std::string>& devices : options) {
      Library lib("_tenon_testing");
      dispatch::Operator& op = lib.def("add9(Tensor x, float y) -> Tensor");
      bool called = false;
      auto kernel = [&](const Tensor& x, double y) {
        called = true;
        return plain_add(x, y);
      };
      if (by_name)
        library::register_kernel("_tenon_testing::add9", devices, kernel, &lib);
      else
        library::register_kernel(op, devices, kernel, &lib);
      Tensor x = randn({3});
      expect_equal(call_by_name("_tenon_testing::add9", {Value(x), Value(3.14)})[0].tensor(), x + 3.14);
      EXPECT_TRUE(called);
    }
  EXPECT_EQ(dispatch::find_operator_or_null("_tenon_testing::add9"), nullptr);
}

TEST(TestCustomOpAPI, library_register_autograd) {
  for (int mode = 0; mode < 3; ++mode) {
    auto sine = custom_op("mylib::plain_sin", plain_sin, {.names = "x"});
    bool called = false;
    auto setup = [](AutogradContext& ctx, const Inputs& inputs, Outputs) {
      ctx.save_for_backward({inputs["x"].tensor()});
    };
    auto backward = [&](AutogradContext& ctx, const Tensor& grad) {
      called = true;
      return grad * ctx.saved_tensors()[0].cos();
    };
    if (mode == 0) library::register_autograd(sine, backward, setup);
    if (mode == 1) library::register_autograd("mylib::plain_sin", backward, setup);
    if (mode == 2) library::register_autograd(sine.op(), backward, setup);
    Tensor x = leaf({3});
    Tensor y = sine(x);
    Tensor gradient = autograd::grad({y}, {x}, {ones_like(y.detach())})[0];
    EXPECT_TRUE(called);
    EXPECT_EQ(values(gradient), values(x.cos()));
  }
}

TEST(TestCustomOpAPI, library_register_autograd_low_level) {
  for (bool by_name : {true, false}) {
    Library lib("_tenon_testing");
    dispatch::Operator& op = lib.def("sin5(Tensor x) -> Tensor");
    lib.impl("sin5", plain_sin, KernelKey::CPU);
    bool called = false;
    auto setup = [](AutogradContext& ctx, const Inputs& inputs, Outputs) {
      ctx.save_for_backward({inputs[0].tensor()});
    };
    auto backward = [&](AutogradContext& ctx, const Tensor& grad) {
      called = true;
      return grad * ctx.saved_tensors()[0].cos();
    };
    if (by_name)
      library::register_autograd("_tenon_testing::sin5", backward, setup, &lib);
    else
      library::register_autograd(op, backward, setup, &lib);
    Tensor x = leaf({3});
    Tensor y = call_by_name("_tenon_testing::sin5", {Value(x)})[0].tensor();
    EXPECT_EQ(values(autograd::grad({y}, {x}, {ones_like(y.detach())})[0]), values(x.cos()));
    EXPECT_TRUE(called);
  }
}

TEST(TestCustomOpAPI, fake) {
  auto add = make_add();
  Tensor x = randn({3});
  expect_equal(add(x, 3.14), x + 3.14);
  std::string message = error_of<RuntimeError>([&] {
    FakeMode fakes;
    add(randn({3}), 3.14);
  });
  EXPECT_EQ(message,
            "[_tenon_testing::add] There was no fake impl registered for <CustomOpDef(_tenon_testing::add)>. This is "
            "necessary for compile/export/fx tracing to work (it has no fake impl or Meta kernel). Please use "
            "`add.register_fake` to add an fake impl.");
  auto compiled = compile([&](Tensor t) { return add(t, 3.14); }, {.backend = "eager"});
  EXPECT_THAT(error_of<RuntimeError>([&] { compiled(x); }), HasSubstr("no fake impl"));
  bool called = false;
  add.register_fake([&](const Tensor& t, double) {
    called = true;
    return empty_like(t);
  });
  {
    FakeMode fakes;
    Tensor t = randn({3});
    EXPECT_EQ(add(t, 3.14).description(), t.description());
    EXPECT_TRUE(called);
  }
  expect_equal(compiled(x), x + 3.14);
}

TEST(TestCustomOpAPI, compile) {
  int called = 0, faked = 0;
  auto linear_op = custom_op("_tenon_testing::linear",
                             [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
                               ++called;
                               Tensor out = empty({x.size(0), weight.size(0)});
                               for (int64_t row = 0; row < x.sizes()[0]; ++row)
                                 for (int64_t column = 0; column < weight.sizes()[0]; ++column) {
                                   float sum = bias.data<float>()[column];
                                   for (int64_t at = 0; at < x.sizes()[1]; ++at)
                                     sum += x.data<float>()[row * x.sizes()[1] + at] *
                                            weight.data<float>()[column * x.sizes()[1] + at];
                                   out.data<float>()[row * weight.sizes()[0] + column] = sum;
                                 }
                               return out;
                             },
                             {.names = "x, weight, bias"});
  linear_op.register_fake([&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    ++faked;
    EXPECT_EQ(bias.dim(), 1);
    TENON_CHECK(bool(x.size(1) == weight.size(1)), "sizes differ");
    return empty({x.size(0), weight.size(0)}, TensorOptions(x.dtype(), x.device()));
  });
  Tensor x = tensor({1.f, 2.f, 3.f, 4.f}).view({2, 2}), weight = tensor({1.f, 0.f, 2.f, -1.f}).view({2, 2}),
         bias = tensor({0.5f, 1.f});
  Tensor expected = tensor({1.5f, 1.f, 3.5f, 3.f}).view({2, 2});
  for (const char* backend : {"eager", "aot_eager", "inductor"}) {
    called = faked = 0;
    auto compiled = tenon::compile([&](Tensor a, Tensor b, Tensor c) { return linear_op(a, b, c); },
                                   {.fullgraph = true, .backend = backend});
    expect_equal(compiled(x, weight, bias), expected);
    EXPECT_EQ(called, 1) << backend;
    EXPECT_GE(faked, 1) << backend;
    EXPECT_EQ(compiled.compile_count(), 1) << backend;
  }
  // Among other operators, its neighbours are still fused.
  auto mixed = tenon::compile([&](Tensor a, Tensor b, Tensor c) { return linear_op(a.relu() * 2, b, c).sin() + 1; },
                              {.fullgraph = true});
  expect_equal(mixed(x, weight, bias), linear_op(x.relu() * 2, weight, bias).sin() + 1);
}

TEST(TestCustomOpAPI, register_autograd_error_cases) {
  auto g = custom_op("_tenon_testing::g", [](const Tensor& x) { return x.sin(); }, {.names = "x"});
  Tensor x = leaf({3});
  Tensor y = g(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_THAT(error_of<RuntimeError>([&] { y.sum().backward(); }), HasSubstr("no autograd formula"));
}

TEST(TestCustomOpAPI, replacement) {
  auto first = custom_op("_tenon_testing::f", [](const Tensor& x) { return x.sin(); }, {.names = "x"});
  Tensor x = randn({3});
  expect_equal(first(x), x.sin());
  auto second = custom_op("_tenon_testing::f", [](const Tensor& x2) { return x2.cos(); }, {.names = "x"});
  expect_equal(second(x), x.cos());
}

TEST(TestCustomOpAPI, overloading) {
  int called_f = 0, called_f1 = 0;
  auto f = custom_op("_tenon_testing::over", [&](const Tensor& x) {
    ++called_f;
    return x.clone();
  });
  Tensor x = randn({2, 3});
  call_by_name("_tenon_testing::over", {Value(x)});
  EXPECT_EQ(called_f, 1);
  auto f1 = custom_op("_tenon_testing::over.overload", [&](const Tensor& a, const Tensor&) {
    ++called_f1;
    return a.clone();
  });
  call_by_name("_tenon_testing::over", {Value(x), Value(x)});
  EXPECT_EQ(called_f1, 1);
  EXPECT_EQ(called_f, 1);
  library::destroy_custom_op("_tenon_testing::over");
  library::destroy_custom_op("_tenon_testing::over.overload");
}

TEST(TestCustomOpAPI, disallows_output_aliasing) {
  Tensor x = randn({3});
  auto viewed = custom_op("_tenon_testing::f", [](const Tensor& t) { return t.view({-1}); });
  EXPECT_THAT(error_of<RuntimeError>([&] { viewed(x); }), HasSubstr("may not alias"));
  auto same = custom_op("_tenon_testing::f", [](const Tensor& t) { return t; });
  EXPECT_THAT(error_of<RuntimeError>([&] { same(x); }), HasSubstr("may not alias"));
  auto inplace = custom_op("_tenon_testing::f",
                           [](const Tensor& t) {
                             t.copy_(plain_sin(t));
                             return t;
                           },
                           {.mutates = {"x"}, .device_types = {"cpu"}, .names = "x"});
  EXPECT_THAT(error_of<RuntimeError>([&] { inplace(x); }), HasSubstr("may not alias"));
}

}  // namespace
}  // namespace tenon::testing
