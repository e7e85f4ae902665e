#include <tenon/autograd/view_replay.h>

#include <utility>

namespace tenon::autograd {
namespace {
thread_local bool replays = true;
}

bool is_view_replay_enabled() { return replays; }
void set_view_replay(bool enabled) { replays = enabled; }

ViewReplay::ViewReplay(bool enabled) : before_(std::exchange(replays, enabled)) {}
ViewReplay::~ViewReplay() { replays = before_; }

}  // namespace tenon::autograd
