#include <gtest/gtest.h>
#include <tenon/support/hash.h>

#include <bit>

namespace tenon {
namespace {

TEST(Hash, order_and_every_value_matter) {
  EXPECT_EQ(hash_all(1, 2, 3), hash_all(1, 2, 3));
  EXPECT_NE(hash_all(1, 2, 3), hash_all(1, 3, 2));
  EXPECT_NE(hash_all(1, 2), hash_all(1, 2, 0));
  EXPECT_NE(hash_all(0), hash_all(0, 0));
}

// Sizes are small numbers, and tables use the low bits: neither may make them collide.
TEST(Hash, small_numbers_spread_over_the_low_bits) {
  std::set<size_t> all, low;
  for (int64_t a = 0; a < 64; ++a) {
    for (int64_t b = 0; b < 64; ++b) {
      all.insert(hash_all(a, b));
      low.insert(hash_all(a, b) % 65536);
    }
  }
  EXPECT_EQ(all.size(), 4096u);
  EXPECT_GT(low.size(), 3800u);  // 4096 random draws out of 65536 hit about 3970 of them
}

TEST(Fingerprint, equal_bytes_have_equal_names) {
  EXPECT_EQ(fingerprint("kernel"), fingerprint(std::string("ker") + "nel"));
  EXPECT_EQ(fingerprint("kernel").hex(), fingerprint("kernel").hex());
  EXPECT_EQ(fingerprint("").hex().size(), 32u);
  EXPECT_EQ((Fingerprint{1, 0xABC}.hex()), "00000000000000010000000000000abc");
}

// Names of files must stay the same across runs and machines; this one was written down once.
TEST(Fingerprint, is_stable) { EXPECT_EQ(fingerprint("tenon").hex(), "757dc0e557a22faa2df94bea3fe08f40"); }

TEST(Fingerprint, lengths_and_zeros_are_told_apart) {
  std::set<std::string> names;
  for (size_t length = 0; length < 70; ++length) names.insert(fingerprint(std::string(length, '\0')).hex());
  EXPECT_EQ(names.size(), 70u);
}

TEST(Fingerprint, one_bit_changes_about_half_of_each_word) {
  std::string text(50, 'x');
  Fingerprint before = fingerprint(text);
  int64_t high = 0, low = 0, cases = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit, ++cases) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      Fingerprint after = fingerprint(changed);
      EXPECT_NE(after.high, before.high);
      EXPECT_NE(after.low, before.low);
      high += std::popcount(after.high ^ before.high);
      low += std::popcount(after.low ^ before.low);
    }
  }
  EXPECT_NEAR(static_cast<double>(high) / static_cast<double>(cases), 32, 2);
  EXPECT_NEAR(static_cast<double>(low) / static_cast<double>(cases), 32, 2);
}

}  // namespace
}  // namespace tenon
