// An environment as it was at some time, taken up again for other values.
//
// What is compiled when it is first needed (a backward graph) comes after the guards of its capture are fixed. It works
// on a copy of the environment: with the facts that those guards make sure of and no others, and with the values of the
// call at hand as hints. What is asked then is recorded in the copy, as conditions of what was compiled.
#pragma once

#include <tenon/sym/shape_env.h>
#include <tenon/sym/sym_float.h>

#include <span>
#include <vector>

namespace tenon::sym {

// What was known then. It is a copy, because the environment may learn more later on, on another thread.
struct EnvSnapshot {
  struct Symbol {
    Expr expr;
    Range range = {};
    bool is_size = false, from_data = false;
    std::optional<int64_t> hint = {};
    std::string source = {};
  };
  Ref<ShapeEnv> env;  // owns the expressions
  std::vector<Symbol> symbols;
  std::vector<Guard> guards, checks;

  static EnvSnapshot of(const Ref<ShapeEnv>& env);
};

class EnvCopy {
 public:
  // A symbol from data that what is compiled binds, possibly again.
  struct Bound {
    int32_t symbol;
    bool is_bool;
    bool is_known;  // its value is among those given
  };
  // `values`: of the symbols, by id.
  EnvCopy(const EnvSnapshot& from, std::span<const int64_t> values, std::span<const Bound> bound);

  const Ref<ShapeEnv>& env() const { return env_; }
  Expr operator()(Expr expr) const { return env_->pool().import(expr, symbols_); }
  SymInt operator()(const SymInt& number) const;
  SymFloat operator()(const SymFloat& number) const;
  SymBool operator()(const SymBool& flag) const;
  SymInts operator()(const SymInts& numbers) const;
  // What was asked since the copy was made.
  std::vector<Expr> conditions() const;

 private:
  Ref<ShapeEnv> env_;
  std::unordered_map<int32_t, Expr> symbols_;
  size_t given_ = 0;  // guards that the copy began with
};

}  // namespace tenon::sym
