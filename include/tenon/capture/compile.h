// `compile(fn)`: a callable that does what `fn` does, compiled.
//
//   auto f = compile([](Tensor a, Tensor b) { return (a.sin() + b).relu(); });
//   Tensor z = f(x, y);         // the first call captures and compiles, later ones run what was compiled
//
// Arguments and results may be tensors, numbers, and structures of them: see arguments.h.
#pragma once

#include <tenon/capture/arguments.h>
#include <tenon/capture/compiled_function.h>
#include <tenon/core/given_up.h>

namespace tenon {

// A compiled callable. Copies share what was compiled.
//
//   auto function = [](Tensor a) { return a * 2; };
//   Compiled<decltype(function)> twice = compile(function);
//   twice(x);
//   int64_t compiles = twice.compile_count();   // 1
//   std::string why = twice.explain().str();
//   twice.reset();                              // the next call compiles again
template <typename F>
class Compiled {
 public:
  Compiled(F function, CompileOptions options)
      : function_(std::make_shared<F>(std::move(function))),
        state_(std::make_shared<capture::CompiledFunction>(std::move(options))) {}

  template <typename... Args>
    requires std::is_invocable_v<F&, const Args&...>
  auto operator()(const Args&... args) const {
    using Seen = capture::call_types<F, std::decay_t<const Args&>...>;
    if constexpr (std::is_same_v<Seen, std::tuple<Args...>>) {
      return call<Args...>(args...);
    } else {
      // Numbers become symbols.
      Seen seen(args...);
      return std::apply([this](const auto&... each) { return call<std::remove_cvref_t<decltype(each)>...>(each...); },
                        seen);
    }
  }

  // The same with a list of tensors that the caller gives up: it is empty afterwards, and each tensor is freed as soon
  // as the function has no more use for it.
  //
  //   auto sum = compile([](std::vector<Tensor> list) { return list[0] + list[1]; });
  //   std::vector<Tensor> list = {ones({3}), ones({3})};
  //   Tensor twos = sum.consume(list);
  auto consume(std::vector<Tensor>& given) const {
    using List = std::vector<Tensor>;
    using R = std::remove_cvref_t<std::invoke_result_t<F&, const List&>>;
    capture::FlatArguments flat;
    capture::flatten_argument(given, flat);
    List undefined(given.size());
    given.clear();
    auto body = [&](std::span<const Tensor> tensors, std::span<const dispatch::Value> numbers) {
      std::vector<dispatch::Value> results;
      capture::Supply supply{tensors, numbers};
      capture::flatten_result<R>((*function_)(capture::rebuild_argument(undefined, supply)), results);
      return results;
    };
    core::GiveUp up({flat.tensors.data(), flat.tensors.size()});
    std::vector<dispatch::Value> results = state_->call(flat.tensors.span(), {}, flat.constants.span(), body);
    std::span<dispatch::Value> rest(results);
    return capture::rebuild_result<R>(rest);
  }

  // Of a frozen function: other tensors for parameters, by the names of their cells ("conv.weight"). An Error, and
  // nothing is changed, if a name is unknown or a tensor is not like the one that it replaces. Calls on other threads
  // see all of them or none. The tensors become the module's own.
  //
  //   nn::Linear layer(3, 2);
  //   auto infer = freeze(layer);
  //   NoGrad off;
  //   infer(x);
  //   infer.update({{"weight", zeros({2, 3})}, {"bias", ones({2})}});
  void update(const std::vector<std::pair<std::string, Tensor>>& tensors) const { state_->update(tensors); }
  // Of a frozen function: computes its constants again at the next call. Writing through `data<T>()` leaves no trace;
  // writing by operators does.
  //
  //   nn::Linear layer(3, 2);
  //   auto infer = freeze(layer);
  //   layer.weight.get().data<float>()[0] = 7;
  //   infer.refresh();
  void refresh() const { state_->refresh(); }

  // What stands behind it, for those who write it down (deploy/save_compiled.h).
  //
  //   auto twice = compile([](Tensor a) { return a * 2; });
  //   int64_t compiles = twice.compiled_function().compile_count();
  const capture::CompiledFunction& compiled_function() const { return *state_; }

  // How many graphs were compiled since the start or the last `reset()`.
  int64_t compile_count() const { return state_->compile_count(); }
  // Forgets everything that was compiled.
  void reset() const { state_->reset(); }
  Explanation explain() const { return state_->explain(); }

 private:
  template <typename... Args>
  auto call(const Args&... args) const {
    using R = std::invoke_result_t<F&, const Args&...>;
    capture::FlatArguments flat;
    (capture::flatten_argument(args, flat), ...);
    auto body = [&](std::span<const Tensor> tensors, std::span<const dispatch::Value> numbers) {
      std::vector<dispatch::Value> results;
      [[maybe_unused]] capture::Supply supply{tensors, numbers};
      // Braces: arguments are rebuilt from left to right.
      std::tuple<Args...> rebuilt{capture::rebuild_argument(args, supply)...};
      if constexpr (std::is_void_v<R>)
        std::apply(*function_, rebuilt);
      else
        capture::flatten_result<std::remove_cvref_t<R>>(std::apply(*function_, rebuilt), results);
      return results;
    };
    std::vector<dispatch::Value> results =
        state_->call(flat.tensors.span(), flat.numbers.span(), flat.constants.span(), body);
    if constexpr (!std::is_void_v<R>) {
      std::span<dispatch::Value> rest(results);
      return capture::rebuild_result<std::remove_cvref_t<R>>(rest);
    }
  }

  std::shared_ptr<F> function_;
  std::shared_ptr<capture::CompiledFunction> state_;
};

template <typename F>
Compiled<F> compile(F function, CompileOptions options = {}) {
  return Compiled<F>(std::move(function), std::move(options));
}

// `compile` of something that only infers: what is computed from its parameters alone is computed once.
//
//   nn::Sequential model(nn::Conv2d(3, 8, 3), nn::BatchNorm2d(8));
//   model.eval();
//   auto infer = freeze(model);
//   NoGrad off;
//   Tensor result = infer(randn({1, 3, 8, 8}));  // a single convolution
template <typename F>
Compiled<F> freeze(F function, CompileOptions options = {}) {
  options.freeze = Freeze::On;
  return Compiled<F>(std::move(function), std::move(options));
}

// Ends the graph that is being captured: what comes before and what comes after are compiled for themselves. Outside of
// a capture it does nothing.
void graph_break(const std::string& why = "graph_break() was called");

// A function that is never captured: in a compiled function it runs on real tensors, between two graphs. It may take
// and give tensors (and take constants, which are as they were when the call was captured).
template <typename F>
auto disable(F function) {
  return [function]<typename... Args>(const Args&... args) {
    using R = std::remove_cvref_t<std::invoke_result_t<const F&, const Args&...>>;
    static_assert(std::is_void_v<R> || std::is_same_v<R, Tensor> || std::is_same_v<R, std::vector<Tensor>>,
                  "disable(): the function returns a Tensor, a std::vector<Tensor> or nothing");
    if (!capture::is_capturing()) return function(args...);
    capture::FlatArguments flat;
    (capture::flatten_argument(args, flat), ...);
    auto kept = std::make_shared<std::tuple<std::decay_t<Args>...>>(capture::without_tensors(args)...);
    std::vector<Tensor> results =
        capture::run_disabled(flat.tensors.span(), [function, kept](std::span<const Tensor> tensors) {
          capture::Supply supply{tensors, {}};
          auto rebuilt = capture::rebuild_argument(*kept, supply);
          std::vector<Tensor> made;
          if constexpr (std::is_void_v<R>)
            std::apply(function, rebuilt);
          else if constexpr (std::is_same_v<R, Tensor>)
            made.push_back(std::apply(function, rebuilt));
          else
            made = std::apply(function, rebuilt);
          return made;
        });
    if constexpr (std::is_same_v<R, Tensor>)
      return std::move(results[0]);
    else if constexpr (!std::is_void_v<R>)
      return results;
  };
}

}  // namespace tenon
