#include <tenon/dispatch/call_mode.h>
#include <tenon/dispatch/registration.h>

#include <optional>
#include <utility>

namespace tenon::dispatch {
namespace {

thread_local CallMode* innermost = nullptr;

}  // namespace

void CallMode::run(Call& call) {
  KeySet below = call.keys.below(DispatchKey::UserMode);
  CallMode* mode = innermost;
  if (!mode) return redispatch(call, below);
  struct Restore {
    CallMode* mode;
    ~Restore() { innermost = mode; }
  } restore{mode};
  innermost = mode->options_.hides_others ? nullptr : mode->around_;
  mode->handler_(call, [&] {
    if (innermost) return run(call);
    std::optional<ExcludeKeys> parts;
    if (mode->options_.shows_parts)
      innermost = mode;
    else
      parts.emplace(KeySet{DispatchKey::UserMode});
    redispatch(call, below);
  });
}

CallMode::CallMode(Handler handler, Options options)
    : handler_(std::move(handler)),
      options_(options),
      around_(std::exchange(innermost, this)),
      on_(KeySet{DispatchKey::UserMode}) {
  static const bool registered = [] {
    register_fallback(DispatchKey::UserMode, run);
    return true;
  }();
  static_cast<void>(registered);
}

CallMode::~CallMode() { innermost = around_; }

bool CallMode::watches_walks() {
  for (const CallMode* mode = innermost; mode; mode = mode->around_)
    if (!mode->options_.captures_walks)
      return true;
    else if (mode->options_.hides_others)
      return false;
  return false;
}

}  // namespace tenon::dispatch
