#include "io/atomic_file.h"

#include <tenon/support/error.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace tenon::io {

AtomicFile::AtomicFile(const std::filesystem::path& path, std::string_view what) : path_(path), what_(what) {
  static std::atomic<int> count{0};
  unfinished_ = path;
  unfinished_ += fmt::format(".{}.{}.tmp", ::getpid(), count++);
  file_ = std::fopen(unfinished_.c_str(), "wxb");
  if (!file_) fail_writing();
}

AtomicFile::~AtomicFile() {
  if (!file_) return;
  std::fclose(file_);
  ::unlink(unfinished_.c_str());
}

void AtomicFile::fail_writing() const {
  fail<ValueError>("[{}] cannot write {}: {}", what_, path_.string(), std::strerror(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail_writing();
  written_ += bytes.size();
}

void AtomicFile::commit() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail_writing();
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) fail_writing();
  std::fclose(file_);
  file_ = nullptr;
}

}  // namespace tenon::io
