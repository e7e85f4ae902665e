// A file of a compiled function as something that a linker takes: a network that is part of an executable.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tenon::deploy {

// An object file (ELF, x86-64) with read-only data: `symbol`, where the bytes begin, and `symbol`_size, their number
// (uint64_t).
std::string object_file(std::string_view bytes, const std::string& symbol);

// Whether C++ takes it for a name.
bool is_identifier(std::string_view name);

// Writes the object and a header in which `tenon::packaged::name<Signature>()` gives the function. A ValueError if the
// file is damaged, or `name` is no identifier. Both files appear when they are complete.
void write_object(const std::filesystem::path& file, const std::filesystem::path& object,
                  const std::filesystem::path& header, const std::string& name);

}  // namespace tenon::deploy
