// A file that appears when it is complete: written under another name in the same folder, then renamed.
#pragma once

#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>

namespace tenon::io {

class AtomicFile {
 public:
  // `what` is for messages.
  AtomicFile(const std::filesystem::path& path, std::string_view what);
  ~AtomicFile();  // removes what was not committed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  size_t written() const { return written_; }
  // On the disk, and under its name.
  void commit();

 private:
  [[noreturn]] void fail_writing() const;

  std::filesystem::path path_, unfinished_;
  std::string_view what_;
  std::FILE* file_ = nullptr;
  size_t written_ = 0;
};

}  // namespace tenon::io
