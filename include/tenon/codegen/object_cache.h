// The object cache on disk: compiled kernels, keyed by content.
//
// The folder is $TENON_CACHE, else the user's cache folder ($XDG_CACHE_HOME or ~/.cache, then /tenon); it is made with
// mode 0700, and one that belongs to another user is not used. A file is named by the fingerprint of (kernel text,
// target description) and holds a header with a magic word, the version, the full key, the length and a checksum of the
// object; an entry that does not check out is ignored with one warning, and replaced. Files are written to a temporary
// name and renamed. A folder that cannot be made or written: one warning, and everything works without it. TENON_CACHE
// set to the empty string: no cache. The entries come to about TENON_CACHE_BYTES (1 GiB unless told) at most: then
// those go that were not used for longest, and with them files that a killed process left unfinished.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::codegen {

std::optional<std::string> load_object(const std::string& key);
void store_object(const std::string& key, const std::string& object);
// Where entries go; empty if there is no usable folder.
std::string cache_folder();
// Points the cache elsewhere ("" for nowhere), as TENON_CACHE does at start. For tests and tools.
void set_cache_folder(const std::string& path);
// How many bytes the entries may come to, as TENON_CACHE_BYTES says at start. For tests and tools.
void set_cache_limit(int64_t bytes);
// Path of the entry of a key, whether or not it exists.
std::string entry_path(const std::string& key);

}  // namespace tenon::codegen
