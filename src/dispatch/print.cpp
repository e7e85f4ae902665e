// Tensors as text.
#include <tenon/core/print.h>
#include <tenon/core/tensor.h>

#include "support/out_of_memory.h"

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace tenon {
namespace {

thread_local PrintOptions options_of_thread;

// The element at that address: reals as they are, integers and bools in `whole`.
struct Number {
  double real = 0;
  int64_t whole = 0;
};

Number read(const void* at, Dtype dtype) {
  auto integer = [](auto value) { return Number{static_cast<double>(value), static_cast<int64_t>(value)}; };
  switch (dtype) {
    case Dtype::Bool: return integer(*static_cast<const bool*>(at));
    case Dtype::UInt8: return integer(*static_cast<const uint8_t*>(at));
    case Dtype::Int8: return integer(*static_cast<const int8_t*>(at));
    case Dtype::Int16: return integer(*static_cast<const int16_t*>(at));
    case Dtype::Int32: return integer(*static_cast<const int32_t*>(at));
    case Dtype::Int64: return integer(*static_cast<const int64_t*>(at));
    case Dtype::Float16: return {to_float(*static_cast<const Half*>(at)), 0};
    case Dtype::BFloat16: return {to_float(*static_cast<const BFloat16*>(at)), 0};
    case Dtype::Float8E4M3FN: return {to_float(*static_cast<const Float8E4M3FN*>(at)), 0};
    case Dtype::Float8E5M2: return {to_float(*static_cast<const Float8E5M2*>(at)), 0};
    case Dtype::Float32: return {*static_cast<const float*>(at), 0};
    case Dtype::Float64: return {*static_cast<const double*>(at), 0};
  }
  return {};
}

// Walks over the elements that are shown, in row-major order, and writes them.
class Printer {
 public:
  explicit Printer(const Tensor& tensor)
      : options_(print_options()),
        dtype_(tensor.dtype()),
        data_(static_cast<const std::byte*>(tensor.raw_data())),
        sizes_(tensor.sizes()),
        strides_(tensor.strides()),
        summarised_(int64_t(tensor.numel()) > options_.threshold) {
    if (int64_t(tensor.numel()) > 0) survey(0, 0);
    if (is_floating(dtype_)) choose_format();
    if (int64_t(tensor.numel()) > 0) measure(0, 0);
  }

  void write(std::string& text, size_t depth, int64_t offset, size_t indent) const {
    if (depth == sizes_.size()) {
      text += padded(offset);
      return;
    }
    const bool innermost = depth + 1 == sizes_.size();
    const size_t lines = sizes_.size() - depth - 1;  // between the parts of this dimension
    const auto columns = std::max<int64_t>(
        1, (options_.line_width - static_cast<int64_t>(indent) - 1) / (static_cast<int64_t>(width_) + 2));
    const std::string fresh_line = "\n" + std::string(indent + 1, ' ');
    text += '[';
    int64_t in_line = 0;
    bool first = true;
    each(depth, [&](std::optional<int64_t> at) {
      if (!first) {
        text += ',';
        if (innermost && ++in_line < columns) {
          text += ' ';
        } else if (innermost) {
          text += fresh_line;
          in_line = 0;
        } else {
          text += std::string(lines - 1, '\n') + fresh_line;
        }
      }
      first = false;
      if (at)
        write(text, depth + 1, offset + *at * strides_[depth], indent + 1);
      else
        text += "...";
    });
    text += ']';
  }

 private:
  // Positions along a dimension, nothing for those left out.
  template <typename Visit>
  void each(size_t depth, Visit&& visit) const {
    const int64_t count = sizes_[depth], edge = options_.edge_items;
    const bool shortened = summarised_ && count > 2 * edge;
    for (int64_t at = 0; at < (shortened ? edge : count); ++at) visit(std::optional<int64_t>(at));
    if (!shortened) return;
    visit(std::optional<int64_t>());
    for (int64_t at = count - edge; at < count; ++at) visit(std::optional<int64_t>(at));
  }

  template <typename Visit>
  void each_shown(size_t depth, int64_t offset, Visit&& visit) const {
    if (depth == sizes_.size()) return visit(offset);
    each(depth, [&](std::optional<int64_t> at) {
      if (at) each_shown(depth + 1, offset + *at * strides_[depth], visit);
    });
  }

  Number element(int64_t offset) const { return read(data_ + offset * size_of(dtype_), dtype_); }

  void survey(size_t depth, int64_t offset) {
    each_shown(depth, offset, [&](int64_t at) {
      double value = std::abs(element(at).real);
      if (!std::isfinite(value)) return;
      if (value != std::floor(value)) whole_ = false;
      if (value == 0) return;
      largest_ = std::max(largest_, value);
      smallest_ = std::min(smallest_, value);
    });
  }

  void choose_format() {
    if (largest_ == 0) return;  // zeros, infinities and NaNs alone
    scientific_ = whole_ ? largest_ > 1e8 || largest_ / smallest_ > 1e8
                         : largest_ / smallest_ > 1000 || largest_ > 1e8 || smallest_ < 1e-4;
    if (options_.scientific) scientific_ = *options_.scientific;
  }

  void measure(size_t depth, int64_t offset) {
    each_shown(depth, offset, [&](int64_t at) { width_ = std::max(width_, text_of(at).size()); });
  }

  std::string text_of(int64_t offset) const {
    Number number = element(offset);
    if (dtype_ == kBool) return number.whole != 0 ? "true" : "false";
    if (!is_floating(dtype_)) return fmt::format("{}", number.whole);
    if (std::isnan(number.real)) return "nan";  // whatever its sign bit
    if (std::isinf(number.real)) return number.real > 0 ? "inf" : "-inf";
    if (scientific_) return fmt::format("{:.{}e}", number.real, options_.precision);
    if (whole_) return fmt::format("{:.0f}.", number.real);
    return fmt::format("{:.{}f}", number.real, options_.precision);
  }

  std::string padded(int64_t offset) const {
    std::string text = text_of(offset);
    return sizes_.empty() ? text : std::string(width_ - std::min(width_, text.size()), ' ') + text;
  }

  const PrintOptions& options_;
  Dtype dtype_;
  const std::byte* data_;
  std::span<const int64_t> sizes_, strides_;
  bool summarised_;
  bool whole_ = true, scientific_ = false;
  double largest_ = 0, smallest_ = HUGE_VAL;
  size_t width_ = 0;
};

}  // namespace

void set_print_options(const PrintOptions& options) {
  TENON_CHECK_VALUE(options.precision >= 0 && options.edge_items > 0 && options.line_width > 0,
                    "[set_print_options] expected a precision of at least 0, and edge items and a line width above 0, "
                    "got {}, {} and {}",
                    options.precision, options.edge_items, options.line_width);
  options_of_thread = options;
}
const PrintOptions& print_options() { return options_of_thread; }

std::string Tensor::str() const try {
  if (!defined()) return "tensor(undefined)";
  std::string text = "tensor(";
  if (!impl_->storage->has_data()) {
    text += "..., size=" + tenon::str(sym_sizes()) + (is_fake() ? ", fake" : "");
  } else {
    Printer(*this).write(text, 0, 0, text.size());
    if (int64_t(numel()) == 0 && dim() != 1) text += ", size=" + tenon::str(sym_sizes());
  }
  text += fmt::format(", dtype={}", name(dtype()));
  if (device() != kCPU) text += fmt::format(", device={}", device().str());
  if (requires_grad()) text += ", requires_grad=true";
  return text + ")";
} catch (...) {
  support::rethrow_named("str");
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.str(); }

}  // namespace tenon

auto fmt::formatter<tenon::Tensor>::format(const tenon::Tensor& tensor, format_context& context) const
    -> format_context::iterator {
  return fmt::formatter<fmt::string_view>::format(tensor.str(), context);
}
