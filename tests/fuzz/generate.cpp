#include "fuzz/custom_operators.h"
#include "fuzz/grammar.h"
#include "fuzz/machine.h"
#include "fuzz/rings.h"

#include <tenon/tenon.h>

#include <array>
#include <memory>
#include <random>

namespace tenon::fuzz {
namespace {

// One try at a program. Statements are run as they are added, on the tensors of the first call, so that each fits what
// is there; one that eager refuses is left out.
class Maker {
 public:
  Maker(std::mt19937_64& random, uint64_t seed) : random_(random) {
    program_.seed = seed;
    // Each feature is drawn for itself, so that a program does not depend on which others there are.
    uint64_t draw = random();
    for (const FeatureRow& row : features()) {
      uint64_t hash = draw;
      for (char letter : row.name) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
      used_[static_cast<size_t>(row.feature)] =
          (std::mt19937_64(hash)() % 100 < static_cast<uint64_t>(row.percent) && enabled(row.feature)) ||
          in_every_program(row.feature);
    }
  }

  // Nothing if no statement fits.
  bool make(Program& result) {
    make_calls();
    make_sources();
    grow();
    autograd::set_grad_enabled(true);
    if (program_.statements.empty()) return false;
    choose_outputs();
    choose_after();
    const char* kinds[] = {"Off", "On", "Auto", "On", "Auto"};
    for (std::string& dynamic : program_.dynamic) dynamic = kinds[below(std::size(kinds))];
    program_.verify = used(Feature::Verify) && !used(Feature::Rebinding);
    renumber(program_);
    result = program_;
    return true;
  }

 private:
  size_t below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  bool chance(int percent) { return below(100) < static_cast<size_t>(percent); }
  bool used(Feature feature) const { return used_[static_cast<size_t>(feature)]; }

  void make_calls() {
    // Sizes that stay, change once, change always; the same ones again.
    const size_t patterns[][3] = {{0, 0, 0}, {0, 1, 2}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}};
    const size_t* pattern = patterns[below(std::size(patterns))];
    for (size_t at = 0; at < 3; ++at) {
      Call call{pattern[at]};
      if (used(Feature::SmallSizes) && chance(40)) call.sizes = below(kAllSizes);
      if (used(Feature::Unbacked)) call.contents = static_cast<Contents>(below(2) == 0 ? 0 : below(3));
      call.transposed = at > 0 && chance(15);
      call.remake = used(Feature::Rebinding) && at > 0 && chance(60);
      program_.calls.push_back(call);
    }
    program_.grad_mode = !chance(15);
    program_.old_live = used(Feature::Rebinding);
  }

  Base random_base() {
    const std::vector<int> shapes[] = {{0, 1}, {0, 1}, {0, 1}, {0, -1}, {-1, 1}, {1}, {}, {1, 2}, {0, 1, 2}, {0}};
    const Dtype dtypes[] = {kFloat32,  kFloat32, kFloat32, kFloat32, kFloat64, kFloat16,
                            kBFloat16, kInt64,   kInt32,   kBool,    kUInt8};
    Base base{shapes[below(std::size(shapes))], dtypes[below(std::size(dtypes))],
              static_cast<int>(below(10) < 6 ? 0 : below(5))};
    base.requires_grad = differentiated_ && is_floating(base.dtype) && !chance(20);
    base.computed = base.requires_grad && chance(30);
    base.kept = !base.computed && chance(20);
    return base;
  }

  // A view whose shape the letters say; `group` 0 gives any that the base's rows allow.
  size_t random_view(const Base& base) {
    std::vector<size_t> fitting;
    for (size_t at = 0; at < views().size(); ++at)
      if (views()[at].group > 0 && views()[at].extra == base.extra) fitting.push_back(at);
    return fitting[below(fitting.size())];
  }

  void make_sources() {
    differentiated_ = chance(60);
    size_t count = 1 + below(3) + (used(Feature::Aliasing) || used(Feature::Closures) || used(Feature::Rebinding));
    for (size_t at = 0; at < count; ++at) {
      Source source;
      if (at > 0 && (used(Feature::Closures) || used(Feature::Rebinding)) && (at + 1 == count || chance(30)))
        source.role = chance(50) ? Role::Closure : Role::Cell;
      View view;
      if (used(Feature::Aliasing) && at > 0 && chance(65)) {
        view.base = below(program_.bases.size());
        const Base& base = program_.bases[view.base];
        view.view = chance(70) || base.shape.empty() ? random_view(base) : below(views().size());
      } else {
        Base base = random_base();
        if (used(Feature::Aliasing) && !base.shape.empty() && chance(60)) base.extra = chance(50) ? 1 : -1;
        // A tensor that the function reaches by itself stays where it is.
        if (source.role == Role::Closure) base.kept = true;
        if (base.kept) base.computed = false;
        view.base = program_.bases.size();
        view.view = random_view(base);
        if (base.extra == 0 && !used(Feature::Aliasing)) view.view = 0;
        if (base.extra == 0 && used(Feature::Aliasing) && !base.shape.empty() && chance(25))
          view.view = below(views().size());
        program_.bases.push_back(base);
      }
      source.views.assign(program_.calls.size(), view);
      program_.sources.push_back(source);
    }
    if (used(Feature::Aliasing)) vary_views();
    program_.values = static_cast<int>(program_.sources.size());
  }

  // At some later call a source looks at what another one looks at, or elsewhere: the shape stays.
  void vary_views() {
    for (Source& source : program_.sources)
      for (size_t call = 1; call < source.views.size(); ++call) {
        View& view = source.views[call];
        view = source.views[call - 1];
        if (!chance(25) || views()[view.view].group == 0) continue;
        const Base& mine = program_.bases[view.base];
        size_t other = below(program_.bases.size());
        const Base& theirs = program_.bases[other];
        if (theirs.shape == mine.shape && theirs.dtype == mine.dtype && theirs.placement == mine.placement)
          view = {other, random_view(theirs)};
      }
  }

  // ---- Statements

  void grow() {
    pointwise_ = chance(50);
    try {
      prepare(world_, program_, 0);
    } catch (const Error&) {
      return;
    }
    for (size_t operators = used(Feature::Custom) ? 1 + below(2) : 0; operators > 0; --operators)
      program_.custom.push_back(random_schema());
    machine_ = std::make_unique<Machine>(program_, world_);
    values_ = machine_->begin(world_.arguments(program_));
    inexact_.assign(values_.size(), false);
    std::vector<int> visible;
    for (int at = 0; at < program_.values; ++at) visible.push_back(at);
    grow(program_.statements, visible, 2 + below(8), 0);
    visible_ = visible;
  }

  void grow(std::vector<Statement>& block, std::vector<int>& visible, size_t length, int depth) {
    for (size_t attempts = 0; block.size() < length && attempts < 40 * length; ++attempts) {
      Statement statement;
      if (!draw(statement, visible, depth)) continue;
      try {
        if (statement.body.empty()) {
          machine_->run(statement, values_);
          for (int result : statement.results)
            if (values_[static_cast<size_t>(result)].numel().plain() > 20000) fail("too large");
        }
      } catch (const Error&) {
        continue;
      }
      for (int result : statement.results) visible.push_back(result);
      note_inexact(statement);
      block.push_back(std::move(statement));
    }
  }

  int new_value(bool inexact = false) {
    values_.emplace_back();
    inexact_.push_back(inexact);
    return program_.values++;
  }

  // Recent values more often, so that programs are deep rather than wide.
  int pick(const std::vector<int>& visible) {
    size_t count = visible.size();
    return visible[below(2) == 0 ? count - 1 - below(std::min<size_t>(2, count)) : below(count)];
  }
  const Tensor& value(int at) const { return values_[static_cast<size_t>(at)]; }

  // Whether a statement of this kind comes now: about one in `one_in`, in a program that uses the feature.
  bool comes(Feature feature, size_t one_in) { return below(one_in) == 0 && used(feature); }

  bool draw(Statement& statement, std::vector<int>& visible, int depth) {
    if (comes(Feature::Modes, 8)) {
      statement.kind = depth < 2 && chance(60) ? Kind::Scope : Kind::GradMode;
      statement.n = static_cast<int64_t>(below(2));
      if (statement.kind == Kind::GradMode) return true;
      autograd::SetGradMode mode(statement.n != 0);
      grow(statement.body, visible, 1 + below(3), depth + 1);
      return !statement.body.empty();
    }
    if (comes(Feature::Seeds, 6)) {
      statement.kind = Kind::Seed;
      statement.n = static_cast<int64_t>(below(100));
      return true;
    }
    if (comes(Feature::Hooks, 5)) {
      statement.kind = Kind::Hook;
      statement.operands = {pick(visible)};
      statement.n = static_cast<int64_t>(2 + below(8));
      return value(statement.operands[0]).requires_grad();
    }
    if (comes(Feature::RequiresGrad, 5)) {
      statement.kind = Kind::RequiresGrad;
      statement.operands = {chance(50) ? visible[below(program_.sources.size()) % visible.size()] : pick(visible)};
      statement.n = chance(80) ? 1 : 0;
      const Tensor& tensor = value(statement.operands[0]);
      // (Whether a closure tensor requires grad is state that a capture does not see being read.)
      auto at = static_cast<size_t>(statement.operands[0]);
      bool closure = at < program_.sources.size() && program_.sources[at].role == Role::Closure;
      return tensor.is_floating_point() && tensor.is_leaf() && !closure;
    }
    if (comes(Feature::GradInside, 5)) return draw_gradient(statement, visible);
    if (comes(Feature::Numbers, 6)) {
      statement.kind = Kind::Rate;
      statement.operands = {pick(visible)};
      statement.results = {new_value(inexact_[static_cast<size_t>(statement.operands[0])])};
      return true;
    }
    if (used(Feature::Formulas) && comes(Feature::Formulas, 4)) {
      statement.kind = Kind::Formula;
      statement.operands = {pick(visible)};
      statement.n = static_cast<int64_t>(below(4));
      statement.results = {new_value(inexact_[static_cast<size_t>(statement.operands[0])])};
      return value(statement.operands[0]).is_floating_point();
    }
    if (used(Feature::Loops) && depth < 2 && comes(Feature::Loops, 4))
      return draw_loop(Kind::Loop, statement, visible, depth);
    if (used(Feature::Branches) && depth < 2 && comes(Feature::Branches, 4))
      return draw_loop(Kind::Branch, statement, visible, depth);
    if (used(Feature::WhileLoops) && depth < 2 && comes(Feature::WhileLoops, 4))
      return draw_loop(Kind::While, statement, visible, depth);
    if (comes(Feature::Custom, 3)) return draw_custom(statement, visible);
    if (depth < 2 && comes(Feature::Inner, 8)) return draw_inner(statement, visible, depth);
    return draw_operation(statement, visible);
  }

  bool draw_operation(Statement& statement, const std::vector<int>& visible) {
    statement.operation = below(operations().size());
    // In a program about writes there are some.
    bool about_writes = used(Feature::Aliasing) || used(Feature::Results);
    const Operation* operation = &operations()[statement.operation];
    for (int tries = 0; about_writes && tries < 3 && !(operation->traits & (kInplace | kView)); ++tries) {
      statement.operation = below(operations().size());
      operation = &operations()[statement.operation];
    }
    // What a program is about comes more often than its share of the table.
    for (int tries = 0; operation->feature == Feature::Count && tries < 2; ++tries) {
      size_t other = below(operations().size());
      if (operations()[other].feature == Feature::Count || !used(operations()[other].feature)) continue;
      statement.operation = other;
      operation = &operations()[other];
    }
    if (operation->feature != Feature::Count && !used(operation->feature)) return false;
    if (pointwise_ && (operation->traits & kInexact)) return false;
    statement.n = static_cast<int64_t>(below(3));
    statement.operands = {pick(visible)};
    if (operation->traits & kBinary) statement.operands.push_back(pick(visible));
    bool from_inexact = false;
    for (int operand : statement.operands) from_inexact |= inexact_[static_cast<size_t>(operand)];
    if (from_inexact && (operation->traits & kUnstable)) return false;
    if ((operation->traits & kInplace) && !may_write(value(statement.operands[0]))) return false;
    statement.results = {new_value(from_inexact || (operation->traits & kInexact))};
    return true;
  }

  // Writing where elements share memory is undefined; beneath a view whose elements do it is not, but delicate.
  bool may_write(const Tensor& tensor) const {
    if (has_shared_elements(tensor)) return false;
    if (used(Feature::Overlap)) return true;
    for (const Tensor& other : values_)
      if (other.defined() && other.is_same_storage(tensor) && has_shared_elements(other)) return false;
    return true;
  }

  bool draw_gradient(Statement& statement, const std::vector<int>& visible) {
    // Gradients of gradients, step after step, would grow without bounds.
    statement.n = chance(50) && !in_steps_ ? 1 : 0;
    statement.operands = {pick(visible)};
    const Tensor& root = value(statement.operands[0]);
    if (!root.requires_grad()) return false;
    if (chance(30)) {
      statement.kind = Kind::Backward;
      return true;
    }
    statement.kind = Kind::Grad;
    for (size_t count = 1 + below(2); count > 0; --count) {
      int input = pick(visible);
      if (!value(input).requires_grad()) return false;
      statement.operands.push_back(input);
    }
    for (size_t at = 1; at < statement.operands.size(); ++at) statement.results.push_back(new_value(true));
    return true;
  }

  std::string random_schema() {
    const char* arguments[] = {"Tensor",  "Tensor(M!)",  "Tensor(M!)", "Tensor[]", "Tensor(M!)[]",
                               "Tensor?", "Tensor(M!)?", "int",        "float",    "int?",
                               "SymInt",  "float?",      "bool",       "int[]"};
    const char* returns[] = {"Tensor", "Tensor",        "(Tensor, Tensor)", "()",     "int",
                             "float",  "(Tensor, int)", "Tensor[]",         "SymInt", "bool"};
    std::vector<std::string> words;
    for (size_t count = 1 + below(4), at = 0; at < count; ++at) {
      // The first one is a tensor: results look like it.
      std::string type = arguments[below(at == 0 ? 3 : std::size(arguments))];
      if (size_t mark = type.find('M'); mark != std::string::npos) type[mark] = static_cast<char>('a' + at);
      words.push_back(fmt::format("{} x{}", type, at));
    }
    return fmt::format("({}) -> {}", fmt::join(words, ", "), returns[below(std::size(returns))]);
  }

  bool draw_custom(Statement& statement, const std::vector<int>& visible) {
    statement.kind = Kind::Custom;
    statement.operation = below(program_.custom.size());
    statement.n = static_cast<int64_t>(1 + below(3));
    const std::string& schema = program_.custom[statement.operation];
    bool inexact = false, writes = schema.find('!') != std::string::npos;
    for (size_t count = custom_operands(schema); count > 0; --count) {
      statement.operands.push_back(pick(visible));
      inexact |= inexact_[static_cast<size_t>(statement.operands.back())];
      if (writes && !may_write(value(statement.operands.back()))) return false;
    }
    size_t results = 0;
    for (const schema::Argument& each : schema::parse("_fuzz::f" + schema).returns)
      results += each.type.is_list() ? 2 : 1;
    for (size_t at = 0; at < results; ++at) statement.results.push_back(new_value(inexact));
    return true;
  }

  // A function of one or two values, whose statements see nothing else.
  bool draw_inner(Statement& statement, const std::vector<int>& visible, int depth) {
    statement.kind = Kind::Inner;
    statement.n = chance(30) ? 1 : 0;
    std::vector<int> inside;
    for (size_t count = 1 + below(2); count > 0; --count) {
      int operand = pick(visible), parameter = new_value(inexact_[static_cast<size_t>(operand)]);
      values_[static_cast<size_t>(parameter)] = value(operand);
      statement.operands.push_back(operand);
      statement.parameters.push_back(parameter);
      inside.push_back(parameter);
    }
    grow(statement.body, inside, 1 + below(3), depth + 1);
    if (statement.body.empty()) return false;
    for (size_t count = 1 + below(2); count > 0; --count) {
      int given = pick(inside), result = new_value(inexact_[static_cast<size_t>(given)]);
      values_[static_cast<size_t>(result)] = value(given);
      statement.returns.push_back(given);
      statement.results.push_back(result);
    }
    return true;
  }

  // A loop or a branch: what it carries stays as it is, and the steps of a scan are those of another tensor.
  bool draw_loop(Kind kind, Statement& statement, const std::vector<int>& visible, int depth) {
    const bool is_scan = kind == Kind::Loop;
    statement.kind = kind;
    statement.n = static_cast<int64_t>(below(2));
    for (size_t at = 0; at < 3; ++at) statement.operands.push_back(pick(visible));
    const Tensor carry = value(statement.operands[0]), over = value(statement.operands[1]);
    if (pointwise_ || !carry.is_floating_point()) return false;
    if (is_scan && (over.dim() == 0 || over.size(0).plain() == 0)) return false;
    const Tensor given[] = {carry * 1, is_scan ? over.select(0, 0) : over, value(statement.operands[2])};
    std::vector<int> inside;
    for (size_t at = 0; at < 3; ++at) {
      statement.parameters.push_back(new_value(inexact_[static_cast<size_t>(statement.operands[at])]));
      values_[static_cast<size_t>(statement.parameters.back())] = given[at];
      inside.push_back(statement.parameters.back());
    }
    const bool around = std::exchange(in_steps_, in_steps_ || kind != Kind::Branch);
    grow(statement.body, inside, 1 + below(3), depth + 1);
    in_steps_ = around;
    if (statement.body.empty()) return false;
    for (size_t at = 0; at < 2; ++at) {
      statement.returns.push_back(pick(inside));
      statement.results.push_back(new_value(true));
    }
    try {
      machine_->run(statement, values_);
    } catch (const Error&) {
      return false;
    }
    return value(statement.results[1]).numel().plain() <= 20000;
  }

  // A change in place reaches whatever shares the memory, in another call perhaps all of it.
  void note_inexact(const Statement& statement) {
    bool inexact = false, writes = statement.kind == Kind::Custom;
    if (statement.kind == Kind::Operation) writes = operations()[statement.operation].traits & kInplace;
    for (int result : statement.results) inexact |= inexact_[static_cast<size_t>(result)];
    for (int operand : statement.operands) inexact |= inexact_[static_cast<size_t>(operand)];
    if (inexact && writes) inexact_.assign(inexact_.size(), true);
  }

  // ---- After the function

  void choose_outputs() {
    program_.outputs.push_back(visible_.back());
    for (size_t extra = below(3) + used(Feature::Results); extra > 0; --extra) {
      int output = visible_[below(visible_.size())];
      // Results of one memory, where there are some.
      for (size_t tries = 0; used(Feature::Results) && tries < 4; ++tries) {
        if (value(output).is_same_storage(value(program_.outputs[0])) && output != program_.outputs[0]) break;
        output = visible_[below(visible_.size())];
      }
      program_.outputs.push_back(output);
    }
  }

  void choose_after() {
    After& after = program_.after;
    after.order = differentiated_ ? 1 : 0;
    if (differentiated_ && used(Feature::HigherOrder)) after.order = chance(75) ? 2 : 3;
    after.of_bases = used(Feature::Aliasing) ? chance(60) : chance(10);
    after.between = differentiated_ && used(Feature::Between);
    if (!used(Feature::Results)) return;
    const char* writes[] = {"mul_(x, 0.5)", "add_(x, 1)", "add_(x, y)", "copy_(x, y)"};
    size_t outside = program_.bases.size() + program_.sources.size();
    for (size_t count = below(3); count > 0; --count) {
      Action action{find_operation(writes[below(std::size(writes))]), 0, 0};
      auto target = [&] {
        return static_cast<int>(chance(80) ? outside + below(program_.outputs.size()) : below(outside));
      };
      action.target = target();
      action.other = target();
      after.actions.push_back(action);
    }
  }

  std::mt19937_64& random_;
  Program program_;
  std::array<bool, static_cast<size_t>(Feature::Count)> used_{};
  bool pointwise_ = false, differentiated_ = false;
  bool in_steps_ = false;  // of a loop
  World world_;
  std::unique_ptr<Machine> machine_;
  std::vector<Tensor> values_;
  std::vector<bool> inexact_;
  std::vector<int> visible_;
};

}  // namespace

Program random_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  Rings rings;
  for (;;) {
    Program program;
    Maker maker(random, seed);
    if (maker.make(program) && runs_eagerly(program, seed % 16 == 0)) return program;
  }
}

}  // namespace tenon::fuzz
