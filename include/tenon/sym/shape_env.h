// `ShapeEnv`: the symbols of one capture, where they come from, and what has been assumed of them.
//
// A symbol is backed (`s0`: it has a hint, the value at capture, and a source such as "size 0 of argument x") or
// unbacked (`u0`: it comes from data); reals are `f0` and `uf0`. Asking for a truth: decide from ranges and facts;
// else, if every symbol is backed, take the hint's answer and record a guard with the place in the user's program; else
// throw a `DataDependentError`. Guards are what must hold for the capture to be used again.
#pragma once

#include <tenon/support/call_site.h>
#include <tenon/support/intrusive.h>
#include <tenon/sym/expr.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon {

class SymInt;
class SymBool;
class SymFloat;

class DataDependentError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

namespace sym {

struct Guard {
  Expr condition;
  std::string where;  // the operator that asked, or the message of the check
  CallSite site;      // the line of the user's program; unknown if `where` tells it

  // Who asked: "slice at model.cpp:31".
  std::string asked_by() const;
};

class ShapeEnv : public Counted {
 public:
  ShapeEnv();
  ~ShapeEnv() override;

  ExprPool& pool() { return *pool_; }
  const ExprPool& pool() const { return *pool_; }

  // A backed symbol for a size that was `hint` at capture; range [2, inf): 0 and 1 are specialised by the caller.
  SymInt create_size(int64_t hint, std::string source);
  // A backed symbol of any sign.
  SymInt create_number(int64_t hint, std::string source);
  // A backed real.
  SymFloat create_real(double hint, std::string source);
  // Unbacked symbols. A bool is a symbol of 0 and 1, compared with 0.
  SymInt create_unbacked(Range range = {});
  SymFloat create_unbacked_real();
  SymBool create_unbacked_bool();
  // The ids of the unbacked symbols handed out since the last call, in order.
  std::vector<int32_t> take_fresh();

  // Decides a condition as told above.
  bool decide(Expr condition);
  // Pins an expression to its hint.
  int64_t pin(Expr expr);
  double pin_real(Expr expr);
  // The user's (or an operator's) promise: refines what is known, records no guard; for backed conditions that
  // are false at the hint, an Error. Unbacked conditions are kept in `deferred_checks()`.
  // `site`: the line that needs it, if the message does not say.
  void check(Expr condition, const std::string& message, const CallSite& site = {});
  void check(const SymBool& condition, const std::string& message, const CallSite& site = {});

  // Says that an expression is the size of something.
  void mark_size(Expr expr);

  // Asked before giving up on a condition or number that depends on data, with its expression. It may find the values
  // out (by running what was captured so far) and `give_hint`; true if it did.
  void set_resolver(std::function<bool(Expr)> resolver) { resolver_ = std::move(resolver); }
  // From now on the unbacked symbol is backed: its value, of a real the bits, is known at capture.
  void give_hint(int32_t symbol_id, int64_t value);

  // Of a real: the bits.
  std::optional<int64_t> hint(Expr expr) const;
  const std::string& source(int32_t symbol_id) const;  // empty for unbacked symbols
  bool is_backed(int32_t symbol_id) const;
  // Whether its value comes from data, known by now or not.
  bool is_from_data(int32_t symbol_id) const { return from_data_.at(static_cast<size_t>(symbol_id)); }
  const std::vector<Guard>& guards() const { return guards_; }
  const std::vector<Guard>& deferred_checks() const { return deferred_; }
  // All guards, one line each: "s0 <= 16  (from: slice at model.cpp:31)".
  std::string str() const;

  // Said in guards recorded from now on, on this thread; the capture sets it to the operator or line at hand.
  static void set_place(std::string place);
  static const std::string& place();

  // While one lives, guards are still decided but not recorded (re-running what was decided before).
  class SuppressGuards {
   public:
    explicit SuppressGuards(ShapeEnv& env) : env_(env) { ++env_.suppressed_; }
    ~SuppressGuards() { --env_.suppressed_; }

   private:
    ShapeEnv& env_;
  };

  // While one lives, `create_unbacked*` hands out these symbols, in order, instead of new ones: an operator that is run
  // again means the same values. An InternalError if it asks for more of them or for other kinds.
  class ReuseUnbacked {
   public:
    ReuseUnbacked(ShapeEnv& env, std::span<const int32_t> symbol_ids)
        : env_(env), ids_(symbol_ids.begin(), symbol_ids.end()), outer_(std::exchange(env.reuse_, this)) {}
    ~ReuseUnbacked() { env_.reuse_ = outer_; }
    ReuseUnbacked(const ReuseUnbacked&) = delete;
    ReuseUnbacked& operator=(const ReuseUnbacked&) = delete;

   private:
    friend class ShapeEnv;
    ShapeEnv& env_;
    std::vector<int32_t> ids_;
    size_t next_ = 0;
    ReuseUnbacked* outer_;
  };

 private:
  enum class Kind : uint8_t { Int, Real, Bool };
  Expr create(Kind kind, std::string prefix, std::optional<int64_t> hint, std::string source, Range range);
  Expr create_unbacked(Kind kind, Range range);
  int64_t pin_to_hint(Expr expr, Expr simple);

  std::unique_ptr<ExprPool> pool_;
  std::vector<int64_t> hints_;        // by symbol id; bits of reals
  std::vector<bool> backed_;          // by symbol id
  std::vector<bool> from_data_;       // by symbol id: it was unbacked when it was made
  std::vector<std::string> sources_;  // by symbol id
  std::vector<Kind> kinds_;           // by symbol id
  std::vector<int32_t> fresh_;        // unbacked symbols handed out since `take_fresh`
  ReuseUnbacked* reuse_ = nullptr;    // the innermost
  std::vector<Guard> guards_;
  std::vector<Guard> deferred_;
  std::unordered_map<std::string, int> counts_;  // symbols so far, by prefix
  int suppressed_ = 0;
  std::function<bool(Expr)> resolver_;
};

// What to say of a check that does not hold for these values of the symbols.
std::string failed_check(const Guard& check, const ShapeEnv& env, std::span<const int64_t> symbol_values);

}  // namespace sym
}  // namespace tenon

// `SymInt` holds a counted reference to its environment, so the headers come together.
#include <tenon/sym/sym_int.h>
