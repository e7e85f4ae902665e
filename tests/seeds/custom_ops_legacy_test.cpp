// The older, step-by-step way, with every check of its backward.
#include "seeds/custom_ops.h"

namespace tenon::testing {
namespace {

const std::string kNs = "_test_custom_op";
const std::string kFoo = kNs + "::foo";

// An operator that is gone at the end of the test.
struct Foo {
  explicit Foo(const char* schema = "(Tensor x) -> Tensor") : op(legacy::custom_op(kFoo, schema)) {}
  ~Foo() { legacy::destroy(kFoo); }
  dispatch::Results operator()(std::vector<Value> args) const { return dispatch::call_boxed(op, args); }
  dispatch::Operator& op;
};

AnyValue dict(std::initializer_list<AnyValue::Entry> entries) { return AnyValue(AnyValue::Dict(entries)); }
AnyValue save_x(const Inputs& inputs, Outputs) { return AnyValue(inputs["x"].tensor()); }
AnyValue save_first(const Inputs& inputs, Outputs) { return AnyValue(inputs["xs"].tensors()[0]); }

TEST(TestCustomOp, lifetime) {
  auto& first = legacy::custom_op<Tensor(const Tensor&)>(kFoo, {.names = "x"});
  dispatch::OperatorRef kept(first);
  EXPECT_EQ(&legacy::get_op(kFoo), &first);
  EXPECT_THAT(error_of<RuntimeError>([] { legacy::custom_op<Tensor(const Tensor&)>(kFoo, {.names = "x"}); }),
              HasSubstr("multiple times"));
  legacy::destroy(kFoo);
  EXPECT_THAT(error_of<RuntimeError>([] { legacy::get_op(kFoo); }), HasSubstr("there is no operator"));
  Tensor x = randn({3});
  const Value args[] = {Value(x)};
  EXPECT_THAT(error_of<RuntimeError>([&] { dispatch::call_boxed(first, args); }), HasSubstr("was removed"));
  legacy::custom_op<Tensor(const Tensor&)>(kFoo, {.names = "x"});
  legacy::destroy(kFoo);
}

TEST(TestCustomOp, autograd_notimplemented) {
  Tensor x = leaf({3}), y = randn({3});
  {
    Foo op;
    EXPECT_THAT(error_of<RuntimeError>([&] { op({Value(x)}); }), HasSubstr("Autograd has not been implemented"));
  }
  {
    Foo op("(Tensor[] x) -> Tensor");
    std::vector<Tensor> list = {y, x};
    EXPECT_THAT(error_of<RuntimeError>([&] { op({Value(list)}); }), HasSubstr("Autograd has not been implemented"));
  }
  Foo op("(Tensor x, Tensor y) -> Tensor");
  EXPECT_THAT(error_of<RuntimeError>([&] { op({Value(y), Value(x)}); }),
              HasSubstr("Autograd has not been implemented"));
}

TEST(TestCustomOp, autograd_notimplemented_gradmode) {
  Foo op("(Tensor x, Tensor y) -> Tensor");
  legacy::impl(kFoo, [](const Tensor& x, const Tensor& y) { return x * y; });
  Tensor x = leaf({3}), y = randn({3});
  NoGrad off;
  expect_equal(op({Value(y), Value(x)})[0].tensor(), y * x);
}

TEST(TestCustomOp, impl_cpu) {
  Foo op;
  legacy::impl(kFoo, [](const Tensor& x) { return x.sin(); }, {"cpu"});
  Tensor x = randn({3});
  expect_equal(op({Value(x)})[0].tensor(), x.sin());
}

TEST(TestCustomOp, impl_invalid_devices) {
  Foo op;
  auto kernel = [](const Tensor& x) { return x.sin(); };
  for (const char* type : {"cpu", "cuda"}) legacy::impl(kFoo, kernel, {type});
  const std::vector<std::vector<std::string>> invalid = {{"hip"}, {"xla"}, {"mkldnn"}, {"cpu", "hip"}};
  for (const auto& types : invalid)
    EXPECT_THAT(error_of<ValueError>([&] { legacy::impl(kFoo, kernel, types); }),
                HasSubstr("we only support device_type"));
}

TEST(TestCustomOp, backward_partially_registered) {
  Foo op;
  legacy::impl(kFoo, [](const Tensor& x) { return x.sin(); });
  legacy::impl_backward(kFoo, [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return AnyValue(grads[0].tensor() * saved.tensor().cos());
  });
  Tensor x = leaf({});
  EXPECT_THAT(error_of<RuntimeError>([&] { op({Value(x)})[0].tensor().backward(); }),
              HasSubstr("unable to find a 'save_for_backward'"));
}

TEST(TestCustomOp, save_for_backward_inputs_are_namedtuple) {
  Foo op;
  legacy::impl(kFoo, [](const Tensor& x) { return x.sin(); });
  int hit = 0;
  legacy::impl_save_for_backward(kFoo, [&](const Inputs& inputs, Outputs) {
    ++hit;
    EXPECT_THAT(inputs.names(), ::testing::ElementsAre("x"));
    return AnyValue(inputs["x"].tensor());
  });
  legacy::impl_backward(kFoo, [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"x", grads[0].tensor() * saved.tensor().cos()}});
  });
  Tensor x = leaf({});
  Tensor y = op({Value(x)})[0].tensor();
  EXPECT_EQ(hit, 1);
  y.backward();
  EXPECT_EQ(hit, 1);
  EXPECT_EQ(values(x.grad()), values(x.cos()));
}

// Runs an operator of one result on `args`, and backward; gives the error.
std::string backward_error(const char* schema, legacy::Save save, legacy::Backward backward,
                           const std::vector<Value>& args) {
  Foo op(schema);
  // The sine of the first tensor, whatever the schema.
  auto kernel = [](dispatch::Call& call) {
    std::optional<Tensor> first;
    for (const Value& value : call.args)
      value.each_tensor([&](const Tensor& tensor) {
        if (!first) first = tensor;
      });
    call.results.push_back(Value(first->sin()));
  };
  legacy::impl(kFoo, kernel);
  legacy::impl_save_for_backward(kFoo, std::move(save));
  legacy::impl_backward(kFoo, std::move(backward));
  Tensor y = op(args)[0].tensor();
  return error_of<RuntimeError>([&] { y.backward(); });
}

Tensor formula(const AnyValue& saved, const std::vector<AnyValue>& grads) {
  return grads[0].tensor() * saved.tensor().cos();
}

TEST(TestCustomOp, backward_returns_dict) {
  Tensor x = leaf({});
  auto backward = [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return AnyValue(formula(saved, grads));
  };
  EXPECT_THAT(backward_error("(Tensor x) -> Tensor", save_x, backward, {Value(x)}), HasSubstr("to be a dict"));
}

TEST(TestCustomOp, backward_dict_invalid_keys) {
  Tensor x = leaf({});
  auto backward = [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"x", formula(saved, grads)}, {"y", AnyValue()}});
  };
  EXPECT_THAT(backward_error("(Tensor x) -> Tensor", save_x, backward, {Value(x)}), HasSubstr("to have keys {'x'}"));
}

TEST(TestCustomOp, backward_dict_grad_for_nontensor) {
  Tensor x = leaf({});
  auto backward = [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"x", formula(saved, grads)}, {"dim", AnyValue()}});
  };
  EXPECT_THAT(backward_error("(Tensor x, int dim) -> Tensor", save_x, backward, {Value(x), Value(32)}),
              HasSubstr("non-Tensor-like types"));
}

TEST(TestCustomOp, backward_dict_requires_keys_for_input_tensors) {
  Tensor x = leaf({});
  auto backward = [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"x", formula(saved, grads)}});
  };
  EXPECT_THAT(backward_error("(Tensor x, Tensor y) -> Tensor", save_x, backward, {Value(x), Value(x)}),
              ContainsRegex("to have keys \\{.*'y'.*\\}"));
}

TEST(TestCustomOp, backward_dict_requires_keys_for_input_optional_tensors) {
  Tensor x = leaf({});
  auto backward = [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"x", formula(saved, grads)}});
  };
  EXPECT_THAT(backward_error("(Tensor x, Tensor? y) -> Tensor", save_x, backward, {Value(x), Value()}),
              ContainsRegex("to have keys \\{.*'y'.*\\}"));
}

TEST(TestCustomOp, backward_grads_are_tensor_or_none) {
  Tensor x = leaf({});
  auto backward = [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"x", AnyValue(AnyValue::List{AnyValue(formula(saved, grads))})}});
  };
  EXPECT_THAT(backward_error("(Tensor x) -> Tensor", save_x, backward, {Value(x)}),
              HasSubstr("either None or a Tensor"));
}

std::string list_error(const std::function<AnyValue(Tensor)>& gradients) {
  std::vector<Tensor> xs = {leaf({}), leaf({}), leaf({})};
  auto backward = [&](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"xs", gradients(formula(saved, grads))}});
  };
  return backward_error("(Tensor[] xs) -> Tensor", save_first, backward, {Value(xs)});
}

TEST(TestCustomOp, backward_tensorlist_input_requires_list_grads_with_same_numel) {
  EXPECT_THAT(list_error([](Tensor g) { return AnyValue(AnyValue::List{AnyValue(g), AnyValue()}); }),
              HasSubstr("3 gradients but got 2"));
}

TEST(TestCustomOp, backward_tensorlist_input_requires_list_grads_none_or_Tensor) {
  EXPECT_THAT(list_error([](Tensor g) {
                return AnyValue(AnyValue::List{AnyValue(g), AnyValue(), AnyValue(AnyValue::List{AnyValue()})});
              }),
              HasSubstr("None or Tensor"));
}

TEST(TestCustomOp, backward_tensorlist_input_requires_list_grads) {
  EXPECT_THAT(list_error([](Tensor) { return AnyValue(); }), HasSubstr("list of gradients"));
}

AnyValue no_backward(AutogradContext&, const AnyValue&, const std::vector<AnyValue>&) {
  return dict({{"xs", AnyValue()}});
}

TEST(TestCustomOp, backward_output_differentiability_type) {
  Foo op("(Tensor[] xs) -> Tensor");
  EXPECT_THAT(error_of<RuntimeError>([] { legacy::impl_backward(kFoo, no_backward, AnyValue(true)); }),
              HasSubstr("output_differentiability"));
}

TEST(TestCustomOp, backward_output_differentiability_numel) {
  Foo op("(Tensor[] xs) -> (Tensor, Tensor)");
  EXPECT_THAT(error_of<RuntimeError>(
                  [] { legacy::impl_backward(kFoo, no_backward, AnyValue(AnyValue::List{AnyValue(true)})); }),
              HasSubstr("output_differentiability"));
}

TEST(TestCustomOp, backward_output_differentiability_tensorlist) {
  Foo op("(Tensor x) -> (Tensor[], Tensor)");
  legacy::impl(
      kFoo, [](const Tensor& x) { return std::tuple<std::vector<Tensor>, Tensor>({x.clone(), x.clone()}, x.clone()); });
  legacy::impl_save_for_backward(kFoo, [](const Inputs&, Outputs) { return AnyValue(AnyValue::List()); });
  legacy::impl_backward(
      kFoo,
      [](AutogradContext&, const AnyValue&, const std::vector<AnyValue>& grads) {
        EXPECT_TRUE(grads[0].is_list());
        return dict({{"x", grads[1]}});
      },
      AnyValue(AnyValue::List{AnyValue(false), AnyValue(true)}));
  Tensor x = leaf({3});
  dispatch::Results results = op({Value(x)});
  EXPECT_FALSE(results[0].tensors()[0].requires_grad());
  EXPECT_FALSE(results[0].tensors()[1].requires_grad());
  EXPECT_TRUE(results[1].tensor().requires_grad());
  results[1].tensor().sum().backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1, 1}));
}

TEST(TestCustomOp, backward_output_differentiability_non_tensor) {
  Foo op("(Tensor x) -> (Tensor, int)");
  legacy::impl(kFoo, [](const Tensor& x) { return std::tuple<Tensor, int64_t>(x.clone(), 3); });
  legacy::impl_save_for_backward(kFoo, [](const Inputs&, Outputs) { return AnyValue(AnyValue::List()); });
  legacy::impl_backward(
      kFoo,
      [](AutogradContext&, const AnyValue&, const std::vector<AnyValue>& grads) { return dict({{"x", grads[0]}}); },
      AnyValue(AnyValue::List{AnyValue(true), AnyValue(true)}));
  Tensor x = leaf({3});
  EXPECT_THAT(error_of<RuntimeError>([&] { op({Value(x)}); }), HasSubstr("is not a Tensor"));
}

TEST(TestCustomOp, impl_on_existing_op) {
  Library lib(kNs);
  auto& op = lib.def("foo(Tensor x) -> Tensor");
  legacy::impl(kFoo, [](const Tensor& x) { return x.sin(); });
  Tensor x = randn({3});
  const Value args[] = {Value(x)};
  expect_equal(dispatch::call_boxed(op, args)[0].tensor(), x.sin());
}

TEST(TestCustomOp, impl_on_existing_op_with_cpu_registration) {
  auto kernel = [](const Tensor& x) { return x.sin(); };
  for (const char* key : {"CPU", "CUDA", "CompositeImplicitAutograd", "CompositeExplicitAutograd"}) {
    Library lib(kNs);
    lib.def("foo(Tensor x) -> Tensor");
    lib.impl("foo", kernel, key);
    EXPECT_THAT(error_of<RuntimeError>([&] { legacy::impl(kFoo, kernel); }), HasSubstr("already has an implementation"))
        << key;
  }
}

// Both sides of the backward are refused.
void expect_backward_refused(const char* regex) {
  EXPECT_THAT(error_of<RuntimeError>(
                  [] { legacy::impl_save_for_backward(kFoo, [](const Inputs&, Outputs) { return AnyValue(); }); }),
              ContainsRegex(regex));
  EXPECT_THAT(error_of<RuntimeError>([] { legacy::impl_backward(kFoo, no_backward); }), ContainsRegex(regex));
}

TEST(TestCustomOp, backward_impl_on_existing_op_incorrect_schema_views) {
  Library lib(kNs);
  lib.def("foo(Tensor(a) x) -> Tensor(a)");
  expect_backward_refused("operator that returns views");
}

TEST(TestCustomOp, backward_impl_on_existing_op_incorrect_schema_mutable) {
  Library lib(kNs);
  lib.def("foo(Tensor(a!) x) -> Tensor");
  expect_backward_refused("non-functional");
}

TEST(TestCustomOp, backward_impl_on_existing_op_incorrect_schema_no_output) {
  Library lib(kNs);
  lib.def("foo(Tensor x) -> ()");
  expect_backward_refused("no returns");
}

TEST(TestCustomOp, backward_impl_on_existing_op_CompositeImplicitAutograd) {
  Library lib(kNs);
  lib.def("foo(Tensor x) -> Tensor");
  lib.impl("foo", [](const Tensor& x) { return x.sin().cos(); }, "CompositeImplicitAutograd");
  expect_backward_refused("CompositeImplicitAutograd");
}

TEST(TestCustomOp, backward_impl_on_existing_op_with_key) {
  for (const char* key : {"Autograd", "AutogradCPU", "AutogradCUDA"}) {
    Library lib(kNs);
    lib.def("foo(Tensor x) -> Tensor");
    lib.impl("foo", [](const Tensor& x) { return x.sin().cos(); }, key);
    expect_backward_refused(key);
  }
}

TEST(TestCustomOp, backward_impl_on_existing_op) {
  Library lib(kNs);
  auto& op = lib.def("foo(Tensor x) -> Tensor");
  legacy::impl(kFoo, [](const Tensor& x) {
    NoGrad off;
    return x.sin();
  });
  legacy::impl_save_for_backward(kFoo, save_x);
  legacy::impl_backward(kFoo, [](AutogradContext&, const AnyValue& saved, const std::vector<AnyValue>& grads) {
    return dict({{"x", formula(saved, grads)}});
  });
  Tensor x = leaf({});
  const Value args[] = {Value(x)};
  Tensor y = dispatch::call_boxed(op, args)[0].tensor();
  EXPECT_EQ(values(autograd::grad({y}, {x})[0]), values(x.cos()));
}

}  // namespace
}  // namespace tenon::testing
