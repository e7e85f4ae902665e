#include <tenon/kernels/attention.h>
#include <tenon/support/counters.h>

#include <cmath>
#include <limits>

#include "kernels/attention_tiles.h"
#include "kernels/strided.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kQueries = 30, kKeys = 256;  // in a tile: its scores stay in the innermost cache
constexpr int64_t kPanel = 64;                 // columns of transposed keys that lie together; rows of them far apart
                                               // would fall into one set of the cache
constexpr float kNothing = -std::numeric_limits<float>::infinity();

using Buffer = std::vector<float>;

// The sizes of a call. Rows are padded to whole vectors, with zeros.
struct Shape {
  int64_t batch, heads, key_heads, queries, keys, features, value_features;
  int64_t padded_keys, padded_features, padded_value_features;
  Shape(const TensorBase& query, const TensorBase& key, const TensorBase& value)
      : batch(query.sizes()[0]),
        heads(query.sizes()[1]),
        key_heads(key.sizes()[1]),
        queries(query.sizes()[2]),
        keys(key.sizes()[2]),
        features(query.sizes()[3]),
        value_features(value.sizes()[3]),
        padded_keys((keys + kPanel - 1) / kPanel * kPanel),
        padded_features(padded(features)),
        padded_value_features(padded(value_features)) {}
  static int64_t padded(int64_t size) {
    int64_t lanes = attention_tiles().lanes;
    return (size + lanes - 1) / lanes * lanes;
  }
  int64_t heads_per_key_head() const { return heads / key_heads; }
};

// One head of one sample: rows of elements.
template <typename T>
struct Rows {
  T* data;
  int64_t row, step;
  Rows(const TensorBase& tensor, int64_t sample, int64_t head)
      : data(tensor.data<T>() + sample * tensor.strides()[0] + head * tensor.strides()[1]),
        row(tensor.strides()[2]),
        step(tensor.strides()[3]) {}
  T* at(int64_t index) const { return data + index * row; }
};

// Rows [first, first + count) times `factor`, each padded to `width`.
template <typename T>
void pack(const Rows<T>& rows, int64_t first, int64_t count, int64_t features, int64_t width, float factor, float* to) {
  for (int64_t row = 0; row < count; ++row, to += width) {
    const T* from = rows.at(first + row);
    for (int64_t at = 0; at < features; ++at) to[at] = static_cast<float>(widen(from[at * rows.step])) * factor;
    std::fill(to + features, to + width, 0.0f);
  }
}

// Panels of [features, kPanel]: a product with one runs along memory.
template <typename T>
void pack_transposed(const Rows<T>& rows, int64_t count, int64_t features, float* to) {
  constexpr int64_t kBlock = 16;  // rows at a time, so that what is written fills whole cache lines
  for (int64_t panel = 0; panel < count; panel += kPanel, to += features * kPanel)
    for (int64_t first = 0; first < kPanel; first += kBlock) {
      const int64_t given = std::clamp<int64_t>(count - panel - first, 0, kBlock);
      for (int64_t at = 0; at < features; ++at) {
        float* line = to + at * kPanel + first;
        for (int64_t row = 0; row < given; ++row)
          line[row] = static_cast<float>(widen(rows.at(panel + first + row)[at * rows.step]));
        std::fill(line + given, line + kBlock, 0.0f);
      }
    }
}

// `left` times the columns [first, first + count) of panels, into rows kKeys apart. `first` begins a panel.
void multiply_panels(TileLeft left, int64_t rows, const float* panels, int64_t features, int64_t first, int64_t count,
                     float* out) {
  for (int64_t at = 0; at < count; at += kPanel)
    attention_tiles().multiply(left, panels + (first + at) * features, kPanel, out + at, kKeys, rows, features,
                               std::min(kPanel, Shape::padded(count - at)), false);
}

template <typename T>
void unpack(const float* from, int64_t width, const Rows<T>& rows, int64_t first, int64_t count, int64_t features) {
  for (int64_t row = 0; row < count; ++row, from += width) {
    T* to = rows.at(first + row);
    for (int64_t at = 0; at < features; ++at) to[at * rows.step] = narrow<T>(from[at]);
  }
}

// A mask under [batch, heads, queries, keys]: dimensions of one element are repeated by a stride of 0.
struct Mask {
  const TensorBase* tensor = nullptr;
  int64_t strides[4] = {0, 0, 0, 0};
  explicit Mask(const TensorBase* mask) : tensor(mask) {
    if (!mask) return;
    const size_t lead = 4 - mask->sizes().size();
    for (size_t dim = 0; dim < mask->sizes().size(); ++dim)
      if (mask->sizes()[dim] != 1) strides[lead + dim] = mask->strides()[dim];
  }
  template <typename T>
  void apply(int64_t sample, int64_t head, int64_t query, int64_t key, int64_t count, float* scores) const {
    if (!tensor) return;
    const int64_t start = sample * strides[0] + head * strides[1] + query * strides[2] + key * strides[3];
    if (tensor->dtype() == kBool) {
      const bool* seen = tensor->data<bool>() + start;
      for (int64_t at = 0; at < count; ++at)
        if (!seen[at * strides[3]]) scores[at] = kNothing;
      return;
    }
    const T* added = tensor->data<T>() + start;
    for (int64_t at = 0; at < count; ++at) scores[at] += static_cast<float>(widen(added[at * strides[3]]));
  }
};

// A block of queries against a block of keys.
struct Tile {
  int64_t query, queries, key, keys;
};

template <typename Visit>
void each_tile(const Shape& s, int64_t query, int64_t queries, bool causal, Visit&& visit) {
  // No query of the block sees further than the last one.
  const int64_t end = causal ? std::min(s.keys, query + queries) : s.keys;
  for (int64_t key = 0; key < end; key += kKeys) visit(Tile{query, queries, key, std::min(kKeys, end - key)});
}

// Scores of a tile, with -inf where nobody looks. Rows are kKeys apart.
template <typename T>
void score(const Shape& s, const Tile& t, const float* queries, int64_t query_row, const float* keys, const Mask& mask,
           bool causal, int64_t sample, int64_t head, float* scores) {
  multiply_panels({queries, query_row, 1}, t.queries, keys, s.features, t.key, t.keys, scores);
  for (int64_t row = 0; row < t.queries; ++row) {
    float* line = scores + row * kKeys;
    const int64_t seen = causal ? std::clamp<int64_t>(t.query + row + 1 - t.key, 0, t.keys) : t.keys;
    mask.apply<T>(sample, head, t.query + row, t.key, seen, line);
    std::fill(line + seen, line + Shape::padded(t.keys), kNothing);
  }
}

// Values as a product wants them: as they are, or packed.
struct Packed {
  const float* data = nullptr;
  int64_t row = 0;
};

template <typename T>
void forward(const TensorBase& query, const TensorBase& key, const TensorBase& value, const AttentionRule& rule,
             const TensorBase& out, const TensorBase& logsumexp) {
  const Shape s(query, key, value);
  const AttentionTiles& tiles = attention_tiles();
  const Mask mask(rule.mask);
  // A row that is not whole vectors would be read beyond its end.
  const bool direct = std::is_same_v<T, float> && value.strides()[3] == 1 &&
                      s.value_features == s.padded_value_features && value.strides()[2] == s.value_features;
  const int64_t key_size = s.features * s.padded_keys, value_size = direct ? 0 : s.keys * s.padded_value_features,
                pairs = s.batch * s.key_heads;
  // Keys (and values) of all heads, once for all queries.
  TensorBase packed =
      core::allocate_base(Ints{pairs, key_size + value_size}, Ints{key_size + value_size, 1}, kFloat32, kCPU);
  float* pack_at = packed.data<float>();
  parallel_for(pairs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const int64_t sample = pair / s.key_heads, head = pair % s.key_heads;
      float* to = pack_at + pair * (key_size + value_size);
      pack_transposed(Rows<T>(key, sample, head), s.keys, s.features, to);
      if (!direct)
        pack(Rows<T>(value, sample, head), 0, s.keys, s.value_features, s.padded_value_features, 1, to + key_size);
    }
  });
  const int64_t blocks = (s.queries + kQueries - 1) / kQueries;
  parallel_for(s.batch * s.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    Buffer queries(static_cast<size_t>(kQueries * s.features)), scores(static_cast<size_t>(kQueries * kKeys)),
        sums(static_cast<size_t>(kQueries * s.padded_value_features));
    float largest[kQueries], total[kQueries];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t sample = task / blocks / s.heads, head = task / blocks % s.heads,
                    key_head = head / s.heads_per_key_head(), first = task % blocks * kQueries,
                    count = std::min(kQueries, s.queries - first);
      const float* keys = pack_at + (sample * s.key_heads + key_head) * (key_size + value_size);
      Packed values{keys + key_size, s.padded_value_features};
      if constexpr (std::is_same_v<T, float>)
        if (direct) {
          Rows<T> rows(value, sample, key_head);
          values = {rows.data, rows.row};
        }
      pack(Rows<T>(query, sample, head), first, count, s.features, s.features, static_cast<float>(rule.scale),
           queries.data());
      std::fill(largest, largest + kQueries, kNothing);
      std::fill(total, total + kQueries, 0.0f);
      std::fill(sums.begin(), sums.end(), 0.0f);
      each_tile(s, first, count, rule.causal, [&](const Tile& t) {
        score<T>(s, t, queries.data(), s.features, keys, mask, rule.causal, sample, head, scores.data());
        for (int64_t row = 0; row < count; ++row) {
          const float change =
              tiles.soften(&scores[static_cast<size_t>(row * kKeys)], Shape::padded(t.keys), largest[row], total[row]);
          if (t.key == 0 || change == 1) continue;
          float* line = &sums[static_cast<size_t>(row * s.padded_value_features)];
          for (int64_t at = 0; at < s.padded_value_features; ++at) line[at] *= change;
        }
        tiles.multiply({scores.data(), kKeys, 1}, values.data + t.key * values.row, values.row, sums.data(),
                       s.padded_value_features, count, t.keys, s.padded_value_features, t.key != 0);
      });
      Rows<T> results(out, sample, head);
      float* logarithms = logsumexp.data<float>() + sample * logsumexp.strides()[0] + head * logsumexp.strides()[1];
      for (int64_t row = 0; row < count; ++row) {
        float* line = &sums[static_cast<size_t>(row * s.padded_value_features)];
        const bool blind = total[row] == 0;
        const float share = blind ? 0 : 1 / total[row];
        for (int64_t at = 0; at < s.value_features; ++at) line[at] *= share;
        logarithms[(first + row) * logsumexp.strides()[2]] = blind ? kNothing : largest[row] + std::log(total[row]);
      }
      unpack(sums.data(), s.padded_value_features, results, first, count, s.value_features);
    }
  });
}

// What one head of keys and values needs, and gathers, over all queries.
struct HeadBuffers {
  Buffer keys, keys_transposed, values_transposed, key_sums, value_sums;
  Buffer queries, scaled, grads, query_sums, weights, by_score;
  explicit HeadBuffers(const Shape& s) {
    auto size = [](Buffer& buffer, int64_t count) { buffer.resize(static_cast<size_t>(count)); };
    size(keys, s.keys * s.padded_features);
    size(keys_transposed, s.features * s.padded_keys);
    size(values_transposed, s.value_features * s.padded_keys);
    size(key_sums, s.keys * s.padded_features);
    size(value_sums, s.keys * s.padded_value_features);
    size(queries, kQueries * s.padded_features);
    size(scaled, kQueries * s.padded_features);
    size(grads, kQueries * s.padded_value_features);
    size(query_sums, kQueries * s.padded_features);
    size(weights, kQueries * kKeys);
    size(by_score, kQueries * kKeys);
  }
};

template <typename T>
void backward(const TensorBase& grad, const TensorBase& query, const TensorBase& key, const TensorBase& value,
              const TensorBase& out, const TensorBase& logsumexp, const AttentionRule& rule,
              const AttentionGradients& gradients) {
  const Shape s(query, key, value);
  const AttentionTiles& tiles = attention_tiles();
  const Mask mask(rule.mask);
  const auto scale = static_cast<float>(rule.scale);
  const int64_t width = s.padded_features, value_width = s.padded_value_features;
  parallel_for(s.batch * s.key_heads, 1, [&](int64_t begin, int64_t end) {
    HeadBuffers b(s);
    for (int64_t pair = begin; pair < end; ++pair) {
      const int64_t sample = pair / s.key_heads, key_head = pair % s.key_heads;
      pack(Rows<T>(key, sample, key_head), 0, s.keys, s.features, width, 1, b.keys.data());
      pack_transposed(Rows<T>(key, sample, key_head), s.keys, s.features, b.keys_transposed.data());
      pack_transposed(Rows<T>(value, sample, key_head), s.keys, s.value_features, b.values_transposed.data());
      std::fill(b.key_sums.begin(), b.key_sums.end(), 0.0f);
      std::fill(b.value_sums.begin(), b.value_sums.end(), 0.0f);
      for (int64_t head = key_head * s.heads_per_key_head(); head < (key_head + 1) * s.heads_per_key_head(); ++head)
        for (int64_t first = 0; first < s.queries; first += kQueries) {
          const int64_t count = std::min(kQueries, s.queries - first);
          Rows<T> grads(grad, sample, head), results(out, sample, head);
          const float* logarithms =
              logsumexp.data<float>() + sample * logsumexp.strides()[0] + head * logsumexp.strides()[1];
          pack(Rows<T>(query, sample, head), first, count, s.features, width, 1, b.queries.data());
          pack(Rows<T>(query, sample, head), first, count, s.features, width, scale, b.scaled.data());
          pack(grads, first, count, s.value_features, value_width, 1, b.grads.data());
          float shared[kQueries];  // of each query: grad · out
          for (int64_t row = 0; row < count; ++row) {
            shared[row] = 0;
            for (int64_t at = 0; at < s.value_features; ++at)
              shared[row] += static_cast<float>(widen(results.at(first + row)[at * results.step])) *
                             b.grads[static_cast<size_t>(row * value_width + at)];
          }
          std::fill(b.query_sums.begin(), b.query_sums.end(), 0.0f);
          each_tile(s, first, count, rule.causal, [&](const Tile& t) {
            const int64_t columns = Shape::padded(t.keys);
            score<T>(s, t, b.scaled.data(), width, b.keys_transposed.data(), mask, rule.causal, sample, head,
                     b.weights.data());
            for (int64_t row = 0; row < count; ++row) {
              const float logarithm = logarithms[(first + row) * logsumexp.strides()[2]];
              float* line = &b.weights[static_cast<size_t>(row * kKeys)];
              if (logarithm == kNothing)
                std::fill(line, line + columns, 0.0f);
              else
                tiles.weigh(line, columns, logarithm);
            }
            tiles.multiply({b.weights.data(), 1, kKeys}, b.grads.data(), value_width,
                           b.value_sums.data() + t.key * value_width, value_width, t.keys, count, value_width, true);
            multiply_panels({b.grads.data(), value_width, 1}, count, b.values_transposed.data(), s.value_features,
                            t.key, t.keys, b.by_score.data());
            for (int64_t row = 0; row < count; ++row) {
              const float* weight = &b.weights[static_cast<size_t>(row * kKeys)];
              float* line = &b.by_score[static_cast<size_t>(row * kKeys)];
              for (int64_t at = 0; at < columns; ++at) line[at] = weight[at] * (line[at] - shared[row]) * scale;
            }
            tiles.multiply({b.by_score.data(), kKeys, 1}, b.keys.data() + t.key * width, width, b.query_sums.data(),
                           width, count, t.keys, width, true);
            tiles.multiply({b.by_score.data(), 1, kKeys}, b.queries.data(), width, b.key_sums.data() + t.key * width,
                           width, t.keys, count, width, true);
          });
          unpack(b.query_sums.data(), width, Rows<T>(gradients.query, sample, head), first, count, s.features);
        }
      unpack(b.key_sums.data(), width, Rows<T>(gradients.key, sample, key_head), 0, s.keys, s.features);
      unpack(b.value_sums.data(), value_width, Rows<T>(gradients.value, sample, key_head), 0, s.keys, s.value_features);
    }
  });
}

template <typename Body>
void with_dtype(Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::Float32: return body.template operator()<float>();
    case Dtype::BFloat16: return body.template operator()<BFloat16>();
    case Dtype::Float16: return body.template operator()<Half>();
    default: TENON_ASSERT(false, "attention in {}", name(dtype));
  }
}

Counter& library_calls() {
  static Counter& calls = counter("library_calls");
  return calls;
}

}  // namespace

bool attention_supports(Dtype dtype) {
  return dtype == Dtype::Float32 || dtype == Dtype::BFloat16 || dtype == Dtype::Float16;
}

void attention(const TensorBase& query, const TensorBase& key, const TensorBase& value, const AttentionRule& rule,
               const TensorBase& out, const TensorBase& logsumexp) {
  library_calls().add();
  with_dtype(query.dtype(), [&]<typename T>() { forward<T>(query, key, value, rule, out, logsumexp); });
}

void attention_backward(const TensorBase& grad, const TensorBase& query, const TensorBase& key, const TensorBase& value,
                        const TensorBase& out, const TensorBase& logsumexp, const AttentionRule& rule,
                        const AttentionGradients& gradients) {
  library_calls().add();
  with_dtype(query.dtype(),
             [&]<typename T>() { backward<T>(grad, query, key, value, out, logsumexp, rule, gradients); });
}

}  // namespace tenon::kernels
