// A program as C++ text. What is not particular to it is in printed.h.
#include "fuzz/print.h"
#include "fuzz/grammar.h"
#include "fuzz/world.h"

#include <tenon/tenon.h>

#include <cctype>
#include <cmath>

namespace tenon::fuzz {

std::string replace_word(const std::string& text, std::string_view word, const std::string& by) {
  std::string result;
  auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at + word.size();
    bool here = text.compare(at, word.size(), word) == 0 && (at == 0 || !part(text[at - 1])) &&
                (end >= text.size() || !part(text[end]));
    result += here ? by : std::string(1, text[at]);
    at = here ? end : at + 1;
  }
  return result;
}

std::string expression(const Statement& statement) {
  std::string text = operations()[statement.operation].text;
  text = replace_word(text, "n", std::to_string(statement.n));
  text = replace_word(text, "x", fmt::format("v{}", statement.operands[0]));
  return replace_word(text, "y", fmt::format("v{}", statement.operands.back()));
}

std::string names(const std::vector<int>& values) {
  std::vector<std::string> list;
  for (int value : values) list.push_back(fmt::format("v{}", value));
  return fmt::format("{}", fmt::join(list, ", "));
}

namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  return fmt::format("{}", value);
}

// An expression for the tensor, with its values and where they lie in memory.
std::string tensor_text(const Tensor& tensor) {
  int64_t count = tensor.storage_offset() + core::reach(tensor.sizes(), tensor.strides());
  Tensor memory = core::make_view(tensor, SymInts{SymInt(count)}, SymInts{SymInt(1)}, 0).to(kFloat64);
  std::vector<std::string> values;
  for (int64_t at = 0; at < count; ++at) values.push_back(number_text(memory.data<double>()[at]));
  return fmt::format(
      "core::make_view(tensor(std::vector<double>{{{}}}, kFloat64).to(*dtype_from_name(\"{}\")), SymInts{{{}}}, "
      "SymInts{{{}}}, {})",
      fmt::join(values, ", "), name(tensor.dtype()), fmt::join(tensor.sizes(), ", "), fmt::join(tensor.strides(), ", "),
      tensor.storage_offset());
}

class Printer {
 public:
  Printer(const Program& program, const Finding& finding) : program_(program), finding_(finding) {}

  std::string print() {
    text_ = fmt::format("// seed {}: {}\n", program_.seed, finding_.text.substr(0, finding_.text.find('\n')));
    text_ +=
        "#include \"fuzz/printed.h\"\n\n#include <cmath>\n\nusing namespace tenon;\nusing namespace tenon::fuzz;\n\n";
    print_helpers();
    for (size_t at = 0; at < program_.sources.size(); ++at) {
      if (program_.sources[at].role == Role::Closure) text_ += fmt::format("Tensor closure{};\n", at);
      if (program_.sources[at].role == Role::Cell) text_ += fmt::format("Cell<Tensor> cell{};\n", at);
    }
    print_function();
    print_prepare();
    print_main();
    return std::move(text_);
  }

 private:
  void line(int depth, const std::string& text) {
    text_ += std::string(static_cast<size_t>(depth) * 2, ' ') + text + "\n";
  }

  void print_helpers() {
    bool used = false;
    each_statement(program_.statements, [&](const Statement& statement) {
      if (statement.kind != Kind::Operation) return;
      std::string_view text = operations()[statement.operation].text;
      for (std::string_view name : {"positives(", "positive_rows(", "first_number("})
        used |= text.find(name) != std::string_view::npos;
    });
    if (used) text_ += std::string("[[maybe_unused]] ") + kHelpers + "\n\n";
  }

  void print_function() {
    text_ += "std::vector<Tensor> function([[maybe_unused]] const std::vector<Tensor>& in) {\n";
    size_t argument = 0;
    for (size_t at = 0; at < program_.sources.size(); ++at) switch (program_.sources[at].role) {
        case Role::Argument: line(1, fmt::format("Tensor v{} = in[{}];", at, argument++)); break;
        case Role::Closure: line(1, fmt::format("Tensor v{} = closure{};", at, at)); break;
        case Role::Cell: line(1, fmt::format("Tensor v{} = cell{}.get();", at, at)); break;
      }
    print_block(program_.statements, 1, "Tensor ");
    line(1, fmt::format("return {{{}}};", names(program_.outputs)));
    text_ += "}\n\n";
  }

  // `declare` is empty where the values are declared already.
  void print_block(const std::vector<Statement>& block, int depth, const std::string& declare) {
    for (const Statement& statement : block) print_statement(statement, depth, declare);
  }

  void print_list(const Statement& statement, int depth, const std::string& declare, const std::string& list) {
    if (statement.results.empty()) return line(depth, list + ";");
    int first = statement.results[0];
    line(depth, fmt::format("std::vector<Tensor> list{} = {};", first, list));
    for (size_t at = 0; at < statement.results.size(); ++at)
      line(depth, fmt::format("{}v{} = list{}[{}];", declare, statement.results[at], first, at));
  }

  void print_statement(const Statement& statement, int depth, const std::string& declare) {
    std::string x = statement.operands.empty() ? "" : fmt::format("v{}", statement.operands[0]);
    switch (statement.kind) {
      case Kind::Operation:
        return line(depth, fmt::format("{}v{} = {};", declare, statement.results[0], expression(statement)));
      case Kind::GradMode: return line(depth, fmt::format("autograd::set_grad_enabled({});", statement.n != 0));
      case Kind::Scope: {
        std::vector<int> made;
        each_statement(statement.body, [&](const Statement& each) {
          if (each.kind != Kind::Scope) made.insert(made.end(), each.results.begin(), each.results.end());
        });
        if (!made.empty() && !declare.empty()) line(depth, fmt::format("Tensor {};", names(made)));
        line(depth, "{");
        line(depth + 1, fmt::format("autograd::SetGradMode mode({});", statement.n != 0));
        print_block(statement.body, depth + 1, "");
        return line(depth, "}");
      }
      case Kind::Seed: return line(depth, fmt::format("manual_seed({});", statement.n));
      case Kind::Hook:
        line(depth, fmt::format("autograd::register_hook({}, [](const Tensor& gradient) {{", x));
        line(depth + 1, "if (!gradient.defined()) return gradient;");
        line(depth + 1, fmt::format("hook_calls[{}] += !gradient.is_fake();", statement.n));
        line(depth + 1, fmt::format("return gradient * {};", statement.n));
        return line(depth, "});");
      case Kind::RequiresGrad: return line(depth, fmt::format("{}.set_requires_grad({});", x, statement.n != 0));
      case Kind::Grad:
        return print_list(
            statement, depth, declare,
            fmt::format("gradients_of({}, {{{}}}, {})", x,
                        names({statement.operands.begin() + 1, statement.operands.end()}), statement.n != 0));
      case Kind::Backward: return line(depth, fmt::format("sum({}).backward({{}}, true, {});", x, statement.n != 0));
      case Kind::Rate: return line(depth, fmt::format("{}v{} = {} * rate.get();", declare, statement.results[0], x));
      case Kind::Custom:
        return print_list(statement, depth, declare,
                          fmt::format("call_custom(\"{}\", std::vector<Tensor>{{{}}}, {})",
                                      program_.custom[statement.operation], names(statement.operands), statement.n));
      case Kind::Formula:
        return line(depth,
                    fmt::format("{}v{} = outside_formula({}, {});", declare, statement.results[0], x, statement.n));
      case Kind::Inner: return print_inner(statement, depth, declare);
      case Kind::Loop: {
        print_body(statement, depth);
        return print_list(statement, depth, declare,
                          fmt::format("run_loop(body{}, {{{}}}, {})", statement.parameters[0],
                                      names(statement.operands), statement.n != 0));
      }
      case Kind::Branch:
        print_body(statement, depth);
        return print_list(statement, depth, declare,
                          fmt::format("run_branch(body{}, {{{}}}, {})", statement.parameters[0],
                                      names(statement.operands), statement.n != 0));
      case Kind::While:
        print_body(statement, depth);
        return print_list(statement, depth, declare,
                          fmt::format("run_while(body{}, {{{}}})", statement.parameters[0], names(statement.operands)));
    }
  }

  void print_body(const Statement& statement, int depth) {
    int id = statement.parameters[0];
    line(depth, fmt::format("auto body{} = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {{", id));
    for (size_t at = 0; at < statement.parameters.size(); ++at)
      line(depth + 1, fmt::format("Tensor v{} = in[{}];", statement.parameters[at], at));
    print_block(statement.body, depth + 1, "Tensor ");
    line(depth + 1, fmt::format("return {{{}}};", names(statement.returns)));
    line(depth, "};");
  }

  void print_inner(const Statement& statement, int depth, const std::string& declare) {
    print_body(statement, depth);
    int id = statement.parameters[0];
    std::string backend = finding_.options.substr(std::min(finding_.options.find(".backend"), finding_.options.size()));
    line(depth, statement.n == 0 ? fmt::format("static auto inner{} = compile(body{}, {{{}}});", id, id,
                                               backend.substr(0, backend.find(',')))
                                 : fmt::format("auto inner{} = disable(body{});", id, id));
    print_list(statement, depth, declare,
               fmt::format("plain ? body{}({{{}}}) : inner{}(std::vector<Tensor>{{{}}})", id, names(statement.operands),
                           id, names(statement.operands)));
  }

  void print_prepare() {
    text_ += "std::vector<Tensor> prepare(Around& around, int call) {\n";
    line(1, "EnableGrad on;");
    line(1, fmt::format("around.made.assign({}, false);", program_.bases.size()));
    for (const char* list : {"leaves", "bases"})
      line(1, fmt::format("around.{}.resize({});", list, program_.bases.size()));
    line(1, fmt::format("around.sources.resize({});", program_.sources.size()));
    for (size_t call = 0; call < finding_.calls && call < program_.calls.size(); ++call) {
      line(1, fmt::format("if (call == {}) {{", call));
      for (size_t base = 0; base < program_.bases.size(); ++base) print_base(base, call);
      for (size_t source = 0; source < program_.sources.size(); ++source) print_source(source, call);
      line(2, fmt::format("rate.set({});", kRates[call % std::size(kRates)]));
      line(1, "}");
    }
    line(1, "set_outside(static_cast<size_t>(call));");
    line(1, fmt::format("manual_seed({} + call);", program_.seed));
    std::vector<std::string> arguments;
    for (size_t at = 0; at < program_.sources.size(); ++at)
      if (program_.sources[at].role == Role::Argument) arguments.push_back(fmt::format("around.sources[{}]", at));
    line(1, fmt::format("return {{{}}};", fmt::join(arguments, ", ")));
    text_ += "}\n\n";
  }

  void print_base(size_t base, size_t call) {
    const Base& row = program_.bases[base];
    bool may_stay = row.kept && call > 0 && !program_.calls[call].remake &&
                    program_.calls[call].sizes == program_.calls[call - 1].sizes;
    line(2, may_stay ? fmt::format("if (around.bases[{}].is_leaf()) {{", base) : "{");
    if (may_stay) {
      line(3, fmt::format("around.leaves[{}].set_grad(Tensor());", base));
      line(2, "} else {");
    }
    if (row.kept && call > 0 && program_.old_live)
      line(3, fmt::format("around.old.push_back(around.bases[{}]);", base));
    line(3, fmt::format("around.leaves[{}] =", base));
    line(5, tensor_text(make_base(program_, base, call)) + (row.requires_grad ? ".set_requires_grad();" : ";"));
    line(3, fmt::format("around.bases[{0}] = around.leaves[{0}]{1};", base, row.computed ? " * 1.5" : ""));
    line(3, fmt::format("around.made[{}] = true;", base));
    line(2, "}");
  }

  void print_source(size_t source, size_t call) {
    const std::vector<View>& by_call = program_.sources[source].views;
    const View& view = by_call[std::min(call, by_call.size() - 1)];
    bool same = call > 0 && view == by_call[std::min(call - 1, by_call.size() - 1)];
    int depth = 2;
    if (same) line(depth++, fmt::format("if (around.made[{}]) {{", view.base));
    line(depth, fmt::format("around.sources[{}] = {};", source,
                            replace_word(views()[view.view].text, "base", fmt::format("around.bases[{}]", view.base))));
    if (program_.sources[source].role == Role::Closure)
      line(depth, fmt::format("closure{0} = around.sources[{0}];", source));
    if (program_.sources[source].role == Role::Cell)
      line(depth, fmt::format("cell{0}.set(around.sources[{0}]);", source));
    if (same) line(2, "}");
  }

  void print_main() {
    text_ += "int main() {\n";
    if (!program_.after.actions.empty()) {
      line(1, "auto act = [](const std::vector<Tensor>& all) {");
      for (const Action& action : program_.after.actions) {
        std::string text =
            replace_word(operations()[action.operation].text, "x", fmt::format("all[{}]", action.target));
        line(2, replace_word(text, "y", fmt::format("all[{}]", action.other)) + ";");
      }
      line(1, "};");
    }
    std::string prepare = "prepare";
    if (!program_.grad_mode) {
      line(1, "auto without_grad = [](Around& around, int call) {");
      line(2, "std::vector<Tensor> arguments = prepare(around, call);");
      line(2, "autograd::set_grad_enabled(false);");
      line(2, "return arguments;");
      line(1, "};");
      prepare = "without_grad";
    }
    line(1, fmt::format("return show({{function, {}, {}, {{{}}}, {}, {}, {}, {}{}}});", prepare,
                        program_.after.actions.empty() ? "nullptr" : "act", finding_.options,
                        std::min(finding_.calls, program_.calls.size()), program_.after.order, program_.after.of_bases,
                        program_.after.between, finding_.walks ? ", true" : ""));
    text_ += "}\n";
  }

  const Program& program_;
  const Finding& finding_;
  std::string text_;
};

}  // namespace

std::string source(const Program& program, const Finding& finding) { return Printer(program, finding).print(); }

}  // namespace tenon::fuzz
