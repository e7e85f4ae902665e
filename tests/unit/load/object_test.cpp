// Objects are loaded as they are meant, and refused where they do not hold together.
#include "load/object.h"

#include <tenon/codegen/compile.h>
#include <tenon/load/kernel.h>
#include <tenon/loop/builder.h>

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

namespace tenon::load {
namespace {

using loop::BufferRole;
using loop::Builder;
using sym::Expr;
using ::testing::HasSubstr;

// out = fmod(x, 3): with constants, and calls of a function outside.
std::string object_of_fmod() {
  Builder b("fmod3");
  int x = b.buffer("x", kFloat64, BufferRole::In), out = b.buffer("out", kFloat64, BufferRole::Out);
  Expr n = b.integer("n", {0, 1000});
  b.loop(n, {.parallel = true, .vector = true},
         [&](Expr i) { b.store(out, i, rem(b.load(x, i), b.constant(3.0, kFloat64))); });
  return codegen::portable_object(b.finish(), 256);
}

const std::string& object() {
  static const std::string made = object_of_fmod();
  return made;
}

std::string refusal(std::string_view bytes) {
  std::string why;
  LoadedCode code = load_object_code(bytes, &why);
  EXPECT_EQ(code.entry == nullptr, !why.empty());
  return why;
}

// Of the mapping that holds an address, as the kernel says it: "r-xp".
std::string rights_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) == 3 &&
        begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end)
      return rights;
  }
  return "";
}

TEST(LoadObject, it_computes) {
  std::string why;
  LoadedCode code = load_object_code(object(), &why);
  ASSERT_TRUE(code.entry) << why;
  std::vector<double> x, out(1000);
  for (int i = 0; i < 1000; ++i) x.push_back(i * 0.37 - 100);
  for (int64_t n : {1, 7, 1000}) {
    void* buffers[] = {x.data(), out.data()};
    int64_t failed = -1;
    code.entry(buffers, &n, nullptr, 0, n, &failed);
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) ASSERT_EQ(out[i], std::fmod(x[i], 3)) << i;
  }
}

TEST(LoadObject, code_is_never_written_to_and_goes_with_its_owner) {
  std::string why;
  const int64_t before = loaded_object_count();
  LoadedCode code = load_object_code(object(), &why);
  ASSERT_TRUE(code.entry) << why;
  EXPECT_EQ(rights_of(reinterpret_cast<const void*>(code.entry)), "r-xp");
  EXPECT_EQ(loaded_object_count(), before + 1);
  code = {};
  EXPECT_EQ(loaded_object_count(), before);
}

TEST(LoadObject, what_is_no_object) {
  EXPECT_THAT(refusal(""), HasSubstr("it ends before byte"));
  EXPECT_THAT(refusal(std::string(1000, 'x')), HasSubstr("it is no object file for x86-64"));
  std::string other = object();
  other[offsetof(Elf64_Ehdr, e_machine)] = EM_386;
  EXPECT_THAT(refusal(other), HasSubstr("it is no object file for x86-64"));
}

TEST(LoadObject, a_function_that_nobody_provides_is_named) {
  std::string other = object();
  const std::string name = "tenon_lanes_fmod_f64";
  size_t at = other.find(name);
  ASSERT_NE(at, std::string::npos);
  other.replace(at, name.size(), "tenon_lanes_food_f64");
  EXPECT_EQ(refusal(other), "it calls tenon_lanes_food_f64, which nobody provides");
}

TEST(LoadObject, without_the_function) {
  std::string other = object();
  for (size_t at; (at = other.find(kEntryName)) != std::string::npos;) other[at] = 'T';
  EXPECT_EQ(refusal(other), "it has no function tenon_kernel");
}

TEST(LoadObject, cut_or_changed_it_is_refused_or_does_no_harm) {
  for (size_t length = 0; length < object().size(); length += 13) refusal(std::string_view(object()).substr(0, length));
  std::mt19937_64 random(20261122);
  int refused = 0;
  for (int variant = 0; variant < 5'000; ++variant) {
    std::string other = object();
    for (uint64_t count = 1 + random() % 4; count > 0; --count)
      other[random() % other.size()] = static_cast<char>(random());
    refused += !refusal(other).empty();
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace tenon::load
