#include <tenon/graph/symbolic_inputs.h>

#include <algorithm>
#include <numeric>

namespace tenon::graph {

void SymbolicInputs::set_source(const SymInt& symbol, SymbolSource source) {
  auto id = static_cast<size_t>(symbol.expr().symbol_id());
  if (sources_.size() <= id) sources_.resize(id + 1);
  sources_[id] = source;
}

SymInt SymbolicInputs::symbol_for(int64_t size, int32_t input, int32_t dim, const std::string& name) {
  if (auto found = by_size_.find(size); found != by_size_.end()) {
    expected_.push_back({input, dim, false, found->second.expr()});
    return found->second;
  }
  SymInt symbol = env_->create_size(size, fmt::format("size of {} at dim {}", name, dim));
  set_source(symbol, {SymbolSource::Kind::Size, input, dim});
  by_size_.emplace(size, symbol);
  return symbol;
}

Tensor SymbolicInputs::add(const Tensor& real, std::span<const bool> dynamic, const std::string& name) {
  auto input = static_cast<int32_t>(names_.size());
  names_.push_back(name);
  std::span<const int64_t> sizes = real.sizes(), strides = real.strides();
  size_t rank = sizes.size();
  SymInts sym_sizes;
  bool any = false;
  for (size_t dim = 0; dim < rank; ++dim) {
    bool symbolic = dynamic[dim] && sizes[dim] > 1;
    any |= symbolic;
    if (symbolic) {
      sym_sizes.push_back(symbol_for(sizes[dim], input, static_cast<int32_t>(dim), name));
    } else {
      sym_sizes.push_back(sizes[dim]);
      expected_.push_back({input, static_cast<int32_t>(dim), false, env_->pool().constant(sizes[dim])});
    }
  }
  // From the smallest stride outwards, each stride is explained by a dimension further inside, if one explains it.
  SymInts sym_strides;
  sym_strides.resize(rank);
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return strides[a] != strides[b] ? strides[a] < strides[b] : a > b;
  });
  std::vector<std::pair<int64_t, SymInt>> reached = {{1, SymInt(1)}};  // a stride, as a number and as an expression
  for (size_t dim : order) {
    SymInt stride = strides[dim];
    if (any && strides[dim] > 1) {
      auto found = std::find_if(reached.rbegin(), reached.rend(), [&](const auto& each) { return each.first == strides[dim]; });
      if (found != reached.rend()) {
        stride = found->second;
      } else {
        stride = env_->create_number(strides[dim], fmt::format("stride of {} at dim {}", name, dim));
        set_source(stride, {SymbolSource::Kind::Stride, input, static_cast<int32_t>(dim)});
      }
    }
    sym_strides[dim] = stride;
    bool defines = stride.is_symbolic() && stride.expr().is_symbol() &&
                   sources_[static_cast<size_t>(stride.expr().symbol_id())].kind == SymbolSource::Kind::Stride;
    // The stride of a dimension of one element addresses nothing.
    if (!defines && sizes[dim] != 1)
      expected_.push_back({input, static_cast<int32_t>(dim), true, stride.to_expr(*env_)});
    reached.emplace_back(strides[dim] * sizes[dim], stride * sym_sizes[dim]);
  }
  return core::make_without_data(sym_sizes, sym_strides, real.dtype(), real.device(), KeySet{DispatchKey::Fake});
}

SymInt SymbolicInputs::add_number(int64_t value, const std::string& name) {
  SymInt symbol = env_->create_number(value, name);
  set_source(symbol, {SymbolSource::Kind::Number, numbers_++, 0});
  return symbol;
}

std::vector<SymbolSource> SymbolicInputs::sources() const {
  std::vector<SymbolSource> sources = sources_;
  sources.resize(static_cast<size_t>(env_->pool().symbol_count()));
  return sources;
}

SizeGuards SymbolicInputs::finish() const {
  SizeGuards guards;
  guards.env_ = env_;
  guards.names_ = names_;
  guards.sources_ = sources();
  guards.expected_ = expected_;
  guards.guards_ = env_->guards();
  std::vector<sym::Expr> results;
  for (const auto& each : expected_) results.push_back(each.value);
  for (const sym::Guard& guard : guards.guards_) results.push_back(guard.condition);
  guards.program_ = sym::ExprProgram(results);
  return guards;
}

bool SizeGuards::check(std::span<const Tensor> inputs, std::span<const int64_t> numbers,
                       SmallVector<int64_t, 16>& symbols) const {
  symbols.clear();
  for (const SymbolSource& source : sources_) {
    auto input = static_cast<size_t>(source.input), dim = static_cast<size_t>(source.dim);
    switch (source.kind) {
      case SymbolSource::Kind::None: symbols.push_back(0); break;
      case SymbolSource::Kind::Size: {
        int64_t size = inputs[input].impl()->sizes[dim];
        if (size < 2) return false;  // 0 and 1 are specialised
        symbols.push_back(size);
        break;
      }
      case SymbolSource::Kind::Stride: symbols.push_back(inputs[input].impl()->strides[dim]); break;
      case SymbolSource::Kind::Number: symbols.push_back(numbers[input]); break;
    }
  }
  SmallVector<int64_t, 64> values(expected_.size() + guards_.size());
  program_.run(symbols.span(), {values.data(), values.size()});
  for (size_t at = 0; at < expected_.size(); ++at) {
    const Expectation& each = expected_[at];
    const TensorImpl& impl = *inputs[static_cast<size_t>(each.input)].impl();
    if ((each.stride ? impl.strides : impl.sizes)[static_cast<size_t>(each.dim)] != values[at]) return false;
  }
  for (size_t at = expected_.size(); at < values.size(); ++at)
    if (values[at] == 0) return false;
  return true;
}

std::string SizeGuards::explain(std::span<const Tensor> inputs, std::span<const int64_t> numbers) const {
  std::vector<int64_t> symbols;
  for (const SymbolSource& source : sources_) {
    auto input = static_cast<size_t>(source.input), dim = static_cast<size_t>(source.dim);
    switch (source.kind) {
      case SymbolSource::Kind::None: symbols.push_back(0); break;
      case SymbolSource::Kind::Size:
        symbols.push_back(inputs[input].sizes()[dim]);
        if (symbols.back() < 2)
          return fmt::format("size of {} at dim {}: expected at least 2, got {}", names_[input], dim, symbols.back());
        break;
      case SymbolSource::Kind::Stride: symbols.push_back(inputs[input].strides()[dim]); break;
      case SymbolSource::Kind::Number: symbols.push_back(numbers[input]); break;
    }
  }
  for (const Expectation& each : expected_) {
    auto input = static_cast<size_t>(each.input), dim = static_cast<size_t>(each.dim);
    int64_t got = each.stride ? inputs[input].strides()[dim] : inputs[input].sizes()[dim];
    int64_t expected = sym::evaluate(each.value, symbols);
    if (got != expected)
      return fmt::format("{} of {} at dim {}: expected {}, got {}", each.stride ? "stride" : "size", names_[input], dim,
                         each.value.is_constant() ? std::to_string(expected) : fmt::format("{} ({})", expected, each.value.str()), got);
  }
  for (const sym::Guard& guard : guards_)
    if (sym::evaluate(guard.condition, symbols) == 0)
      return fmt::format("{} does not hold (asked by {})", guard.condition.str(), guard.where);
  return "";
}

std::vector<std::string> SizeGuards::describe() const {
  std::vector<std::string> lines;
  for (size_t id = 0; id < sources_.size(); ++id)
    if (sources_[id].kind != SymbolSource::Kind::None)
      lines.push_back(fmt::format("{} = {}", env_->pool().symbol(static_cast<int32_t>(id)).name(), env_->source(static_cast<int32_t>(id))));
  for (const Expectation& each : expected_)
    lines.push_back(fmt::format("{} of {} at dim {} == {}", each.stride ? "stride" : "size", names_[static_cast<size_t>(each.input)],
                                each.dim, each.value.str()));
  for (const sym::Guard& guard : guards_) lines.push_back(fmt::format("{}  (asked by {})", guard.condition.str(), guard.where));
  return lines;
}

}  // namespace tenon::graph
