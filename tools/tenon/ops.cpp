// `tenon ops`: the operator table.
#include <fmt/format.h>
#include <tenon/dispatch/registration.h>
#include <tenon/ops/row.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "commands.h"

namespace tool {
namespace {

using namespace tenon;

const char* text_of(ops::Kind kind) {
  constexpr const char* kNames[] = {"pointwise", "reduction", "element", "view", "composite", "opaque"};
  return kNames[static_cast<size_t>(kind)];
}

// The compiler's path, from `src` on.
std::string place_of(const ops::Row& row) {
  std::string file = row.file ? row.file : "?";
  if (size_t at = file.rfind("src/"); at != std::string::npos) file = file.substr(at);
  return fmt::format("{}:{}", file, row.line);
}

// The number of single-letter edits from one word to another.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

// "add": all overloads; "add.Tensor" and "aten::add.Tensor": that one.
std::vector<const dispatch::Operator*> find(const std::string& name) {
  std::vector<const dispatch::Operator*> found, all = dispatch::all_operators();
  for (const dispatch::Operator* op : all)
    if (op->name() == name || op->name() == "aten::" + name || op->brief_name() == name) found.push_back(op);
  if (!found.empty()) return found;
  std::sort(all.begin(), all.end(), [&](const auto* a, const auto* b) {
    return std::pair(distance(a->brief_name(), name), a->name()) <
           std::pair(distance(b->brief_name(), name), b->name());
  });
  std::vector<std::string> near;
  for (const dispatch::Operator* op : all)
    if (near.size() < 3 && std::find(near.begin(), near.end(), op->brief_name()) == near.end())
      near.push_back(op->brief_name());
  fail("[ops] there is no operator '{}': the nearest names are {}", name, fmt::join(near, ", "));
}

// Where the rows stand that have the text in their names, by file and line. Forms that follow from a row are not shown.
void print_places(const std::string& text) {
  std::vector<const ops::Row*> found;
  for (const dispatch::Operator* op : dispatch::all_operators())
    if (const ops::Row* row = ops::row_of(*op); row && !row->inplace() && op->name().find(text) != std::string::npos)
      found.push_back(row);
  if (found.empty() && !find(text).empty()) fmt::print("{} is not in the table\n", text);
  auto place = [](const ops::Row* row) { return std::pair(std::string_view(row->file), row->line); };
  std::sort(found.begin(), found.end(), [&](const auto* a, const auto* b) { return place(a) < place(b); });
  for (const ops::Row* row : found) fmt::print("{:<44} {}\n", place_of(*row), row->schema.str());
}

void print_all() {
  for (const dispatch::Operator* op : dispatch::all_operators()) {
    const ops::Row* row = ops::row_of(*op);
    fmt::print("{:<10} {:<26} {}\n", row ? text_of(row->kind) : "custom", row ? place_of(*row) : "",
               op->schema().str());
  }
}

void print_one(const dispatch::Operator& op) {
  fmt::print("{}\n", op.schema().str());
  const ops::Row* row = ops::row_of(op);
  if (!row) {
    fmt::print("  not in the table\n");
    return;
  }
  fmt::print("  {}, family {}, {}\n", text_of(row->kind), row->family, place_of(*row));
  if (row->inplace()) fmt::print("  in-place form of {}\n", row->functional_op->name());
  if (row->inplace_op) fmt::print("  in-place form: {}\n", row->inplace_op->name());
  for (const ops::GradRule& rule : row->grads)
    fmt::print("  gradient of {}, saves {}\n", rule.input,
               rule.saves.empty() ? "nothing" : fmt::format("{}", fmt::join(rule.saves, ", ")));
  if (row->grads.empty())
    fmt::print("  {}\n", row->kind == ops::Kind::Composite ? "gradients through its parts" : "no gradients");
}

}  // namespace

int run_ops(const Words& words) {
  if (words.empty()) {
    print_all();
    return 0;
  }
  const bool dispatch_wanted = words[0] == "--dispatch", places_wanted = words[0] == "--find";
  const bool is_option = dispatch_wanted || places_wanted;
  if (!is_option && words[0].starts_with('-'))
    throw UsageError(fmt::format("[ops] unknown option '{}': expected --dispatch or --find", words[0]));
  if (words.size() != (is_option ? 2u : 1u))
    throw UsageError(fmt::format("[ops] expected one operator's name, got {} words", words.size() - is_option));
  if (places_wanted) {
    print_places(words.back());
    return 0;
  }
  for (const dispatch::Operator* op : find(words.back())) {
    if (dispatch_wanted)
      fmt::print("{}", dispatch::dispatch_table(*op));
    else
      print_one(*op);
  }
  return 0;
}

}  // namespace tool
