#include "kernels/element_writes.h"

namespace tenon::kernels {
namespace {

template <bool adds, typename T>
void write_one(T& place, T value) {
  if constexpr (adds)
    add_to(place, value);
  else
    place = value;
}

template <bool adds, typename T>
void write_row(const void* source, int64_t from_step, void* target, int64_t to_step, int64_t count) {
  const auto* from = static_cast<const T*>(source);
  auto* to = static_cast<T*>(target);
  if (from_step == 1 && to_step == 1)
    for (int64_t at = 0; at < count; ++at) write_one<adds>(to[at], from[at]);
  else
    for (int64_t at = 0; at < count; ++at) write_one<adds>(to[at * to_step], from[at * from_step]);
}

template <bool adds, typename T>
void write_places(const void* source, const int64_t* from_places, void* target, const int64_t* to_places,
                  int64_t count) {
  const auto* from = static_cast<const T*>(source);
  auto* to = static_cast<T*>(target);
  for (int64_t at = 0; at < count; ++at) write_one<adds>(to[to_places[at]], from[from_places[at]]);
}

template <bool adds, typename T>
int64_t write_picked(const void* source, int64_t from_step, const int64_t* picks, int64_t pick_step, int64_t reach,
                     void* target, int64_t stride, int64_t to_step, int64_t count) {
  const auto* from = static_cast<const T*>(source);
  auto* to = static_cast<T*>(target);
  for (int64_t at = 0; at < count; ++at) {
    const int64_t pick = picks[at * pick_step];
    if (pick < 0 || pick >= reach) return at;
    write_one<adds>(to[pick * stride + at * to_step], from[at * from_step]);
  }
  return count;
}

template <bool adds, typename T>
constexpr ElementWrites kWrites = {&write_row<adds, T>, &write_places<adds, T>, &write_picked<adds, T>, sizeof(T)};

template <bool adds>
ElementWrites writes_of_size(int64_t size) {
  switch (size) {
    case 1: return kWrites<adds, uint8_t>;
    case 2: return kWrites<adds, uint16_t>;
    case 4: return kWrites<adds, uint32_t>;
    default: return kWrites<adds, uint64_t>;
  }
}

}  // namespace

ElementWrites replacing_writes(Dtype dtype) { return writes_of_size<false>(size_of(dtype)); }

ElementWrites adding_writes(Dtype dtype) {
  switch (dtype) {
    case Dtype::Bool: return kWrites<true, bool>;
    case Dtype::Float32: return kWrites<true, float>;
    case Dtype::Float64: return kWrites<true, double>;
    case Dtype::Float16:
    case Dtype::BFloat16: break;
    default: return writes_of_size<true>(size_of(dtype));
  }
  fail("[kernels] sums of {} are float32's", name(dtype));
}

void Picks::write(const ElementWrites& writes, int64_t offset, int64_t step, int64_t count, const void* from,
                  int64_t from_step, void* to, int64_t to_step) const {
  int64_t room[kStretch];
  for (int64_t done = 0, length; done < count; done += length) {
    length = std::min(count - done, kStretch);
    const auto picks = wide_elements({index, offset + done * step, step, length}, room);
    const auto* source = static_cast<const std::byte*>(from) + done * from_step * writes.element;
    auto* target = static_cast<std::byte*>(to) + done * to_step * writes.element;
    const int64_t written =
        writes.picked(source, from_step, picks.first, picks.step, reach, target, stride, to_step, length);
    if (written < length) out_of_range(picks[written]);
  }
}

void Picks::out_of_range(int64_t pick) const {
  fail("[{}] index {} is out of range for dimension {} of size {}", op, pick, dim, reach);
}

}  // namespace tenon::kernels
