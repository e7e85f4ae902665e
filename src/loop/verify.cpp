#include "op_table.h"
#include "print.h"
#include "support/out_of_memory.h"

#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

// The rules of a kernel. Each is checked in one place and named in the message that its breach gives; what they share
// is read from the table of operations.

namespace tenon::loop {
namespace {

// What a message shows; turned into text only when a rule is broken.
struct Place {
  const Op* op = nullptr;
  const Loop* loop = nullptr;
  std::string_view name;
  Place(const Op& at) : op(&at) {}
  Place(const Loop& at) : loop(&at) {}
  Place(std::string_view at) : name(at) {}
  Place(const std::string& at) : name(at) {}
};

struct Verifier {
  explicit Verifier(const Kernel& checked) : kernel(checked) {}

  const Kernel& kernel;
  struct Value {
    std::optional<Dtype> dtype;  // once defined
    bool visible = false;
  };
  std::vector<Value> values = std::vector<Value>(std::max(kernel.value_count, 0));
  enum class Symbol { Integer, Visible, Ended };
  std::unordered_map<int32_t, Symbol> symbols;
  std::vector<bool> stored = std::vector<bool>(kernel.buffers.size());

  // One level of the walk.
  struct Scope {
    const Loop* loop = nullptr;  // null at the top
    bool has_vector = false;     // on the path from the root
    std::vector<ValueId> values;
    std::vector<ValueId> reduces;  // visible after the loop
    std::vector<int32_t> symbols;
  };

  template <typename... Args>
  void require(bool holds, std::string_view rule, Place where, fmt::format_string<Args...> text, Args&&... args) const {
    if (holds) [[likely]]
      return;
    const std::string place = where.op     ? to_string(kernel, *where.op)
                              : where.loop ? header_of(*where.loop)
                                           : std::string(where.name);
    throw InternalError(fmt::format("the kernel breaks the rule \"{}\" at `{}`: {}\n{}", rule, place,
                                    fmt::format(text, std::forward<Args>(args)...), to_string(kernel)));
  }

  // Names and parameters ---------------------------------------------------------------------------------------------

  void check_name(const std::string& name, std::unordered_set<std::string>* taken) const {
    bool plain = !name.empty();
    for (char c : name) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.');
    require(plain, "names are plain", name, "a name consists of letters, digits, '_' and '.'");
    if (taken) require(taken->insert(name).second, "names are unique", name, "it is declared twice");
  }

  void check_declarations() {
    check_name(kernel.name, nullptr);
    std::unordered_set<std::string> buffer_names, scalar_names;
    for (sym::Expr symbol : kernel.integers) {
      require(symbol.defined() && symbol.is_symbol(), "integer parameters are symbols", kernel.name,
              "expected symbols, got {}", symbol.defined() ? symbol.str() : "nothing");
      require(&symbol.pool() == kernel.pool.get(), "one pool", symbol.name(), "the symbol is of another pool");
      require(symbols.emplace(symbol.symbol_id(), Symbol::Integer).second, "names are unique", symbol.name(),
              "the integer parameter is declared twice");
    }
    bool temporaries = false;
    for (const Buffer& buffer : kernel.buffers) {
      check_name(buffer.name, &buffer_names);
      const bool temporary = buffer.role == BufferRole::Temporary || buffer.role == BufferRole::Scratch;
      require(!temporaries || temporary, "temporaries come last", buffer.name, "an argument follows a temporary");
      temporaries = temporary;
      require(buffer.role != BufferRole::Scratch || buffer.extent.defined(), "scratch has an extent", buffer.name,
              "the launcher makes as much of it");
      require(!buffer.streaming || buffer.role == BufferRole::Out, "only outputs stream", buffer.name, "its role is {}",
              name(buffer.role));
      if (buffer.extent.defined()) check_expr(buffer.extent, buffer.name);
    }
    for (const ScalarParameter& scalar : kernel.scalars) {
      check_name(scalar.name, &scalar_names);
      require(!is_narrow(scalar.dtype), "no narrow floats in arithmetic", scalar.name, "the scalar is {}",
              name(scalar.dtype));
    }
  }

  void check_expr(sym::Expr expr, Place where) const {
    require(expr.defined(), "expressions are defined", where, "an index or extent is missing");
    require(&expr.pool() == kernel.pool.get(), "one pool", where, "{} is of another pool", expr.str());
    for (int32_t id : sym::symbols_of(expr)) {
      const auto found = symbols.find(id);
      const std::string& symbol = kernel.pool->symbol(id).name();
      require(found != symbols.end(), "symbols are bound", where,
              "{} is no integer parameter, no index of an enclosing loop, and not bound before", symbol);
      require(found->second != Symbol::Ended, "symbols are bound", where, "{} is used after the end of its scope",
              symbol);
    }
  }

  void bind_symbol(sym::Expr symbol, Scope& scope, Place where) {
    require(symbol.defined() && symbol.is_symbol(), "indices are symbols", where, "expected a symbol to bind");
    require(&symbol.pool() == kernel.pool.get(), "one pool", where, "{} is of another pool", symbol.name());
    require(symbols.emplace(symbol.symbol_id(), Symbol::Visible).second, "symbols are bound once", where,
            "{} is bound before or is an integer parameter", symbol.name());
    scope.symbols.push_back(symbol.symbol_id());
  }

  // Operations -------------------------------------------------------------------------------------------------------

  Dtype operand(const Op& op, int position, Place where) const {
    const ValueId id = op.operands[position];
    require(id >= 0 && static_cast<size_t>(id) < values.size(), "operands exist", where, "there is no value %{}", id);
    require(values[id].dtype.has_value(), "operands are defined before", where, "%{} is not yet defined", id);
    require(values[id].visible, "operands are visible", where,
            "%{} belongs to a loop that ended, or is a reduction whose loop has not ended", id);
    return *values[id].dtype;
  }

  void expect_operand(const Op& op, int position, Dtype expected, Place where) const {
    const Dtype given = operand(op, position, where);
    require(given == expected, "operand dtypes", where, "expected %{} to be {}, got {}", op.operands[position],
            name(expected), name(given));
  }

  const Buffer& buffer_of(const Op& op, Place where) const {
    require(op.buffer >= 0 && static_cast<size_t>(op.buffer) < kernel.buffers.size(), "buffers exist", where,
            "there is no buffer {}", op.buffer);
    const Buffer& buffer = kernel.buffers[op.buffer];
    check_expr(op.index, where);
    require(op.dtype == compute_dtype(buffer.dtype), "access dtypes", where, "expected {} for a buffer of {}, got {}",
            name(compute_dtype(buffer.dtype)), name(buffer.dtype), name(op.dtype));
    return buffer;
  }

  void check_constant(const Op& op, Place where) const {
    constexpr std::string_view kRule = "constants fit their dtype";
    require(op.number.is_real == is_floating(op.dtype), kRule, where, "a {} number for {}",
            op.number.is_real ? "real" : "integer", name(op.dtype));
    if (op.number.is_real) {
      const bool exact = op.dtype == Dtype::Float64 || std::isnan(op.number.real) ||
                         static_cast<double>(static_cast<float>(op.number.real)) == op.number.real;
      require(exact, kRule, where, "{} is not a float32", op.number.real);
      return;
    }
    const int bits = static_cast<int>(size_of(op.dtype)) * 8;
    const bool is_signed = traits(op.dtype).is_signed;
    const int64_t high = op.dtype == Dtype::Bool ? 1 : bits == 64 ? INT64_MAX : (int64_t{1} << (bits - is_signed)) - 1;
    const int64_t low = is_signed ? -high - 1 : 0;
    require(low <= op.number.integer && op.number.integer <= high, kRule, where, "expected a number in [{}, {}]", low,
            high);
  }

  void check_special(const Op& op, Scope& scope, Place where) {
    switch (op.code) {
      case OpCode::Constant: return check_constant(op, where);
      case OpCode::Parameter:
        require(op.parameter >= 0 && static_cast<size_t>(op.parameter) < kernel.scalars.size(), "parameters exist",
                where, "there is no scalar parameter {}", op.parameter);
        return require(op.dtype == kernel.scalars[op.parameter].dtype, "parameter dtypes", where, "the parameter is {}",
                       name(kernel.scalars[op.parameter].dtype));
      case OpCode::Index:
        require(op.dtype == Dtype::Int64, "result dtypes", where, "expected int64, got {}", name(op.dtype));
        return check_expr(op.index, where);
      case OpCode::Load: {
        const Buffer& buffer = buffer_of(op, where);
        if (op.operands[0] != kNone) expect_operand(op, 0, Dtype::Bool, where);
        const bool written = buffer.role != BufferRole::In && buffer.role != BufferRole::InOut;
        return require(!written || stored[op.buffer], "loads of what was stored", where,
                       "{} is {} and nothing was stored to it before", buffer.name, name(buffer.role));
      }
      case OpCode::Store: {
        const Buffer& buffer = buffer_of(op, where);
        require(buffer.role != BufferRole::In, "no stores to inputs", where, "{} is {}", buffer.name,
                name(buffer.role));
        stored[op.buffer] = true;
        return expect_operand(op, 0, op.dtype, where);
      }
      case OpCode::Random:
        require(op.dtype == Dtype::Int64, "result dtypes", where, "expected int64, got {}", name(op.dtype));
        check_expr(op.index, where);
        expect_operand(op, 0, Dtype::Int64, where);
        return expect_operand(op, 1, Dtype::Int64, where);
      case OpCode::Check:
        require(op.parameter >= 0 && static_cast<size_t>(op.parameter) < kernel.checks.size(), "checks have messages",
                where, "there is no message {}", op.parameter);
        return expect_operand(op, 0, Dtype::Bool, where);
      default: expect_operand(op, 0, Dtype::Int64, where); return bind_symbol(op.index, scope, where);
    }
  }

  void check_typing(const Op& op, const OpRow& entry, Scope& scope, Place where) {
    constexpr std::string_view kRule = "dtypes that the operation is defined for";
    const int count = entry.traits.operands;
    switch (entry.typing) {
      case Typing::Special: return check_special(op, scope, where);
      case Typing::Uniform:
        for (int i = 0; i < count; ++i) expect_operand(op, i, op.dtype, where);
        return require(is_allowed(entry.traits, op.dtype), kRule, where, "not for {}", name(op.dtype));
      case Typing::Predicate: {
        require(op.dtype == Dtype::Bool, "result dtypes", where, "expected bool, got {}", name(op.dtype));
        const Dtype common = operand(op, 0, where);
        for (int i = 1; i < count; ++i) expect_operand(op, i, common, where);
        return require(is_allowed(entry.traits, common), kRule, where, "not for {}", name(common));
      }
      case Typing::Convert: operand(op, 0, where); return;
      case Typing::Choose:
        expect_operand(op, 0, Dtype::Bool, where);
        for (int i = 1; i < count; ++i) expect_operand(op, i, op.dtype, where);
        return;
    }
  }

  void check_op(const Op& op, Scope& scope) {
    const Place where = op;
    require(op.code < OpCode::Count_, "operations exist", where, "not an operation");
    const OpRow& entry = row(op.code);
    require(!is_narrow(op.dtype), "no narrow floats in arithmetic", where, "the value is {}", name(op.dtype));
    if (op.has_rounding) {
      require(op.code == OpCode::Cast && op.dtype == Dtype::Float32 && is_narrow(op.rounded), "rounding casts", where,
              "only a cast to float32 rounds, and to a narrow float; got {} to {}", name(op.dtype), name(op.rounded));
    }
    // A load may have a condition besides.
    for (int i = entry.traits.operands + (op.code == OpCode::Load ? 1 : 0); i < 3; ++i) {
      require(op.operands[i] == kNone, "operand counts", where, "expected {} operands", entry.traits.operands);
    }
    check_typing(op, entry, scope, where);
    if (op.code == OpCode::Reduce) {
      require(scope.loop && scope.loop->reduction, "reductions stand in reduction loops", where, "the loop is none");
      require((op.dtype == Dtype::Bool) == row(op.reduce).booleans, "dtypes that the operation is defined for", where,
              "not for {}", name(op.dtype));
    }
    if (!has_result(op.code)) {
      return require(op.result == kNone, "results", where, "it has none, got %{}", op.result);
    }
    require(op.result >= 0 && static_cast<size_t>(op.result) < values.size(), "results", where,
            "expected a value below %{}", values.size());
    Value& value = values[op.result];
    require(!value.dtype.has_value(), "values are defined once", where, "%{} is defined before", op.result);
    value = {op.dtype, op.code != OpCode::Reduce};
    (op.code == OpCode::Reduce ? scope.reduces : scope.values).push_back(op.result);
  }

  // Loops ------------------------------------------------------------------------------------------------------------

  void check_loop(const Loop& loop, Scope& outer) {
    const Place where = loop;
    check_expr(loop.extent, where);
    if (loop.parallel) {
      require(outer.loop == nullptr && kernel.body.size() == 1, "a parallel loop is outermost and alone", where,
              "expected it to be the kernel's only statement");
      require(!loop.reduction, "a parallel loop is no reduction", where, "its iterations are split between threads");
    }
    require(!loop.pairwise || (loop.reduction && !loop.vector), "a pairwise loop is a plain reduction", where,
            "its values are combined in a tree, one at a time");
    require(!loop.vector || !outer.has_vector, "one vector loop on a path", where, "a loop around it is vector");
    Scope scope;
    scope.loop = &loop;
    scope.has_vector = outer.has_vector || loop.vector;
    bind_symbol(loop.index, scope, where);
    check_block(loop.body, scope);
    for (ValueId id : scope.values) values[id].visible = false;
    for (int32_t id : scope.symbols) symbols[id] = Symbol::Ended;
    for (ValueId id : scope.reduces) {
      values[id].visible = true;
      outer.values.push_back(id);
    }
  }

  void check_block(const Block& block, Scope& scope) {
    for (const Statement& statement : block) {
      if (const Op* op = std::get_if<Op>(&statement)) {
        check_op(*op, scope);
      } else {
        check_loop(*std::get<std::unique_ptr<Loop>>(statement), scope);
      }
    }
  }
};

}  // namespace

void verify(const Kernel& kernel) try {
  TENON_ASSERT(kernel.pool != nullptr, "kernel {} has no pool", kernel.name);
  Verifier verifier(kernel);
  verifier.check_declarations();
  Verifier::Scope top;
  verifier.check_block(kernel.body, top);
} catch (...) {
  support::rethrow_named("verify");
}

}  // namespace tenon::loop
