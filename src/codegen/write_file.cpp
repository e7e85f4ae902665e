#include "write_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tenon::codegen {

bool write_file(const std::string& path, std::string_view content, std::string* problem) {
  static std::atomic<int> number{0};
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), number++);
  int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool good = file >= 0;
  for (size_t at = 0; good && at < content.size();) {
    ssize_t written = write(file, content.data() + at, content.size() - at);
    if (written < 0 && errno == EINTR) continue;
    good = written > 0;
    if (good) at += static_cast<size_t>(written);
  }
  if (!good) *problem = std::strerror(errno);
  if (file >= 0 && close(file) != 0 && good) {
    good = false;
    *problem = std::strerror(errno);
  }
  if (good && std::rename(temporary.c_str(), path.c_str()) != 0) {
    good = false;
    *problem = std::strerror(errno);
  }
  if (!good && file >= 0) unlink(temporary.c_str());
  return good;
}

}  // namespace tenon::codegen
