#include <tenon/data/text.h>

#include <tenon/generated/ops.h>

#include "support/out_of_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace tenon::data {
namespace {

// 'a', or 0xC3 if it is nothing to show.
std::string shown(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return code > 32 && code < 127 ? fmt::format("'{}'", letter) : fmt::format("0x{:02X}", code);
}

void check_sequence(const char* what, const Tensor& sequence) {
  TENON_CHECK_VALUE(sequence.defined() && sequence.dim() == 1, "[{}] expected a sequence of one dimension, got {}",
                    what, sequence.defined() ? sequence.description() : "an undefined tensor");
}

std::string first_codes(int count) {
  std::string letters;
  for (int code = 0; code < count; ++code) letters.push_back(static_cast<char>(code));
  return letters;
}

}  // namespace

Alphabet::Alphabet(std::string letters) : letters_(std::move(letters)) {
  numbers_.fill(-1);
  for (size_t at = 0; at < letters_.size(); ++at)
    numbers_[static_cast<unsigned char>(letters_[at])] = static_cast<int16_t>(at);
}

Alphabet Alphabet::of(std::string_view text) {
  TENON_CHECK_VALUE(!text.empty(), "[Alphabet] expected a text with at least one letter, got an empty one");
  std::array<bool, 256> seen{};
  for (char letter : text) seen[static_cast<unsigned char>(letter)] = true;
  std::string letters;
  for (size_t code = 0; code < seen.size(); ++code)
    if (seen[code]) letters.push_back(static_cast<char>(code));
  return Alphabet(letters);
}
Alphabet Alphabet::ascii() { return Alphabet(first_codes(128)); }
Alphabet Alphabet::bytes() { return Alphabet(first_codes(256)); }

Tensor Alphabet::encode(std::string_view text) const {
  std::vector<int64_t> numbers;
  numbers.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    TENON_CHECK_VALUE(contains(text[at]),
                      "[Alphabet] expected letters among its {}, got {} at {}; Alphabet::bytes() takes any text",
                      size(), shown(text[at]), at);
    numbers.push_back(numbers_[static_cast<unsigned char>(text[at])]);
  }
  return tensor(numbers, kInt64);
}

std::string Alphabet::decode(const Tensor& numbers) const {
  TENON_CHECK_TYPE(numbers.defined() && numbers.dtype() == kInt64, "[Alphabet] expected int64 numbers, got {}",
                   numbers.defined() ? numbers.description() : "an undefined tensor");
  std::string text;
  for (int64_t number : reshape(numbers, {-1}).tolist<int64_t>()) {
    TENON_CHECK_INDEX(number >= 0 && number < size(), "[Alphabet] expected numbers below {}, got {}", size(), number);
    text.push_back(letters_[static_cast<size_t>(number)]);
  }
  return text;
}

std::string read_text(const std::filesystem::path& path) try {
  std::ifstream file(path, std::ios::binary);
  TENON_CHECK_VALUE(file.is_open(), "[read_text] '{}' cannot be read: is it a file, and may you read it?",
                    path.string());
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  TENON_CHECK_VALUE(!file.bad(), "[read_text] reading '{}' failed after {} bytes", path.string(), text.size());
  return text;
} catch (...) {
  support::rethrow_named("read_text");
}

Windows::Windows(Tensor sequence, int64_t length, int64_t stride)
    : sequence_(std::move(sequence)), length_(length), stride_(stride) {
  check_sequence("Windows", sequence_);
  TENON_CHECK_VALUE(length > 0 && stride > 0, "[Windows] expected a length and a stride above 0, got {} and {}", length,
                    stride);
  const int64_t elements = sequence_.sizes()[0];
  TENON_CHECK_VALUE(elements > length,
                    "[Windows] expected more than {} elements, for a window and the one behind it, got {}", length,
                    elements);
  size_ = static_cast<size_t>((elements - 1 - length) / stride + 1);
}

Example Windows::get(size_t index) const {
  TENON_CHECK_INDEX(index < size_, "[Windows] expected a number below {}, got {}", size_, index);
  const int64_t first = static_cast<int64_t>(index) * stride_;
  return {slice(sequence_, 0, first, first + length_), slice(sequence_, 0, first + 1, first + length_ + 1)};
}

std::vector<Example> streams(const Tensor& sequence, int64_t count, int64_t length) {
  check_sequence("streams", sequence);
  TENON_CHECK_VALUE(count > 0 && length > 0, "[streams] expected a count and a length above 0, got {} and {}", count,
                    length);
  const int64_t elements = sequence.sizes()[0], row = (elements - 1) / count;
  TENON_CHECK_VALUE(row >= length, "[streams] expected at least {} elements for {} rows of {} and one behind, got {}",
                    count * length + 1, count, length, elements);
  Tensor rows = view(slice(sequence, 0, 0, count * row), {count, row});
  Tensor behind = view(slice(sequence, 0, 1, count * row + 1), {count, row});
  std::vector<Example> batches;
  for (int64_t at = 0; at + length <= row; at += length)
    batches.push_back({slice(rows, 1, at, at + length), slice(behind, 1, at, at + length)});
  return batches;
}

}  // namespace tenon::data
