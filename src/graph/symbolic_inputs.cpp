#include <tenon/graph/symbolic_inputs.h>

#include <algorithm>
#include <numeric>

namespace tenon::graph {
namespace {

constexpr int32_t kOffset = -1;  // in place of a dimension

int64_t measured(const TensorImpl& impl, int32_t dim, bool stride) {
  return dim == kOffset ? impl.offset : (stride ? impl.strides : impl.sizes)[static_cast<size_t>(dim)];
}

std::string place_of(int32_t dim, bool stride, const std::string& name) {
  if (dim == kOffset) return "storage offset of " + name;
  return fmt::format("{} of {} at dim {}", stride ? "stride" : "size", name, dim);
}

}  // namespace

void SymbolicInputs::set_source(sym::Expr symbol, SymbolSource source) {
  auto id = static_cast<size_t>(symbol.symbol_id());
  if (sources_.size() <= id) sources_.resize(id + 1);
  sources_[id] = source;
}

SymInt SymbolicInputs::symbol_for(int64_t size, const DimPolicy& policy, int32_t input, int32_t dim,
                                  const std::string& name, int32_t known) {
  if (policy.kind == DimPolicy::Kind::Unbacked) {
    SymInt symbol = env_->create_unbacked({std::max<int64_t>(0, policy.range.min), policy.range.max});
    (void)env_->take_fresh();  // no node binds it: the input does
    set_source(symbol.expr(), {SymbolSource::Kind::AnySize, input, dim});
    return symbol;
  }
  std::optional<SymInt> shared;
  if (known == InputLayout::kConstant) {
    if (auto found = by_size_.find(size); found != by_size_.end() && !policy.alone) shared = found->second;
  } else if (known < env_->pool().symbol_count()) {
    shared = SymInt(env_->pool().symbol(known), env_);
  }
  if (shared) {
    expected_.push_back({input, dim, false, shared->expr()});
    return *shared;
  }
  SymInt symbol = env_->create_size(size, fmt::format("size of {} at dim {}", name, dim));
  set_source(symbol.expr(), {SymbolSource::Kind::Size, input, dim});
  if (!policy.alone) by_size_.emplace(size, symbol);
  return symbol;
}

Tensor SymbolicInputs::add(const Tensor& real, std::span<const bool> dynamic, const std::string& name) {
  std::vector<DimPolicy> dims(dynamic.size());
  for (size_t dim = 0; dim < dims.size(); ++dim)
    dims[dim].kind = dynamic[dim] ? DimPolicy::Kind::Dynamic : DimPolicy::Kind::Static;
  return add(real, dims, name);
}

Tensor SymbolicInputs::add(const Tensor& real, std::span<const DimPolicy> dims, const std::string& name,
                           InputLayout* layout) {
  InputLayout unused;
  InputLayout& chosen = layout ? *layout : unused;
  const bool follow = chosen.known();
  auto input = static_cast<int32_t>(names_.size());
  names_.push_back(name);
  std::span<const int64_t> sizes = real.sizes(), strides = real.strides();
  size_t rank = sizes.size();
  SymInts sym_sizes;
  bool any = false;
  for (size_t dim = 0; dim < rank; ++dim) {
    bool symbolic =
        dims[dim].kind == DimPolicy::Kind::Unbacked || (dims[dim].kind == DimPolicy::Kind::Dynamic && sizes[dim] > 1);
    any |= symbolic;
    if (symbolic) {
      int32_t known = follow ? chosen.sizes[dim] : InputLayout::kConstant;
      sym_sizes.push_back(symbol_for(sizes[dim], dims[dim], input, static_cast<int32_t>(dim), name, known));
    } else {
      sym_sizes.push_back(sizes[dim]);
      expected_.push_back({input, static_cast<int32_t>(dim), false, env_->pool().constant(sizes[dim])});
    }
  }
  // From the smallest stride outwards, each stride is explained by a dimension further inside, if one explains it.
  SymInts sym_strides;
  sym_strides.resize(rank);
  if (!follow) {
    for (const SymInt& size : sym_sizes)
      chosen.sizes.push_back(size.is_symbolic() ? size.expr().symbol_id() : InputLayout::kConstant);
    chosen.order.resize(rank);
    std::iota(chosen.order.begin(), chosen.order.end(), size_t{0});
    std::stable_sort(chosen.order.begin(), chosen.order.end(),
                     [&](size_t a, size_t b) { return strides[a] != strides[b] ? strides[a] < strides[b] : a > b; });
    chosen.strides.assign(rank, InputLayout::kConstant);
    chosen.seen.assign(strides.begin(), strides.end());
  }
  std::vector<std::pair<int64_t, SymInt>> reached = {{1, SymInt(1)}};  // a stride, as a number and as an expression
  for (size_t dim : chosen.order) {
    SymInt stride = sizes[dim] == 1 ? chosen.seen[dim] : strides[dim];
    int32_t& choice = chosen.strides[dim];
    if (!follow && (any || dims[dim].dynamic_stride) && strides[dim] > 1) {
      auto found =
          std::find_if(reached.rbegin(), reached.rend(), [&](const auto& each) { return each.first == strides[dim]; });
      choice = found != reached.rend() ? static_cast<int32_t>(reached.rend() - found) - 1 : InputLayout::kOwnSymbol;
    }
    if (choice != InputLayout::kConstant) {
      if (choice != InputLayout::kOwnSymbol) {
        stride = reached[static_cast<size_t>(choice)].second;
      } else {
        stride = env_->create_number(strides[dim], fmt::format("stride of {} at dim {}", name, dim));
        set_source(stride.expr(), {SymbolSource::Kind::Stride, input, static_cast<int32_t>(dim)});
        // Strides of 0 and 1 mean something: elements that are one, elements that lie together.
        if (strides[dim] > 1 && sizes[dim] != 1) (void)bool(stride > 1);
      }
    }
    sym_strides[dim] = stride;
    // What defines a symbol needs no guard, and the stride of a dimension of one element addresses nothing.
    if (choice != InputLayout::kOwnSymbol && sizes[dim] != 1)
      expected_.push_back({input, static_cast<int32_t>(dim), true, stride.to_expr(*env_)});
    reached.emplace_back(strides[dim] * sizes[dim], stride * sym_sizes[dim]);
  }
  return core::make_without_data(sym_sizes, sym_strides, real.dtype(), real.device(), KeySet{DispatchKey::Fake});
}

void SymbolicInputs::fix_offset(int32_t input, int64_t offset) {
  expected_.push_back({input, kOffset, false, env_->pool().constant(offset)});
}

SymInt SymbolicInputs::add_number(int64_t value, const std::string& name) {
  SymInt symbol = env_->create_number(value, name);
  set_source(symbol.expr(), {SymbolSource::Kind::Number, numbers_++, 0});
  return symbol;
}

SymFloat SymbolicInputs::add_real(double value, const std::string& name) {
  SymFloat symbol = env_->create_real(value, name);
  set_source(symbol.expr(), {SymbolSource::Kind::Number, numbers_++, 0});
  return symbol;
}

SymBool SymbolicInputs::add_bool(bool value, const std::string& name) { return add_number(value ? 1 : 0, name) != 0; }

std::vector<SymbolSource> SymbolicInputs::sources() const {
  std::vector<SymbolSource> sources = sources_;
  sources.resize(static_cast<size_t>(env_->pool().symbol_count()));
  return sources;
}

SymbolicInputs::Progress SymbolicInputs::progress() const {
  return {static_cast<size_t>(env_->pool().symbol_count()), expected_.size(), env_->guards().size()};
}

SizeGuards SymbolicInputs::finish(const Progress& from) const {
  SizeGuards guards;
  guards.env_ = env_;
  guards.names_ = names_;
  guards.first_symbol_ = from.symbols;
  std::vector<SymbolSource> all = sources();
  guards.sources_.assign(all.begin() + static_cast<ptrdiff_t>(from.symbols), all.end());
  std::vector<sym::Expr> results;
  for (size_t at = from.expected; at < expected_.size(); ++at) {
    const auto& each = expected_[at];
    if (each.value.is_constant())
      guards.fixed_.push_back({each.input, each.dim, each.stride, each.value.constant()});
    else
      guards.expected_.push_back(each);
  }
  guards.guards_.assign(env_->guards().begin() + static_cast<ptrdiff_t>(from.guards), env_->guards().end());
  for (const auto& each : guards.expected_) results.push_back(each.value);
  for (const sym::Guard& guard : guards.guards_) results.push_back(guard.condition);
  guards.program_ = sym::ExprProgram(results);
  return guards;
}

int64_t SizeGuards::value_of(const SymbolSource& source, std::span<const Tensor> inputs,
                             std::span<const int64_t> numbers) const {
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
  for (size_t at = 0; at < sources_.size(); ++at) {
    if (first_symbol_ + at < symbols.size()) continue;
    symbols.push_back(value_of(sources_[at], inputs, numbers));
    if (sources_[at].kind == SymbolSource::Kind::Size && symbols.back() < 2) return false;  // 0 and 1 are specialised
  }
  if (expected_.empty() && guards_.empty()) return true;
  SmallVector<int64_t, 64> values(expected_.size() + guards_.size());
  // A guard without a value (a division by 0) does not hold.
  if (!program_.try_run(symbols.span(), {values.data(), values.size()})) return false;
  for (size_t at = 0; at < expected_.size(); ++at) {
    const Expectation& each = expected_[at];
    const TensorImpl& impl = *inputs[static_cast<size_t>(each.input)].impl();
    if (measured(impl, each.dim, each.stride) != values[at]) return false;
  }
  for (size_t at = expected_.size(); at < values.size(); ++at)
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
  auto name = [&](int32_t input) { return names_[static_cast<size_t>(input)]; };
  auto got = [&](int32_t input, int32_t dim, bool stride) {
    return measured(*inputs[static_cast<size_t>(input)].impl(), dim, stride);
  };
  auto mismatch = [&](const auto& each, const std::string& expected) {
    found.push_back({fmt::format("{}: expected {}, got {}", place_of(each.dim, each.stride, name(each.input)), expected,
                                 got(each.input, each.dim, each.stride))});
  };
  for (const Fixed& each : fixed_)
    if (got(each.input, each.dim, each.stride) != each.value) mismatch(each, std::to_string(each.value));
  for (size_t at = 0; at < sources_.size(); ++at) {
    if (first_symbol_ + at < symbols.size()) continue;
    const SymbolSource& source = sources_[at];
    symbols.push_back(value_of(source, inputs, numbers));
    if (source.kind == SymbolSource::Kind::Size && symbols.back() < 2)
      found.push_back({fmt::format("size of {} at dim {}: expected at least 2, got {}", name(source.input), source.dim,
                                   symbols.back())});
  }
  for (const Expectation& each : expected_)
    if (std::optional<int64_t> expected = evaluate(each.value); got(each.input, each.dim, each.stride) != expected)
      mismatch(each, fmt::format("{} ({})", expected ? std::to_string(*expected) : "no number", each.value.str()));
  for (const sym::Guard& guard : guards_)
    if (evaluate(guard.condition).value_or(0) == 0)
      found.push_back({fmt::format("{} does not hold (asked by {})", guard.condition.str(),
                                   guard.where.empty() ? "the function" : guard.where),
                       guard.site});
  return found;
}

std::vector<std::string> SizeGuards::describe() const {
  std::vector<std::string> lines;
  for (size_t at = 0; at < sources_.size(); ++at)
    if (sources_[at].kind != SymbolSource::Kind::None) {
      auto id = static_cast<int32_t>(first_symbol_ + at);
      lines.push_back(fmt::format("{} = {}", env_->pool().symbol(id).name(),
                                  env_->is_backed(id) ? env_->source(id) : "an unbacked size"));
    }
  auto line = [&](const auto& each, const std::string& value) {
    lines.push_back(
        fmt::format("{} == {}", place_of(each.dim, each.stride, names_[static_cast<size_t>(each.input)]), value));
  };
  for (const Fixed& each : fixed_) line(each, std::to_string(each.value));
  for (const Expectation& each : expected_) line(each, each.value.str());
  for (const sym::Guard& guard : guards_)
    lines.push_back(fmt::format("{}  (asked by {})", guard.condition.str(), guard.asked_by()));
  return lines;
}

}  // namespace tenon::graph
