// Seed 001: functions written against libtorch's API, in walks that are captured.
#include "compiled_autograd.h"

#include <tenon/compat/torch.h>
#include <tenon/dispatch/packet.h>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Two that do the same, and are two.
struct PassesThrough : public torch::autograd::Function<PassesThrough> {
  static constexpr bool is_traceable = true;
  static torch::Tensor forward(AutogradContext*, const torch::Tensor& x) { return x; }
  static variable_list backward(AutogradContext*, variable_list grad_output) { return grad_output; }
};
struct PassesThrough2 : public torch::autograd::Function<PassesThrough2> {
  static constexpr bool is_traceable = true;
  static torch::Tensor forward(AutogradContext*, const torch::Tensor& x) { return x; }
  static variable_list backward(AutogradContext*, variable_list grad_output) { return grad_output; }
};
torch::Tensor passes_through(torch::Tensor x) { return PassesThrough::apply(x); }
torch::Tensor passes_through2(torch::Tensor x) { return PassesThrough2::apply(x); }

// Keeps a value of every kind.
struct KeepsAll : public torch::autograd::Function<KeepsAll> {
  static constexpr bool is_traceable = true;
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x, const torch::Tensor& y,
                               const torch::Tensor& fixed) {
    ctx->save_for_backward({x, y});
    ctx->saved_data["fixed_tensor"] = fixed;
    ctx->saved_data["bool"] = true;
    ctx->saved_data["int"] = 1;
    c10::List<std::string> list({"string"});
    ctx->saved_data["list"] = list;
    c10::Dict<std::string, double> dict;
    dict.insert("string", 1.0);
    ctx->saved_data["dict"] = dict;
    return x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list) {
    const auto& saved = ctx->get_saved_variables();
    TORCH_CHECK(saved.size() == 2);
    torch::Tensor fixed = ctx->saved_data["fixed_tensor"].toTensor();
    TORCH_CHECK(ctx->saved_data["bool"].isBool());
    int i = static_cast<int>(ctx->saved_data["int"].toInt());
    c10::List<c10::IValue> list = ctx->saved_data["list"].toList();
    TORCH_CHECK(list.size() == 1 && list.get(0).toStringRef() == "string");
    c10::Dict<c10::IValue, c10::IValue> dict = ctx->saved_data["dict"].toGenericDict();
    TORCH_CHECK(dict.size() == 1 && dict.at("string") == 1.0);
    variable_list gradients(3);
    gradients[0] = saved[0] + saved[1] + torch::sum(fixed) + i;
    return gradients;
  }
};
torch::Tensor keeps_all(torch::Tensor x, torch::Tensor y, torch::Tensor fixed) { return KeepsAll::apply(x, y, fixed); }

struct KeepsFlat : public torch::autograd::Function<KeepsFlat> {
  static constexpr bool is_traceable = true;
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x) {
    ctx->save_for_backward({x});
    ctx->saved_data["dynamic"] = x.view(-1);
    return x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list) {
    const auto& saved = ctx->get_saved_variables();
    torch::Tensor z = ctx->saved_data["dynamic"].toTensor();
    variable_list gradients(1);
    gradients[0] = saved[0] + torch::sum(z);
    return gradients;
  }
};
torch::Tensor keeps_flat(const torch::Tensor& x) { return KeepsFlat::apply(x); }

// What it keeps depends on how often it ran.
struct DependsOnRuns : public torch::autograd::Function<DependsOnRuns> {
  static constexpr bool is_traceable = true;
  static int iteration;
  static variable_list forward(AutogradContext* ctx, const torch::Tensor& x, const torch::Tensor& y) {
    ctx->save_for_backward({x, y});
    ctx->saved_data["bool"] = true;
    ctx->saved_data["int"] = 1;
    switch (iteration) {
      case 0: break;
      case 1: ctx->saved_data["forces_recompile"] = iteration; break;
      case 2: ctx->set_materialize_grads(false); break;
      case 3: break;  // as the first time
      default: throw std::runtime_error("unexpected iteration");
    }
    ++iteration;
    return {x, y};
  }
  static variable_list backward(AutogradContext* ctx, variable_list) {
    const auto& saved = ctx->get_saved_variables();
    TORCH_CHECK(saved.size() == 2 && ctx->saved_data["bool"].isBool() && ctx->saved_data["int"].isInt());
    int i = static_cast<int>(ctx->saved_data["int"].toInt());
    variable_list gradients(2);
    gradients[0] = saved[0] + saved[1] + i;
    return gradients;
  }
};
int DependsOnRuns::iteration = 0;
variable_list depends_on_runs(const torch::Tensor& x, const torch::Tensor& y) { return DependsOnRuns::apply(x, y); }
void reset_runs() { DependsOnRuns::iteration = 0; }

}  // namespace

TORCH_LIBRARY(test_autograd_cpp_node, m) {
  m.def("passes_through", passes_through);
  m.def("passes_through2", passes_through2);
  m.def("keeps_all", keeps_all);
  m.def("keeps_flat", keeps_flat);
  m.def("depends_on_runs", depends_on_runs);
  m.def("reset", reset_runs);
}

namespace tenon {
namespace {

using namespace testing;

std::vector<Tensor> call(const char* name, const std::vector<Tensor>& given) {
  dispatch::Values args;
  for (const Tensor& tensor : given) args.push_back(dispatch::Value(tensor));
  std::vector<Tensor> found;
  for (const dispatch::Value& result :
       dispatch::call_boxed(dispatch::find_operator(std::string("test_autograd_cpp_node::") + name), args))
    result.each_tensor([&](const Tensor& tensor) { found.push_back(tensor); });
  return found;
}

Tensor ones_leaf(int64_t size) { return ones({size, size}).set_requires_grad(); }

// Compiled for 10, then for any size.
TEST_F(TestCompiledAutograd, autograd_cpp_node) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : {10, 100, 10, 20, 10}) {
          Tensor x = ones_leaf(size);
          call("passes_through", {x})[0].sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

TEST_F(TestCompiledAutograd, autograd_cpp_node_id) {
  auto run = [](const char* name) {
    Tensor x = ones_leaf(10);
    call(name, {x})[0].sum().backward();
    return x.grad();
  };
  check_output_and_recompiles(
      [&] {
        Tensors found;
        for (int round = 0; round < 4; ++round) found.push_back(run("passes_through"));
        return found;
      },
      1);
  check_output_and_recompiles(
      [&] {
        Tensors found;
        for (const char* name : {"passes_through", "passes_through2", "passes_through", "passes_through2"})
          found.push_back(run(name));
        return found;
      },
      2);
}

TEST_F(TestCompiledAutograd, autograd_cpp_node_saved) {
  check_output_and_recompiles(
      [] {
        Tensor fixed = ones({2, 2});
        Tensors found;
        for (int64_t size : {10, 100, 10, 20, 10}) {
          Tensor x = ones_leaf(size), y = randn({size, size});
          call("keeps_all", {x, y, fixed})[0].sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

// The seed compiles for every size, because tensors among the saved data are never dynamic there. Here they are like
// all others.
TEST_F(TestCompiledAutograd, autograd_cpp_node_saved_dynamic) {
  check_output_and_recompiles(
      [] {
        Tensors found;
        for (int64_t size : {10, 100, 10, 20, 10}) {
          Tensor x = ones_leaf(size);
          call("keeps_flat", {x})[0].sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      2);
}

TEST_F(TestCompiledAutograd, autograd_cpp_node_data_dependent) {
  check_output_and_recompiles(
      [] {
        call("reset", {});
        Tensors found;
        for (int round = 0; round < 4; ++round) {
          Tensor x = ones_leaf(10), y = randn({10, 10});
          Tensors out = call("depends_on_runs", {x, y});
          (out[0] + out[1]).sum().backward();
          found.push_back(x.grad());
        }
        return found;
      },
      3);
}

}  // namespace
}  // namespace tenon
