#include "io/atomic_file.h"
#include "io/safetensors_parts.h"

#include <tenon/generated/ops.h>

#include <algorithm>
#include <set>

namespace tenon::io {

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata) {
  NamedTensors dense;
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    TENON_CHECK_VALUE(tensor.defined(), "[save_safetensors] tensor '{}' is undefined", name);
    TENON_CHECK_VALUE(name != "__metadata__", "[save_safetensors] the format uses the name '{}' itself", name);
    TENON_CHECK_VALUE(names.insert(name).second, "[save_safetensors] expected names that differ, got '{}' twice", name);
    dense.emplace_back(name, contiguous(detach(tensor)));
  }
  // Larger elements first, then by name, as other writers do: every tensor lies where its elements may.
  std::stable_sort(dense.begin(), dense.end(), [](const auto& a, const auto& b) {
    int64_t left = a.second.element_size(), right = b.second.element_size();
    return left != right ? left > right : a.first < b.first;
  });
  AtomicFile file(path, "save_safetensors");
  file.write(safetensors_header(dense, metadata));
  for (const auto& [name, tensor] : dense) file.write(bytes_of(tensor));
  file.commit();
}

}  // namespace tenon::io
