// Work that may end the process: done in a child, with little memory, so that a test can say how it ended.
#pragma once

#include "core/memory_limit.h"

#include <tenon/core/storage.h>

#include <fmt/format.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

namespace tenon::test {

// Sanitizers map far more than they use.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAddressesAreLimited = false;
#else
constexpr bool kAddressesAreLimited = true;
#endif

struct Ended {
  std::string said;  // what the work said last
  std::string how;   // empty if it came to its end; else what stopped it
};

// Runs `work` in a child whose tensors (and, where it can be, whose addresses) are limited to that many bytes. The work
// may say what it is about to do; the last of it is known even if it crashes then.
inline Ended in_child(int64_t bytes, const std::function<void(const std::function<void(std::string)>& say)>& work) {
  int ends[2];
  if (pipe(ends) != 0) return {"", "no pipe"};
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    allocator::empty_cache();
    allocator::set_limit(bytes);
    if (kAddressesAreLimited) {
      rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
      setrlimit(RLIMIT_AS, &limit);
    }
    auto say = [&](std::string text) {
      text += '\0';
      for (size_t at = 0; at < text.size();) {
        ssize_t written = write(ends[1], text.data() + at, text.size() - at);
        if (written <= 0) break;
        at += static_cast<size_t>(written);
      }
    };
    try {
      work(say);
    } catch (const std::exception& error) {
      say(fmt::format("threw {}", error.what()));
      _exit(3);
    } catch (...) {
      say("threw something");
      _exit(3);
    }
    _exit(0);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return {"", "no child"};
  }
  Ended ended;
  bool complete = true;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    for (ssize_t at = 0; at < count; ++at) {
      if (complete) ended.said.clear();
      complete = buffer[at] == '\0';
      if (!complete) ended.said += buffer[at];
    }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    ended.how = fmt::format("signal {}", WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0)
    ended.how = fmt::format("exit status {}", WEXITSTATUS(status));
  return ended;
}

}  // namespace tenon::test
