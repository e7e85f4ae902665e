#include <tenon/io/safetensors.h>

#include "io/json.h"
#include "io/readers.h"
#include "io/safetensors_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::io {
namespace {

constexpr size_t kLongestHeader = 100'000'000;  // as other readers have it
constexpr size_t kAlignment = 8;                // of the first tensor in the file

struct DtypeName {
  Dtype dtype;
  std::string_view name;
};
constexpr DtypeName kDtypeNames[] = {
    {Dtype::Bool, "BOOL"},
    {Dtype::UInt8, "U8"},
    {Dtype::Int8, "I8"},
    {Dtype::Int16, "I16"},
    {Dtype::Int32, "I32"},
    {Dtype::Int64, "I64"},
    {Dtype::Float16, "F16"},
    {Dtype::BFloat16, "BF16"},
    {Dtype::Float32, "F32"},
    {Dtype::Float64, "F64"},
    {Dtype::Float8E4M3FN, "F8_E4M3"},
    {Dtype::Float8E5M2, "F8_E5M2"},
};

struct Entry {
  std::string name;
  Dtype dtype = Dtype::Float32;
  Ints sizes;
  size_t begin = 0, end = 0;
};

const Json* field(const Json::Object& object, std::string_view name) {
  for (const auto& [each, value] : object)
    if (each == name) return &value;
  return nullptr;
}

Entry read_entry(const std::string& name, const Json& value, size_t available, const std::string& file) {
  auto expect = [&](bool holds, std::string_view what) {
    TENON_CHECK_VALUE(holds, "[load_safetensors] {}: expected {} of tensor '{}'", file, what, name);
  };
  const Json::Object* object = value.object();
  expect(object && object->size() == 3, "dtype, shape and data_offsets");
  const Json *dtype = field(*object, "dtype"), *shape = field(*object, "shape"),
             *offsets = field(*object, "data_offsets");
  expect(dtype && dtype->text() && shape && shape->list() && offsets && offsets->list(),
         "dtype, shape and data_offsets");
  Entry entry;
  entry.name = name;
  const auto* known = std::find_if(std::begin(kDtypeNames), std::end(kDtypeNames),
                                   [&](const DtypeName& each) { return each.name == *dtype->text(); });
  TENON_CHECK_VALUE(known != std::end(kDtypeNames),
                    "[load_safetensors] {}: tensor '{}' has a dtype that we have not, {}", file, name, *dtype->text());
  entry.dtype = known->dtype;
  for (const Json& size : *shape->list()) {
    expect(size.number() && *size.number() >= 0, "sizes of at least 0");
    entry.sizes.push_back(*size.number());
  }
  std::optional<int64_t> count = element_count(entry.sizes.span());
  expect(count.has_value(), "sizes that fit into memory");
  expect(offsets->list()->size() == 2, "two data_offsets");
  const int64_t *begin = offsets->list()->at(0).number(), *end = offsets->list()->at(1).number();
  expect(begin && end && *begin >= 0 && *end >= *begin && static_cast<size_t>(*end) <= available,
         "data_offsets within the file");
  expect(*end - *begin == *count * size_of(entry.dtype), "data_offsets that fit dtype and shape");
  entry.begin = static_cast<size_t>(*begin);
  entry.end = static_cast<size_t>(*end);
  return entry;
}

Json read_header(const Bytes& bytes, size_t length) {
  std::string_view text(reinterpret_cast<const char*>(bytes.span.data()) + 8, length);
  TENON_CHECK_VALUE(!text.empty() && text[0] == '{', "[load_safetensors] {}: expected a header that begins with '{{'",
                    bytes.name);
  try {
    return parse_json(text);
  } catch (const ValueError& error) {
    fail<ValueError>("[load_safetensors] {}: the header is no JSON, {}", bytes.name, error.what());
  }
}

Metadata read_metadata(const Json& value, const std::string& file) {
  Metadata metadata;
  TENON_CHECK_VALUE(value.object(), "[load_safetensors] {}: expected texts by name in __metadata__", file);
  for (const auto& [key, text] : *value.object()) {
    TENON_CHECK_VALUE(text.text(), "[load_safetensors] {}: expected a text for '{}' of __metadata__", file, key);
    metadata.emplace_back(key, *text.text());
  }
  return metadata;
}

std::string_view name_of(Dtype dtype) {
  return std::find_if(std::begin(kDtypeNames), std::end(kDtypeNames),
                      [&](const DtypeName& each) { return each.dtype == dtype; })
      ->name;
}

}  // namespace

std::span<const std::byte> bytes_of(const Tensor& dense) {
  return {static_cast<const std::byte*>(dense.raw_data()),
          static_cast<size_t>(int64_t(dense.numel()) * dense.element_size())};
}

std::string safetensors_header(const NamedTensors& dense, const Metadata& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (size_t at = 0; at < metadata.size(); ++at)
      header += (at > 0 ? "," : "") + json_text(metadata[at].first) + ":" + json_text(metadata[at].second);
    header += "}";
  }
  size_t offset = 0;
  for (const auto& [name, tensor] : dense) {
    size_t end = offset + bytes_of(tensor).size();
    header +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", header.size() > 1 ? "," : "",
                    json_text(name), name_of(tensor.dtype()), fmt::join(tensor.sizes(), ","), offset, end);
    offset = end;
  }
  header += "}";
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string length(8, '\0');
  for (size_t byte = 0; byte < 8; ++byte) length[byte] = static_cast<char>(header.size() >> (8 * byte));
  return length + header;
}

Safetensors read_safetensors(const Bytes& bytes) {
  TENON_CHECK_VALUE(bytes.size() >= 8, "[load_safetensors] {}: expected at least 8 bytes, got {}", bytes.name,
                    bytes.size());
  auto length = little<uint64_t>(bytes.span, 0);
  TENON_CHECK_VALUE(length <= kLongestHeader && length <= bytes.size() - 8,
                    "[load_safetensors] {}: expected a header within the file's {} bytes, got one of {}", bytes.name,
                    bytes.size(), length);
  Json header = read_header(bytes, length);
  TENON_CHECK_VALUE(header.object(), "[load_safetensors] {}: expected an object in the header", bytes.name);
  Bytes data = bytes.part(8 + length, bytes.size() - 8 - length);
  Safetensors file;
  std::vector<Entry> entries;
  for (const auto& [name, value] : *header.object()) {
    if (name == "__metadata__")
      file.metadata = read_metadata(value, bytes.name);
    else
      entries.push_back(read_entry(name, value, data.size(), bytes.name));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  // Every byte belongs to one tensor: nothing overlaps, and nothing hides between them.
  size_t at = 0;
  for (const Entry& entry : entries) {
    TENON_CHECK_VALUE(entry.begin == at, "[load_safetensors] {}: expected tensor '{}' at byte {} of the data, got {}",
                      bytes.name, entry.name, at, entry.begin);
    at = entry.end;
  }
  TENON_CHECK_VALUE(at == data.size(), "[load_safetensors] {}: expected {} bytes of data, got {}", bytes.name, at,
                    data.size());
  for (const Entry& entry : entries) {
    Ints strides = core::contiguous_strides(entry.sizes.span());
    file.tensors.emplace_back(
        entry.name, tensor_on(data.part(entry.begin, entry.end - entry.begin), entry.dtype, entry.sizes, strides));
  }
  return file;
}

Safetensors load_safetensors(const std::filesystem::path& path) {
  return read_safetensors(map_file(path, "load_safetensors"));
}

}  // namespace tenon::io
