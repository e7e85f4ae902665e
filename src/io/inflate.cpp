#include "io/inflate.h"

#include <tenon/support/error.h>

#include <array>

namespace tenon::io {
namespace {

[[noreturn]] void damaged(const char* what) { fail<ValueError>("compressed data is damaged: {}", what); }

// Bits, least significant first.
class Bits {
 public:
  explicit Bits(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint32_t take(int count) {
    while (held_ < count) {
      if (at_ >= bytes_.size()) damaged("it ends early");
      buffer_ |= uint64_t(bytes_[at_++]) << held_;
      held_ += 8;
    }
    auto value = static_cast<uint32_t>(buffer_ & ((uint64_t{1} << count) - 1));
    buffer_ >>= count;
    held_ -= count;
    return value;
  }
  // From the next whole byte on.
  std::span<const std::byte> take_bytes(size_t count) {
    buffer_ >>= held_ % 8;
    held_ -= held_ % 8;
    at_ -= static_cast<size_t>(held_ / 8);
    buffer_ = 0;
    held_ = 0;
    if (count > bytes_.size() - at_) damaged("it ends early");
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  void to_whole_byte() { take(held_ % 8); }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t buffer_ = 0;
  int held_ = 0;
};

// A prefix code given by the lengths of its words.
class Code {
 public:
  explicit Code(std::span<const uint8_t> lengths) {
    for (uint8_t length : lengths) ++count_[length];
    count_[0] = 0;
    int left = 1;
    for (size_t length = 1; length <= kLongest; ++length) {
      left = left * 2 - count_[length];
      if (left < 0) damaged("a code has too many words");
    }
    std::array<int, kLongest + 2> start{};
    for (size_t length = 1; length <= kLongest; ++length) start[length + 1] = start[length] + count_[length];
    symbols_.resize(lengths.size());
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol] != 0) symbols_[static_cast<size_t>(start[lengths[symbol]]++)] = static_cast<uint16_t>(symbol);
  }

  uint32_t read(Bits& bits) const {
    int code = 0, first = 0, index = 0;
    for (size_t length = 1; length <= kLongest; ++length) {
      code |= static_cast<int>(bits.take(1));
      if (code - count_[length] < first) return symbols_[static_cast<size_t>(index + code - first)];
      index += count_[length];
      first = (first + count_[length]) * 2;
      code *= 2;
    }
    damaged("a word is in no code");
  }

 private:
  static constexpr size_t kLongest = 15;
  std::array<int, kLongest + 1> count_{};
  std::vector<uint16_t> symbols_;
};

constexpr int kLengthBase[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                               31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr int kLengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr int kDistanceBase[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                 33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr int kDistanceBits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

struct Codes {
  Code symbols, distances;
};

Codes fixed_codes() {
  std::array<uint8_t, 288> lengths;
  for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
    lengths[symbol] = symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
  std::array<uint8_t, 30> distances;
  distances.fill(5);
  return {Code(lengths), Code(distances)};
}

Codes read_codes(Bits& bits) {
  constexpr size_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  size_t symbols = bits.take(5) + 257, distances = bits.take(5) + 1, words = bits.take(4) + 4;
  if (symbols > 286 || distances > 30) damaged("a code has too many words");
  std::array<uint8_t, 19> inner{};
  for (size_t at = 0; at < words; ++at) inner[kOrder[at]] = static_cast<uint8_t>(bits.take(3));
  Code code(inner);
  std::vector<uint8_t> lengths;
  while (lengths.size() < symbols + distances) {
    uint32_t symbol = code.read(bits);
    if (symbol < 16) {
      lengths.push_back(static_cast<uint8_t>(symbol));
      continue;
    }
    if (symbol == 16 && lengths.empty()) damaged("nothing to repeat");
    uint8_t value = symbol == 16 ? lengths.back() : 0;
    size_t times = symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    if (lengths.size() + times > symbols + distances) damaged("a code has too many words");
    lengths.insert(lengths.end(), times, value);
  }
  std::span<const uint8_t> all(lengths);
  return {Code(all.first(symbols)), Code(all.subspan(symbols))};
}

}  // namespace

std::vector<std::byte> inflate(std::span<const std::byte> compressed, size_t size) {
  std::vector<std::byte> result;
  result.reserve(size);
  auto room = [&](size_t count) {
    if (count > size - result.size()) damaged("it is longer than it says");
  };
  Bits bits(compressed);
  bool last = false;
  while (!last) {
    last = bits.take(1) == 1;
    uint32_t kind = bits.take(2);
    if (kind == 3) damaged("a block of an unknown kind");
    if (kind == 0) {
      bits.to_whole_byte();
      uint32_t length = bits.take(16), opposite = bits.take(16);
      if ((length ^ opposite) != 0xFFFF) damaged("a plain block's length");
      room(length);
      std::span<const std::byte> plain = bits.take_bytes(length);
      result.insert(result.end(), plain.begin(), plain.end());
      continue;
    }
    Codes codes = kind == 1 ? fixed_codes() : read_codes(bits);
    for (uint32_t symbol = codes.symbols.read(bits); symbol != 256; symbol = codes.symbols.read(bits)) {
      if (symbol < 256) {
        room(1);
        result.push_back(static_cast<std::byte>(symbol));
        continue;
      }
      if (symbol > 285) damaged("a length that there is not");
      size_t length = static_cast<size_t>(kLengthBase[symbol - 257]) + bits.take(kLengthBits[symbol - 257]);
      uint32_t far = codes.distances.read(bits);
      if (far > 29) damaged("a distance that there is not");
      size_t distance = static_cast<size_t>(kDistanceBase[far]) + bits.take(kDistanceBits[far]);
      if (distance > result.size()) damaged("a distance before the start");
      room(length);
      for (size_t at = 0; at < length; ++at) result.push_back(result[result.size() - distance]);
    }
  }
  if (result.size() != size) damaged("it is shorter than it says");
  return result;
}

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? 0xEDB88320u ^ value >> 1 : value >> 1;
      made[byte] = value;
    }
    return made;
  }();
  uint32_t value = ~before;
  for (std::byte byte : bytes) value = table[(value ^ static_cast<uint32_t>(byte)) & 0xFF] ^ value >> 8;
  return ~value;
}

}  // namespace tenon::io
