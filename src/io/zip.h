// Zip archives: the files in one, and how one is written.
#pragma once

#include "io/atomic_file.h"
#include "io/bytes.h"

#include <unordered_map>
#include <vector>

namespace tenon::io {

class Zip {
 public:
  struct Entry {
    std::string name;
    uint16_t method = 0;  // 0: as it is, 8: DEFLATE
    uint32_t crc = 0;
    uint64_t compressed = 0, size = 0;
    uint64_t header = 0;  // where its own header begins
  };

  // `what` is for messages.
  Zip(Bytes bytes, std::string_view what);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& name) const;
  // Its content: a part of the archive's bytes, or decompressed; `checked` compares the checksum too.
  Bytes read(const Entry& entry, bool checked) const;

 private:
  [[noreturn]] void refuse(std::string_view why) const;
  std::span<const std::byte> need(uint64_t at, uint64_t count) const;
  void read_directory(uint64_t at, uint64_t size, uint64_t count);

  Bytes bytes_;
  std::string_view what_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> places_;  // in entries_, by name
};

// Writes entries as they are. Content begins at a multiple of 64.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file) : file_(file) {}
  void add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> content);
  void finish();

 private:
  AtomicFile& file_;
  std::string directory_;
  uint16_t count_ = 0;
};

}  // namespace tenon::io
