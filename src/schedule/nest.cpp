#include "nest.h"

#include "survey.h"

#include <algorithm>
#include <charconv>

namespace tenon::schedule {

size_t Nest::kept_count() const {
  return static_cast<size_t>(
      std::count_if(axes.begin(), axes.end(), [](const NestAxis& axis) { return !axis.reduced; }));
}

Nest make_nest(const Schedule& schedule, const Group& group) { return Survey(schedule, group).nest(); }

// Text ----------------------------------------------------------------------------------------------------------------

std::string to_string(const Nest& nest) {
  std::vector<std::string> symbols;
  for (const Expr& symbol : nest.symbols) symbols.push_back(symbol.name());
  std::string text = fmt::format("nest({})\n", fmt::join(symbols, ", "));
  auto with_hint = [](const Expr& expr, int64_t hint) {
    return expr.is_constant() ? expr.str() : fmt::format("{} = {}", expr.str(), hint);
  };
  for (size_t at = 0; at < nest.axes.size(); ++at)
    text += fmt::format("  axis a{} {} {}\n", at, nest.axes[at].reduced ? "reduced" : "kept",
                        with_hint(nest.axes[at].extent, nest.axes[at].size));
  for (size_t at = 0; at < nest.stages.size(); ++at) {
    const Stage& stage = nest.stages[at];
    text += fmt::format("  stage {}{} work {} reductions {} ordered {}\n", at, stage.full ? " full" : "", stage.work,
                        stage.reductions, stage.ordered);
  }
  for (const Access& access : nest.accesses) {
    std::vector<std::string> strides;
    for (size_t at = 0; at < access.stride.size(); ++at)
      strides.push_back(access.stride[at].defined() ? with_hint(access.stride[at], access.step[at]) : "?");
    text += fmt::format("  {} v{} {} stage {}{}{} [{}]\n", access.store ? "store" : "load", access.value,
                        traits(access.dtype).brief, access.stage, access.kept_only ? " kept" : "",
                        access.indirect ? " indirect" : "", fmt::join(strides, ", "));
  }
  for (const Reused& reused : nest.reused)
    text += fmt::format("  reused v{} stage {} work {}\n", reused.value, reused.stage, reused.work);
  return text;
}

namespace {

// Words of one line, and what stands between brackets.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) { skip(); }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    if (rest_.size() > word.size() && std::isalnum(static_cast<unsigned char>(rest_[word.size()])) &&
        std::isalnum(static_cast<unsigned char>(word.back())))
      return false;
    rest_.remove_prefix(word.size());
    skip();
    return true;
  }
  void expect(std::string_view word) { TENON_CHECK(take(word), "[parse_nest] expected '{}' before '{}'", word, rest_); }
  int64_t integer() {
    int64_t value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    TENON_CHECK(error == std::errc(), "[parse_nest] expected a number before '{}'", rest_);
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    skip();
    return value;
  }
  // "v12", of which it gives the number.
  int64_t numbered(char letter) {
    TENON_CHECK(rest_.starts_with(letter), "[parse_nest] expected {} and a number before '{}'", letter, rest_);
    rest_.remove_prefix(1);
    return integer();
  }
  std::string_view word() {
    size_t length = 0;
    auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (length < rest_.size() && plain(rest_[length])) ++length;
    std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    skip();
    return taken;
  }

 private:
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// "n" with its value, or "s0*4 = 12".
std::pair<Expr, int64_t> sized(sym::ExprPool& pool, std::string_view text) {
  if (size_t at = text.find(" = "); at != std::string_view::npos)
    return {pool.parse(text.substr(0, at)), Line(text.substr(at + 3)).integer()};
  Expr expr = pool.parse(text);
  TENON_CHECK(expr.is_constant(), "[parse_nest] expected '{} = ' and its value", text);
  return {expr, expr.constant()};
}

}  // namespace

Nest parse_nest(std::string_view text) {
  Nest nest;
  nest.pool = std::make_shared<sym::ExprPool>();
  bool first = true;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (std::exchange(first, false)) {
      line.expect("nest");
      line.expect("(");
      while (!line.take(")")) {
        nest.symbols.push_back(nest.pool->symbol(std::string(line.word())));
        line.take(",");
      }
    } else if (line.take("axis")) {
      line.expect(fmt::format("a{}", nest.axes.size()));
      NestAxis axis;
      axis.reduced = line.take("reduced");
      if (!axis.reduced) line.expect("kept");
      axis.dims = {nest.axes.size()};
      std::tie(axis.extent, axis.size) = sized(*nest.pool, line.rest());
      nest.axes.push_back(std::move(axis));
    } else if (line.take("reused")) {
      Reused reused;
      reused.value = static_cast<ValueId>(line.numbered('v'));
      line.expect("stage");
      reused.stage = static_cast<int>(line.integer());
      line.expect("work");
      reused.work = static_cast<int>(line.integer());
      nest.reused.push_back(reused);
    } else if (line.take("stage")) {
      Stage stage;
      line.integer();
      stage.full = line.take("full");
      line.expect("work");
      stage.work = static_cast<int>(line.integer());
      line.expect("reductions");
      stage.reductions = static_cast<int>(line.integer());
      line.expect("ordered");
      stage.ordered = static_cast<int>(line.integer());
      nest.stages.push_back(stage);
    } else {
      Access access;
      access.store = line.take("store");
      if (!access.store) line.expect("load");
      access.value = static_cast<ValueId>(line.numbered('v'));
      std::string_view brief = line.word();
      for (int at = 0; at < kDtypeCount; ++at)
        if (traits(static_cast<Dtype>(at)).brief == brief) access.dtype = static_cast<Dtype>(at);
      line.expect("stage");
      access.stage = static_cast<int>(line.integer());
      access.kept_only = line.take("kept");
      access.indirect = line.take("indirect");
      line.expect("[");
      std::string_view list = line.rest().substr(0, line.rest().rfind(']'));
      int depth = 0;
      for (size_t begin = 0, at = 0; at <= list.size() && !list.empty(); ++at) {
        if (at < list.size() && list[at] == '(') ++depth;
        if (at < list.size() && list[at] == ')') --depth;
        if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
        Line item(list.substr(begin, at - begin));
        begin = at + 1;
        auto [stride, step] = item.take("?") ? std::pair(Expr(), Access::kScattered) : sized(*nest.pool, item.rest());
        access.stride.push_back(stride);
        access.step.push_back(step);
      }
      nest.accesses.push_back(std::move(access));
    }
  }
  return nest;
}

}  // namespace tenon::schedule
