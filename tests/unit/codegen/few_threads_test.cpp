// Compiling where the system gives no threads: the one at hand does it all.
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/loop/builder.h>

#include <gtest/gtest.h>

#include <pthread.h>

#include <system_error>
#include <thread>

namespace tenon::codegen {
namespace {

// While it lives, no thread can be made: it would have a stack larger than all addresses.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t vast;
    pthread_attr_init(&vast);
    pthread_attr_setstacksize(&vast, size_t{1} << 47);
    pthread_setattr_default_np(&vast);
    pthread_attr_destroy(&vast);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

loop::Kernel shift_kernel(int by) {
  loop::Builder b("shift");
  int x = b.buffer("x", kFloat32, loop::BufferRole::In), out = b.buffer("out", kFloat32, loop::BufferRole::Out);
  b.loop(b.integer("n"), {.parallel = true, .vector = true},
         [&](sym::Expr i) { b.store(out, i, b.load(x, i) + static_cast<double>(by)); });
  return b.finish();
}

TEST(FewThreads, kernels_are_compiled_by_the_one_that_there_is) {
  set_cache_folder("");
  forget_loaded_kernels();
  NoThreads none;
  ASSERT_THROW(std::thread([] {}).join(), std::system_error);
  std::vector<loop::Kernel> kernels;
  for (int by = 0; by < 5; ++by) kernels.push_back(shift_kernel(by));
  std::vector<CompiledKernelRef> compiled = compile_all(std::move(kernels));
  ASSERT_EQ(compiled.size(), 5u);
  for (size_t by = 0; by < 5; ++by) {
    float x = 2, out = 0;
    void* buffers[] = {&x, &out};
    int64_t n = 1, failed = -1;
    compiled[by]->entry(buffers, &n, nullptr, 0, 1, &failed);
    EXPECT_EQ(out, 2 + static_cast<float>(by));
  }
}

}  // namespace
}  // namespace tenon::codegen
