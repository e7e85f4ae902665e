// Data of a thread that has a destructor, usable to the very end. Static objects and `atexit` handlers run after the
// main thread's `thread_local` objects are gone; an object that they reach must not be one of those.
//
//   std::vector<std::byte>& memory = support::thread_data([] { return new std::vector<std::byte>; });
//
// The object is made at the first use and goes with the thread. Whoever comes later gets another one, which stays.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tenon::support {

// `make` gives a new object; every lambda stands for data of its own.
template <typename Make>
auto& thread_data(Make make) {
  using T = std::remove_pointer_t<std::invoke_result_t<Make>>;
  // Neither has a destructor, so both can be read at any time.
  constinit static thread_local T* data = nullptr;
  constinit static thread_local bool ended = false;
  if (data) return *data;
  data = make();
  struct End {
    ~End() {
      ended = true;
      std::unique_ptr<T> last(std::exchange(data, nullptr));
    }
  };
  if (!ended) {
    static thread_local End end;
    (void)end;
  }
  return *data;
}

}  // namespace tenon::support
