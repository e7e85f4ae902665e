#include <tenon/codegen/object_cache.h>

#include "bounds.h"
#include "support/at_fork.h"
#include "support/out_of_memory.h"
#include "trim_cache.h"
#include "write_file.h"

#include <tenon/support/hash.h>
#include <tenon/support/log.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

namespace tenon::codegen {
namespace {

namespace fs = std::filesystem;

// An entry: magic, length of the version, of the key and of the object, checksum of the object, then the three.
constexpr char kMagic[8] = {'t', 'e', 'n', 'o', 'n', 'o', 'b', 'j'};
struct Header {
  char magic[8];
  uint64_t version_bytes, key_bytes, object_bytes;
  uint64_t checksum_high, checksum_low;
};

int64_t wanted_limit() {
  constexpr int64_t kDefault = int64_t{1} << 30;
  const char* given = std::getenv("TENON_CACHE_BYTES");
  if (!given || !*given) return kDefault;
  char* end = nullptr;
  const long long bytes = std::strtoll(given, &end, 10);
  if (*end == '\0' && bytes > 0) return bytes;
  warn_once("object cache limit",
            fmt::format("TENON_CACHE_BYTES is '{}', not a number of bytes: {} is taken", given, kDefault));
  return kDefault;
}

struct State {
  support::ForkSafe<std::mutex> mutex;
  bool resolved = false;
  std::string folder;  // "": none
  int64_t limit = wanted_limit();
};
State& state() {
  static State* made = new State;
  return *made;
}

std::string wanted_folder() {
  if (const char* given = std::getenv("TENON_CACHE")) return given;
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base && *base) return (fs::path(base) / "tenon").string();
  if (const char* home = std::getenv("HOME"); home && *home) return (fs::path(home) / ".cache" / "tenon").string();
  return "";
}

// The folder if it is there, or can be made, and belongs to this user.
std::string usable(const std::string& path) {
  if (path.empty()) return "";
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    warn_once("object cache folder",
              fmt::format("the object cache {} cannot be made ({}): going on without it", path, std::strerror(errno)));
    return "";
  }
  struct stat about;
  if (stat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) {
    warn_once("object cache folder", fmt::format("the object cache {} is not a folder: going on without it", path));
    return "";
  }
  if (about.st_uid != geteuid()) {
    warn_once("object cache owner",
              fmt::format("the object cache {} belongs to another user: going on without it", path));
    return "";
  }
  return path;
}

// More than any kernel comes to.
constexpr off_t kLargestEntry = off_t{1} << 30;

// What lies at a path, or why it is no entry: a pipe would keep us waiting, and a device never ends. Nothing and no
// reason if nothing is there.
std::optional<std::string> read_entry(const std::string& path, const char** problem) {
  *problem = nullptr;
  // Without waiting for somebody at the other end; of a file it changes nothing.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) {
    if (errno != ENOENT) *problem = std::strerror(errno);
    return std::nullopt;
  }
  // Also where there is no memory for its content.
  struct Closes {
    int file;
    ~Closes() { close(file); }
  } closes{file};
  std::optional<std::string> content;
  struct stat about;
  if (fstat(file, &about) != 0)
    *problem = std::strerror(errno);
  else if (!S_ISREG(about.st_mode))
    *problem = "not a file";
  else if (about.st_size > kLargestEntry)
    *problem = "too large for an entry";
  else
    content.emplace(static_cast<size_t>(about.st_size), '\0');
  for (size_t at = 0; content && at < content->size();) {
    const ssize_t count = read(file, content->data() + at, content->size() - at);
    if (count < 0 && errno == EINTR) continue;
    // One that is cut short meanwhile is judged by what there is of it.
    if (count <= 0) content->resize(at);
    if (count > 0) at += static_cast<size_t>(count);
  }
  return content;
}

// The object inside an entry, or why there is none.
std::optional<std::string> unpack(const std::string& entry, const std::string& key, const char** problem) {
  Header header;
  const std::string_view version = kVersion;
  *problem = "truncated";
  if (entry.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof(header));
  *problem = "not an entry of this cache";
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return std::nullopt;
  *problem = "of another version or kernel";
  if (header.version_bytes != version.size() || header.key_bytes != key.size()) return std::nullopt;
  const size_t prefix = sizeof(header) + version.size() + key.size();
  *problem = "truncated";
  if (entry.size() < prefix || entry.size() - prefix != header.object_bytes) return std::nullopt;
  *problem = "of another version or kernel";
  if (entry.compare(sizeof(header), version.size(), version) != 0) return std::nullopt;
  if (entry.compare(sizeof(header) + version.size(), key.size(), key) != 0) return std::nullopt;
  std::string object = entry.substr(prefix);
  const Fingerprint sum = fingerprint(object);
  *problem = "altered";
  if (sum.high != header.checksum_high || sum.low != header.checksum_low) return std::nullopt;
  return object;
}

}  // namespace

std::string cache_folder() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.resolved) {
    s.folder = usable(wanted_folder());
    s.resolved = true;
  }
  return s.folder;
}

void set_cache_folder(const std::string& path) try {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.folder = usable(path);
  s.resolved = true;
} catch (...) {
  support::rethrow_named("set_cache_folder");
}

void set_cache_limit(int64_t bytes) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.limit = bytes;
}

std::string entry_path(const std::string& key) {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : folder + "/" + fingerprint(key).hex() + ".tenon";
}

std::optional<std::string> load_object(const std::string& key) try {
  const std::string path = entry_path(key);
  if (path.empty()) return std::nullopt;
  const char* problem = nullptr;
  const std::optional<std::string> entry = read_entry(path, &problem);
  if (!entry && !problem) {
    TENON_LOG(Cache, "miss {}", path);
    return std::nullopt;
  }
  std::optional<std::string> object = entry ? unpack(*entry, key, &problem) : std::nullopt;
  if (object) {
    TENON_LOG(Cache, "hit {}", path);
    // The time of its last use; a folder that cannot be written keeps what it has.
    (void)utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  } else {
    TENON_LOG(Cache, "rejected {}: {}", path, problem);
    warn_once("object cache entry", fmt::format("the object cache entry {} is {}: it is made again", path, problem));
  }
  return object;
} catch (...) {
  support::rethrow_named("load_object");
}

void store_object(const std::string& key, const std::string& object) try {
  const std::string path = entry_path(key);
  if (path.empty()) return;
  const std::string_view version = kVersion;
  const Fingerprint sum = fingerprint(object);
  Header header{{}, version.size(), key.size(), object.size(), sum.high, sum.low};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::string entry(reinterpret_cast<const char*>(&header), sizeof(header));
  entry += version;
  entry += key;
  entry += object;
  std::string problem;
  if (!write_file(path, entry, &problem)) {
    warn_once("object cache write",
              fmt::format("cannot write to the object cache {} ({}): going on without it", cache_folder(), problem));
    return;
  }
  // Looking through the folder takes long, so that it is done once for every 256th of the limit that is written, by
  // whichever process: an entry's turn comes by its fingerprint.
  int64_t limit;
  {
    std::lock_guard lock(state().mutex);
    limit = state().limit;
  }
  if (sum.low % std::max<uint64_t>(1, static_cast<uint64_t>(limit) / 256) < entry.size())
    trim_cache(cache_folder(), limit);
} catch (...) {
  support::rethrow_named("store_object");  // folders are read by the standard library
}

}  // namespace tenon::codegen
