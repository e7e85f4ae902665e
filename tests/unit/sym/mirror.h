// An expression tree that simplifies nothing, with its own parser and evaluator: what the simplifier is held against.
#pragma once

#include <tenon/sym/expr.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::sym::mirror {

struct Node;
using Tree = std::shared_ptr<const Node>;

// `op` is a number's or symbol's mark ('0', 'x'), or the operation as written: "+", "FloorDiv", "<=", …
struct Node {
  std::string op;
  int64_t value = 0;
  std::string name;
  std::vector<Tree> args;
};

inline Tree number(int64_t value) { return std::make_shared<Node>(Node{"0", value, "", {}}); }
inline Tree symbol(std::string name) { return std::make_shared<Node>(Node{"x", 0, std::move(name), {}}); }
inline Tree make(std::string op, std::vector<Tree> args) {
  return std::make_shared<Node>(Node{std::move(op), 0, "", std::move(args)});
}

using Values = std::map<std::string, int64_t>;

// Nothing where a divisor is zero. Floor division by counting, on small numbers: no cleverness shared with the library.
inline std::optional<int64_t> evaluate(const Tree& tree, const Values& values) {
  if (tree->op == "0") return tree->value;
  if (tree->op == "x") return values.at(tree->name);
  std::vector<int64_t> args;
  for (const Tree& arg : tree->args) {
    std::optional<int64_t> value = evaluate(arg, values);
    if (!value) return std::nullopt;
    args.push_back(*value);
  }
  const std::string& op = tree->op;
  int64_t a = args[0], b = args.size() > 1 ? args[1] : 0;
  if (op == "+") return a + b;
  if (op == "-") return args.size() == 1 ? -a : a - b;
  if (op == "*") return a * b;
  if (op == "FloorDiv" || op == "Mod") {
    if (b == 0) return std::nullopt;
    int64_t rest = ((a % b) + b) % b;
    return op == "Mod" ? rest : (a - rest) / b;
  }
  if (op == "Min") return a < b ? a : b;
  if (op == "Max") return a > b ? a : b;
  if (op == "Abs") return a < 0 ? -a : a;
  if (op == "Pow") {
    if (b < 0) return std::nullopt;
    int64_t power = 1;
    for (int64_t i = 0; i < b; ++i) power *= a;
    return power;
  }
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  if (op == "&&") return a && b;
  if (op == "||") return a || b;
  if (op == "!") return !a;
  throw InternalError("unknown operation " + op);
}

// The same with the library's builders.
inline Expr build(const Tree& tree, ExprPool& pool) {
  if (tree->op == "0") return pool.constant(tree->value);
  if (tree->op == "x") return pool.find_symbol(tree->name);
  Expr a = build(tree->args[0], pool);
  const std::string& op = tree->op;
  if (tree->args.size() == 1) return op == "-" ? -a : op == "Abs" ? abs(a) : logical_not(a);
  Expr b = build(tree->args[1], pool);
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "FloorDiv") return floor_div(a, b);
  if (op == "Mod") return mod(a, b);
  if (op == "Min") return min(a, b);
  if (op == "Max") return max(a, b);
  if (op == "Pow") return pow(a, b);
  if (op == "==") return eq(a, b);
  if (op == "!=") return ne(a, b);
  if (op == "<") return lt(a, b);
  if (op == "<=") return le(a, b);
  if (op == ">") return gt(a, b);
  if (op == ">=") return ge(a, b);
  if (op == "&&") return logical_and(a, b);
  if (op == "||") return logical_or(a, b);
  throw InternalError("unknown operation " + op);
}

inline std::string str(const Tree& tree) {
  if (tree->op == "0") return std::to_string(tree->value);
  if (tree->op == "x") return tree->name;
  if (tree->args.size() == 1) return tree->op + "(" + str(tree->args[0]) + ")";
  bool call = std::isalpha(static_cast<unsigned char>(tree->op[0]));
  if (call) return tree->op + "(" + str(tree->args[0]) + ", " + str(tree->args[1]) + ")";
  return "(" + str(tree->args[0]) + " " + tree->op + " " + str(tree->args[1]) + ")";
}

// By precedence: || && comparison +- * unary.
class Parser {
 public:
  explicit Parser(std::string text) : text_(std::move(text)) {}
  Tree parse() {
    Tree tree = binary(0);
    if (at_ != text_.size()) throw InternalError("cannot read " + text_.substr(at_));
    return tree;
  }

 private:
  bool accept(const std::string& token) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  Tree binary(size_t level) {
    static const std::vector<std::vector<std::string>> kLevels = {
        {"||"}, {"&&"}, {"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*"}};
    if (level == kLevels.size()) return unary();
    Tree left = binary(level + 1);
    for (bool again = true; again;) {
      again = false;
      for (const std::string& op : kLevels[level]) {
        if (!accept(op)) continue;
        left = make(op, {left, binary(level + 1)});
        again = true;
        break;
      }
    }
    return left;
  }
  Tree unary() {
    if (accept("-")) return make("-", {unary()});
    if (accept("(")) {
      Tree inner = binary(0);
      accept(")");
      return inner;
    }
    std::string word;
    accept("");
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) word += text_[at_++];
    if (word.empty()) throw InternalError("cannot read " + text_.substr(at_));
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return number(std::stoll(word));
    if (!accept("(")) return symbol(word);
    Tree first = binary(0);
    if (!accept(",")) {
      accept(")");
      return make(word, {first});
    }
    Tree second = binary(0);
    accept(")");
    return make(word, {first, second});
  }

  std::string text_;
  size_t at_ = 0;
};

inline Tree parse(const std::string& text) { return Parser(text).parse(); }

}  // namespace tenon::sym::mirror
