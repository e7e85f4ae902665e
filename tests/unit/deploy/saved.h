// Functions that went through a file.
#pragma once

#include <tenon/package/load_compiled.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../capture/testing.h"
#include "../io/files.h"

namespace tenon::testing {

// What was saved, loaded as a function of this signature. (The file may go: its pages stay.)
template <typename Signature, typename F>
Loaded<Signature> through_file(const Compiled<F>& compiled) {
  TemporaryFile file(".tenon");
  save_compiled(compiled, file.path());
  return load_compiled<Signature>(file.path());
}

// Runs what is given; nothing may be captured or compiled.
template <typename Run>
auto without_compiling(Run&& run) {
  auto compiled = [] {
    return counter("compiles").value() + counter("kernels_generated").value() + counter("kernels_from_cache").value();
  };
  int64_t before = compiled();
  auto result = run();
  EXPECT_EQ(compiled(), before) << "something was compiled";
  return result;
}

inline void put(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace tenon::testing
