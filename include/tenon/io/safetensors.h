// The safetensors format: a header in JSON, then the tensors' bytes.
//
//   auto path = std::filesystem::temp_directory_path() / "tenon_example.safetensors";
//   io::save_safetensors(path, {{"a", x}, {"b", y}}, {{"format", "pt"}});
//   io::Safetensors file = io::load_safetensors(path);
//   bool right = file.tensors.size() == 2 && file.metadata[0].second == "pt";
//   std::filesystem::remove(path);
#pragma once

#include <tenon/io/tensors.h>

namespace tenon::io {

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Safetensors {
  NamedTensors tensors;  // in the order of their bytes
  Metadata metadata;
};

// The tensors look into the file's pages, which stay as long as one of them lives. Writing to a tensor changes it
// alone, never the file. The file must not be made shorter meanwhile.
Safetensors load_safetensors(const std::filesystem::path& path);
// Tensors that share memory are written once each.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata = {});

}  // namespace tenon::io
