// Writes a file so that readers see the old or the new content, never a part: to a temporary name, then renamed.
#pragma once

#include <string>
#include <string_view>

namespace tenon::codegen {

// False if it could not be written; `problem` says why, and nothing is left behind.
bool write_file(const std::string& path, std::string_view content, std::string* problem);

}  // namespace tenon::codegen
