// The autograd suite: operators that stand for others of their kind, by what their gradients are or are not.
#include "autograd.h"

#include <tenon/autograd/forward_ad.h>
#include <tenon/autograd/gradcheck.h>
#include <tenon/dispatch/profile_report.h>

namespace tenon {
namespace {

using namespace testing;
using autograd::gradcheck;

// ---- Gradients that nobody has written ------------------------------------------------------------------------------

TEST_P(TestAutograd, not_implemented_grad) {
  Tensor a = rand({2}).set_requires_grad();
  Tensor y = nextafter(a, a).sum();
  EXPECT_TRUE(y.requires_grad());
  EXPECT_THROW(y.backward(), NotImplementedError);
  EXPECT_THAT(error_of([&] { nextafter(a, a).sum().backward(); }),
              HasSubstr("the derivative for 'nextafter' is not implemented"));
  EXPECT_FALSE(a.grad().defined());
  // In place, and inside of a compiled function: the values are there, and whoever asks for the gradient is told.
  Tensor b = a * 1;
  b.nextafter_(zeros({2}));
  EXPECT_TRUE(b.lt(a).all().item<bool>());
  EXPECT_THROW(b.sum().backward(), NotImplementedError);
  auto compiled = compile([](Tensor x) { return nextafter(x, x + 1); });
  Tensor up = compiled(a);
  EXPECT_TRUE(up.detach().equal(nextafter(a.detach(), a.detach() + 1)));
  EXPECT_THAT(thrown_by([&] { up.sum().backward(); }), HasSubstr("is not implemented"));
  // Of two inputs one may have a gradient.
  Tensor x = rand({3}, kFloat64).set_requires_grad(), parameter = rand({3}, kFloat64);
  EXPECT_TRUE(gradcheck([&](const Tensor& at) { return igamma(parameter, at); }, {x}));
  EXPECT_TRUE(gradcheck([&](const Tensor& at) { return igammac(parameter, at); }, {x}));
  EXPECT_THAT(error_of([&] { igamma(x, parameter).sum().backward(); }),
              HasSubstr("the derivative for 'igamma: input' is not implemented"));
}

TEST_P(TestAutograd, not_implemented_fwad) {
  forward_ad::DualLevel level;
  Tensor dual = forward_ad::make_dual(rand({3}), rand({3}));
  EXPECT_THROW(igamma(dual, dual), NotImplementedError);
  EXPECT_THAT(error_of([&] { igamma(dual, dual); }),
              HasSubstr("Trying to use forward AD with igamma that does not support it because it has not been "
                        "implemented yet"));
  EXPECT_THAT(error_of([&] { nextafter(dual, dual); }), HasSubstr("Trying to use forward AD with nextafter"));
}

// ---- Integers among results -----------------------------------------------------------------------------------------

using Three = std::tuple<Tensor, Tensor, Tensor>;

void expect_first_requires_grad(const Three& results) {
  EXPECT_TRUE(std::get<0>(results).requires_grad());
  for (const Tensor& each : {std::get<1>(results), std::get<2>(results)}) {
    EXPECT_FALSE(each.is_floating_point());
    EXPECT_FALSE(each.requires_grad());
  }
}

TEST_P(TestAutograd, integer_outputs) {
  Tensor x = rand({4}).set_requires_grad();
  Tensor bins = linspace(0, 1, 100).set_requires_grad();
  for (const Tensor& whole : {x.argmax(), x.argmin(), x.argsort(), searchsorted(x, rand({}).set_requires_grad()),
                              bucketize(rand({5, 5}).set_requires_grad(), bins)}) {
    EXPECT_FALSE(whole.is_floating_point());
    EXPECT_FALSE(whole.requires_grad());
  }
  EXPECT_FALSE(count_nonzero(zeros({5}).set_requires_grad()).requires_grad());
  for (bool sorted : {true, false})
    for (bool inverse : {true, false})
      for (bool counts : {true, false}) {
        expect_first_requires_grad(unique(x, sorted, inverse, counts));
        expect_first_requires_grad(unique(x, sorted, inverse, counts, 0));
        expect_first_requires_grad(unique_consecutive(x, inverse, counts));
        expect_first_requires_grad(unique_consecutive(x, inverse, counts, 0));
        auto [values, places] = _unique(x, sorted, inverse);
        expect_first_requires_grad({values, places, places});
        expect_first_requires_grad(unique_dim(x, 0, sorted, inverse, counts));
        expect_first_requires_grad(_unique2(x, sorted, inverse, counts));
      }
  EXPECT_THAT(error_of([&] { std::get<0>(unique(x)).sum().backward(); }),
              HasSubstr("the derivative for '_unique2' is not implemented"));
}

// ---- Other sizes in the same memory ---------------------------------------------------------------------------------

TEST_P(TestAutograd, profiler_unboxed_only) {
  Tensor x = rand({3, 4});
  Profiler profiler;
  x.resize_({3, 2});
  EXPECT_THAT(profiler.table(), HasSubstr("aten::resize_"));
  EXPECT_EQ(x.sizes(), (Ints{3, 2}).span());
  EXPECT_EQ(x.strides(), (Ints{2, 1}).span());

  // The memory grows where it must, for whoever looks into it, and keeps what it has.
  Tensor base = arange(6).to(kFloat32), view = base.view({2, 3});
  int64_t version = base.version();
  view.resize_({4, 4});
  EXPECT_EQ(view.impl()->storage->bytes(), 64);
  EXPECT_TRUE(base.equal(arange(6).to(kFloat32)));
  EXPECT_TRUE(view.view({-1}).narrow(0, 0, 6).equal(base));
  EXPECT_GT(base.version(), version);
  Tensor part = arange(12).view({3, 4}).narrow(1, 1, 3);
  part.resize_({3, 4});
  EXPECT_EQ(part.storage_offset(), 1);
  EXPECT_EQ(part.impl()->storage->bytes(), 13 * 8);
  // Sizes that it has leave it as it is; a format that is asked for does not.
  Tensor columns = ones({3, 4}).t();
  EXPECT_EQ(columns.resize_({4, 3}).strides(), (Ints{1, 4}).span());
  EXPECT_EQ(columns.resize_({4, 3}, MemoryFormat::Contiguous).strides(), (Ints{3, 1}).span());
  EXPECT_THAT(error_of([&] { x.resize_({3}, MemoryFormat::Preserve); }), HasSubstr("unsupported memory format"));
  EXPECT_THAT(error_of([&] { x.resize_({-1}); }), HasSubstr("[resize_] expected sizes of at least 0"));

  Tensor leaf = ones({2}).set_requires_grad();
  for (const Tensor& each : {leaf, leaf * 2}) {
    EXPECT_THAT(error_of([&] { each.resize_({1}); }), HasSubstr("cannot resize variables that require grad"));
    autograd::NoGrad off;
    EXPECT_THAT(error_of([&] { each.resize_({1}); }), HasSubstr("cannot resize variables that require grad"));
  }
  // A view of what was resized has the gradient of its places.
  Tensor written = zeros({2, 2}), row = written.select(0, 1);
  written.resize_({3, 2});
  row.add_(leaf);
  row.sum().backward();
  expect_filled(leaf.grad(), 1);
  // In a compiled function it is called between two graphs.
  auto compiled = compile([](Tensor t) {
    Tensor own = t * 2;
    own.resize_({2, 2});
    return own + 1;
  });
  EXPECT_TRUE(compiled(ones({3, 2})).equal(full({2, 2}, 3)));
}

}  // namespace
}  // namespace tenon
