// Text as numbers: letters to tensors and back, windows over a text for models that see a context, and streams for
// models that remember.
#pragma once

#include <tenon/data/dataset.h>

#include <array>
#include <string>
#include <string_view>

namespace tenon::data {

// Letters, which are bytes, by number.
//
//   std::string text = "to be or not to be";
//   data::Alphabet letters = data::Alphabet::of(text);                        // those that it has: " benort"
//   Tensor numbers = letters.encode(text);                                    // int64 [18]
//   std::string same = letters.decode(numbers);
//   int64_t size = letters.size();                                            // 7
//   bool known = letters.contains('t');
//   data::Alphabet ascii = data::Alphabet::ascii();                           // 128, by their codes
//   data::Alphabet any = data::Alphabet::bytes();                             // 256: any text, any file
class Alphabet {
 public:
  // Each letter once, in the order of their codes.
  static Alphabet of(std::string_view text);
  static Alphabet ascii();
  static Alphabet bytes();

  int64_t size() const { return static_cast<int64_t>(letters_.size()); }
  bool contains(char letter) const { return numbers_[static_cast<unsigned char>(letter)] >= 0; }
  // An Error for a letter that it does not contain.
  Tensor encode(std::string_view text) const;
  // Numbers of any sizes, one after the other.
  std::string decode(const Tensor& numbers) const;

 private:
  explicit Alphabet(std::string letters);
  std::string letters_;
  std::array<int16_t, 256> numbers_;  // of each byte; -1: it is not contained
};

// All of a file.
//
//   auto count = [](const std::filesystem::path& path) { return data::read_text(path).size(); };
std::string read_text(const std::filesystem::path& path);

// Pieces of a sequence, each with the same piece one further on as its target: what a model with a context learns from.
//
//   Tensor numbers = data::Alphabet::ascii().encode("to be or not to be");
//   auto windows = std::make_shared<data::Windows>(numbers, /*length=*/8);
//   data::Example first = windows->get(0);                                    // "to be or" and "o be or "
//   size_t count = windows->size();                                           // 10
//   data::DataLoader loader(windows, {.batch_size = 4, .shuffle = true});
//   data::Windows apart(numbers, 8, /*stride=*/8);                            // 2 that share nothing
class Windows : public Dataset {
 public:
  Windows(Tensor sequence, int64_t length, int64_t stride = 1);
  size_t size() const override { return size_; }
  Example get(size_t index) const override;

 private:
  Tensor sequence_;
  int64_t length_, stride_;
  size_t size_;
};

// A sequence in `count` rows that are read side by side, `length` elements at a time: each batch [count, length] goes
// on where the one before ended, so that a state can go on, too. What does not fill a batch is left out. Views, not
// copies.
//
//   Tensor numbers = data::Alphabet::ascii().encode("to be or not to be");
//   std::vector<data::Example> batches = data::streams(numbers, /*count=*/2, /*length=*/4);
//   Tensor first = batches[0].data, next = batches[1].data;                   // "to b", " not"; "e or", " to "
std::vector<Example> streams(const Tensor& sequence, int64_t count, int64_t length);

}  // namespace tenon::data
