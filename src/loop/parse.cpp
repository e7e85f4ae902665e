#include "facts.h"
#include "op_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

// Reads what print.cpp writes, line by line.

namespace tenon::loop {
namespace {

// What is left of one line.
class Cursor {
 public:
  Cursor(std::string_view text, int line) : rest_(text), line_(line) { skip_spaces(); }

  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  template <typename... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> expected, Args&&... args) const {
    fail("[loop::parse] line {}: expected {}, got \"{}\"", line_, fmt::format(expected, std::forward<Args>(args)...),
         rest_);
  }

  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    advance(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail_here("\"{}\"", token);
  }
  void expect_end() const {
    if (!at_end()) fail_here("the end of the line");
  }

  // A whole word, so that "in" is not taken from "inout".
  bool take_word(std::string_view token) {
    if (peek_word() != token) return false;
    advance(token.size());
    return true;
  }
  std::string_view word(std::string_view what) {
    const std::string_view result = peek_word();
    if (result.empty()) fail_here("{}", what);
    advance(result.size());
    return result;
  }

  int64_t integer() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail_here("an integer");
    advance(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  template <typename Real>
  Real real() {
    Real value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail_here("a number");
    advance(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  // Everything up to `token`, which is taken too and stands outside of brackets.
  std::string_view until(std::string_view token) {
    int depth = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (depth == 0 && rest_.substr(i).starts_with(token)) {
        const std::string_view result = rest_.substr(0, i);
        advance(i + token.size());
        return result;
      }
      if (rest_[i] == '(' || rest_[i] == '[') ++depth;
      if (rest_[i] == ')' || rest_[i] == ']') --depth;
    }
    fail_here("\"{}\" later in the line", token);
  }

  std::string quoted() {
    std::string result;
    if (!rest_.starts_with('"')) fail_here("a quoted text");
    size_t i = 1;
    for (; i < rest_.size() && rest_[i] != '"'; ++i) {
      if (rest_[i] == '\\' && i + 1 < rest_.size()) {
        ++i;
        result += rest_[i] == 'n' ? '\n' : rest_[i];
      } else {
        result += rest_[i];
      }
    }
    if (i == rest_.size()) fail_here("a closing quote");
    advance(i + 1);
    return result;
  }

 private:
  std::string_view peek_word() const {
    size_t length = 0;
    while (length < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[length])) || rest_[length] == '_' || rest_[length] == '.')) {
      ++length;
    }
    return rest_.substr(0, length);
  }
  void advance(size_t count) {
    rest_.remove_prefix(count);
    skip_spaces();
  }
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::string_view rest_;
  int line_;
};

class Parser {
 public:
  Kernel parse(std::string_view text) {
    int line = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      Cursor cursor(text.substr(0, end), ++line);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (cursor.at_end()) continue;
      if (blocks_.empty()) {
        header(cursor);
        blocks_.push_back(&kernel_.body);
      } else {
        statement(cursor);
      }
      cursor.expect_end();
    }
    if (blocks_.size() != 1)
      fail("[loop::parse] expected {}, got the end of the text", blocks_.empty() ? "a kernel" : "the end of a loop");
    verify(kernel_);
    return std::move(kernel_);
  }

 private:
  sym::ExprPool& pool() { return *kernel_.pool; }

  // "a, b, c" as one cursor each; the brackets of expressions hide their commas.
  static std::vector<Cursor> split(std::string_view text, char separator, int line) {
    std::vector<Cursor> result;
    size_t begin = 0;
    int depth = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i == text.size() || (depth == 0 && text[i] == separator)) {
        result.emplace_back(text.substr(begin, i - begin), line);
        begin = i + 1;
      } else if (text[i] == '(' || text[i] == '[') {
        ++depth;
      } else if (text[i] == ')' || text[i] == ']') {
        --depth;
      }
    }
    if (result.size() == 1 && result[0].at_end()) result.clear();
    return result;
  }

  sym::Range range(Cursor& cursor) {
    sym::Range result;
    if (!cursor.take_word("in")) return result;
    cursor.expect("[");
    if (!cursor.take("-inf")) result.min = cursor.integer();
    cursor.expect(",");
    if (!cursor.take("inf")) result.max = cursor.integer();
    cursor.expect("]");
    return result;
  }

  Dtype dtype(Cursor& cursor) {
    Cursor before = cursor;
    const std::optional<Dtype> result = dtype_from_brief(cursor.word("a dtype"));
    if (!result) before.fail_here("a dtype");
    return *result;
  }

  void header(Cursor& cursor) {
    cursor.expect("kernel");
    kernel_.name = cursor.word("the kernel's name");
    cursor.expect("(");
    std::vector<Cursor> sections = split(cursor.until(")"), ';', 1);
    if (sections.size() > 3) cursor.fail_here("buffers; integers; scalars");
    const auto section = [&](size_t i) {
      return i < sections.size() ? split(sections[i].rest(), ',', 1) : std::vector<Cursor>();
    };
    // Integers first: the extents of buffers mention them.
    for (Cursor& item : section(1)) {
      const std::string name(item.word("a name"));
      item.expect(":");
      item.expect("int");
      kernel_.integers.push_back(pool().symbol(name, range(item)));
      item.expect_end();
    }
    for (Cursor& item : section(0)) buffer(item);
    for (Cursor& item : section(2)) {
      ScalarParameter scalar;
      scalar.name = item.word("a name");
      item.expect(":");
      scalar.dtype = dtype(item);
      kernel_.scalars.push_back(scalar);
      item.expect_end();
    }
  }

  void buffer(Cursor& item) {
    Buffer buffer;
    buffer.name = item.word("a name");
    item.expect(":");
    buffer.dtype = dtype(item);
    const std::string_view role = item.word("a role");
    const auto* found = std::find(std::begin(kRoleNames), std::end(kRoleNames), role);
    if (found == std::end(kRoleNames)) item.fail_here("in, out, inout, temporary or scratch before");
    buffer.role = static_cast<BufferRole>(found - std::begin(kRoleNames));
    buffer.streaming = item.take_word("streaming");
    if (item.take("[")) buffer.extent = pool().parse(item.until("]"));
    item.expect_end();
    kernel_.buffers.push_back(buffer);
  }

  void statement(Cursor& cursor) {
    if (cursor.take("}")) {
      if (blocks_.size() == 1) cursor.fail_here("no end of a loop outside of loops before");
      return blocks_.pop_back();
    }
    if (cursor.take_word("message")) {
      if (cursor.integer() != static_cast<int64_t>(kernel_.checks.size())) cursor.fail_here("messages in order before");
      kernel_.checks.push_back(cursor.quoted());
      return;
    }
    if (cursor.rest().ends_with("{")) return loop(cursor);
    blocks_.back()->push_back(operation(cursor));
  }

  void loop(Cursor& cursor) {
    auto loop = std::make_unique<Loop>();
    if (!cursor.take_word("loop")) {
      loop->parallel = cursor.take_word("parallel");
      loop->reduction = cursor.take_word("reduction");
      loop->pairwise = cursor.take_word("pairwise");
      loop->vector = cursor.take_word("vector");
    }
    const std::string name(cursor.word("an index"));
    cursor.expect("<");
    loop->extent = pool().parse(cursor.until("{"));
    loop->index = pool().symbol(name, {0, sym::Range::kMax});
    assume_loop(pool(), loop->index, loop->extent);
    Loop* inner = loop.get();
    blocks_.back()->push_back(std::move(loop));
    blocks_.push_back(&inner->body);
  }

  Op operation(Cursor& cursor) {
    ValueId result = kNone;
    if (cursor.take("%")) {
      result = value(cursor);
      kernel_.value_count = std::max(kernel_.value_count, result + 1);
      cursor.expect("=");
    }
    Cursor before = cursor;
    const std::optional<OpCode> code = op_from_name(cursor.word("an operation"));
    if (!code) before.fail_here("an operation");
    Op op{.code = *code};
    op.result = result;
    details(op, cursor);
    if (has_result(op.code)) {
      cursor.expect(":");
      op.dtype = dtype(cursor);
    }
    // The number's form depends on the dtype, which stands behind it.
    if (op.code == OpCode::Constant) op.number = number(before, op.dtype);
    return op;
  }

  void details(Op& op, Cursor& cursor) {
    switch (op.code) {
      case OpCode::Constant: cursor.until(" "); return;
      case OpCode::Parameter: op.parameter = position(cursor, kernel_.scalars, "a scalar parameter"); return;
      case OpCode::Index:
        cursor.expect("[");
        op.index = pool().parse(cursor.until("]"));
        return;
      case OpCode::Load:
        access(op, cursor);
        if (cursor.take_word("if")) {
          cursor.expect("%");
          op.operands[0] = value(cursor);
        }
        return;
      case OpCode::Store:
        access(op, cursor);
        cursor.expect(",");
        return operands(op, cursor);
      case OpCode::Random:
        operands(op, cursor);
        cursor.expect("[");
        op.index = pool().parse(cursor.until("]"));
        return;
      case OpCode::Check:
        op.dtype = Dtype::Bool;
        op.parameter = static_cast<int32_t>(cursor.integer());
        cursor.expect(",");
        return operands(op, cursor);
      case OpCode::BindIndex: {
        op.dtype = Dtype::Int64;
        const std::string name(cursor.word("a symbol"));
        cursor.expect("=");
        operands(op, cursor);
        op.index = pool().symbol(name, range(cursor));
        return;
      }
      case OpCode::Reduce: {
        const std::string_view kind = cursor.word("a kind of reduction");
        const auto* found = std::find_if(std::begin(kReduceRows), std::end(kReduceRows),
                                         [&](const ReduceRow& entry) { return entry.name == kind; });
        if (found == std::end(kReduceRows)) cursor.fail_here("a kind of reduction before");
        op.reduce = found->kind;
        return operands(op, cursor);
      }
      default:
        operands(op, cursor);
        if (op.code == OpCode::Cast && cursor.take_word("to")) {
          op.has_rounding = true;
          op.rounded = dtype(cursor);
        }
    }
  }

  void access(Op& op, Cursor& cursor) {
    op.buffer = position(cursor, kernel_.buffers, "a buffer");
    op.dtype = compute_dtype(kernel_.buffers[op.buffer].dtype);
    cursor.expect("[");
    op.index = pool().parse(cursor.until("]"));
  }

  void operands(Op& op, Cursor& cursor) {
    for (int i = 0; i < traits(op.code).operands; ++i) {
      if (i > 0) cursor.expect(",");
      cursor.expect("%");
      op.operands[i] = value(cursor);
    }
  }

  static ValueId value(Cursor& cursor) {
    const int64_t id = cursor.integer();
    if (id < 0 || id > (1 << 24)) cursor.fail_here("a value's number before");
    return static_cast<ValueId>(id);
  }

  // `cursor` stands at the word "constant".
  static Number number(Cursor cursor, Dtype dtype) {
    cursor.expect("constant");
    if (!is_floating(dtype)) return Number::of(cursor.integer());
    // A float32 is printed with as few digits as tell it apart from its neighbours of that format.
    return Number::of(dtype == Dtype::Float64 ? cursor.real<double>() : double{cursor.real<float>()});
  }

  template <typename List>
  static int32_t position(Cursor& cursor, const List& list, std::string_view what) {
    const Cursor before = cursor;
    const std::string_view name = cursor.word(what);
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].name == name) return static_cast<int32_t>(i);
    }
    before.fail_here("{}", what);
  }

  Kernel kernel_;
  std::vector<Block*> blocks_;
};

}  // namespace

Kernel parse(std::string_view text) { return Parser().parse(text); }

}  // namespace tenon::loop
