#include <tenon/data/text.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "error_of.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using data::Alphabet;
using ::testing::ElementsAre;

TEST(Alphabet, LettersOfATextInOrder) {
  Alphabet letters = Alphabet::of("banana\n");
  EXPECT_EQ(letters.size(), 4);
  EXPECT_THAT(values(letters.encode("nab\n")), ElementsAre(3, 1, 2, 0));
  EXPECT_EQ(letters.encode("nab").description(), "int64[3]");
  EXPECT_EQ(letters.encode("").description(), "int64[0]");
  EXPECT_EQ(letters.decode(tensor({{3, 1}, {2, 0}})), "nab\n");
  EXPECT_TRUE(letters.contains('a'));
  EXPECT_FALSE(letters.contains('c'));
}

TEST(Alphabet, AnyBytesComeBack) {
  std::string all;
  for (int code = 0; code < 256; ++code) all.push_back(static_cast<char>(code));
  EXPECT_EQ(Alphabet::bytes().decode(Alphabet::bytes().encode(all)), all);
  EXPECT_EQ(Alphabet::of(all).decode(Alphabet::of(all).encode("grün\xff")), "grün\xff");
  EXPECT_THAT(values(Alphabet::ascii().encode("az")), ElementsAre(97, 122));
  EXPECT_EQ(Alphabet::ascii().size(), 128);
}

TEST(Alphabet, Refusals) {
  EXPECT_EQ(error_of([] { (void)Alphabet::of("abc").encode("abd"); }),
            "[Alphabet] expected letters among its 3, got 'd' at 2; Alphabet::bytes() takes any text");
  EXPECT_EQ(error_of([] { (void)Alphabet::ascii().encode("grün"); }),
            "[Alphabet] expected letters among its 128, got 0xC3 at 2; Alphabet::bytes() takes any text");
  EXPECT_EQ(error_of([] { (void)Alphabet::of("abc").decode(tensor({0, 3})); }),
            "[Alphabet] expected numbers below 3, got 3");
  EXPECT_EQ(error_of([] { (void)Alphabet::of("abc").decode(ones({2})); }),
            "[Alphabet] expected int64 numbers, got float32[2]");
  EXPECT_EQ(error_of([] { (void)Alphabet::of(""); }),
            "[Alphabet] expected a text with at least one letter, got an empty one");
}

TEST(ReadText, AllOfAFile) {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "tenon_read_text_test.txt";
  std::string text("one\r\ntwo\0three", 14);
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(data::read_text(path), text);
  std::filesystem::remove(path);
  EXPECT_EQ(error_of([&] { (void)data::read_text(path); }),
            "[read_text] '" + path.string() + "' cannot be read: is it a file, and may you read it?");
}

TEST(Windows, EachWithTheOneBehindIt) {
  data::Windows windows(arange(6), 3);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_THAT(values(windows.get(2).data), ElementsAre(2, 3, 4));
  EXPECT_THAT(values(windows.get(2).target), ElementsAre(3, 4, 5));
  data::Windows apart(arange(8), 3, 3);
  ASSERT_EQ(apart.size(), 2u);
  EXPECT_THAT(values(apart.get(1).target), ElementsAre(4, 5, 6));
  EXPECT_EQ(data::Windows(arange(4), 3).size(), 1u);
}

TEST(Windows, InALoader) {
  data::DataLoader loader(std::make_shared<data::Windows>(arange(7), 2, 2), {.batch_size = 3});
  data::Example batch = *loader.begin();
  EXPECT_THAT(values(batch.data), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values(batch.target), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(batch.data.description(), "int64[3, 2]");
}

TEST(Windows, Refusals) {
  EXPECT_EQ(error_of([] { data::Windows(arange(3), 3); }),
            "[Windows] expected more than 3 elements, for a window and the one behind it, got 3");
  EXPECT_EQ(error_of([] { data::Windows(arange(3).view({3, 1}), 1); }),
            "[Windows] expected a sequence of one dimension, got int64[3, 1]");
  EXPECT_EQ(error_of([] { data::Windows(arange(3), 1, 0); }),
            "[Windows] expected a length and a stride above 0, got 1 and 0");
  EXPECT_EQ(error_of([] { (void)data::Windows(arange(3), 1).get(2); }), "[Windows] expected a number below 2, got 2");
}

TEST(Streams, EachRowGoesOn) {
  std::vector<data::Example> batches = data::streams(arange(16), 2, 3);
  ASSERT_EQ(batches.size(), 2u);  // rows of 7
  EXPECT_THAT(values(batches[0].data), ElementsAre(0, 1, 2, 7, 8, 9));
  EXPECT_THAT(values(batches[1].data), ElementsAre(3, 4, 5, 10, 11, 12));
  EXPECT_THAT(values(batches[1].target), ElementsAre(4, 5, 6, 11, 12, 13));
  EXPECT_EQ(batches[0].data.description(), "int64[2, 3]");
}

TEST(Streams, Refusals) {
  EXPECT_EQ(error_of([] { (void)data::streams(arange(6), 2, 3); }),
            "[streams] expected at least 7 elements for 2 rows of 3 and one behind, got 6");
  EXPECT_EQ(data::streams(arange(7), 2, 3).size(), 1u);
  EXPECT_EQ(error_of([] { (void)data::streams(arange(6), 0, 3); }),
            "[streams] expected a count and a length above 0, got 0 and 3");
}

}  // namespace
}  // namespace tenon::testing
