#include "low_memory/programs.h"

#include <tenon/library/custom_op.h>

#include <unistd.h>

#include <filesystem>

namespace tenon::low_memory {
namespace {

double number(const Tensor& x) { return x.to(kFloat64).sum().item<double>(); }

Tensor some(std::vector<SymInt> sizes) {
  SymInt count = 1;
  for (const SymInt& size : sizes) count = count * size;
  return (arange(count).to(kFloat32) * 0.37).sin().reshape(sizes);
}

std::function<double()> eager() {
  return [x = some({4, 5}), y = some({5})] {
    Tensor z = (x + y) * 2 - x.sin().exp();
    z = where(z > 0, z, z * 0.1).clamp(-1, 1);
    z.add_(1).mul_(x);
    return number(z) + number(softmax(x, 1)) + number(layer_norm(x, {5}));
  };
}

std::function<double()> views() {
  return [x = some({4, 6})] {
    Tensor copy = x.clone();
    copy.narrow(0, 1, 2).transpose(0, 1).add_(3);
    copy.view({2, 2, 6}).select(1, 0).fill_(2);
    Tensor all = cat({copy, x.expand({4, 6}), x.t().contiguous().t()}, 0);
    return number(stack({all.narrow(0, 0, 5), all.narrow(0, 5, 5)}, 0)) + number(copy.unsqueeze(0).repeat({2, 1, 1}));
  };
}

std::function<double()> selections() {
  return [x = some({5, 7})] {
    auto [values, indices] = x.sort(1);
    auto [best, where_best] = x.topk(3, 1);
    Tensor found = (x > 0).nonzero();
    return number(values) + number(x.argmax(1)) + number(best) + number(found) + number(x.gather(1, indices)) +
           number(x.index_select(0, where_best.select(1, 0).clamp(0, 4))) + number(x.cumsum(1)) + number(x.amax(0));
  };
}

std::function<double()> products() {
  return [x = some({2, 3, 8, 8}), w = some({4, 3, 3, 3}), a = some({6, 7}), b = some({7, 5})] {
    return number(mm(a, b)) + number(conv2d(x, w)) + number(bmm(x.flatten(0, 1), x.flatten(0, 1)));
  };
}

std::function<double()> large() {
  return [x = some({200'000})] { return number((x * 2).sin().sum()); };
}

std::function<double()> random_numbers() {
  return [] {
    manual_seed(7);
    return number(randn({50})) + number(rand({20}));
  };
}

std::function<double()> errors() {
  return [x = some({3, 4})] {
    try {
      mm(x, x);
    } catch (const MemoryError&) {
      throw;
    } catch (const Error&) {
      return 1.0;
    }
    return 0.0;
  };
}

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* ctx, std::vector<Tensor> grads) {
    Tensor x = ctx->saved_tensors()[0];
    return {grads[0] * x * x * 3};
  }
};

std::function<double()> gradients() {
  return [x = some({4, 4})] {
    Tensor leaf = x.clone().set_requires_grad();
    Tensor y = mm(leaf, leaf).tanh();
    y.register_hook([](const Tensor& grad) { return grad * 2; });
    Tensor z = (Cube::apply(y) + leaf.exp()).sum();
    Tensor slope = grad({z}, {leaf}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    z.backward();
    Tensor kept = autograd::checkpoint([](const Tensor& each) { return each.sin().cos(); }, leaf);
    kept.sum().backward();
    return number(leaf.grad()) + number(slope);
  };
}

std::function<double()> walks_that_are_captured() {
  return [x = some({4, 4})] {
    compiled_autograd::Enable on;
    Tensor leaf = x.clone().set_requires_grad();
    (mm(leaf, leaf).tanh() * leaf).sum().backward();
    return number(leaf.grad());
  };
}

std::function<double()> first_calls() {
  return [x = some({4, 5}), y = some({5})] {
    auto f = compile([](Tensor a, Tensor b) { return softmax((a.sin() + b).relu(), 1) * a.sum(1, true); });
    return number(f(x, y));
  };
}

std::function<double()> later_calls() {
  auto f = compile([](Tensor a, Tensor b) { return (a.cos() + b).sum(0) * 2; });
  return [f, x = some({4, 5}), y = some({5})]() mutable { return number(f(x, y)) + number(f(y, x)); };
}

std::function<double()> changing_sizes() {
  return [x = some({9, 5})] {
    auto f = compile([](Tensor a) { return a.reshape({a.size(0) * 5}).exp().sum() + a.size(0); });
    double all = 0;
    for (int64_t rows : {9, 4, 6, 7}) all += number(f(x.narrow(0, 0, rows)));
    return all;
  };
}

std::function<double()> breaks() {
  return [x = some({6})] {
    auto f = compile([](Tensor a) {
      Tensor b = a * 3;
      if (b.sum().item<double>() > 1000) return b;
      return b.exp() + 1;
    });
    return number(f(x));
  };
}

std::function<double()> compiled_gradients() {
  auto f = compile([](Tensor a) { return mm(a, a).tanh() * a.exp(); });
  return [f, x = some({4, 4})]() mutable {
    Tensor leaf = x.clone().set_requires_grad();
    f(leaf).sum().backward();
    auto g = compile([](Tensor a) { return a.sin() * a; });
    g(leaf).sum().backward();
    return number(leaf.grad());
  };
}

std::function<double()> custom_operators() {
  return [x = some({4, 3})] {
    auto shift = library::custom_op("low_memory::shift", [](const Tensor& a, double by) { return a + by; });
    shift.register_fake([](const Tensor& a, double) { return empty_like(a); });
    shift.register_autograd([](library::AutogradContext&, const Tensor& grad) { return grad; });
    Tensor leaf = x.clone().set_requires_grad();
    compile([&](Tensor a) { return shift(a * 2, 1.5).sin(); })(leaf).sum().backward();
    return number(shift(x, 2)) + number(leaf.grad());
  };
}

std::function<double()> training() {
  return [x = some({8, 4}), target = some({8, 2})] {
    manual_seed(3);
    nn::Sequential model(nn::Linear(4, 6), nn::ReLU(), nn::Linear(6, 2));
    optim::Adam adam(model.parameters(), optim::AdamOptions{.lr = 0.01});
    optim::SGD sgd(model.parameters(), optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
    auto step = compile([&](Tensor a, Tensor b) { return mse_loss(model(a), b); });
    for (int at = 0; at < 2; ++at) {
      model.zero_grad();
      step(x, target).backward();
      adam.step();
      sgd.step();
    }
    return number(step(x, target));
  };
}

std::function<double()> frozen() {
  return [x = some({2, 4})] {
    manual_seed(3);
    nn::Sequential model(nn::Linear(4, 6), nn::ReLU(), nn::Linear(6, 2));
    model.eval();
    NoGrad off;
    auto infer = freeze(model);
    return number(infer(x));
  };
}

std::function<double()> files() {
  auto folder = std::filesystem::temp_directory_path() / ("tenon_low_memory_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::shared_ptr<void> removes(nullptr, [folder](void*) { std::filesystem::remove_all(folder); });
  auto plain = folder / "x.safetensors", numpy = folder / "x.npz";
  return [plain, numpy, removes, x = some({4, 5})] {
    io::save(plain, {{"x", x}, {"y", x * 2}});
    io::save(numpy, {{"x", x}});
    double all = 0;
    for (const auto& path : {std::cref(plain), std::cref(numpy)})
      for (const auto& [key, tensor] : io::load(path)) all += number(tensor);
    return all;
  };
}

std::function<double()> loading() {
  auto all = std::make_shared<data::TensorDataset>(some({10, 3}), arange(10));
  return [all] {
    double sum = 0;
    for (const data::Example& batch : data::DataLoader(all, {.batch_size = 4, .workers = 2})) sum += number(batch.data);
    return sum;
  };
}

std::function<double()> printing() {
  return [x = some({3, 4})] {
    auto f = compile([](Tensor a) { return a.sin() + 1; });
    f(x);
    std::string text = x.str() + x.description() + f.explain().str() + nn::Linear(2, 3).str();
    return static_cast<double>(text.size());
  };
}

}  // namespace

const std::vector<Program>& programs() {
  static const auto& all = *new std::vector<Program>{
      {"eager", eager},
      {"views", views},
      {"selections", selections},
      {"products", products},
      {"large", large},
      {"random_numbers", random_numbers},
      {"errors", errors},
      {"gradients", gradients},
      {"walks_that_are_captured", walks_that_are_captured},
      {"first_calls", first_calls},
      {"later_calls", later_calls},
      {"changing_sizes", changing_sizes},
      {"breaks", breaks},
      {"compiled_gradients", compiled_gradients},
      {"custom_operators", custom_operators},
      {"training", training},
      {"frozen", frozen},
      {"files", files},
      {"loading", loading},
      {"printing", printing},
  };
  return all;
}

}  // namespace tenon::low_memory
