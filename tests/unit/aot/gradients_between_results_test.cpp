// One result of a compiled call was computed from another: gradients of the one with respect to the other.
#include "both_ways.h"

namespace tenon {
namespace {

using testing::both_ways;
using testing::error_of;
using testing::on_all_backends;

auto chained = [](Tensor x, Tensor w) {
  Tensor y = x * x, z = (y * w).sin();
  return std::tuple(y, z, w + 1);
};

TEST(GradientsBetweenResults, grad_of_one_with_respect_to_another) {
  on_all_backends([](auto&& compiled) {
    both_ways(chained, compiled(chained), [](auto&& f, int64_t n) {
      Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
      auto [y, z, v] = f(x, w);
      Tensor alone = autograd::grad({z.sum()}, {y}, {}, true)[0];
      Tensor both = autograd::grad({z.sum() + (y * 3).sum()}, {y}, {}, true)[0];
      std::vector<Tensor> mixed = autograd::grad({z.sum() + y.sum()}, {y, x, w}, {}, true);
      return std::vector{alone, both, mixed[0], mixed[1], mixed[2]};
    });
  });
}

TEST(GradientsBetweenResults, what_is_asked_for_twice_is_one_tensor) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled(chained);
    for (int call = 0; call < 2; ++call) {
      Tensor x = full({3}, 0.5f).set_requires_grad(), w = full({3}, 0.7f).set_requires_grad();
      auto [y, z, v] = f(x, w);
      std::vector<Tensor> found = autograd::grad({z.sum()}, {y, x, y, x});
      EXPECT_TRUE(found[0].is_same_storage(found[2]));
      EXPECT_TRUE(found[1].is_same_storage(found[3]));
    }
  });
}

// Two results of one operator that are returned the other way round, and a third that was computed from both.
TEST(GradientsBetweenResults, several_results_of_one_operator) {
  auto moments = [](Tensor x) {
    auto [variance, mean] = var_mean(x, {-1}, false);
    return std::tuple(mean, variance, (mean * mean + variance * 3).sin());
  };
  on_all_backends([&](auto&& compiled) {
    both_ways(moments, compiled(moments), [](auto&& f, int64_t n) {
      Tensor x = (linspace(0.1, 0.9, 2 * n).reshape({2, n}) * 1.5f).set_requires_grad();
      auto [mean, variance, z] = f(x);
      auto first = autograd::grad({z.sum()}, {mean, variance}, {}, true, true);
      auto second = autograd::grad({(first[0] * first[1]).sum()}, {mean, variance}, {}, true);
      return std::vector{first[0], first[1], second[0], second[1]};
    });
  });
}

// `flatten` of a vector and `contiguous` of what is contiguous are the tensor itself: what was computed from it before
// it got its second name was computed from the result.
TEST(GradientsBetweenResults, a_result_by_its_second_name) {
  auto view = [](Tensor x) {
    Tensor row = x.select(0, -1), squares = row * row;
    return std::tuple(squares, row.flatten());
  };
  auto computed = [](Tensor x) {
    Tensor row = x.select(0, -1).sin(), squares = row * row;
    return std::tuple(squares, row.contiguous().flatten());
  };
  on_all_backends([&](auto&& compiled) {
    auto gradients = [](auto&& f, int64_t n) {
      Tensor x = linspace(0.1, 0.9, 2 * n).reshape({2, n}).set_requires_grad();
      auto [squares, row] = f(x * 1.5f);
      Tensor first = autograd::grad({squares.sum()}, {row}, {}, true, true)[0];
      Tensor second = autograd::grad({(first * first).sum()}, {row}, {}, true)[0];
      return std::vector{first, second, autograd::grad({squares.sum() + row.sum()}, {x})[0]};
    };
    both_ways(view, compiled(view), gradients);
    both_ways(computed, compiled(computed), gradients);
  });
}

TEST(GradientsBetweenResults, retained_gradients) {
  on_all_backends([](auto&& compiled) {
    both_ways(chained, compiled(chained), [](auto&& f, int64_t n) {
      Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
      auto [y, z, v] = f(x, w);
      y.retain_grad();
      z.retain_grad();
      (z.sum() + (y * y).sum() + v.sum()).backward();
      return std::vector{y.grad(), z.grad(), x.grad(), w.grad()};
    });
  });
}

TEST(GradientsBetweenResults, of_higher_order) {
  on_all_backends([](auto&& compiled) {
    both_ways(
        chained, compiled(chained),
        [](auto&& f, int64_t n) {
          Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
          auto [y, z, v] = f(x, w);
          Tensor slope = autograd::grad({z.sum()}, {y}, {}, true, true)[0];
          std::vector<Tensor> again = autograd::grad({slope.square().sum()}, {x, w});
          return std::vector{slope.detach(), again[0], again[1]};
        },
        1e-5);
  });
}

// A gradient is computed from results, and its history leads to them, as in eager.
TEST(GradientsBetweenResults, of_gradients_with_respect_to_results) {
  auto itself = [](Tensor x, Tensor w) {
    Tensor y = (x * w).tanh();  // whose gradient is computed from it
    return std::tuple(y, (y * x).exp(), w * 2);
  };
  auto taken_inside = [](Tensor x, Tensor w) {
    Tensor y = x + x * w;
    Tensor z = x - autograd::grad({(y * w).sin().sum()}, {y}, {}, true, true)[0];
    return std::tuple(y, z, w * 2);
  };
  auto check = [](auto function) {
    on_all_backends([&](auto&& compiled) {
      both_ways(
          function, compiled(function),
          [](auto&& f, int64_t n) {
            Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
            auto [y, z, v] = f(x, w);
            std::vector<Tensor> first = autograd::grad({(z * z + y * v).sum()}, {x, y, w}, {}, true, true);
            Tensor slope = (first[0] * first[1]).sum() + first[2].square().sum();
            std::vector<Tensor> second = autograd::grad({slope}, {y, x, w}, {}, true, true);
            Tensor curve = (second[0] + second[1] * second[2]).sum();
            std::vector<Tensor> third = autograd::grad({curve}, {y, z, w}, {}, true, false, true);
            std::vector<Tensor> all;
            for (const auto& list : {first, second, third})
              for (const Tensor& each : list) all.push_back(each.defined() ? each.detach() : zeros({n}));
            return all;
          },
          1e-4);
    });
  };
  check(chained);
  check(itself);
  check(taken_inside);
}

TEST(GradientsBetweenResults, of_gradients_behind_a_hook) {
  auto tanh_of = [](Tensor x, Tensor w) { return (x * w).tanh(); };
  on_all_backends([&](auto&& compiled) {
    both_ways(
        tanh_of, compiled(tanh_of),
        [](auto&& f, int64_t n) {
          Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
          Tensor y = f(x, w);
          y.register_hook([](const Tensor& gradient) { return gradient * 3; });
          Tensor slope = autograd::grad({y.sum()}, {x}, {}, true, true)[0];
          std::vector<Tensor> second = autograd::grad({slope.square().sum()}, {x, w});
          return std::vector{slope.detach(), second[0], second[1]};
        },
        1e-4);
  });
}

// What the result held is gone; its gradient does not need it.
TEST(GradientsBetweenResults, of_gradients_after_the_result_was_written) {
  auto shifted = [](Tensor x, Tensor w) {
    Tensor y = x * w;
    return std::tuple(y, (y + 1) * x);
  };
  on_all_backends([&](auto&& compiled) {
    both_ways(
        shifted, compiled(shifted),
        [](auto&& f, int64_t n) {
          Tensor x = full({n}, 0.5f).set_requires_grad(), w = full({n}, 0.7f).set_requires_grad();
          auto [y, z] = f(x, w);
          y.detach().mul_(100);
          Tensor slope = autograd::grad({z.sum()}, {x}, {}, true, true)[0];
          std::vector<Tensor> second = autograd::grad({slope.square().sum()}, {x, w});
          return std::vector{slope.detach(), second[0], second[1]};
        },
        1e-4);
  });
}

TEST(GradientsBetweenResults, views_of_an_argument) {
  auto views = [](Tensor x) {
    Tensor y = x * 1, flat = x.flatten(), first = flat.slice(0, 0, 2);
    return std::tuple(first, flat, flat.view({-1, 1}), y);
  };
  on_all_backends([&](auto&& compiled) {
    both_ways(views, compiled(views), [](auto&& f, int64_t n) {
      Tensor x = full({n, 2}, 0.5f).set_requires_grad();
      auto [first, flat, column, y] = f(x);
      Tensor total = first.square().sum() + column.square().sum() * 3 + y.sum();
      std::vector<Tensor> gradients = autograd::grad({total}, {flat, column, x});
      return gradients;
    });
  });
}

TEST(GradientsBetweenResults, what_is_computed_from_a_view_of_an_argument) {
  auto computed = [](Tensor x) {
    Tensor flat = x.flatten(), part = flat.slice(0, 1, 3);
    return std::tuple(flat * flat, flat, part, part.exp());
  };
  on_all_backends([&](auto&& compiled) {
    both_ways(
        computed, compiled(computed),
        [](auto&& f, int64_t n) {
          Tensor leaf = full({n, 2}, 0.5f).set_requires_grad(), x = leaf * 1;
          auto [square, flat, part, grown] = f(x);
          EXPECT_TRUE(flat.is_same_storage(x) && part.is_same_storage(x));
          std::vector<Tensor> first =
              autograd::grad({square.sum() + grown.square().sum() + part.sum()}, {flat, part, leaf}, {}, true, true);
          std::vector<Tensor> second = autograd::grad({first[0].square().sum()}, {part, flat, leaf}, {}, true);
          part.mul_(2);  // and x with it
          first.push_back(autograd::grad({x.square().sum()}, {leaf})[0]);
          for (const Tensor& each : second) first.push_back(each);
          for (Tensor& each : first) each = each.detach();
          return first;
        },
        1e-5);
  });
}

// Also of one that was written since it was made (fuzz 953003801).
TEST(GradientsBetweenResults, a_write_to_a_view_reaches_the_views_of_it) {
  auto views = [](Tensor x) {
    Tensor cut = x.detach();
    return std::tuple(cut.view({-1}), cut, x);
  };
  auto written = [](Tensor x) {
    Tensor cut = x.detach();
    return std::tuple(cut.view({-1}).fill_(0.25), cut, x);
  };
  on_all_backends([&](auto&& compiled) {
    auto reaches = [](auto&& f) {
      for (int64_t n : {2, 3, 2}) {
        Tensor x = ones({1, n}), w = ones({1, n}).set_requires_grad();
        auto [flat, cut, same] = f(x);
        cut.mul_(w);
        EXPECT_TRUE(cut.requires_grad());
        EXPECT_TRUE(flat.requires_grad());
        EXPECT_FALSE(same.requires_grad());
      }
    };
    reaches(compiled(views));
    reaches(compiled(written));
  });
}

TEST(GradientsBetweenResults, results_that_do_not_depend_on_each_other_say_so) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled(chained);
    Tensor x = ones({3}).set_requires_grad(), w = ones({3}).set_requires_grad();
    auto [y, z, v] = f(x, w);
    std::string error = error_of([&, &y = y, &v = v] { autograd::grad({v.sum()}, {y}); });
    EXPECT_NE(error.find("not have been used in the graph of the outputs"), std::string::npos) << error;
  });
}

TEST(GradientsBetweenResults, a_hook_would_have_to_change_what_is_behind_it) {
  for (const char* backend : {"inductor", "aot_eager"}) {
    auto f = compile(chained, {.backend = backend});
    Tensor x = ones({3}).set_requires_grad(), w = ones({3}).set_requires_grad();
    auto [y, z, v] = f(x, w);
    int calls = 0;
    autograd::register_hook(y, [&](const Tensor& gradient) {
      ++calls;
      return gradient * 2;
    });
    (y * 3).sum().backward({}, true);
    EXPECT_EQ(calls, 1) << "nothing else was differentiated";
    std::string error = error_of([&, &z = z] { z.sum().backward(); });
    EXPECT_NE(error.find("[register_hook] a hook is set on a result of CompiledFunctionBackward from which another"),
              std::string::npos)
        << error;
  }
}

// A view that was made before a write and one that was written: their histories lead to the base, not through one
// another (fuzz 77001405).
TEST(GradientsBetweenResults, a_view_from_before_a_write_is_not_on_the_way) {
  auto f = [](Tensor x) {
    Tensor whole = x * 2, view = slice(whole, 0, 1), part = fill_(slice(view, 0, 1), 0.25), late = slice(view, 0, 2);
    return std::vector<Tensor>{whole, view, part, late};
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"}) {
    auto g = compile(f, {.backend = backend});
    Tensor x = randn({5}).set_requires_grad();
    for (int call = 0; call < 2; ++call) {
      std::vector<Tensor> expected = f(x), found = g(x);
      for (size_t from = 0; from < expected.size(); ++from)
        for (size_t to = 0; to < expected.size(); ++to) {
          auto gradient = [&](const std::vector<Tensor>& of) {
            Tensor made = autograd::grad({of[from].sum()}, {of[to]}, {}, true, false, true)[0];
            return made.defined() ? made : full_like(of[to], -1);
          };
          EXPECT_TRUE(gradient(found).equal(gradient(expected))) << backend << ": " << from << " by " << to;
        }
    }
  }
}

// A result that is a view of another, and from which a third is computed: its gradient is that of both ways
// (fuzz 29623).
TEST(GradientsBetweenResults, what_is_computed_from_a_view_of_a_result) {
  std::vector<std::function<std::vector<Tensor>(Tensor)>> functions = {
      [](Tensor x) {
        Tensor y = x * 1.5, view = y.t();
        return std::vector{y, view, view.sin()};
      },
      [](Tensor x) {
        Tensor y = x * 1.5, part = y.select(0, 1), inner = part.slice(0, 1);
        return std::vector{y, part, inner, (part * inner.sum()).exp(), inner.cos()};
      },
      [](Tensor x) {  // the first is not returned
        Tensor y = x * 1.5, view = y.t(), flat = y.flatten();
        return std::vector{view, flat, view.sin(), flat.cos()};
      },
      [](Tensor x) {
        Tensor y = x * 1.5, view = y.t();
        return std::vector{y, view, masked_select(view, view > 0.1)};
      },
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"})
    for (size_t which = 0; which < functions.size(); ++which) {
      SCOPED_TRACE(fmt::format("{} {}", backend, which));
      auto& f = functions[which];
      auto g = compile(f, {.backend = backend, .capture_dynamic_output_shape_ops = true});
      for (int64_t size : {4, 4, 6}) {
        Tensor x = (arange(size * 3).view({size, 3}).to(kFloat32) / 10 - 0.4).set_requires_grad();
        std::vector<Tensor> expected = f(x), found = g(x);
        auto all_of = [&](const std::vector<Tensor>& of) {
          Tensor loss = zeros({});
          for (size_t at = 0; at < of.size(); ++at) loss = loss + of[at].sum() * static_cast<double>(at + 1);
          std::vector<Tensor> inputs = of;
          inputs.push_back(x);
          return autograd::grad(std::vector{loss}, inputs, {}, true);
        };
        std::vector<Tensor> wanted = all_of(expected), got = all_of(found);
        for (size_t at = 0; at < wanted.size(); ++at)
          EXPECT_LE(testing::difference(got[at], wanted[at]), 1e-5) << "gradient " << at;
        for (size_t from = 0; from < expected.size(); ++from)
          for (size_t to = 0; to < expected.size(); ++to) {
            auto gradient = [&](const std::vector<Tensor>& of) {
              Tensor made = autograd::grad({of[from].sum()}, {of[to]}, {}, true, false, true)[0];
              return made.defined() ? made : full_like(of[to], -7);
            };
            EXPECT_LE(testing::difference(gradient(found), gradient(expected)), 1e-5) << from << " by " << to;
          }
        // A later write to one is seen by the other, as between any views.
        auto after_a_write = [&](auto&& h) {
          Tensor leaf = x.detach().clone().set_requires_grad();
          std::vector<Tensor> of = h(leaf);
          of[1].mul_(3);
          of[0].sum().backward();
          return leaf.grad();
        };
        EXPECT_LE(testing::difference(after_a_write(g), after_a_write(f)), 1e-5);
      }
    }
}

// Views of an argument that cannot be made before the graph runs: it is written first, or data says how long the view
// is (fuzz 954002539). What is computed from them leads through them all the same.
TEST(GradientsBetweenResults, views_of_an_argument_that_is_written_or_whose_size_data_tells) {
  using Results = std::vector<Tensor>;
  auto count = [](const Tensor& x) { return (x > 1.5).sum().item<SymInt>(); };
  std::vector<std::function<Results(Tensor)>> functions = {
      [](Tensor x) {
        x.mul_(2);
        Tensor view = x.slice(0, 0, 2);
        return Results{view, view.pow(3)};
      },
      [](Tensor x) {
        Tensor view = x.slice(0, 0, 2);
        view.mul_(2);
        return Results{view, view.pow(3), x};
      },
      [](Tensor x) {
        Tensor outer = x.slice(0, 1), inner = outer.slice(0, 0, 2);
        x.mul_(2);
        return Results{inner, inner.pow(3) * outer.sum(), outer, x};
      },
      [count](Tensor x) {
        Tensor view = x.slice(0, 0, 1).expand({count(x)});
        return Results{view, view.pow(3)};
      },
      [count](Tensor x) {
        SymInt length = count(x);
        Tensor outer = x.slice(0, 1), inner = outer.slice(0, 0, length);
        return Results{inner, inner.pow(3) * outer.sum(), outer};
      },
      [count](Tensor x) {
        SymInt length = count(x);
        x.mul_(2);
        Tensor view = x.slice(0, 0, length);
        return Results{view, view.pow(3)};
      },
  };
  for (const char* backend : {"inductor", "aot_eager", "eager"})
    for (size_t which = 0; which < functions.size(); ++which) {
      auto& f = functions[which];
      auto g = compile(f, {.fullgraph = true, .backend = backend, .capture_scalar_outputs = true});
      for (int64_t size : {4, 4, 6}) {
        SCOPED_TRACE(fmt::format("{} {} {}", backend, which, size));
        Tensor leaf = arange(1, size + 1).to(kFloat64).set_requires_grad();
        auto all_of = [&](auto&& h) {
          Results of = h(leaf * 1.0), gradients;
          Tensor loss = zeros({}, kFloat64);
          for (size_t at = 0; at < of.size(); ++at) loss = loss + of[at].sum() * static_cast<double>(at + 1);
          for (const Tensor& to : of) {
            gradients.push_back(autograd::grad({of[1].sum()}, {to}, {}, true, false, true)[0]);
            gradients.push_back(autograd::grad({loss}, {to}, {}, true)[0]);
          }
          gradients.push_back(autograd::grad({loss}, {leaf})[0]);
          return gradients;
        };
        Results wanted = all_of(f), got = all_of(g);
        for (size_t at = 0; at < wanted.size(); ++at) {
          ASSERT_EQ(got[at].defined(), wanted[at].defined()) << "gradient " << at;
          if (!wanted[at].defined()) continue;
          EXPECT_LE(testing::difference(got[at], wanted[at]), 1e-9) << "gradient " << at;
        }
      }
    }
}

// Gradients that are missing are zeros, and lie as those would: here a view is taken of a sum with them (fuzz 31017).
TEST(GradientsBetweenResults, what_is_missing_lies_as_it_would) {
  on_all_backends([](auto&& compiled) {
    auto f = compiled([](Tensor x) {
      Tensor rows = x.reshape({x.size(1), x.size(0)}), turned = rows.transpose(0, 1);
      return std::tuple(rows, turned, turned.sum());
    });
    for (int64_t size : {5, 5, 4}) {
      Tensor x = ones({9, size}).t().detach().set_requires_grad();
      auto [rows, turned, sum] = f(x);
      sum.backward();
      EXPECT_TRUE(x.grad().equal(ones({size, 9})));
    }
  });
}

}  // namespace
}  // namespace tenon
