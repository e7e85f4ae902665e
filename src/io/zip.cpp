#include "io/zip.h"

#include "io/inflate.h"

namespace tenon::io {
namespace {

constexpr uint32_t kEntry = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr size_t kEntrySize = 30, kDirectoryEntrySize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr uint64_t kLongestComment = 0xFFFF;
constexpr uint64_t kBestRatio = 1032;  // no DEFLATE stream is more than so much longer than its compressed form

template <typename T>
void put(std::string& text, T value) {
  for (size_t byte = 0; byte < sizeof(T); ++byte)
    text += static_cast<char>(static_cast<uint64_t>(value) >> (8 * byte) & 0xFF);
}

}  // namespace

void Zip::refuse(std::string_view why) const { fail<ValueError>("[{}] {}: {}", what_, bytes_.name, why); }

std::span<const std::byte> Zip::need(uint64_t at, uint64_t count) const {
  if (at > bytes_.size() || count > bytes_.size() - at) refuse("the archive is cut short");
  return bytes_.span.subspan(at, count);
}

Zip::Zip(Bytes bytes, std::string_view what) : bytes_(std::move(bytes)), what_(what) {
  if (bytes_.size() < kEndSize) refuse("this is no zip archive");
  size_t last = bytes_.size() - kEndSize, first = last > kLongestComment ? last - kLongestComment : 0;
  std::optional<size_t> end;
  for (size_t at = last + 1; at-- > first && !end;)
    if (little<uint32_t>(bytes_.span, at) == kEnd &&
        at + kEndSize + little<uint16_t>(bytes_.span, at + 20) == bytes_.size())
      end = at;
  if (!end) refuse("this is no zip archive, or one that is cut short");
  uint64_t count = little<uint16_t>(bytes_.span, *end + 10), size = little<uint32_t>(bytes_.span, *end + 12),
           at = little<uint32_t>(bytes_.span, *end + 16);
  if (count == 0xFFFF || size == 0xFFFFFFFF || at == 0xFFFFFFFF) {
    if (*end < kLocator64Size || little<uint32_t>(bytes_.span, *end - kLocator64Size) != kLocator64)
      refuse("the archive is damaged: it has no large directory");
    auto where = little<uint64_t>(bytes_.span, *end - kLocator64Size + 8);
    std::span<const std::byte> record = need(where, kEnd64Size);
    if (little<uint32_t>(record, 0) != kEnd64) refuse("the archive is damaged: it has no large directory");
    count = little<uint64_t>(record, 32);
    size = little<uint64_t>(record, 40);
    at = little<uint64_t>(record, 48);
  }
  read_directory(at, size, count);
}

void Zip::read_directory(uint64_t at, uint64_t size, uint64_t count) {
  std::span<const std::byte> directory = need(at, size);
  if (count > size / kDirectoryEntrySize) refuse("the archive is damaged: its directory is too short");
  for (uint64_t each = 0; each < count; ++each) {
    if (directory.size() < kDirectoryEntrySize || little<uint32_t>(directory, 0) != kDirectoryEntry)
      refuse("the archive is damaged: its directory is");
    Entry entry;
    if (little<uint16_t>(directory, 8) & 1) refuse("the archive is encrypted");
    entry.method = little<uint16_t>(directory, 10);
    entry.crc = little<uint32_t>(directory, 16);
    entry.compressed = little<uint32_t>(directory, 20);
    entry.size = little<uint32_t>(directory, 24);
    entry.header = little<uint32_t>(directory, 42);
    uint64_t name = little<uint16_t>(directory, 28), extra = little<uint16_t>(directory, 30),
             comment = little<uint16_t>(directory, 32);
    if (directory.size() - kDirectoryEntrySize < name + extra + comment)
      refuse("the archive is damaged: its directory is");
    entry.name.assign(reinterpret_cast<const char*>(directory.data()) + kDirectoryEntrySize, name);
    // Numbers beyond 32 bits stand in an extra field, in this order.
    std::span<const std::byte> more = directory.subspan(kDirectoryEntrySize + name, extra);
    while (more.size() >= 4) {
      uint16_t kind = little<uint16_t>(more, 0);
      uint64_t length = little<uint16_t>(more, 2);
      if (length > more.size() - 4) refuse("the archive is damaged: an extra field is");
      std::span<const std::byte> field = more.subspan(4, length);
      if (kind == 1)
        for (uint64_t* number : {&entry.size, &entry.compressed, &entry.header}) {
          if (*number != 0xFFFFFFFF) continue;
          if (field.size() < 8) refuse("the archive is damaged: an extra field is");
          *number = little<uint64_t>(field, 0);
          field = field.subspan(8);
        }
      more = more.subspan(4 + length);
    }
    if (!places_.emplace(entry.name, entries_.size()).second)
      refuse(fmt::format("'{}' is in the archive twice", entry.name));
    entries_.push_back(std::move(entry));
    directory = directory.subspan(kDirectoryEntrySize + name + extra + comment);
  }
}

const Zip::Entry* Zip::find(const std::string& name) const {
  auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

Bytes Zip::read(const Entry& entry, bool checked) const {
  std::span<const std::byte> header = need(entry.header, kEntrySize);
  if (little<uint32_t>(header, 0) != kEntry) refuse(fmt::format("the entry '{}' is damaged", entry.name));
  uint64_t start = entry.header + kEntrySize + little<uint16_t>(header, 26) + little<uint16_t>(header, 28);
  need(start, entry.compressed);
  Bytes content = bytes_.part(start, entry.compressed);
  content.name = fmt::format("{} ({})", bytes_.name, entry.name);
  if (entry.method == 8) {
    if (entry.size / kBestRatio > entry.compressed) refuse(fmt::format("'{}' is damaged: its size is", entry.name));
    try {
      std::vector<std::byte> plain = inflate(content.span, entry.size);
      content = copy_bytes(plain, content.name);
    } catch (const ValueError& error) {
      refuse(fmt::format("'{}': {}", entry.name, error.what()));
    }
  } else if (entry.method != 0 || entry.compressed != entry.size) {
    refuse(fmt::format("'{}' is compressed by a method that we have not, {}", entry.name, entry.method));
  }
  if (checked && crc32(content.span) != entry.crc) refuse(fmt::format("'{}' is damaged: its checksum is", entry.name));
  return content;
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> content) {
  size_t size = head.size() + content.size(), start = file_.written();
  uint32_t crc = crc32(content, crc32(head));
  TENON_CHECK_VALUE(start + size < 0xFFFF0000u && count_ < 0xFFFE,
                    "[save_npz] expected less than 4 GiB and 65,000 tensors: use safetensors for more");
  // An extra field of a kind that readers skip brings the content to its place.
  size_t pad = (64 - (start + kEntrySize + name.size() + 4) % 64) % 64;
  auto shared = [&](std::string& text, uint16_t extra) {
    put<uint16_t>(text, 20);      // version of the format
    put<uint16_t>(text, 0x0800);  // names are UTF-8
    put<uint16_t>(text, 0);
    put<uint16_t>(text, 0);       // time
    put<uint16_t>(text, 0x0021);  // date: the first of January 1980
    put<uint32_t>(text, crc);
    put<uint32_t>(text, static_cast<uint32_t>(size));
    put<uint32_t>(text, static_cast<uint32_t>(size));
    put<uint16_t>(text, static_cast<uint16_t>(name.size()));
    put<uint16_t>(text, extra);
  };
  std::string local;
  put<uint32_t>(local, kEntry);
  shared(local, static_cast<uint16_t>(4 + pad));
  local += name;
  put<uint16_t>(local, 0xFFFF);
  put<uint16_t>(local, static_cast<uint16_t>(pad));
  local.append(pad, '\0');
  file_.write(local);
  file_.write(head);
  file_.write(content);
  put<uint32_t>(directory_, kDirectoryEntry);
  put<uint16_t>(directory_, 20);
  shared(directory_, 0);
  put<uint16_t>(directory_, 0);  // comment
  put<uint16_t>(directory_, 0);  // disk
  put<uint16_t>(directory_, 0);
  put<uint32_t>(directory_, 0);
  put<uint32_t>(directory_, static_cast<uint32_t>(start));
  directory_ += name;
  ++count_;
}

void ZipWriter::finish() {
  size_t start = file_.written();
  file_.write(directory_);
  std::string end;
  put<uint32_t>(end, kEnd);
  put<uint32_t>(end, 0);
  put<uint16_t>(end, count_);
  put<uint16_t>(end, count_);
  put<uint32_t>(end, static_cast<uint32_t>(directory_.size()));
  put<uint32_t>(end, static_cast<uint32_t>(start));
  put<uint16_t>(end, 0);
  file_.write(end);
}

}  // namespace tenon::io
