// A program as Python text, for peer.py. Texts of the table are C++; what differs is replaced.
#include "fuzz/grammar.h"
#include "fuzz/peer.h"
#include "fuzz/print.h"

#include <cmath>
#include <regex>

namespace tenon::fuzz {
namespace {

// Rows that no replacement makes Python.
const std::map<std::string, std::string>& written_otherwise() {
  static const std::map<std::string, std::string> table = {
      {"bool(first_number(x).item<SymFloat>() > 0.0) ? x + 1 : x - 1",
       "x + 1 if first_number(x).item() > 0.0 else x - 1"},
      {"x.grad().defined() ? x.grad() * 2 : x * 3", "x.grad * 2 if x.grad is not None else x * 3"},
      {"(graph_break(), cos(x))", "cos(x)"},
      {"(graph_break(), x)", "x"},
      {"slice(base, 0, 0, base.sizes()[0] / 2)", "slice(base, 0, 0, base.shape[0] // 2)"},
      {"slice(base, 0, base.sizes()[0] / 2)", "slice(base, 0, base.shape[0] // 2)"},
  };
  return table;
}

std::string to_python(const std::string& text) {
  if (auto found = written_otherwise().find(text); found != written_otherwise().end()) return found->second;
  static const std::vector<std::pair<std::regex, const char*>> replacements = [] {
    std::vector<std::pair<std::regex, const char*>> list;
    for (auto [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
             {"(SymInts|std::vector)\\{", "["},
             {"\\{", "["},
             {"\\}", "]"},
             {"\\bk(Float|Int|UInt|BFloat)(\\d+)\\b", "torch.$1$2"},
             {"\\bkBool\\b", "torch.bool"},
             {"\\.sym_sizes\\(\\)", ".shape"},
             {"\\.sizes\\(\\)", ".shape"},
             {"\\.strides\\(\\)", ".stride()"},
             {"\\.plain\\(\\)", ""},
             {"\\.item<\\w+>\\(\\)", ".item()"},
             {"\\.set_requires_grad\\(\\)", ".requires_grad_()"},
             {"std::get<0>\\(", "first("},
             {"static_cast<double>\\(", "float("},
             {"\\bint64_t\\(", "int("},
             {" && ", " and "},
             {"\\btrue\\b", "True"},
             {"\\bfalse\\b", "False"},
             {"torch.Float", "torch.float"},
             {"torch.Int", "torch.int"},
             {"torch.UInt", "torch.uint"},
             {"torch.BFloat", "torch.bfloat"},
             {"^(.*) \\? (.*) : (.*)$", "($2 if $1 else $3)"},
         })
      list.emplace_back(std::regex(from), to);
    return list;
  }();
  std::string result = text;
  for (const auto& [from, to] : replacements) result = std::regex_replace(result, from, to);
  return result;
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{:#}", value);  // with a point: -0 would be an integer, and lose its sign
}

const char* boolean(bool value) { return value ? "True" : "False"; }

std::string tensor_data(const Tensor& tensor) {
  int64_t count = tensor.storage_offset() + core::reach(tensor.sizes(), tensor.strides());
  Tensor memory = core::make_view(tensor, SymInts{SymInt(count)}, SymInts{SymInt(1)}, 0).to(kFloat64);
  std::vector<std::string> values;
  for (int64_t at = 0; at < count; ++at) values.push_back(number(memory.data<double>()[at]));
  return fmt::format("(torch.{}, [{}], [{}], [{}], {})", name(tensor.dtype()), fmt::join(values, ","),
                     fmt::join(tensor.sizes(), ","), fmt::join(tensor.strides(), ","), tensor.storage_offset());
}

std::string operation_text(const Statement& statement) {
  std::string text = to_python(operations()[statement.operation].text);
  text = replace_word(text, "n", std::to_string(statement.n));
  text = replace_word(text, "x", fmt::format("v{}", statement.operands[0]));
  return replace_word(text, "y", fmt::format("v{}", statement.operands.back()));
}

void print_block(const Program& program, const std::vector<Statement>& block, const std::string& indent,
                 std::string& text) {
  for (const Statement& statement : block) {
    std::string x = statement.operands.empty() ? "" : fmt::format("v{}", statement.operands[0]);
    std::string results = statement.results.empty() ? "_" : names(statement.results) + ",";
    auto line = [&](const std::string& content) { text += indent + content + "\n"; };
    switch (statement.kind) {
      case Kind::Operation: line(fmt::format("v{} = {}", statement.results[0], operation_text(statement))); break;
      case Kind::GradMode: line(fmt::format("torch.set_grad_enabled({})", boolean(statement.n))); break;
      case Kind::Scope:
        line(fmt::format("with torch.set_grad_enabled({}):", boolean(statement.n)));
        print_block(program, statement.body, indent + "  ", text);
        line("  pass");
        break;
      case Kind::Seed: break;
      case Kind::Hook: line(fmt::format("hook({}, {})", x, statement.n)); break;
      case Kind::RequiresGrad: line(fmt::format("{}.requires_grad_({})", x, boolean(statement.n))); break;
      case Kind::Grad:
        line(fmt::format("{} = gradients_of({}, [{}], {})", results, x,
                         names({statement.operands.begin() + 1, statement.operands.end()}), boolean(statement.n)));
        break;
      case Kind::Backward:
        line(fmt::format("sum({}).backward(retain_graph=True, create_graph={})", x, boolean(statement.n)));
        break;
      case Kind::Rate: line(fmt::format("v{} = {} * rate()", statement.results[0], x)); break;
      case Kind::Formula: fail("[fuzz] a Function of ours has no peer");
      case Kind::Custom: fail("[fuzz] a custom operator has no peer");
      case Kind::Loop:
      case Kind::Branch:
      case Kind::While: {
        const char* runs = statement.kind == Kind::Loop     ? "run_loop"
                           : statement.kind == Kind::Branch ? "run_branch"
                                                            : "run_while";
        line(fmt::format("def body{}({}):", statement.parameters[0], names(statement.parameters)));
        print_block(program, statement.body, indent + "  ", text);
        line(fmt::format("  return [{}]", names(statement.returns)));
        line(fmt::format("{} = {}(body{}, [{}], {})", results, runs, statement.parameters[0], names(statement.operands),
                         boolean(statement.n != 0)));
        break;
      }
      case Kind::Inner:
        line(fmt::format("def inner{}({}):", statement.parameters[0], names(statement.parameters)));
        print_block(program, statement.body, indent + "  ", text);
        line(fmt::format("  return [{}]", names(statement.returns)));
        line(fmt::format("{} = inner{}({})", results, statement.parameters[0], names(statement.operands)));
        break;
    }
  }
}

}  // namespace

std::string python_source(const Program& program) {
  std::vector<std::string> bases, sources, calls, actions, parameters;
  for (size_t base = 0; base < program.bases.size(); ++base) {
    const Base& row = program.bases[base];
    std::vector<std::string> data;
    for (size_t call = 0; call < program.calls.size(); ++call)
      data.push_back(tensor_data(make_base(program, base, call)));
    bases.push_back(fmt::format("dict(requires_grad={}, computed={}, kept={}, data=[{}])", boolean(row.requires_grad),
                                boolean(row.computed), boolean(row.kept), fmt::join(data, ", ")));
  }
  for (const Source& source : program.sources) {
    std::vector<std::string> by_call;
    for (size_t call = 0; call < program.calls.size(); ++call) {
      const View& view = source.views[std::min(call, source.views.size() - 1)];
      by_call.push_back(fmt::format("({}, lambda base: {})", view.base, to_python(views()[view.view].text)));
    }
    std::vector<std::string> numbers;
    for (size_t call = 0; call < program.calls.size(); ++call) {
      const View& view = source.views[std::min(call, source.views.size() - 1)];
      numbers.push_back(std::to_string(view.view));
    }
    sources.push_back(
        fmt::format("dict(views=[{}], numbers=[{}])", fmt::join(by_call, ", "), fmt::join(numbers, ", ")));
  }
  for (size_t at = 0; at < program.calls.size(); ++at)
    calls.push_back(fmt::format("dict(sizes={}, remake={}, rate={:.2f})", program.calls[at].sizes,
                                boolean(program.calls[at].remake), kRates[at % std::size(kRates)]));
  for (const Action& action : program.after.actions)
    actions.push_back(fmt::format("(lambda x, y: {}, {}, {})", to_python(operations()[action.operation].text),
                                  action.target, action.other));
  std::string text = fmt::format(
      "P = dict(bases=[{}], sources=[{}], calls=[{}], actions=[{}], order={}, of_bases={}, between={}, grad_mode={})\n",
      fmt::join(bases, ", "), fmt::join(sources, ", "), fmt::join(calls, ", "), fmt::join(actions, ", "),
      program.after.order, boolean(program.after.of_bases), boolean(program.after.between), boolean(program.grad_mode));
  for (size_t at = 0; at < program.sources.size(); ++at) parameters.push_back(fmt::format("v{}", at));
  text += fmt::format("def function({}):\n", fmt::join(parameters, ", "));
  print_block(program, program.statements, "  ", text);
  return text + fmt::format("  return [{}]\n", names(program.outputs));
}

bool has_peer(const Program& program) {
  bool ours = amplifies(program);
  each_statement(program.statements, [&](const Statement& statement) {
    ours |= statement.kind == Kind::Custom || statement.kind == Kind::Formula;
    ours |= statement.kind == Kind::Operation && (operations()[statement.operation].traits & kRandom);
  });
  return !ours;
}

std::vector<std::string> operators_of(const Program& program) {
  std::vector<std::string> list;
  static const std::regex name("([A-Za-z_]\\w*)\\(");
  each_statement(program.statements, [&](const Statement& statement) {
    if (statement.kind == Kind::Hook) list.push_back("hook");
    if (statement.kind == Kind::RequiresGrad) list.push_back("requires_grad_");
    if (statement.kind != Kind::Operation) return;
    std::string text = operations()[statement.operation].text;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) list.push_back((*at)[1]);
    // Operators that are written as signs.
    const std::pair<const char*, const char*> signs[] = {{" + ", "add"}, {" - ", "sub"}, {" * ", "mul"}, {" / ", "div"},
                                                         {" > ", "gt"},  {" <= ", "le"}, {" == ", "eq"}};
    for (auto [sign, word] : signs)
      if (text.find(sign) != std::string::npos) list.push_back(word);
    if (text == "-x") list.push_back("neg");
  });
  return list;
}

}  // namespace tenon::fuzz
