// Decompression of the DEFLATE format (RFC 1951), and the checksum of zip archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::io {

// Exactly `size` bytes; a ValueError if the input is damaged, or is of another length.
std::vector<std::byte> inflate(std::span<const std::byte> compressed, size_t size);

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace tenon::io
