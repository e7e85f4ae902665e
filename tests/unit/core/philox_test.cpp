#include <tenon/core/philox.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers published for philox4x32-10 with the paper that introduces it (Salmon et al., SC 2011).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, WordsOfAStreamComeFromItsBlocks) {
  const uint64_t seed = 0x123456789abcdef0, offset = 0xfedcba9876543210;
  for (uint64_t element : {uint64_t{0}, uint64_t{3}, uint64_t{4}, uint64_t{1} << 40 | 6}) {
    const uint64_t block = element / 4;
    const Words words =
        philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0x76543210, 0xfedcba98},
                   {0x9abcdef0, 0x12345678});
    EXPECT_EQ(philox_word(seed, offset, element), words[element % 4]);
  }
}

TEST(Philox, WorksAtCompileTime) {
  static_assert(philox_word(0, 0, 0) == 0x6627e8d5);
  static_assert(philox_word(0, 0, 3) == 0x9b00dbd8);
}

}  // namespace
}  // namespace tenon
