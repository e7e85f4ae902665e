#include <tenon/core/size_guards.h>
#include <tenon/core/tensor.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::core {
namespace {

int64_t measured(const TensorImpl& impl, int32_t dim, bool stride) {
  return dim == SizeGuards::Expectation::kOffset ? impl.offset
                                                 : (stride ? impl.strides : impl.sizes)[static_cast<size_t>(dim)];
}

std::string place_of(int32_t dim, bool stride, const std::string& name) {
  if (dim == SizeGuards::Expectation::kOffset) return "storage offset of " + name;
  return fmt::format("{} of {} at dim {}", stride ? "stride" : "size", name, dim);
}

int64_t value_of(const SymbolSource& source, std::span<const Tensor> inputs, std::span<const int64_t> numbers) {
  auto input = static_cast<size_t>(source.input), dim = static_cast<size_t>(source.dim);
  switch (source.kind) {
    case SymbolSource::Kind::None: return 0;
    case SymbolSource::Kind::Size:
    case SymbolSource::Kind::AnySize: return inputs[input].impl()->sizes[dim];
    case SymbolSource::Kind::Stride: return inputs[input].impl()->strides[dim];
    case SymbolSource::Kind::Number: return numbers[input];
  }
  return 0;
}

}  // namespace

SizeGuards::SizeGuards(Parts parts) : parts_(std::move(parts)) {
  std::vector<sym::Expr> results;
  for (const Expectation& each : parts_.expected) {
    if (each.value.is_constant()) {
      fixed_.push_back({each.input, each.dim, each.stride, each.value.constant()});
    } else {
      computed_.push_back(each);
      results.push_back(each.value);
    }
  }
  for (const sym::Guard& guard : parts_.guards) results.push_back(guard.condition);
  program_ = sym::ExprProgram(results);
}

void SizeGuards::set_apart(const std::vector<bool>& inputs) {
  auto stays = [&](const Fixed& each) {
    auto input = static_cast<size_t>(each.input);
    return input >= inputs.size() || !inputs[input];
  };
  auto first = std::stable_partition(fixed_.begin(), fixed_.end(), stays);
  apart_ = static_cast<size_t>(fixed_.end() - first);
}

bool SizeGuards::check(std::span<const Tensor> inputs, std::span<const int64_t> numbers,
                       SmallVector<int64_t, 16>& symbols, bool all) const {
  for (const Fixed& each : std::span(fixed_).first(fixed_.size() - (all ? 0 : apart_))) {
    const TensorImpl& impl = *inputs[static_cast<size_t>(each.input)].impl();
    if (measured(impl, each.dim, each.stride) != each.value) return false;
  }
  // A symbol that a segment before bound has its value already.
  for (size_t at = 0; at < parts_.sources.size(); ++at) {
    if (parts_.first_symbol + at < symbols.size()) continue;
    symbols.push_back(value_of(parts_.sources[at], inputs, numbers));
    if (parts_.sources[at].kind == SymbolSource::Kind::Size && symbols.back() < 2)
      return false;  // 0 and 1 are specialised
  }
  if (computed_.empty() && parts_.guards.empty()) return true;
  SmallVector<int64_t, 64> values(computed_.size() + parts_.guards.size());
  // A guard without a value (a division by 0) does not hold.
  if (!program_.try_run(symbols.span(), {values.data(), values.size()})) return false;
  for (size_t at = 0; at < computed_.size(); ++at) {
    const Expectation& each = computed_[at];
    const TensorImpl& impl = *inputs[static_cast<size_t>(each.input)].impl();
    if (measured(impl, each.dim, each.stride) != values[at]) return false;
  }
  for (size_t at = computed_.size(); at < values.size(); ++at)
    if (values[at] == 0) return false;
  return true;
}

std::vector<SizeGuards::Failure> SizeGuards::failures(std::span<const Tensor> inputs, std::span<const int64_t> numbers,
                                                      std::vector<int64_t> symbols) const {
  std::vector<Failure> found;
  // Nothing where there is no value (a division by 0).
  auto evaluate = [&](sym::Expr expr) -> std::optional<int64_t> {
    const sym::Expr results[] = {expr};
    int64_t value = 0;
    if (!sym::ExprProgram(results).try_run(symbols, {&value, 1})) return std::nullopt;
    return value;
  };
  auto name = [&](int32_t input) { return parts_.names[static_cast<size_t>(input)]; };
  auto got = [&](int32_t input, int32_t dim, bool stride) {
    return measured(*inputs[static_cast<size_t>(input)].impl(), dim, stride);
  };
  auto mismatch = [&](const auto& each, const std::string& expected) {
    found.push_back({fmt::format("{}: expected {}, got {}", place_of(each.dim, each.stride, name(each.input)), expected,
                                 got(each.input, each.dim, each.stride))});
  };
  for (const Fixed& each : fixed_)
    if (got(each.input, each.dim, each.stride) != each.value) mismatch(each, std::to_string(each.value));
  for (size_t at = 0; at < parts_.sources.size(); ++at) {
    if (parts_.first_symbol + at < symbols.size()) continue;
    const SymbolSource& source = parts_.sources[at];
    symbols.push_back(value_of(source, inputs, numbers));
    if (source.kind == SymbolSource::Kind::Size && symbols.back() < 2)
      found.push_back({fmt::format("size of {} at dim {}: expected at least 2, got {}", name(source.input), source.dim,
                                   symbols.back())});
  }
  for (const Expectation& each : computed_)
    if (std::optional<int64_t> expected = evaluate(each.value); got(each.input, each.dim, each.stride) != expected)
      mismatch(each, fmt::format("{} ({})", expected ? std::to_string(*expected) : "no number", each.value.str()));
  for (const sym::Guard& guard : parts_.guards)
    if (evaluate(guard.condition).value_or(0) == 0)
      found.push_back({fmt::format("{} does not hold (asked by {})", guard.condition.str(),
                                   guard.where.empty() ? "the function" : guard.where),
                       guard.site});
  return found;
}

std::vector<std::string> SizeGuards::describe() const {
  std::vector<std::string> lines;
  for (size_t at = 0; at < parts_.sources.size(); ++at)
    if (parts_.sources[at].kind != SymbolSource::Kind::None) {
      auto id = static_cast<int32_t>(parts_.first_symbol + at);
      lines.push_back(fmt::format("{} = {}", parts_.env->pool().symbol(id).name(),
                                  parts_.env->is_backed(id) ? parts_.env->source(id) : "an unbacked size"));
    }
  auto line = [&](const auto& each, const std::string& value) {
    lines.push_back(
        fmt::format("{} == {}", place_of(each.dim, each.stride, parts_.names[static_cast<size_t>(each.input)]), value));
  };
  for (const Fixed& each : fixed_) line(each, std::to_string(each.value));
  for (const Expectation& each : computed_) line(each, each.value.str());
  for (const sym::Guard& guard : parts_.guards)
    lines.push_back(fmt::format("{}  (asked by {})", guard.condition.str(), guard.asked_by()));
  return lines;
}

}  // namespace tenon::core
