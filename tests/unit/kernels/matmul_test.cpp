#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tenon/kernels/matmul.h>
#include <tenon/support/counters.h>
#include <tenon/support/parallel.h>
#include <unistd.h>

#include <cmath>
#include <random>
#include <thread>

namespace tenon::kernels {
namespace {

struct Matmul : testing::Test {
  ~Matmul() override { set_num_threads(0); }
};

// One per thread: tests draw inside parallel_for.
std::mt19937& generator() {
  thread_local std::mt19937 engine(7);
  return engine;
}

double get(const TensorBase& t, int64_t offset) {
  return t.dtype() == kFloat32 ? static_cast<double>(t.data<float>()[offset])
                               : static_cast<double>(to_float(t.data<BFloat16>()[offset]));
}

void set(const TensorBase& t, int64_t offset, double value) {
  if (t.dtype() == kFloat32)
    t.data<float>()[offset] = static_cast<float>(value);
  else
    t.data<BFloat16>()[offset] = to_bfloat16(value);
}

// A tensor of random values with these strides; gaps hold NaNs, so that reading one shows.
Tensor random_tensor(const Ints& sizes, const Ints& strides, Dtype dtype = kFloat32) {
  Tensor result = core::allocate(sizes, strides, dtype, kCPU);
  for (int64_t at = 0; at < core::reach(sizes, strides); ++at) set(result, at, NAN);
  std::uniform_real_distribution<double> draw(-1, 1);
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  for (int64_t position = 0; position < count; ++position) {
    int64_t rest = position, offset = 0;
    for (size_t dim = sizes.size(); dim-- > 0;) {
      offset += rest % sizes[dim] * strides[dim];
      rest /= sizes[dim];
    }
    set(result, offset, draw(generator()));
  }
  return result;
}

Tensor random_dense(const Ints& sizes, Dtype dtype = kFloat32) {
  return random_tensor(sizes, core::contiguous_strides(sizes.span()), dtype);
}

Tensor transposed(const Tensor& t) {
  SymInts sizes = t.sym_sizes(), strides = t.sym_strides();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return core::make_view(t, sizes, strides, t.sym_storage_offset());
}

double element(const TensorBase& t, int64_t batch, int64_t row, int64_t column) {
  auto strides = t.strides();
  size_t rank = strides.size();
  return get(t, (rank == 3 ? batch * strides[0] : 0) + row * strides[rank - 2] + column * strides[rank - 1]);
}

double bias_at(const TensorBase& bias, int64_t batch, int64_t row, int64_t column) {
  const int64_t index[3] = {batch, row, column};
  int64_t offset = 0;
  auto sizes = bias.sizes();
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (sizes[dim] != 1) offset += index[3 - sizes.size() + dim] * bias.strides()[dim];
  return get(bias, offset);
}

// Compares with a loop in double.
void expect_product(const Tensor& a, const Tensor& b, const Tensor& out, const MatmulEpilogue& epilogue = {}) {
  matmul(a, b, out, epilogue);
  auto sizes = out.sizes();
  size_t rank = sizes.size();
  int64_t batches = rank == 3 ? sizes[0] : 1, m = sizes[rank - 2], n = sizes[rank - 1], k = a.sizes()[rank - 1];
  const double rounding = out.dtype() == kFloat32 ? 0x1p-23 : 0x1p-8;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < k; ++i) {
          double product = element(a, batch, row, i) * element(b, batch, i, column);
          sum += product;
          magnitude += std::abs(product);
        }
        sum *= epilogue.alpha;
        magnitude *= std::abs(epilogue.alpha);
        if (epilogue.bias && epilogue.beta != 0) {
          double more = epilogue.beta * bias_at(*epilogue.bias, batch, row, column);
          sum += more;
          magnitude += std::abs(more);
        }
        double expected = epilogue.relu && sum <= 0 ? 0 : sum,
               tolerance = magnitude * 0x1p-23 * (static_cast<double>(k) + 2);
        tolerance += std::abs(expected) * rounding;
        ASSERT_NEAR(element(out, batch, row, column), expected, tolerance)
            << a.description() << " and " << b.description() << " at " << batch << ", " << row << ", " << column;
      }
}

Tensor product_of(const Tensor& a, const Tensor& b) {
  Tensor out = random_dense({a.sizes()[0], b.sizes()[1]}, a.dtype());
  matmul(a, b, out);
  return out;
}

TEST_F(Matmul, odd_sizes_and_transposes) {
  const int64_t shapes[][3] = {{1, 1, 1},   {3, 5, 7},   {17, 33, 9},   {1, 64, 31},
                               {65, 1, 13}, {37, 53, 1}, {128, 64, 10}, {300, 130, 260}};
  for (auto [m, k, n] : shapes)
    for (Dtype dtype : {kFloat32, kBFloat16})
      for (int layout = 0; layout < 8; ++layout) {
        if (!matmul_supports(dtype)) continue;
        if (m == 300 && layout != 0 && layout != 2) continue;
        Tensor a = layout & 1 ? transposed(random_dense({k, m}, dtype)) : random_dense({m, k}, dtype);
        Tensor b = layout & 2 ? transposed(random_dense({n, k}, dtype)) : random_dense({k, n}, dtype);
        Tensor out = layout & 4 ? transposed(random_dense({n, m}, dtype)) : random_dense({m, n}, dtype);
        expect_product(a, b, out);
      }
}

TEST_F(Matmul, strides) {
  // Rows with gaps are read in place; elements with gaps are copied.
  expect_product(random_tensor({5, 7}, {11, 1}), random_tensor({7, 9}, {1, 8}), random_tensor({5, 9}, {20, 1}));
  expect_product(random_tensor({5, 7}, {21, 3}), random_tensor({7, 9}, {2, 17}), random_tensor({5, 9}, {20, 2}));
  expect_product(random_tensor({5, 7}, {0, 1}), random_tensor({7, 9}, {1, 0}), random_dense({5, 9}));
  expect_product(random_tensor({5, 7}, {0, 0}), random_tensor({7, 9}, {1, 1}), random_dense({5, 9}));
  expect_product(random_tensor({1, 7}, {100, 1}), random_tensor({7, 1}, {1, 50}), random_tensor({1, 1}, {3, 3}));
  // What lies between the elements of the result stays.
  Tensor out = random_tensor({2, 2}, {5, 2});
  expect_product(random_dense({2, 3}), random_dense({3, 2}), out);
  for (int64_t gap : {1, 3, 4, 6}) EXPECT_TRUE(std::isnan(out.data<float>()[gap]));
}

TEST_F(Matmul, zero_sizes) {
  expect_product(random_dense({0, 3}), random_dense({3, 4}), random_dense({0, 4}));
  expect_product(random_dense({2, 3}), random_dense({3, 0}), random_dense({2, 0}));
  expect_product(random_dense({0, 2, 3}), random_dense({0, 3, 4}), random_dense({0, 2, 4}));
  for (Dtype dtype : {kFloat32, kBFloat16}) {
    if (!matmul_supports(dtype)) continue;
    Tensor bias = random_dense({4}, dtype);
    for (const Tensor* each : {static_cast<const Tensor*>(nullptr), static_cast<const Tensor*>(&bias)})
      for (bool relu : {false, true})
        expect_product(random_dense({2, 0}, dtype), random_dense({0, 4}, dtype), random_dense({2, 4}, dtype),
                       {.bias = each, .relu = relu, .alpha = 2, .beta = -0.5});
  }
  expect_product(random_dense({3, 2, 0}), random_dense({3, 0, 4}), random_dense({3, 2, 4}));
}

TEST_F(Matmul, batches) {
  for (Dtype dtype : {kFloat32, kBFloat16}) {
    if (!matmul_supports(dtype)) continue;
    Tensor out = random_dense({3, 5, 9}, dtype);
    expect_product(random_dense({3, 5, 7}, dtype), random_dense({3, 7, 9}, dtype), out);
    expect_product(transposed(random_dense({3, 7, 5}, dtype)), transposed(random_dense({3, 9, 7}, dtype)), out);
    // One matrix for the whole batch.
    expect_product(random_tensor({3, 5, 7}, {0, 7, 1}, dtype), random_dense({3, 7, 9}, dtype), out);
    expect_product(random_dense({3, 5, 7}, dtype), random_tensor({3, 7, 9}, {0, 1, 7}, dtype), out);
    // Heads between the rows, as attention permutes them.
    expect_product(random_tensor({3, 5, 7}, {7, 21, 1}, dtype), random_tensor({3, 7, 9}, {9, 27, 1}, dtype),
                   random_tensor({3, 5, 9}, {9, 27, 1}, dtype));
    // The batch innermost.
    expect_product(random_tensor({3, 5, 7}, {1, 21, 3}, dtype), random_tensor({3, 7, 9}, {1, 27, 3}, dtype),
                   random_tensor({3, 5, 9}, {1, 27, 3}, dtype));
    expect_product(random_dense({1, 5, 7}, dtype), random_dense({1, 7, 9}, dtype), random_dense({1, 5, 9}, dtype));
  }
}

TEST_F(Matmul, epilogues) {
  for (Dtype dtype : {kFloat32, kBFloat16}) {
    if (!matmul_supports(dtype)) continue;
    Tensor a = random_dense({6, 11}, dtype), b = random_dense({11, 13}, dtype);
    const Tensor biases[] = {random_dense({13}, dtype),
                             random_tensor({13}, {3}, dtype),
                             random_dense({1, 13}, dtype),
                             random_dense({6, 13}, dtype),
                             random_dense({6, 1}, dtype),
                             random_dense({}, dtype),
                             transposed(random_dense({13, 6}, dtype)),
                             random_dense({1, 1}, dtype),
                             random_tensor({13}, {0}, dtype)};
    for (const Tensor& bias : biases)
      for (bool relu : {false, true})
        for (auto [alpha, beta] :
             {std::pair(1.0, 1.0), std::pair(0.5, 1.0), std::pair(1.0, -2.0), std::pair(-3.0, 0.25)})
          for (const Tensor& out : {random_dense({6, 13}, dtype), transposed(random_dense({13, 6}, dtype)),
                                    random_tensor({6, 13}, {40, 3}, dtype)})
            expect_product(a, b, out, {.bias = &bias, .relu = relu, .alpha = alpha, .beta = beta});
    Tensor batched = random_dense({2, 6, 13}, dtype), row = random_dense({13}, dtype);
    for (const Tensor& bias : {row, random_dense({2, 1, 13}, dtype), random_dense({2, 6, 1}, dtype)})
      expect_product(random_dense({2, 6, 4}, dtype), random_dense({2, 4, 13}, dtype), batched,
                     {.bias = &bias, .relu = true});
  }
}

TEST_F(Matmul, nan_passes_the_relu_and_a_beta_of_zero_hides_the_bias) {
  Tensor a = random_dense({4, 3}), b = random_dense({3, 40}), out = random_dense({4, 40}), bias = random_dense({40});
  a.data<float>()[0] = NAN;
  for (int64_t column = 0; column < 40; ++column) b.data<float>()[column] = 1;
  a.data<float>()[3] = -INFINITY;
  matmul(a, b, out, {.relu = true});
  EXPECT_TRUE(std::isnan(out.data<float>()[0]));
  EXPECT_EQ(out.data<float>()[40], 0);
  a.data<float>()[0] = a.data<float>()[3] = 1;
  for (int64_t column = 0; column < 40; ++column) bias.data<float>()[column] = NAN;
  expect_product(a, b, out, {.bias = &bias, .beta = 0});
}

TEST_F(Matmul, a_bias_added_to_a_half_is_rounded_once) {
  if (!matmul_supports(kBFloat16)) GTEST_SKIP() << "no bfloat16 here";
  // 256 + 1.5: rounding the product, or the scaled bias, first would give 256.
  Tensor a = random_dense({1, 1}, kBFloat16), b = random_dense({1, 1}, kBFloat16),
         out = random_dense({1, 1}, kBFloat16), bias = random_dense({1, 1}, kBFloat16);
  set(a, 0, 16);
  set(b, 0, 16);
  set(bias, 0, 3);
  matmul(a, b, out, {.bias = &bias, .beta = 0.5});
  EXPECT_EQ(get(out, 0), 258);
}

TEST_F(Matmul, primitives_are_kept_and_calls_counted) {
  Tensor a = random_dense({21, 22}), b = random_dense({22, 23});
  int64_t made = matmul_primitives_made(), calls = counter("library_calls").value();
  for (int round = 0; round < 5; ++round) product_of(a, b);
  EXPECT_EQ(matmul_primitives_made(), made + 1);
  EXPECT_EQ(counter("library_calls").value(), calls + 5);
  // The table is bounded: a primitive that was not used for long is made again.
  for (int64_t m = 1; m <= 300; ++m) product_of(random_dense({m, 1}), random_dense({1, 1}));
  made = matmul_primitives_made();
  product_of(a, b);
  EXPECT_EQ(matmul_primitives_made(), made + 1);
}

TEST_F(Matmul, any_number_of_threads) {
  Tensor a = random_dense({70, 90}), b = random_dense({90, 80}), out = random_dense({70, 80});
  for (int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    expect_product(a, b, out);
  }
}

TEST_F(Matmul, nested_and_concurrent) {
  set_num_threads(2);
  Tensor a = random_dense({60, 70}), b = random_dense({70, 50});
  parallel_for(4, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) expect_product(a, b, random_dense({60, 50}));
  });
  std::jthread other([&] {
    for (int round = 0; round < 5; ++round)
      expect_product(a, b, core::allocate(Ints{60, 50}, Ints{50, 1}, kFloat32, kCPU));
  });
  for (int round = 0; round < 5; ++round)
    expect_product(a, b, core::allocate(Ints{60, 50}, Ints{50, 1}, kFloat32, kCPU));
  other.join();
}

TEST_F(Matmul, a_forked_child) {
  set_num_threads(2);
  Tensor a = random_dense({200, 200}), b = random_dense({200, 200});
  Tensor before = product_of(a, b);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that hangs
    Tensor after = product_of(a, b);
    bool close = true;
    for (int64_t at = 0; at < 200 * 200; ++at) close &= std::abs(get(after, at) - get(before, at)) < 1e-3;
    _exit(close ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace tenon::kernels
