// MNIST's and CIFAR's files: what they hold is read, and what is no such file is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers.h"
#include "error_of.h"
#include "unit/io/files.h"
#include "values_of.h"

#include <tenon/tenon.h>

namespace tenon::testing {
namespace {

using namespace data;
using Numbers = std::vector<double>;

TEST(Pictures, OfMnistAndCifarFiles) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("tenon_sets_{}", ::getpid());
  std::filesystem::create_directories(folder);
  auto write = [&](const char* name, std::vector<unsigned char> bytes) {
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write("train-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255, 51, 102});
  write("train-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 7, 3});
  MNIST digits(folder);
  ASSERT_EQ(digits.size(), 2u);
  EXPECT_EQ(digits.get(1).data.description(), "float32[1, 1, 2]");
  EXPECT_EQ(values(digits.get(0).data), (Numbers{0, 1}));
  EXPECT_EQ(digits.get(1).target.item<int64_t>(), 3);
  write("train-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 3, 7, 3});
  EXPECT_THAT(error_of<ValueError>([&] { MNIST bad(folder); }),
              ::testing::HasSubstr("expected as many bytes as the sizes say"));
  std::vector<unsigned char> rows(2 * 3073, 0);
  rows[0] = 4;
  rows[1] = 255;
  rows[3073] = 9;
  write("test_batch.bin", rows);
  CIFAR10 pictures(folder, false);
  EXPECT_EQ(pictures.get(0).data.description(), "float32[3, 32, 32]");
  EXPECT_EQ(pictures.get(0).data[0][0][0].item<float>(), 1);
  EXPECT_EQ(pictures.get(1).target.item<int64_t>(), 9);
  std::filesystem::remove_all(folder);
}

struct Format {
  const char* name;
  Tensor (*read)(const io::Bytes&);
  std::vector<std::byte> whole;
  size_t row;  // a file that ends behind one of its rows is a shorter file; 0 where it says how long it is
};

std::vector<std::byte> with_pixels(std::vector<int> header, size_t count) {
  std::vector<std::byte> bytes;
  for (int each : header) bytes.push_back(static_cast<std::byte>(each));
  for (size_t at = 0; at < count; ++at) bytes.push_back(static_cast<std::byte>(at % 251));
  return bytes;
}

std::vector<Format> formats() {
  return {{"labels", read_idx, with_pixels({0, 0, 8, 1, 0, 0, 0, 9}, 9), 0},
          {"images", read_idx, with_pixels({0, 0, 8, 3, 0, 0, 0, 13, 0, 0, 0, 28, 0, 0, 0, 28}, 13 * 28 * 28), 0},
          {"pictures", read_cifar10, with_pixels({}, 3 * 3073), 3073}};
}

// At every byte: of the header, at every page, and everywhere else.
TEST(Pictures, CutAnywhere) {
  for (const Format& format : formats()) {
    touch({{"whole", format.read(io::copy_bytes(format.whole, "whole"))}});
    for (size_t length = 0; length < format.whole.size(); ++length) {
      std::string error = error_of<ValueError>(
          [&] { touch({{"cut", format.read(io::copy_bytes(std::span(format.whole).first(length), "cut"))}}); });
      if (length != 0 && format.row != 0 && length % format.row == 0)
        EXPECT_EQ(error, "no error") << format.name << " cut at " << length;
      else
        EXPECT_THAT(error, ::testing::HasSubstr("cut: expected")) << format.name << " cut at " << length;
    }
  }
}

// Sizes that claim more than there is, also where their product overflows, are refused.
TEST(Pictures, ChangedAnywhereInTheHeader) {
  for (Format& format : formats())
    for (size_t at = 0; at < 16; ++at)
      for (int change : {0x01, 0x80, 0xFF}) {
        std::byte before = std::exchange(format.whole[at], format.whole[at] ^ static_cast<std::byte>(change));
        std::string error =
            error_of<ValueError>([&] { touch({{"changed", format.read(io::copy_bytes(format.whole, "changed"))}}); });
        // Behind the sizes are pixels, of which any will do.
        const bool is_header = format.row == 0 && at < (format.name == std::string("labels") ? 8u : 16u);
        EXPECT_EQ(error != "no error", is_header) << format.name << ", byte " << at << ": " << error;
        format.whole[at] = before;
      }
  const auto huge = with_pixels({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, 4);
  EXPECT_EQ(error_of<ValueError>([&] { read_idx(io::copy_bytes(huge, "huge")); }),
            "[read_idx] huge: expected as many bytes as the sizes say");
}

}  // namespace
}  // namespace tenon::testing
