// Structures of tensors, which loops carry and branches give: a tensor, a vector of tensors, a pair or a tuple of
// these.
#pragma once

#include <tenon/core/tensor.h>

#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace tenon::control::detail {

template <typename... Parts>
void flatten(const std::tuple<Parts...>& parts, std::vector<Tensor>& flat);
template <typename First, typename Second>
void flatten(const std::pair<First, Second>& parts, std::vector<Tensor>& flat);
template <typename... Parts>
std::tuple<Parts...> rebuild(const std::tuple<Parts...>& like, std::span<const Tensor>& flat);
template <typename First, typename Second>
std::pair<First, Second> rebuild(const std::pair<First, Second>& like, std::span<const Tensor>& flat);
template <typename... Parts>
void measure(const std::tuple<Parts...>& parts, std::vector<size_t>& counts);
template <typename First, typename Second>
void measure(const std::pair<First, Second>& parts, std::vector<size_t>& counts);

// The tensors of a structure, in order.
inline void flatten(const Tensor& tensor, std::vector<Tensor>& flat) { flat.push_back(tensor); }
inline void flatten(const std::vector<Tensor>& tensors, std::vector<Tensor>& flat) {
  flat.insert(flat.end(), tensors.begin(), tensors.end());
}
template <typename... Parts>
void flatten(const std::tuple<Parts...>& parts, std::vector<Tensor>& flat) {
  std::apply([&](const auto&... each) { (flatten(each, flat), ...); }, parts);
}
template <typename First, typename Second>
void flatten(const std::pair<First, Second>& parts, std::vector<Tensor>& flat) {
  flatten(parts.first, flat);
  flatten(parts.second, flat);
}

// A structure with other tensors.
inline Tensor rebuild(const Tensor&, std::span<const Tensor>& flat) {
  Tensor tensor = flat.front();
  flat = flat.subspan(1);
  return tensor;
}
inline std::vector<Tensor> rebuild(const std::vector<Tensor>& like, std::span<const Tensor>& flat) {
  std::vector<Tensor> tensors(flat.begin(), flat.begin() + static_cast<ptrdiff_t>(like.size()));
  flat = flat.subspan(like.size());
  return tensors;
}
template <typename... Parts>
std::tuple<Parts...> rebuild(const std::tuple<Parts...>& like, std::span<const Tensor>& flat) {
  return std::apply([&](const auto&... each) { return std::tuple<Parts...>{rebuild(each, flat)...}; }, like);
}
template <typename First, typename Second>
std::pair<First, Second> rebuild(const std::pair<First, Second>& like, std::span<const Tensor>& flat) {
  First first = rebuild(like.first, flat);
  return {std::move(first), rebuild(like.second, flat)};
}

// How many tensors stand in each part of a structure: what its type does not say.
inline void measure(const Tensor&, std::vector<size_t>& counts) { counts.push_back(1); }
inline void measure(const std::vector<Tensor>& tensors, std::vector<size_t>& counts) {
  counts.push_back(tensors.size());
}
template <typename... Parts>
void measure(const std::tuple<Parts...>& parts, std::vector<size_t>& counts) {
  std::apply([&](const auto&... each) { (measure(each, counts), ...); }, parts);
}
template <typename First, typename Second>
void measure(const std::pair<First, Second>& parts, std::vector<size_t>& counts) {
  measure(parts.first, counts);
  measure(parts.second, counts);
}

template <typename T>
concept Structure = requires(const T& structure, std::vector<Tensor>& flat) { flatten(structure, flat); };

}  // namespace tenon::control::detail
