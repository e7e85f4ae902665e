#include <tenon/io/numpy.h>

#include "io/readers.h"
#include "io/zip.h"

#include <tenon/generated/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tenon::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = 1 << 20;

struct Descr {
  Dtype dtype;
  std::string_view name;  // without the byte order
};
constexpr Descr kDescrs[] = {
    {Dtype::Bool, "b1"},  {Dtype::UInt8, "u1"},   {Dtype::Int8, "i1"},    {Dtype::Int16, "i2"},   {Dtype::Int32, "i4"},
    {Dtype::Int64, "i8"}, {Dtype::Float16, "f2"}, {Dtype::Float32, "f4"}, {Dtype::Float64, "f8"},
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  Ints shape;
};

// The header is a Python dictionary with three keys, written by repr().
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header parse() {
    Header header;
    std::set<std::string> keys;
    need('{');
    while (!take('}')) {
      std::string key = quoted();
      if (!keys.insert(key).second) refuse("each key once");
      need(':');
      if (key == "descr")
        header.descr = quoted();
      else if (key == "fortran_order")
        header.fortran_order = boolean();
      else if (key == "shape")
        header.shape = tuple();
      else
        refuse("descr, fortran_order and shape");
      if (!take(',') && peek() != '}') refuse("','");
    }
    skip_space();
    if (keys.size() != 3 || at_ != text_.size()) refuse("descr, fortran_order and shape, and nothing else");
    return header;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    fail<ValueError>("[load_npy] {}: expected {} at byte {} of the header", file_, expected, at_);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char letter) {
    if (peek() != letter || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void need(char letter) {
    if (!take(letter)) refuse(std::string("'") + letter + "'");
  }
  std::string quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"') refuse("a text in quotes");
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("the end of a text");
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (bool value : {true, false}) {
      std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    refuse("True or False");
  }
  Ints tuple() {
    Ints numbers;
    need('(');
    while (!take(')')) {
      int64_t value = 0;
      size_t start = (peek(), at_);
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
          refuse("a smaller number");
      if (at_ == start) refuse("a number");
      numbers.push_back(value);
      if (!take(',') && peek() != ')') refuse("','");
    }
    return numbers;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

void turn_around(std::span<std::byte> bytes, size_t element) {
  for (size_t at = 0; at + element <= bytes.size(); at += element)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + element));
}

std::string header_of(const Tensor& dense, std::string_view what) {
  const auto* known = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                   [&](const Descr& each) { return each.dtype == dense.dtype(); });
  TENON_CHECK_TYPE(known != std::end(kDescrs), "[{}] NumPy has no {}: use safetensors, or convert it", what,
                   name(dense.dtype()));
  std::string shape;
  for (int64_t size : dense.sizes()) shape += fmt::format("{}, ", size);
  if (dense.dim() > 1) shape.resize(shape.size() - 2);
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 dense.element_size() == 1 ? '|' : '<', known->name, shape);
  size_t whole = (10 + text.size() + 1 + 63) / 64 * 64;
  text.resize(whole - 11, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::span<const std::byte> bytes_of(const Tensor& dense) {
  return {static_cast<const std::byte*>(dense.raw_data()),
          static_cast<size_t>(int64_t(dense.numel()) * dense.element_size())};
}

Tensor dense_of(const Tensor& tensor, std::string_view what, std::string_view name) {
  TENON_CHECK_VALUE(tensor.defined(), "[{}] tensor '{}' is undefined", what, name);
  return contiguous(detach(tensor));
}

}  // namespace

Tensor read_npy(const Bytes& bytes) {
  auto expect = [&](bool holds, std::string_view what) {
    TENON_CHECK_VALUE(holds, "[load_npy] {}: expected {}", bytes.name, what);
  };
  expect(bytes.size() >= 10 && std::memcmp(bytes.span.data(), kMagic.data(), kMagic.size()) == 0, "a .npy file");
  auto version = static_cast<int>(bytes.span[6]);
  expect(version >= 1 && version <= 3, "version 1, 2 or 3 of the format");
  size_t start = version == 1 ? 10 : 12;
  expect(bytes.size() >= start, "a header");
  size_t length = version == 1 ? little<uint16_t>(bytes.span, 8) : little<uint32_t>(bytes.span, 8);
  expect(length <= kLongestHeader && length <= bytes.size() - start, "a header within the file");
  std::string_view text(reinterpret_cast<const char*>(bytes.span.data()) + start, length);
  Header header = HeaderParser(text, bytes.name).parse();
  std::string_view descr = header.descr;
  expect(!descr.empty(), "a dtype");
  char order = descr[0];
  if (std::string_view("<>|=").find(order) != std::string_view::npos) descr.remove_prefix(1);
  const auto* known =
      std::find_if(std::begin(kDescrs), std::end(kDescrs), [&](const Descr& each) { return each.name == descr; });
  TENON_CHECK_VALUE(known != std::end(kDescrs), "[load_npy] {}: has a dtype that we have not, '{}'", bytes.name,
                    header.descr);
  std::optional<int64_t> count = element_count(header.shape.span());
  auto element = static_cast<size_t>(size_of(known->dtype));
  Bytes data = bytes.part(start + length, bytes.size() - start - length);
  TENON_CHECK_VALUE(count && static_cast<size_t>(*count) * element == data.size(),
                    "[load_npy] {}: expected {} bytes for the shape ({}), got {}", bytes.name,
                    count ? static_cast<size_t>(*count) * element : 0, fmt::join(header.shape, ", "), data.size());
  Ints strides = core::contiguous_strides(header.shape.span());
  if (header.fortran_order) {
    Ints turned(header.shape.span());
    std::reverse(turned.begin(), turned.end());
    strides = core::contiguous_strides(turned.span());
    std::reverse(strides.begin(), strides.end());
  }
  if (order == '>' && element > 1) {
    data = copy_bytes(data.span, bytes.name);
    turn_around(data.span, element);
  }
  return tensor_on(data, known->dtype, header.shape, strides);
}

Tensor load_npy(const std::filesystem::path& path) { return read_npy(map_file(path, "load_npy")); }

void save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  Tensor dense = dense_of(tensor, "save_npy", path.string());
  AtomicFile file(path, "save_npy");
  file.write(header_of(dense, "save_npy"));
  file.write(bytes_of(dense));
  file.commit();
}

NamedTensors read_npz(const Bytes& bytes) {
  Zip zip(bytes, "load_npz");
  NamedTensors tensors;
  for (const Zip::Entry& entry : zip.entries()) {
    std::string name = entry.name;
    TENON_CHECK_VALUE(name.ends_with(".npy"), "[load_npz] {}: expected arrays alone, got '{}'", bytes.name, name);
    name.resize(name.size() - 4);
    tensors.emplace_back(std::move(name), read_npy(zip.read(entry, true)));
  }
  return tensors;
}

NamedTensors load_npz(const std::filesystem::path& path) { return read_npz(map_file(path, "load_npz")); }

void save_npz(const std::filesystem::path& path, const NamedTensors& tensors) {
  AtomicFile file(path, "save_npz");
  ZipWriter zip(file);
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    TENON_CHECK_VALUE(names.insert(name).second, "[save_npz] expected names that differ, got '{}' twice", name);
    Tensor dense = dense_of(tensor, "save_npz", name);
    std::string header = header_of(dense, "save_npz");
    zip.add(name + ".npy", std::as_bytes(std::span(header.data(), header.size())), bytes_of(dense));
  }
  zip.finish();
  file.commit();
}

}  // namespace tenon::io
