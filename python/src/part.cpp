#include "part.h"

#include <tenon/dispatch/packet.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace tenon::python {
namespace {

// The names of the program's symbols: integers and reals are counted apart.
std::map<std::string, int32_t, std::less<>> names_of(const Program& program) {
  std::map<std::string, int32_t, std::less<>> names;
  int integers = 0, reals = 0;
  for (size_t at = 0; at < program.symbols.size(); ++at) {
    const bool real = program.symbols[at].kind == Symbol::Kind::Real;
    names[real ? fmt::format("f{}", reals++) : fmt::format("s{}", integers++)] = static_cast<int32_t>(at);
  }
  return names;
}

// Every symbol that a description mentions.
class Mentions {
 public:
  explicit Mentions(const Program& program) : names_(names_of(program)) {}

  void add(std::string_view text) {
    auto letter = [](char each) { return std::isalnum(static_cast<unsigned char>(each)) || each == '_'; };
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && letter(text[end])) ++end;
      if (auto found = names_.find(text.substr(at, end - at)); found != names_.end()) symbols.insert(found->second);
      at = end + 1;
    }
  }
  void add(const Number& number) {
    if (const auto* text = std::get_if<std::string>(&number)) add(std::string_view(*text));
  }
  void add(const TensorType& type) {
    for (const Number& size : type.sizes) add(size);
    for (const Number& stride : type.strides) add(stride);
  }
  void add(const Literal& literal) {
    if (const auto* symbolic = std::get_if<Symbolic>(&literal.content)) add(std::string_view(symbolic->text));
    if (const auto* list = std::get_if<std::vector<Literal>>(&literal.content))
      for (const Literal& each : *list) add(each);
  }
  // The symbol that is all of a number; -1 if it is more.
  int32_t alone(const Number& number) const {
    const auto* text = std::get_if<std::string>(&number);
    auto found = text ? names_.find(*text) : names_.end();
    return found == names_.end() ? -1 : found->second;
  }

  std::set<int32_t> symbols;

 private:
  std::map<std::string, int32_t, std::less<>> names_;
};

std::vector<int64_t> hints_of(const Program& program) {
  std::vector<int64_t> hints;
  for (const Symbol& symbol : program.symbols) hints.push_back(symbol.hint);
  return hints;
}

// Where the results of a plan lie; empty if each is alone.
std::vector<Part::Home> homes_of(const runtime::Plan& plan) {
  std::vector<runtime::Slot> base(plan.slot_count);
  for (size_t at = 0; at < base.size(); ++at) base[at] = static_cast<runtime::Slot>(at);
  for (const runtime::Step& step : plan.steps)
    if (const auto* view = std::get_if<runtime::ViewStep>(&step))
      base[static_cast<size_t>(view->slot)] = base[static_cast<size_t>(view->base)];
  std::vector<Part::Home> homes(plan.outputs.size());
  std::map<runtime::Slot, std::vector<size_t>> inside;  // results by the slot whose memory they lie in
  bool any = false;
  for (size_t at = 0; at < homes.size(); ++at) {
    const runtime::Slot slot = plan.outputs[at].slot;
    if (slot < 0) continue;
    const runtime::Slot home = base[static_cast<size_t>(slot)];
    std::vector<size_t>& others = inside[home];
    others.push_back(at);
    if (home < static_cast<runtime::Slot>(plan.input_count))
      homes[at].input = home;
    else if (home != slot || others.size() > 1)
      for (size_t other : others) homes[other].first = static_cast<int32_t>(others.front());
    any |= homes[at].input >= 0 || homes[at].first >= 0;
  }
  if (!any) homes.clear();
  return homes;
}

Tensor restrided(const Tensor& tensor, std::span<const int64_t> strides) {
  static Counter& count = counter("python_inputs_copied");
  count.add();
  Tensor copy = core::allocate(tensor.sizes(), strides, tensor.dtype(), kCPU);
  dispatch::call_by_name("aten::copy_", {copy, tensor});
  return copy;
}

}  // namespace

Part::Part(std::shared_ptr<const Program> program, std::vector<size_t> calls, std::vector<int32_t> inputs,
           std::vector<int32_t> outputs)
    : program_(std::move(program)),
      calls_(std::move(calls)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      sources_(program_->symbols.size()) {
  find_sources();
  find_expectations();
  variants_.push_back(compile(hints_of(*program_)));
}

void Part::find_sources() {
  Mentions mentions(*program_);
  auto source = [&](const Number& number, Source found) {
    int32_t symbol = mentions.alone(number);
    if (symbol >= 0 && sources_[static_cast<size_t>(symbol)].kind == Source::Kind::None)
      sources_[static_cast<size_t>(symbol)] = found;
  };
  for (Source::Kind kind : {Source::Kind::Size, Source::Kind::Stride})
    for (size_t at = 0; at < inputs_.size(); ++at) {
      const TensorType& type = program_->types[static_cast<size_t>(inputs_[at])];
      const std::vector<Number>& numbers = kind == Source::Kind::Size ? type.sizes : type.strides;
      for (size_t dim = 0; dim < numbers.size(); ++dim)
        source(numbers[dim], {kind, static_cast<int32_t>(at), static_cast<int32_t>(dim)});
    }
  for (int32_t input : inputs_) mentions.add(program_->types[static_cast<size_t>(input)]);
  for (size_t call : calls_) {
    for (const auto& [name, literal] : program_->calls[call].arguments) mentions.add(literal);
    for (const auto& type : program_->calls[call].types)
      if (type) mentions.add(*type);
  }
  for (int32_t symbol : mentions.symbols) {
    if (sources_[static_cast<size_t>(symbol)].kind != Source::Kind::None) continue;
    sources_[static_cast<size_t>(symbol)] = {Source::Kind::Passed, static_cast<int32_t>(numbers_.size()), 0};
    numbers_.push_back(symbol);
  }
}

void Part::find_expectations() {
  Build build(*program_, hints_of(*program_));
  Ref<sym::ShapeEnv> env(&build.env());
  std::vector<sym::Expr> expressions;
  for (size_t at = 0; at < inputs_.size(); ++at) {
    const TensorType& type = program_->types[static_cast<size_t>(inputs_[at])];
    for (bool stride : {false, true}) {
      const std::vector<Number>& numbers = stride ? type.strides : type.sizes;
      for (size_t dim = 0; dim < numbers.size(); ++dim) {
        const auto* text = std::get_if<std::string>(&numbers[dim]);
        expressions.push_back(text ? env->pool().parse(*text) : env->pool().constant(std::get<int64_t>(numbers[dim])));
        expected_.push_back({static_cast<int32_t>(at), static_cast<int32_t>(dim), stride});
      }
    }
  }
  expected_program_ = sym::ExprProgram(expressions);
  env_ = env;
}

std::shared_ptr<const Part::Variant> Part::compile(std::span<const int64_t> hints) const {
  static Counter& count = counter("python_parts_compiled");
  count.add();
  Build build(*program_, hints);
  for (int32_t input : inputs_) build.add_input(input);
  for (size_t call : calls_) {
    Decision made = build.call(program_->calls[call]);
    TENON_CHECK(made, "[{}] {}", program_->calls[call].op, made.why());
  }
  auto variant = std::make_shared<Variant>();
  variant->env = Ref<sym::ShapeEnv>(&build.env());
  graph::Graph graph = build.finish(outputs_);
  graph::verify(graph);
  variant->text = graph::to_string(graph);
  TENON_LOG(Graph, "part of a PyTorch program:\n{}", variant->text);
  variant->plan = schedule::compile_graph(graph);
  TENON_LOG(Plan, "{}", runtime::to_string(*variant->plan));
  variant->homes = homes_of(*variant->plan);
  std::vector<sym::Expr> conditions;
  for (const sym::Guard& guard : variant->env->guards()) conditions.push_back(guard.condition);
  variant->guards = sym::ExprProgram(conditions);
  return variant;
}

bool Part::Variant::fits(std::span<const int64_t> symbols) const {
  if (guards.result_count() == 0) return true;
  SmallVector<int64_t, 16> truths(guards.result_count());
  return guards.try_run(symbols, {truths.data(), truths.size()}) &&
         std::all_of(truths.begin(), truths.end(), [](int64_t truth) { return truth != 0; });
}

std::shared_ptr<const Part::Variant> Part::variant_for(std::span<const int64_t> symbols) {
  std::lock_guard lock(mutex_);
  for (size_t at = 0; at < variants_.size(); ++at)
    if (variants_[at]->fits(symbols)) {
      if (at > 0)
        std::rotate(variants_.begin(), variants_.begin() + static_cast<ptrdiff_t>(at),
                    variants_.begin() + static_cast<ptrdiff_t>(at) + 1);
      return variants_.front();
    }
  TENON_CHECK(variants_.size() < kMostVariants, "compiled {} times for other sizes already", variants_.size());
  TENON_LOG(Recompiles, "a part of a PyTorch program, for other sizes: {}", variants_.front()->env->str());
  variants_.insert(variants_.begin(), compile(symbols));
  return variants_.front();
}

size_t Part::variant_count() const {
  std::lock_guard lock(mutex_);
  return variants_.size();
}

void Part::check_inputs(std::span<Tensor> inputs, std::span<const int64_t> symbols) const {
  SmallVector<int64_t, 32> numbers(expected_.size());
  expected_program_.run(symbols, {numbers.data(), numbers.size()});
  for (size_t at = 0, next = 0; at < inputs.size(); ++at) {
    const TensorType& type = program_->types[static_cast<size_t>(inputs_[at])];
    const TensorImpl& impl = *inputs[at].impl();
    const size_t rank = type.sizes.size();
    TENON_CHECK(impl.sizes.size() == rank && impl.dtype == type.dtype, "input {}: expected {}, got {}", at, type.str(),
                inputs[at].description());
    bool strides_fit = true, empty = false;
    for (size_t dim = 0; dim < rank; ++dim) {
      TENON_CHECK(impl.sizes[dim] == numbers[next + dim], "input {}: expected {}, got {}", at, type.str(),
                  inputs[at].description());
      empty |= impl.sizes[dim] == 0;
      strides_fit &= impl.sizes[dim] <= 1 || impl.strides[dim] == numbers[next + rank + dim];
    }
    if (!strides_fit && !empty) inputs[at] = restrided(inputs[at], {numbers.data() + next + rank, rank});
    next += 2 * rank;
  }
}

bool Part::is_real(size_t number) const {
  return program_->symbols[static_cast<size_t>(numbers_[number])].kind == Symbol::Kind::Real;
}

Part::Outcome Part::run(std::span<Tensor> inputs, std::span<const int64_t> numbers) {
  TENON_CHECK(inputs.size() == inputs_.size() && numbers.size() == numbers_.size(),
              "expected {} tensors and {} numbers, got {} and {}", inputs_.size(), numbers_.size(), inputs.size(),
              numbers.size());
  SmallVector<int64_t, 16> symbols(sources_.size());
  for (size_t at = 0; at < sources_.size(); ++at) {
    const Source& source = sources_[at];
    auto input = static_cast<size_t>(source.input), dim = static_cast<size_t>(source.dim);
    if (source.kind == Source::Kind::Passed) {
      symbols[at] = numbers[input];
    } else if (source.kind != Source::Kind::None) {
      const Ints& from =
          source.kind == Source::Kind::Size ? inputs[input].impl()->sizes : inputs[input].impl()->strides;
      TENON_CHECK(dim < from.size(), "input {}: expected {} dimensions or more, got {}", input, dim + 1,
                  inputs[input].description());
      symbols[at] = from[dim];
    } else {
      symbols[at] = program_->symbols[at].hint;  // nothing depends on it
    }
  }
  check_inputs(inputs, symbols.span());
  std::shared_ptr<const Variant> variant = variant_for(symbols.span());
  Outcome outcome;
  outcome.results.reserve(outputs_.size());
  for (dispatch::Value& value : runtime::run(*variant->plan, inputs, symbols.span()))
    outcome.results.push_back(value.take_tensor());
  if (!variant->homes.empty()) outcome.homes = &variant->homes;
  return outcome;
}

std::string Part::str() const {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& variant : variants_) text += variant->text + runtime::to_string(*variant->plan);
  return text;
}

}  // namespace tenon::python
