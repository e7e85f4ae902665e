#include "function.h"
#include "kernels/wide_lines.h"

#include <tenon/core/draws.h>
#include <tenon/core/random.h>
#include <tenon/core/tensor.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace tenon::package {
namespace {

using dispatch::Value;

// A call as a function sees it.
struct Given {
  std::span<const Tensor> tensors;
  std::span<const Value> numbers, constants;
};

int64_t bits_of(const Value& number) {
  return number.tag() == Value::Tag::Real ? std::bit_cast<int64_t>(number.real()) : number.integer();
}

// The zero's sign counts: it decides what a division gives.
bool is_same(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) return false;
  if (a.tag() == Value::Tag::Real) {
    double one = a.real(), other = b.real();
    return bits_of(a) == bits_of(b) || (one != one && other != other);
  }
  return a.str() == b.str();
}

// Of the call's numbers: whether one is a real number.
bool is_real(const core::SizeGuards::Parts& sizes, size_t number) {
  for (size_t id = 0; id < sizes.sources.size(); ++id)
    if (const core::SymbolSource& source = sizes.sources[id];
        source.kind == core::SymbolSource::Kind::Number && source.input == static_cast<int32_t>(number))
      return sizes.env->pool().symbol(static_cast<int32_t>(id)).is_real();
  return false;
}

// One call of one variant.
class Run {
 public:
  Run(const Function& function, const Variant& variant, const Given& given)
      : function_(function), variant_(variant), given_(given) {}

  bool fits() {
    if (given_.tensors.size() != variant_.arguments.size() || given_.constants.size() != variant_.constants.size())
      return false;
    for (size_t at = 0; at < given_.constants.size(); ++at)
      if (!is_same(given_.constants[at], variant_.constants[at])) return false;
    for (size_t at = 0; at < given_.tensors.size(); ++at)
      if (!fits(at) || first_same(at) != variant_.same_as[at]) return false;
    if (!take_numbers()) return false;
    take_inputs();
    return variant_.aliases.check(aliased().span()) && variant_.sizes.check(inputs_.span(), numbers_.span(), symbols_);
  }

  // What does not hold, in words; the first thing.
  std::string explain() {
    if (given_.tensors.size() != variant_.arguments.size())
      return fmt::format("expected {} tensors, got {}", variant_.arguments.size(), given_.tensors.size());
    if (given_.constants.size() != variant_.constants.size())
      return fmt::format("expected {} constants, got {}", variant_.constants.size(), given_.constants.size());
    for (size_t at = 0; at < given_.constants.size(); ++at)
      if (!is_same(given_.constants[at], variant_.constants[at]))
        return fmt::format("number {}: expected {}, got {}", at, variant_.constants[at].str(),
                           given_.constants[at].str());
    for (size_t at = 0; at < given_.tensors.size(); ++at)
      if (std::string what = mismatch(at); !what.empty()) return what;
    numbers_.clear();
    if (!take_numbers()) return "a whole number was expected where a real one was given, or the other way round";
    take_inputs();
    if (auto pair = variant_.aliases.difference(aliased().span()))
      return pair->first == pair->second
                 ? fmt::format("elements of {} overlap in memory", name_of(variant_.aliased[pair->first]))
                 : fmt::format("{} and {} overlap in memory", name_of(variant_.aliased[pair->first]),
                               name_of(variant_.aliased[pair->second]));
    std::vector<core::SizeGuards::Failure> failures = variant_.sizes.failures(inputs_.span(), numbers_.span());
    return failures.empty() ? "" : failures[0].text;
  }

  std::vector<Value> go() {
    std::vector<Draw> draws;
    for (const std::optional<sym::Expr>& seed : variant_.seeds) {
      if (seed)
        manual_seed(static_cast<uint64_t>(sym::evaluate(*seed, symbols_.span())));
      else
        draws.push_back(default_generator().next());
    }
    SmallVector<Tensor, 8> plan_inputs;
    for (const Place& place : variant_.plan_inputs) plan_inputs.push_back(tensor_at(place));
    {
      FixedDraws fixed(draws);
      outputs_ = runtime::run(variant_.plan, plan_inputs.span(), symbols_.span());
    }
    for (size_t at = 0; at < variant_.bound.size(); ++at) {
      auto id = static_cast<size_t>(variant_.bound[at]);
      while (symbols_.size() <= id) symbols_.push_back(0);
      symbols_[id] = bits_of(outputs_[outputs_.size() - variant_.bound.size() + at]);
    }
    for (const WriteBack& each : variant_.written) write_back(tensor_at(each.place), output(each.output));
    std::vector<Value> results;
    results.reserve(variant_.results.size());
    for (const ResultRule& rule : variant_.results) results.push_back(result(rule, results));
    return results;
  }

 private:
  bool fits(size_t at) const {
    const ArgumentRule& rule = variant_.arguments[at];
    const Tensor& tensor = given_.tensors[at];
    return tensor.defined() && tensor.dtype() == rule.dtype && tensor.device() == kCPU && tensor.dim() == rule.rank &&
           !tensor.is_fake();
  }

  std::string mismatch(size_t at) const {
    const ArgumentRule& rule = variant_.arguments[at];
    const Tensor& tensor = given_.tensors[at];
    if (!tensor.defined()) return fmt::format("tensor '{}' is undefined", rule.name);
    if (!fits(at))
      return fmt::format("{}: expected {} of {} dimensions, got {}", rule.name, name(rule.dtype), rule.rank,
                         tensor.description());
    int32_t expected = variant_.same_as[at], now = first_same(at);
    if (expected == now) return "";
    auto called = [&](int32_t which) { return variant_.arguments[static_cast<size_t>(which)].name; };
    return expected == static_cast<int32_t>(at)
               ? fmt::format("expected {} is not {}, got one tensor", called(now), rule.name)
               : fmt::format("expected {} is {}, got two tensors", called(expected), rule.name);
  }

  int32_t first_same(size_t at) const {
    size_t first = 0;
    while (!given_.tensors[first].is(given_.tensors[at])) ++first;
    return static_cast<int32_t>(first);
  }

  bool take_numbers() {
    for (size_t at = 0; at < given_.numbers.size(); ++at) {
      const Value& number = given_.numbers[at];
      if (is_real(variant_.sizes.parts(), at) != (number.tag() == Value::Tag::Real)) return false;
      numbers_.push_back(bits_of(number));
    }
    for (int64_t own : variant_.own_numbers) numbers_.push_back(own);
    return true;
  }

  void take_inputs() {
    inputs_.clear();
    symbols_.clear();
    for (const Place& place : variant_.inputs)
      inputs_.push_back(place.kind == Place::Kind::Nowhere ? Tensor() : tensor_at(place));
  }

  SmallVector<const TensorImpl*, 16> aliased() const {
    SmallVector<const TensorImpl*, 16> impls;
    for (const Place& place : variant_.aliased) impls.push_back(tensor_at(place).impl());
    return impls;
  }

  const Tensor& tensor_at(const Place& place) const {
    auto at = static_cast<size_t>(place.index);
    return place.kind == Place::Kind::File ? function_.tensors[at] : given_.tensors[at];
  }
  const std::string& name_of(const Place& place) const {
    auto at = static_cast<size_t>(place.index);
    return place.kind == Place::Kind::File ? function_.tensor_names[at] : variant_.arguments[at].name;
  }
  const Tensor& output(int32_t at) const { return outputs_[static_cast<size_t>(at)].tensor(); }

  static void write_back(const Tensor& target, const Tensor& content) {
    // A plan may have written it where it belongs; then it gives the tensor itself.
    if (!content.is(target)) kernels::copy_elements(content, target);
    if (target.impl()->version) ++target.impl()->version->count;
  }

  static Tensor alias(const Tensor& tensor) {
    return core::make_view(tensor, SymInts(tensor.sizes()), SymInts(tensor.strides()), tensor.storage_offset());
  }

  Ints numbers(const std::vector<sym::Expr>& list) const {
    Ints values;
    for (sym::Expr each : list) values.push_back(sym::evaluate(each, symbols_.span()));
    return values;
  }

  Value result(const ResultRule& rule, std::span<const Value> before) const {
    auto view_of = [&](const Tensor& base) {
      SymInt offset = base.storage_offset() + sym::evaluate(rule.offset, symbols_.span());
      return Value(
          core::make_view(base, SymInts(numbers(rule.sizes).span()), SymInts(numbers(rule.strides).span()), offset));
    };
    switch (rule.kind) {
      case ResultRule::Kind::Constant: return rule.constant;
      case ResultRule::Kind::Output: {
        const Value& made = outputs_[static_cast<size_t>(rule.index)];
        if (!made.is_tensor()) return made;
        // Values that happen to be one tensor are a tensor each.
        auto is_it = [&](const Tensor& other) { return other.is(made.tensor()); };
        bool is_known = std::any_of(given_.tensors.begin(), given_.tensors.end(), is_it);
        for (const Value& each : before) is_known |= each.is_tensor() && is_it(each.tensor());
        return is_known ? Value(alias(made.tensor())) : Value(Tensor(made.tensor()));
      }
      case ResultRule::Kind::Number: {
        int64_t bits = sym::evaluate(rule.number, symbols_.span());
        if (rule.number.is_real()) return std::bit_cast<double>(bits);
        return rule.number.is_boolean() ? Value(bits != 0) : Value(bits);
      }
      case ResultRule::Kind::Tensor: return Tensor(tensor_at(rule.place));
      case ResultRule::Kind::ViewOfOutput: return view_of(output(rule.index));
      case ResultRule::Kind::ViewOfTensor: return view_of(tensor_at(rule.place));
      case ResultRule::Kind::SameAsAnother: return Tensor(before[static_cast<size_t>(rule.index)].tensor());
    }
    return {};
  }

  const Function& function_;
  const Variant& variant_;
  const Given& given_;
  SmallVector<Tensor, 8> inputs_;
  SmallVector<int64_t, 8> numbers_;
  SmallVector<int64_t, 16> symbols_;
  std::vector<Value> outputs_;
};

}  // namespace

std::vector<Value> call(const Function& function, std::span<const Tensor> tensors, std::span<const Value> numbers,
                        std::span<const Value> constants) {
  Given given{tensors, numbers, constants};
  std::vector<Value> with_numbers;
  if (function.numbers_are_constants && !numbers.empty()) {
    with_numbers.assign(constants.begin(), constants.end());
    with_numbers.insert(with_numbers.end(), numbers.begin(), numbers.end());
    given.numbers = {};
    given.constants = with_numbers;
  }
  for (const Variant& variant : function.variants)
    if (Run run(function, variant, given); run.fits()) return run.go();
  std::vector<std::string> reasons;
  for (const Variant& variant : function.variants) {
    std::string why = Run(function, variant, given).explain();
    if (std::find(reasons.begin(), reasons.end(), why) == reasons.end()) reasons.push_back(std::move(why));
  }
  fail("[{}] the function was not compiled for such a call: {}", function.name, fmt::join(reasons, "; or "));
}

}  // namespace tenon::package
