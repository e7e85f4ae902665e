#include <tenon/graph/symbolic_inputs.h>

#include <algorithm>
#include <numeric>

namespace tenon::graph {

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
  expected_.push_back({input, SizeGuards::Expectation::kOffset, false, env_->pool().constant(offset)});
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
  auto since = [](const auto& list, size_t first) {
    return std::decay_t<decltype(list)>(list.begin() + static_cast<ptrdiff_t>(first), list.end());
  };
  return SizeGuards({env_, names_, from.symbols, since(sources(), from.symbols), since(expected_, from.expected),
                     since(env_->guards(), from.guards)});
}

}  // namespace tenon::graph
