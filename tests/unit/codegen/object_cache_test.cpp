// The cache of compiled kernels: found again, and never trusted.
#include <tenon/codegen/compile.h>
#include <tenon/codegen/object_cache.h>
#include <tenon/loop/builder.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon::codegen {
namespace {

namespace fs = std::filesystem;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

loop::Kernel scale_kernel(double factor) {
  loop::Builder b("scale");
  int x = b.buffer("x", kFloat32, loop::BufferRole::In), out = b.buffer("out", kFloat32, loop::BufferRole::Out);
  sym::Expr n = b.integer("n", {0, 1000});
  b.loop(n, {.parallel = true, .vector = true}, [&](sym::Expr i) { b.store(out, i, b.load(x, i) * factor); });
  return b.finish();
}

float run_once(const CompiledKernelRef& kernel) {
  float x[3] = {1, 2, 3}, out[3] = {};
  void* buffers[] = {x, out};
  int64_t n = 3, failed = -1;
  kernel->entry(buffers, &n, nullptr, 0, n, &failed);
  return out[2];
}

class ObjectCache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("tenon_cache_test_" + std::to_string(getpid()))).string();
    fs::remove_all(folder_);
    set_cache_folder(folder_);
    forget_loaded_kernels();
  }
  void TearDown() override {
    chmod(folder_.c_str(), 0700);
    set_cache_folder("");
    set_cache_limit(int64_t{1} << 30);
    fs::remove_all(folder_);
  }
  std::string key(const CompiledKernelRef& kernel) { return target_description() + "\n" + kernel->text; }

  std::string folder_;
};

TEST_F(ObjectCache, kernels_that_nobody_holds_are_unloaded) {
  int64_t before = loaded_kernel_count();
  CompiledKernelRef held = compile(scale_kernel(2));
  for (int factor = 3; factor < 8; ++factor) compile(scale_kernel(factor));
  EXPECT_EQ(loaded_kernel_count(), before + 6) << "the latest stay loaded";
  EXPECT_EQ(compile(scale_kernel(2)), held);
  forget_loaded_kernels();
  EXPECT_EQ(loaded_kernel_count(), before + 1);
  EXPECT_EQ(run_once(held), 6);
  held.reset();
  EXPECT_EQ(loaded_kernel_count(), before);
}

TEST_F(ObjectCache, FolderIsPrivateAndEntriesComeBack) {
  struct stat about;
  ASSERT_EQ(stat(folder_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0700u);
  EXPECT_EQ(load_object("a key"), std::nullopt);
  store_object("a key", "an object");
  EXPECT_EQ(load_object("a key"), "an object");
  EXPECT_EQ(load_object("another key"), std::nullopt);
  store_object("a key", std::string(100000, 'x'));
  EXPECT_EQ(load_object("a key"), std::string(100000, 'x'));
  // No temporary files stay.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(ObjectCache, WhatWasNotUsedForLongestGoes) {
  const auto now = fs::file_time_type::clock::now();
  const std::string object(10000, 'x');
  set_cache_limit(65536);
  for (int at = 0; at < 6; ++at) {
    const std::string key = "key " + std::to_string(at);
    store_object(key, object);
    fs::last_write_time(entry_path(key), now - std::chrono::hours(48 - at));
  }
  for (int at = 0; at < 6; ++at) ASSERT_TRUE(fs::exists(entry_path("key " + std::to_string(at))));
  EXPECT_EQ(load_object("key 0"), object);  // the oldest, and now in use again
  store_object("key 6", object);
  // 70 thousand bytes are too many: all goes that is oldest but for three quarters of the limit.
  EXPECT_EQ(load_object("key 0"), object);
  for (int at : {1, 2, 3}) EXPECT_EQ(load_object("key " + std::to_string(at)), std::nullopt) << at;
  for (int at : {4, 5, 6}) EXPECT_EQ(load_object("key " + std::to_string(at)), object) << at;
}

TEST_F(ObjectCache, WhatAKilledProcessLeftIsCleared) {
  const std::string left = entry_path("a key") + ".4711.0.tmp", being_written = entry_path("a key") + ".4712.0.tmp";
  for (const std::string& path : {left, being_written}) write(path, "half an ent");
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  set_cache_limit(65536);
  store_object("another key", std::string(1000, 'x'));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(being_written));
  EXPECT_EQ(load_object("another key"), std::string(1000, 'x'));
}

TEST_F(ObjectCache, KernelsAreTakenFromDiskTheSecondTime) {
  const int64_t generated = counter("kernels_generated").value(), cached = counter("kernels_from_cache").value();
  CompiledKernelRef cold = compile(scale_kernel(2));
  EXPECT_FALSE(cold->from_cache);
  EXPECT_EQ(compile(scale_kernel(2)), cold);  // in this process
  forget_loaded_kernels();
  CompiledKernelRef warm = compile(scale_kernel(2));
  EXPECT_TRUE(warm->from_cache);
  EXPECT_NE(warm, cold);
  EXPECT_EQ(run_once(cold), 6.0f);
  EXPECT_EQ(run_once(warm), 6.0f);
  EXPECT_EQ(counter("kernels_generated").value() - generated, 1);
  EXPECT_EQ(counter("kernels_from_cache").value() - cached, 1);
}

TEST_F(ObjectCache, EqualKernelsAreCompiledOnce) {
  const int64_t generated = counter("kernels_generated").value();
  std::vector<loop::Kernel> kernels;
  for (double factor : {3.0, 4.0, 3.0, 5.0, 3.0}) kernels.push_back(scale_kernel(factor));
  std::vector<CompiledKernelRef> compiled = compile_all(std::move(kernels));
  EXPECT_EQ(counter("kernels_generated").value() - generated, 3);
  EXPECT_EQ(compiled[0], compiled[2]);
  EXPECT_EQ(run_once(compiled[1]), 12.0f);
  EXPECT_EQ(run_once(compiled[4]), 9.0f);
}

TEST_F(ObjectCache, DamagedEntriesAreReplaced) {
  CompiledKernelRef cold = compile(scale_kernel(7));
  const std::string path = entry_path(key(cold)), good = read(path);
  ASSERT_FALSE(good.empty());
  std::vector<std::string> damaged = {"",
                                      "x",
                                      good.substr(0, 20),
                                      good.substr(0, good.size() / 2),
                                      good.substr(0, good.size() - 1),
                                      good + "x",
                                      std::string(good.size(), '\0')};
  std::string altered = good;
  altered[good.size() - 100] = static_cast<char>(altered[good.size() - 100] ^ 1);
  damaged.push_back(altered);
  std::string other_key = good;
  other_key[good.find("scale")] = 'S';
  damaged.push_back(other_key);
  const int64_t warnings = warning_count();
  for (size_t i = 0; i < damaged.size(); ++i) {
    write(path, damaged[i]);
    forget_loaded_kernels();
    CompiledKernelRef again = compile(scale_kernel(7));
    EXPECT_FALSE(again->from_cache) << "damage " << i;
    EXPECT_EQ(run_once(again), 21.0f);
    EXPECT_EQ(read(path).size(), good.size()) << "damage " << i;
    forget_loaded_kernels();
    EXPECT_TRUE(compile(scale_kernel(7))->from_cache) << "damage " << i;
  }
  EXPECT_LE(warning_count() - warnings, 1);
}

// What lies at an entry's path may be anything: a pipe that nobody writes to, a link to a device that never ends, a
// file of a size that no kernel has. None of it is read.
TEST_F(ObjectCache, only_files_of_a_plausible_size_are_read) {
  CompiledKernelRef cold = compile(scale_kernel(11));
  const std::string path = entry_path(key(cold));
  const std::function<void()> placed[] = {
      [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); },
      [&] { ASSERT_EQ(symlink("/dev/zero", path.c_str()), 0); },
      [&] { ASSERT_EQ(symlink("/dev/tty", path.c_str()), 0); },
      [&] { ASSERT_EQ(symlink(path.c_str(), path.c_str()), 0); },
      [&] {
        write(path, "x");
        ASSERT_EQ(truncate(path.c_str(), off_t{1} << 31), 0);
      },
  };
  for (size_t at = 0; at < std::size(placed); ++at) {
    SCOPED_TRACE(at);
    fs::remove(path);
    placed[at]();
    forget_loaded_kernels();
    CompiledKernelRef again = compile(scale_kernel(11));
    EXPECT_FALSE(again->from_cache);
    EXPECT_EQ(run_once(again), 33.0f);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path))) << "it was made again";
    forget_loaded_kernels();
    EXPECT_TRUE(compile(scale_kernel(11))->from_cache);
  }
}

TEST_F(ObjectCache, AnotherKernelsEntryIsNotUsed) {
  CompiledKernelRef first = compile(scale_kernel(8)), second = compile(scale_kernel(9));
  write(entry_path(key(first)), read(entry_path(key(second))));
  forget_loaded_kernels();
  CompiledKernelRef again = compile(scale_kernel(8));
  EXPECT_FALSE(again->from_cache);
  EXPECT_EQ(run_once(again), 24.0f);
}

TEST_F(ObjectCache, ObjectThatDoesNotLinkIsMadeAgain) {
  CompiledKernelRef cold = compile(scale_kernel(10));
  store_object(key(cold), "this is no object file");
  forget_loaded_kernels();
  EXPECT_EQ(run_once(compile(scale_kernel(10))), 30.0f);
}

TEST_F(ObjectCache, WidthsDoNotShareEntries) {
  set_isa(128);
  compile(scale_kernel(11));
  set_isa(0);
  if (isa_bits() == 128) GTEST_SKIP() << "this machine has one width only";
  forget_loaded_kernels();
  EXPECT_FALSE(compile(scale_kernel(11))->from_cache);
}

TEST_F(ObjectCache, WorksWithoutAFolder) {
  const int64_t warnings = warning_count();
  for (const std::string& path :
       {std::string("/proc/nowhere/tenon"), std::string("/dev/null/tenon"), std::string("")}) {
    set_cache_folder(path);
    EXPECT_EQ(cache_folder(), "");
    EXPECT_EQ(entry_path("key"), "");
    forget_loaded_kernels();
    EXPECT_EQ(run_once(compile(scale_kernel(12))), 36.0f);
  }
  EXPECT_LE(warning_count() - warnings, 1);
}

TEST_F(ObjectCache, WorksWithAFolderThatCannotBeWritten) {
  // A file in the entry's place as a folder: root may write anywhere else.
  const int64_t warnings = warning_count();
  CompiledKernelRef cold = compile(scale_kernel(13));
  const std::string path = entry_path(key(cold));
  fs::remove(path);
  fs::create_directories(path + "/in_the_way");
  for (int i = 0; i < 3; ++i) {
    forget_loaded_kernels();
    EXPECT_EQ(run_once(compile(scale_kernel(13))), 39.0f);
  }
  EXPECT_LE(warning_count() - warnings, 2);  // about reading, about writing
  if (geteuid() == 0) return;
  chmod(folder_.c_str(), 0500);
  forget_loaded_kernels();
  EXPECT_EQ(run_once(compile(scale_kernel(14))), 42.0f);
}

TEST_F(ObjectCache, ProcessesMayWriteTheSameEntryAtOnce) {
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    pid_t pid = fork();
    if (pid == 0) {
      bool good = true;
      for (int i = 0; i < 200 && good; ++i) {
        store_object("shared", std::string(20000, static_cast<char>('a' + child)));
        std::optional<std::string> seen = load_object("shared");
        good = seen && seen->size() == 20000 && seen->find_first_not_of((*seen)[0]) == std::string::npos;
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

}  // namespace
}  // namespace tenon::codegen
