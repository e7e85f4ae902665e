// The inner loops of attention: products of small matrices, and softmax by rows.
#pragma once

#include <cstdint>

namespace tenon::kernels {

// A matrix that is read element by element: element (i, k) at data[i * row + k * step].
struct TileLeft {
  const float* data;
  int64_t row, step;
};

// The loops for the widest vectors that this machine has. `columns` are multiples of `lanes` everywhere.
struct AttentionTiles {
  int64_t lanes;
  // out[i][…] = Σ_k left(i, k) · right[k][…], or += if it `adds`.
  void (*multiply)(TileLeft left, const float* right, int64_t right_row, float* out, int64_t out_row, int64_t rows,
                   int64_t depth, int64_t columns, bool adds);
  // One row of a block of scores becomes e^(score - largest), where `largest` and `sum` run over the row's blocks.
  // Returns what the sums of the blocks before are to be multiplied by.
  float (*soften)(float* scores, int64_t columns, float& largest, float& sum);
  // A row of scores to weights e^(score - logsumexp).
  void (*weigh)(float* scores, int64_t columns, float logsumexp);
};
const AttentionTiles& attention_tiles();

}  // namespace tenon::kernels
