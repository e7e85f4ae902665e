// Named tensors in files. Which format is meant, the file's name says:
//
// - .safetensors: read and written; tensors look into the file and are not copied (io/safetensors.h)
// - .npz, .npy: read and written; NumPy's (io/numpy.h)
// - .pt, .pth: read; what `torch.save(model.state_dict(), …)` writes (io/pytorch.h)
//
// A file is written under another name and renamed when it is complete: there is never half of one. What a file says
// about itself is believed only after it is checked; one that contradicts itself is a ValueError that names the file
// and the fault.
#pragma once

#include <tenon/core/tensor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tenon::io {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

//   auto path = std::filesystem::temp_directory_path() / "tenon_example_tensors.safetensors";
//   io::save(path, {{"weight", x}});
//   io::NamedTensors back = io::load(path);
//   bool same = back[0].first == "weight" && back[0].second.equal(x);
//   std::filesystem::remove(path);
NamedTensors load(const std::filesystem::path& path);
void save(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace tenon::io
