#include "fuzz/program.h"

#include <functional>
#include <map>
#include <set>
#include <string_view>

namespace tenon::fuzz {
namespace {

using Change = std::vector<Program>;  // candidates

void rename(std::vector<int>& values, const std::map<int, int>& names) {
  for (int& value : values)
    if (auto found = names.find(value); found != names.end()) value = found->second;
}

void rename(Program& program, const std::map<int, int>& names) {
  each_statement(program.statements, [&](Statement& statement) {
    for (std::vector<int>* list : {&statement.operands, &statement.results, &statement.parameters, &statement.returns})
      rename(*list, names);
  });
  rename(program.outputs, names);
}

// The block and position of statement number `at`, in the order of `each_statement`.
std::pair<std::vector<Statement>*, size_t> locate(std::vector<Statement>& block, size_t& at) {
  for (size_t here = 0; here < block.size(); ++here) {
    if (at-- == 0) return {&block, here};
    if (auto found = locate(block[here].body, at); found.first) return found;
  }
  return {nullptr, 0};
}

size_t count_statements(const Program& program) {
  size_t count = 0;
  each_statement(program.statements, [&](const Statement&) { ++count; });
  return count;
}

// Without a statement; who reads its results reads its first operand instead.
bool without_statement(Program& program, size_t at) {
  auto [block, here] = locate(program.statements, at);
  Statement gone = (*block)[here];
  if (!gone.results.empty() && gone.operands.empty()) return false;
  block->erase(block->begin() + static_cast<ptrdiff_t>(here));
  std::map<int, int> names;
  for (int result : gone.results) names[result] = gone.operands[0];
  std::function<void(const std::vector<Statement>&)> inside = [&](const std::vector<Statement>& body) {
    for (const Statement& each : body) {
      // Values made in a scope are seen behind it.
      for (int result : each.results)
        if (!each.operands.empty()) names[result] = each.operands[0];
      if (each.kind == Kind::Scope) inside(each.body);
    }
  };
  if (gone.kind == Kind::Scope) inside(gone.body);
  // A chain of statements that went together.
  for (auto& [from, to] : names)
    for (auto next = names.find(to); next != names.end(); next = names.find(to)) to = next->second;
  rename(program, names);
  return true;
}

// What a scope or an inner function does, without it.
bool unwrapped(Program& program, size_t at) {
  auto [block, here] = locate(program.statements, at);
  Statement gone = (*block)[here];
  if (gone.body.empty()) return false;
  block->erase(block->begin() + static_cast<ptrdiff_t>(here));
  block->insert(block->begin() + static_cast<ptrdiff_t>(here), gone.body.begin(), gone.body.end());
  std::map<int, int> names;
  for (size_t each = 0; each < gone.parameters.size(); ++each) names[gone.parameters[each]] = gone.operands[each];
  for (size_t each = 0; each < gone.results.size(); ++each) names[gone.results[each]] = gone.returns[each];
  for (auto& [from, to] : names)
    if (auto next = names.find(to); next != names.end()) to = next->second;
  rename(program, names);
  return true;
}

template <typename T>
void drop(std::vector<T>& list, size_t at) {
  list.erase(list.begin() + static_cast<ptrdiff_t>(at));
}

// Everything that is one step smaller, the largest steps first.
Change smaller(const Program& program) {
  Change candidates;
  auto add = [&](auto change) {
    Program candidate = program;
    if (change(candidate)) candidates.push_back(std::move(candidate));
  };
  if (program.calls.size() > 1) add([](Program& p) { return p.calls.pop_back(), true; });
  for (size_t at = count_statements(program); at-- > 0;) add([&](Program& p) { return without_statement(p, at); });
  for (size_t at = count_statements(program); at-- > 0;) add([&](Program& p) { return unwrapped(p, at); });
  for (size_t at = program.outputs.size(); at-- > 0 && program.outputs.size() > 1;)
    add([&](Program& p) {
      // Actions name results by position.
      int gone = static_cast<int>(p.bases.size() + p.sources.size() + at);
      for (Action& action : p.after.actions) {
        if (action.target == gone || action.other == gone) return false;
        action.target -= action.target > gone;
        action.other -= action.other > gone;
      }
      drop(p.outputs, at);
      return true;
    });
  for (size_t at = program.after.actions.size(); at-- > 0;)
    add([&](Program& p) { return drop(p.after.actions, at), true; });
  if (program.after.order > 0) add([](Program& p) { return --p.after.order, true; });
  if (program.after.of_bases) add([](Program& p) { return !(p.after.of_bases = false); });
  if (program.after.between) add([](Program& p) { return !(p.after.between = false); });
  if (!program.grad_mode) add([](Program& p) { return p.grad_mode = true; });
  if (program.old_live) add([](Program& p) { return !(p.old_live = false); });
  if (program.verify) add([](Program& p) { return !(p.verify = false); });
  for (size_t at = 0; at < program.calls.size(); ++at) {
    if (program.calls[at].sizes > 0) add([&](Program& p) { return p.calls[at].sizes = 0, true; });
    if (program.calls[at].transposed) add([&](Program& p) { return !(p.calls[at].transposed = false); });
    if (program.calls[at].remake) add([&](Program& p) { return !(p.calls[at].remake = false); });
    if (program.calls[at].contents != Contents::Ordinary)
      add([&](Program& p) { return p.calls[at].contents = Contents::Ordinary, true; });
  }
  for (size_t at = 0; at < program.sources.size(); ++at) {
    for (size_t call = 1; call < program.sources[at].views.size(); ++call)
      if (!(program.sources[at].views[call] == program.sources[at].views[0]))
        add([&](Program& p) { return p.sources[at].views[call] = p.sources[at].views[0], true; });
    if (program.sources[at].role != Role::Argument)
      add([&](Program& p) { return p.sources[at].role = Role::Argument, true; });
  }
  for (size_t at = 0; at < program.bases.size(); ++at) {
    if (program.bases[at].placement != 0) add([&](Program& p) { return p.bases[at].placement = 0, true; });
    if (program.bases[at].computed) add([&](Program& p) { return !(p.bases[at].computed = false); });
    if (program.bases[at].kept) add([&](Program& p) { return !(p.bases[at].kept = false); });
    if (program.bases[at].requires_grad && !program.bases[at].computed)
      add([&](Program& p) { return !(p.bases[at].requires_grad = false); });
  }
  for (std::string_view dynamic : {"Off", "On"})
    for (size_t at = 0; at < program.dynamic.size(); ++at)
      if (program.dynamic[at] == "Auto") add([&](Program& p) { return p.dynamic[at] = dynamic, true; });
  return candidates;
}

// Sources and bases that nobody looks at.
bool drop_unused(Program& program) {
  std::set<int> read(program.outputs.begin(), program.outputs.end());
  each_statement(program.statements,
                 [&](const Statement& each) { read.insert(each.operands.begin(), each.operands.end()); });
  if (!program.after.actions.empty()) return false;
  for (size_t at = program.sources.size(); at-- > 0 && program.sources.size() > 1;) {
    if (read.count(static_cast<int>(at))) continue;
    drop(program.sources, at);
    std::map<int, int> names;
    for (int value = static_cast<int>(at) + 1; value < program.values; ++value) names[value] = value - 1;
    --program.values;
    rename(program, names);
    return true;
  }
  for (size_t at = program.bases.size(); at-- > 0;) {
    bool seen = false;
    for (const Source& source : program.sources)
      for (const View& view : source.views) seen |= view.base == at;
    if (seen) continue;
    drop(program.bases, at);
    for (Source& source : program.sources)
      for (View& view : source.views) view.base -= view.base > at;
    return true;
  }
  return false;
}

}  // namespace

void renumber(Program& program) {
  std::map<int, int> names;
  int next = static_cast<int>(program.sources.size());
  each_statement(program.statements, [&](const Statement& statement) {
    for (const std::vector<int>* list : {&statement.parameters, &statement.results})
      for (int value : *list)
        if (!names.count(value)) names[value] = next++;
  });
  rename(program, names);
  program.values = next;
}

Program reduce(Program program) {
  return reduce(std::move(program), [](const Program& candidate) { return bool(check(candidate)); });
}

Program reduce(Program program, const std::function<bool(const Program&)>& wanted, int tries) {
  for (bool shorter = true; shorter && tries > 0;) {
    shorter = false;
    for (Program& candidate : smaller(program)) {
      if (--tries <= 0) break;
      while (drop_unused(candidate)) {
      }
      if (!runs_eagerly(candidate, true) || !wanted(candidate)) continue;
      program = std::move(candidate);
      shorter = true;
      break;
    }
  }
  renumber(program);
  return program;
}

}  // namespace tenon::fuzz
