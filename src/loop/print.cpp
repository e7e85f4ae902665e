#include "print.h"

#include "op_table.h"

#include <cmath>

namespace tenon::loop {
namespace {

std::string text_of(sym::Expr expr) {
  // Simplified again, since facts learnt after an expression was built would otherwise make the text differ from that
  // of the parsed kernel, which knows them from the start.
  return expr.defined() ? expr.pool().simplify(expr).str() : "?";
}

std::string text_of(sym::Range range) {
  if (range == sym::Range{}) return "";
  const std::string low = range.min == sym::Range::kMin ? "-inf" : fmt::format("{}", range.min);
  const std::string high = range.max == sym::Range::kMax ? "inf" : fmt::format("{}", range.max);
  return fmt::format(" in [{}, {}]", low, high);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

template <typename List>
std::string name_at(const List& list, int32_t position) {
  if (position < 0 || static_cast<size_t>(position) >= list.size()) return fmt::format("?{}", position);
  return list[position].name;
}

// The name of a symbol, without simplification: a known value must not hide what is declared or bound.
std::string symbol_name(sym::Expr symbol) {
  if (!symbol.defined()) return "?";
  return symbol.is_symbol() ? symbol.name() : symbol.str();
}

std::string range_of(sym::Expr symbol) {
  return symbol.defined() && symbol.is_symbol() ? text_of(symbol.pool().range(symbol)) : "";
}

void print_block(const Kernel& kernel, const Block& block, int indent, std::string& out) {
  for (const Statement& statement : block) {
    out.append(indent, ' ');
    if (const Op* op = std::get_if<Op>(&statement)) {
      out += to_string(kernel, *op) + "\n";
      continue;
    }
    const Loop& loop = *std::get<std::unique_ptr<Loop>>(statement);
    out += header_of(loop) + " {\n";
    print_block(kernel, loop.body, indent + 2, out);
    out.append(indent, ' ');
    out += "}\n";
  }
}

std::string buffer_text(const Buffer& buffer) {
  std::string text = fmt::format("{}: {} {}", buffer.name, traits(buffer.dtype).brief, name(buffer.role));
  if (buffer.streaming) text += " streaming";
  if (buffer.extent.defined()) text += fmt::format(" [{}]", text_of(buffer.extent));
  return text;
}

template <typename List, typename Text>
std::string joined(const List& list, Text text) {
  std::string result;
  for (const auto& item : list) {
    if (!result.empty()) result += ", ";
    result += text(item);
  }
  return result;
}

}  // namespace

std::string to_string(const Number& number, Dtype dtype) {
  if (!number.is_real) return fmt::format("{}", number.integer);
  if (std::isnan(number.real)) return "nan";
  const float narrow = static_cast<float>(number.real);
  if (dtype != Dtype::Float64 && static_cast<double>(narrow) == number.real) return fmt::format("{}", narrow);
  return fmt::format("{}", number.real);
}

std::string to_string(const Kernel& kernel, const Op& op) {
  if (op.code >= OpCode::Count_) return fmt::format("operation number {}", static_cast<int>(op.code));
  const OpRow& entry = row(op.code);
  std::string operands;
  for (int i = 0; i < entry.traits.operands; ++i) {
    operands += fmt::format("{}%{}", i == 0 ? "" : ", ", op.operands[i]);
  }
  std::string body;
  switch (op.code) {
    case OpCode::Store:
      return fmt::format("store {}[{}], {}", name_at(kernel.buffers, op.buffer), text_of(op.index), operands);
    case OpCode::Check: return fmt::format("check {}, {}", op.parameter, operands);
    case OpCode::BindIndex: return fmt::format("bind {} = {}{}", symbol_name(op.index), operands, range_of(op.index));
    case OpCode::Constant: body = " " + to_string(op.number, op.dtype); break;
    case OpCode::Parameter: body = " " + name_at(kernel.scalars, op.parameter); break;
    case OpCode::Index: body = fmt::format(" [{}]", text_of(op.index)); break;
    case OpCode::Load:
      body = fmt::format(" {}[{}]", name_at(kernel.buffers, op.buffer), text_of(op.index));
      if (op.operands[0] != kNone) body += fmt::format(" if %{}", op.operands[0]);
      break;
    case OpCode::Random: body = fmt::format(" {} [{}]", operands, text_of(op.index)); break;
    case OpCode::Reduce: body = fmt::format(" {} {}", row(op.reduce).name, operands); break;
    case OpCode::Cast:
      body = " " + operands;
      if (op.has_rounding) body += fmt::format(" to {}", traits(op.rounded).brief);
      break;
    default: body = " " + operands;
  }
  return fmt::format("%{} = {}{} : {}", op.result, entry.traits.name, body, traits(op.dtype).brief);
}

std::string header_of(const Loop& loop) {
  std::string text;
  if (loop.parallel) text += "parallel ";
  if (loop.reduction) text += "reduction ";
  if (loop.pairwise) text += "pairwise ";
  if (loop.vector) text += "vector ";
  if (text.empty()) text = "loop ";
  return fmt::format("{}{} < {}", text, symbol_name(loop.index), text_of(loop.extent));
}

std::string to_string(const Kernel& kernel) {
  std::string out = fmt::format("kernel {}({}", kernel.name, joined(kernel.buffers, buffer_text));
  if (!kernel.integers.empty() || !kernel.scalars.empty()) {
    out += "; " + joined(kernel.integers, [](sym::Expr s) { return symbol_name(s) + ": int" + range_of(s); });
  }
  if (!kernel.scalars.empty()) {
    out += "; " + joined(kernel.scalars, [](const ScalarParameter& scalar) {
             return fmt::format("{}: {}", scalar.name, traits(scalar.dtype).brief);
           });
  }
  out += ")\n";
  for (size_t i = 0; i < kernel.checks.size(); ++i) {
    out += fmt::format("  message {} {}\n", i, quoted(kernel.checks[i]));
  }
  print_block(kernel, kernel.body, 2, out);
  return out;
}

}  // namespace tenon::loop
