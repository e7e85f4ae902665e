// A function as a file: what it is (JSON), its kernels as objects for two levels of x86-64, and its tensors
// (safetensors). Each section has a hash, and nothing is believed before all of them were compared.
#pragma once

#include "function.h"

#include <filesystem>

namespace tenon::package {

// Levels of x86-64 by the width of their vectors.
constexpr int kLevels[] = {256, 512};  // v3, v4

// Code of kernels, by kernel of the file, for one level.
struct Objects {
  int bits = 0;
  std::vector<std::string> code;
};

// A kernel that the plans of a function launch, and its place in `Objects::code`.
struct NumberedKernels {
  std::vector<load::KernelRef> kernels;
  std::vector<std::vector<size_t>> of_plan;  // by plan, those inside of others too, by kernel
};
NumberedKernels number_kernels(const Function& function);

// The file appears when it is complete.
void write(const std::filesystem::path& path, const Function& function, const NumberedKernels& kernels,
           std::span<const Objects> objects);

// With kernels for this machine; the tensors look into the file's pages. A ValueError that names the file and the
// fault if something is wrong with it.
Function read(const std::filesystem::path& path);
// The same from memory that stays as it is. What the function writes to lies in a copy.
Function read(std::span<const std::byte> bytes, const std::string& name);

// The hash of a section. (Against damage, not against malice: who can change a file can change its hashes, and its code
// is run.)
int64_t hash_of(std::span<const std::byte> bytes);

// What is in a file, in words, for people.
std::string describe(const std::filesystem::path& path);

}  // namespace tenon::package
