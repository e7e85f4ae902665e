// Tensors put together, along a dimension that they have or along a new one.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <functional>

namespace tenon::ops {
namespace {

constexpr size_t kPiecesOfOneKernel = 32;  // of a list: each is text of the kernel, and a comparison for an element

// Batches are joined, then what they give.
Tensor joined_in_batches(const std::vector<Tensor>& tensors, int64_t dim) {
  int64_t rank = 0;
  std::optional<Dtype> dtype;
  for (const Tensor& tensor : tensors) {
    rank = std::max(rank, tensor.dim());
    dtype = dtype ? promote(*dtype, tensor.dtype()) : tensor.dtype();
  }
  std::vector<Tensor> pieces;
  for (const Tensor& tensor : tensors)
    if (tensor.dim() == rank) pieces.push_back(tensor.to(*dtype));  // others are empty
  while (pieces.size() > kPiecesOfOneKernel) {
    std::vector<Tensor> joined;
    for (size_t at = 0; at < pieces.size(); at += kPiecesOfOneKernel) {
      const size_t count = std::min(kPiecesOfOneKernel, pieces.size() - at);
      const auto begin = pieces.begin() + static_cast<std::ptrdiff_t>(at);
      joined.push_back(cat(std::vector<Tensor>(begin, begin + static_cast<std::ptrdiff_t>(count)), dim));
    }
    pieces = std::move(joined);
  }
  return cat(pieces, dim);
}

}  // namespace

OPS(joining) {
  op("cat(Tensor[] tensors, int dim=0) -> Tensor")
      .moves_elements()
      .element([](Element& e) {
        std::span<const Tensor> tensors = e.arguments()["tensors"].tensors();
        int64_t rank = 0;
        for (const Tensor& tensor : tensors) rank = std::max(rank, tensor.dim());
        auto dim = static_cast<size_t>(e.arguments().dim("dim", rank));
        loop::Builder& builder = e.builder();
        Expr zero = builder.pool().constant(0), start = zero;
        // Each piece is asked only where no earlier one is; coordinates outside are clamped into it.
        std::vector<std::pair<Expr, const Tensor*>> pieces;
        for (const Tensor& tensor : tensors) {
          if (tensor.dim() == 1 && rank > 1) continue;  // an empty piece, as PyTorch allows
          if (statically_true(tensor.size(static_cast<int64_t>(dim)) == 0)) continue;
          pieces.emplace_back(start, &tensor);
          start = start + e.integer(tensor.size(static_cast<int64_t>(dim)));
        }
        if (pieces.empty()) return builder.constant(int64_t{0}, e.dtype());
        std::function<Lane(size_t)> from = [&](size_t at) {
          auto [begin, tensor] = pieces[at];
          Expr size = e.integer(tensor->size(static_cast<int64_t>(dim))), first = begin;
          auto piece = [&] {
            std::vector<Expr> index;
            for (size_t d = 0; d < static_cast<size_t>(rank); ++d) index.push_back(e.index(d));
            if (pieces.size() > 1) index[dim] = max(zero, min(size - 1, index[dim] - first));
            return cast(e.load(*pieces[at].second, index), e.dtype());
          };
          if (at + 1 == pieces.size()) return piece();
          Lane here = builder.index(e.index(dim)) < builder.index(begin + size);
          return builder.choose(here, piece, [&] { return from(at + 1); });
        };
        return from(0);
      })
      .in_parts([](const Arguments& arguments) { return arguments["tensors"].tensors().size() <= kPiecesOfOneKernel; },
                joined_in_batches)
      .shape([](const Arguments& arguments) {
        std::span<const Tensor> tensors = arguments["tensors"].tensors();
        TENON_CHECK_VALUE(!tensors.empty(), "[cat] expected at least one tensor");
        const Tensor* first = nullptr;
        std::optional<Dtype> dtype;
        for (const Tensor& tensor : tensors) {
          TENON_CHECK(tensor.defined(), "[cat] expected tensors, got an undefined one");
          dtype = dtype ? promote(*dtype, tensor.dtype()) : tensor.dtype();
          if (!first || tensor.dim() > first->dim()) first = &tensor;
        }
        TENON_CHECK(first->dim() > 0, "[cat] 0-d tensors cannot be concatenated");
        int64_t dim = arguments.dim("dim", first->dim());
        SymInts sizes = first->sym_sizes();
        SymInt total = 0;
        for (const Tensor& tensor : tensors) {
          if (tensor.dim() == 1 && first->dim() > 1) {
            TENON_CHECK(expect(tensor.size(0) == 0), "[cat] expected tensors of {} dimensions, got {}", first->dim(),
                        tensor.description());
            continue;
          }
          TENON_CHECK(tensor.dim() == first->dim(), "[cat] expected tensors of {} dimensions, got {}", first->dim(),
                      tensor.description());
          for (int64_t each = 0; each < tensor.dim(); ++each)
            TENON_CHECK(each == dim || same_size(tensor.size(each), first->size(each)),
                        "[cat] {} and {} differ in dimension {}, which is not the one joined ({})",
                        first->description(), tensor.description(), each, dim);
          total += tensor.size(dim);
        }
        sizes[static_cast<size_t>(dim)] = total;
        // With the channels last where they are last in all pieces.
        bool agree = std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
          return (tensor.dim() == 1 && first->dim() > 1) || tensor.suggested_format() == first->suggested_format();
        });
        return std::vector{agree ? TensorMeta::in_order_of(*first, sizes, *dtype)
                                 : TensorMeta::contiguous(sizes, *dtype, first->device())};
      })
      .grad("tensors", saves(), [](Grad& g) {
        std::vector<Tensor> pieces;
        SymInt start = 0;
        int64_t dim = g.argument("dim").integer();
        for (const SymInts& sizes : g.list_sizes("tensors")) {
          if (sizes.size() == 1 && g.grad().dim() > 1) {
            pieces.push_back(zeros(sizes, TensorOptions(g.grad().dtype(), g.grad().device())));
            continue;
          }
          SymInt length = sizes[static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(sizes.size()), "cat"))];
          pieces.push_back(slice(g.grad(), dim, start, start + length, 1));
          start += length;
        }
        return pieces;
      });
  op("stack(Tensor[] tensors, int dim=0) -> Tensor").decompose([](const std::vector<Tensor>& tensors, int64_t dim) {
    TENON_CHECK(!tensors.empty(), "[stack] expected at least one tensor");
    std::vector<Tensor> rows;
    int64_t along = 0;
    for (const Tensor& tensor : tensors) {
      TENON_CHECK(tensor.defined(), "[stack] expected tensors, got an undefined one");
      along = wrap_dim(dim, tensors[0].dim() + 1, "stack");
      bool fits = tensor.dim() == tensors[0].dim();
      for (int64_t d = 0; fits && d < tensor.dim(); ++d) fits = same_size(tensor.size(d), tensors[0].size(d));
      TENON_CHECK(fits, "[stack] expected tensors of equal sizes, got {} and {}", tensors[0].description(),
                  tensor.description());
      rows.push_back(unsqueeze(tensor, along));
    }
    return cat(rows, along);
  });
}

}  // namespace tenon::ops
