// `ShapeEnv`: the symbols of one capture, where they come from, and what has been assumed of them.
//
// A symbol is backed (`s0`: it has a hint, the value at capture, and a source such as "size 0 of argument x") or
// unbacked (`u0`: it comes from data). Asking for a truth: decide from ranges and facts; else, if every symbol
// is backed, take the hint's answer and record a guard with the place in the user's program; else throw a
// `DataDependentError`. Guards are what must hold for the capture to be used again.
#pragma once

#include <tenon/support/intrusive.h>
#include <tenon/sym/expr.h>

#include <string>
#include <vector>

namespace tenon {

class SymInt;
class SymBool;

class DataDependentError : public Error {
 public:
  using Error::Error;
};

namespace sym {

struct Guard {
  Expr condition;
  std::string where;  // place in the user's program, or the operator that asked
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
  // An unbacked symbol.
  SymInt create_unbacked(Range range = {});

  // Decides a condition as told above.
  bool decide(Expr condition);
  // Pins an expression to its hint.
  int64_t pin(Expr expr);
  // The user's (or an operator's) promise: refines what is known, records no guard; for backed conditions that
  // are false at the hint, an Error. Unbacked conditions are kept in `deferred_checks()`.
  void check(Expr condition, const std::string& message);
  void check(const SymBool& condition, const std::string& message);

  std::optional<int64_t> hint(Expr expr) const;
  const std::string& source(int32_t symbol_id) const;  // empty for unbacked symbols
  bool is_backed(int32_t symbol_id) const;
  const std::vector<Guard>& guards() const { return guards_; }
  const std::vector<Guard>& deferred_checks() const { return deferred_; }
  // All guards, one line each: "s0 <= 16  (from: slice)".
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

 private:
  SymInt create(std::string prefix, std::optional<int64_t> hint, std::string source, Range range);

  std::unique_ptr<ExprPool> pool_;
  std::vector<int64_t> hints_;          // by symbol id
  std::vector<bool> backed_;            // by symbol id
  std::vector<std::string> sources_;    // by symbol id
  std::vector<Guard> guards_;
  std::vector<Guard> deferred_;
  int backed_count_ = 0, unbacked_count_ = 0, suppressed_ = 0;
};

}  // namespace sym
}  // namespace tenon

// `SymInt` holds a counted reference to its environment, so the two headers come together.
#include <tenon/sym/sym_int.h>
