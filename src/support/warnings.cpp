#include <tenon/support/log.h>
#include <tenon/support/warnings.h>

namespace tenon {
namespace {

thread_local CatchWarnings* innermost = nullptr;

}  // namespace

CatchWarnings::CatchWarnings() : before_(innermost) { innermost = this; }
CatchWarnings::~CatchWarnings() { innermost = before_; }

void warn(const std::string& text) {
  if (innermost)
    innermost->texts_.push_back(text);
  else
    warn_once(text, text);
}

}  // namespace tenon
