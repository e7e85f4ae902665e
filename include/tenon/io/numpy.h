// NumPy's files: one array (.npy), or an archive of them (.npz, plain or compressed).
//
//   auto path = std::filesystem::temp_directory_path() / "tenon_example.np";
//   io::save_npy(path, x);
//   Tensor same = io::load_npy(path);
//   io::save_npz(path, {{"first", x}, {"second", y}});
//   io::NamedTensors both = io::load_npz(path);
//   std::filesystem::remove(path);
//
// bfloat16, which NumPy has not, is refused; other byte orders are turned around.
#pragma once

#include <tenon/io/tensors.h>

namespace tenon::io {

Tensor load_npy(const std::filesystem::path& path);
void save_npy(const std::filesystem::path& path, const Tensor& tensor);
NamedTensors load_npz(const std::filesystem::path& path);
// Without compression, as numpy.savez; up to 4 GiB.
void save_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace tenon::io
