#include "support/own_stack.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include <pthread.h>

namespace tenon::support {
namespace {

// Sums 1 to `depth`, a frame of some size for each; at the bottom it may throw.
int64_t sum_to(int64_t depth, bool throws = false) {
  volatile char frame[4096];
  frame[depth % 4096] = 1;
  if (depth == 0 && throws) throw std::runtime_error("the bottom");
  int64_t rest = 0;
  if (depth > 0) with_room([&] { rest = sum_to(depth - 1, throws); });
  return rest + depth * frame[depth % 4096];
}

TEST(OwnStack, recursion_goes_deeper_than_the_stack) {
  // 40,000 frames of 4 KiB at least: 160 MB, where a thread has 8.
  EXPECT_EQ(sum_to(40'000), int64_t{40'000} * 40'001 / 2);
  EXPECT_EQ(sum_to(10), 55);
}

TEST(OwnStack, exceptions_come_back_through_every_stack) {
  EXPECT_THROW(sum_to(10'000, true), std::runtime_error);
  try {
    throw std::logic_error("outside");
  } catch (const std::logic_error&) {
    // One is being handled while others are thrown and caught on other stacks.
    EXPECT_THROW(sum_to(10'000, true), std::runtime_error);
    try {
      throw;
    } catch (const std::logic_error& still) {
      EXPECT_STREQ(still.what(), "outside");
    }
  }
}

TEST(OwnStack, threads_with_small_stacks_have_room_too) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{256} << 10);
  pthread_t thread;
  int64_t result = 0;
  auto body = [](void* into) -> void* {
    *static_cast<int64_t*>(into) = sum_to(5'000);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &result), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(result, 5'000 * 5'001 / 2);
}

}  // namespace
}  // namespace tenon::support
