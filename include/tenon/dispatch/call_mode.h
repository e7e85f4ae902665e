// `CallMode`: while one lives, a function of the user's stands around every call of an operator on this thread: what
// the program calls, and what backward does.
//
//   std::vector<std::string> log;
//   dispatch::CallMode mode([&](dispatch::Call& call, const std::function<void()>& proceed) {
//     log.push_back(call.op.name());
//     proceed();  // the call itself; without it `call.results` must be set
//   });
//   x.sin().sum();  // log: "aten::sin", "aten::sum"
//
// Of several the one made last comes first, and `proceed` goes on to the one around it. What the function calls itself
// meets those around it alone. Backward walks are not captured while one lives; a compiled function shows the calls of
// which it is made when it is captured, on fakes, and later none.
#pragma once

#include <tenon/dispatch/operator.h>

#include <functional>

namespace tenon::dispatch {

class CallMode {
 public:
  using Handler = std::function<void(Call& call, const std::function<void()>& proceed)>;
  struct Options {
    bool shows_parts = false;     // of an operator that is made of others, those are shown, too
    bool captures_walks = false;  // backward walks may be captured, and then show nothing
    bool hides_others = false;    // those around it see nothing while it lives
  };
  explicit CallMode(Handler handler) : CallMode(std::move(handler), Options()) {}
  CallMode(Handler handler, Options options);
  ~CallMode();
  CallMode(const CallMode&) = delete;
  CallMode& operator=(const CallMode&) = delete;

  // Whether one on this thread wants to see what backward walks do.
  static bool watches_walks();

 private:
  static void run(Call& call);

  Handler handler_;
  Options options_;
  CallMode* around_;
  IncludeKeys on_;
};

}  // namespace tenon::dispatch
