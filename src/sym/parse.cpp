// Reads what `Expr::str` prints. Weakest first: || && comparison +- */ unary.
#include "pool.h"

#include <charconv>

namespace tenon::sym {
namespace {

class Parser {
 public:
  Parser(ExprPool& pool, std::string_view text) : pool_(pool), text_(text) {}

  Expr parse() {
    Expr result = disjunction();
    skip_spaces();
    if (at_ < text_.size()) expected("the end");
    return result;
  }

 private:
  [[noreturn]] void expected(std::string_view what) const {
    std::string_view rest = text_.substr(at_);
    fail("[parse] expected {} at position {} of \"{}\", got {}", what, at_, text_,
         rest.empty() ? "the end" : fmt::format("\"{}\"", rest.substr(0, 12)));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void require(std::string_view token) {
    if (!accept(token)) expected(fmt::format("\"{}\"", token));
  }

  Expr disjunction() {
    Expr left = conjunction();
    while (accept("||")) left = logical_or(left, conjunction());
    return left;
  }
  Expr conjunction() {
    Expr left = comparison();
    while (accept("&&")) left = logical_and(left, comparison());
    return left;
  }
  Expr comparison() {
    Expr left = sum();
    if (accept("==")) return eq(left, sum());
    if (accept("!=")) return ne(left, sum());
    if (accept("<=")) return le(left, sum());
    if (accept(">=")) return ge(left, sum());
    if (accept("<")) return lt(left, sum());
    if (accept(">")) return gt(left, sum());
    return left;
  }
  Expr sum() {
    Expr left = product();
    for (;;) {
      if (accept("+"))
        left = left + product();
      else if (accept("-"))
        left = left - product();
      else
        return left;
    }
  }
  Expr product() {
    Expr left = unary();
    for (;;) {
      if (accept("*"))
        left = left * unary();
      else if (accept("/"))
        left = true_div(left, unary());
      else
        return left;
    }
  }
  Expr unary() {
    skip_spaces();
    if (text_.substr(at_, 2) != "!=" && accept("!")) return logical_not(unary());
    if (text_.substr(at_, 1) == "-") {
      // The smallest number has no positive counterpart.
      if (at_ + 1 < text_.size() && digit(text_[at_ + 1])) return number();
      ++at_;
      return -unary();
    }
    return atom();
  }
  Expr atom() {
    skip_spaces();
    if (accept("(")) {
      Expr inner = disjunction();
      require(")");
      return inner;
    }
    if (at_ < text_.size() && digit(text_[at_])) return number();
    size_t end = at_;
    while (end < text_.size() && name_letter(text_[end])) ++end;
    if (end == at_) expected("a number, a symbol or \"(\"");
    size_t begin = std::exchange(at_, end);
    std::string_view name = text_.substr(begin, end - begin);
    if (accept("(")) {
      if (name == "let") return named_parts();
      ExprList args;
      do args.push_back(disjunction());
      while (accept(","));
      require(")");
      std::optional<Op> function = find_function(name, args);
      if (!function) {
        at_ = begin;
        expected(fmt::format("a function of {} such {}", args.size(), args.size() == 1 ? "operand" : "operands"));
      }
      return PoolAccess::state(pool_).rebuild(*function, args);
    }
    if (name == "inf") return pool_.real_constant(std::numeric_limits<double>::infinity());
    if (name == "nan") return pool_.real_constant(std::numeric_limits<double>::quiet_NaN());
    if (auto named = names_.find(std::string(name)); named != names_.end()) return named->second;
    Expr symbol = pool_.find_symbol(name);
    if (!symbol.defined()) {
      at_ = begin;
      expected("a known symbol");
    }
    return symbol;
  }
  // After "let(": parts, each with its name, and what is made of them.
  Expr named_parts() {
    for (;;) {
      skip_spaces();
      size_t end = at_;
      while (end < text_.size() && name_letter(text_[end])) ++end;
      if (end == at_ || text_.substr(end, 1) != ":") break;
      std::string name(text_.substr(at_, end - at_));
      at_ = end + 1;
      names_[std::move(name)] = disjunction();
      require(",");
    }
    Expr whole = disjunction();
    require(")");
    return whole;
  }
  static bool name_letter(unsigned char letter) { return std::isalnum(letter) || letter == '_' || letter == '.'; }
  static bool digit(char letter) { return letter >= '0' && letter <= '9'; }
  Expr number() {
    size_t after = text_.find_first_not_of("0123456789", at_ + (text_[at_] == '-'));
    if (after != std::string_view::npos && (text_[after] == '.' || text_[after] == 'e')) {
      double real = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), real);
      if (error != std::errc()) expected("a double");
      at_ = static_cast<size_t>(end - text_.data());
      return pool_.real_constant(real);
    }
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) expected("a 64-bit number");
    at_ = static_cast<size_t>(end - text_.data());
    return pool_.constant(value);
  }

  ExprPool& pool_;
  std::string_view text_;
  size_t at_ = 0;
  std::unordered_map<std::string, Expr> names_;  // of parts
};

}  // namespace

Expr ExprPool::parse(std::string_view text) { return Parser(*this, text).parse(); }

}  // namespace tenon::sym
