#include <tenon/io/numpy.h>
#include <tenon/io/pytorch.h>
#include <tenon/io/safetensors.h>

#include "support/out_of_memory.h"

namespace tenon::io {

NamedTensors load(const std::filesystem::path& path) try {
  std::string extension = path.extension().string();
  if (extension == ".safetensors") return load_safetensors(path).tensors;
  if (extension == ".npz") return load_npz(path);
  if (extension == ".npy") return {{path.stem().string(), load_npy(path)}};
  if (extension == ".pt" || extension == ".pth") return load_pytorch(path).tensors();
  fail<ValueError>("[load] expected a file .safetensors, .npz, .npy, .pt or .pth, got {}", path.string());
} catch (...) {
  support::rethrow_named("load");
}

void save(const std::filesystem::path& path, const NamedTensors& tensors) try {
  std::string extension = path.extension().string();
  if (extension == ".safetensors") return save_safetensors(path, tensors);
  if (extension == ".npz") return save_npz(path, tensors);
  TENON_CHECK_VALUE(extension == ".npy" && tensors.size() == 1,
                    "[save] expected a file .safetensors or .npz, or .npy for one tensor, got {} for {}", path.string(),
                    tensors.size());
  save_npy(path, tensors[0].second);
} catch (...) {
  support::rethrow_named("save");
}

}  // namespace tenon::io
