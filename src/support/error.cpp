#include <tenon/support/error.h>

namespace tenon::support {

void throw_internal(const char* condition, const char* file, int line, const std::string& detail) {
  std::string text = fmt::format("internal error: expected {} ({}:{})", condition, file, line);
  if (!detail.empty()) text += ": " + detail;
  throw InternalError(text);
}

}  // namespace tenon::support
