// What a file in the safetensors format consists of, for those who write it as a part of something larger.
#pragma once

#include <tenon/io/safetensors.h>

#include <span>

namespace tenon::io {

// What comes before the tensors' bytes; these follow in the same order. The tensors are contiguous.
std::string safetensors_header(const NamedTensors& dense, const Metadata& metadata);
std::span<const std::byte> bytes_of(const Tensor& dense);

}  // namespace tenon::io
