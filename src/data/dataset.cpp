#include <tenon/data/dataset.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include "data/shuffle.h"
#include "io/bytes.h"

#include <fmt/format.h>

namespace tenon::data {

std::vector<size_t> permutation(size_t size, uint64_t seed, uint64_t stream) {
  std::vector<size_t> order(size);
  for (size_t at = 0; at < size; ++at) order[at] = at;
  std::seed_seq seeds{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(stream),
                      static_cast<uint32_t>(stream >> 32)};
  std::mt19937_64 random(seeds);
  for (size_t left = size; left > 1; --left) std::swap(order[left - 1], order[below(random, left)]);
  return order;
}

TensorDataset::TensorDataset(Tensor data, Tensor target) : data_(std::move(data)), target_(std::move(target)) {
  TENON_CHECK_VALUE(data_.defined() && data_.dim() > 0,
                    "[TensorDataset] expected a tensor with a first dimension, got {}",
                    data_.defined() ? data_.description() : "an undefined one");
  TENON_CHECK_VALUE(!target_.defined() || (target_.dim() > 0 && target_.sizes()[0] == data_.sizes()[0]),
                    "[TensorDataset] expected a target for each of {} samples, got {}", data_.sizes()[0],
                    target_.description());
}
size_t TensorDataset::size() const { return static_cast<size_t>(data_.sizes()[0]); }
Example TensorDataset::get(size_t index) const {
  auto at = static_cast<int64_t>(index);
  return {data_[at], target_.defined() ? target_[at] : Tensor()};
}

Subset::Subset(DatasetRef source, std::vector<size_t> indices)
    : source_(std::move(source)), indices_(std::move(indices)) {
  for (size_t index : indices_)
    TENON_CHECK_INDEX(index < source_->size(), "[Subset] expected numbers below {}, got {}", source_->size(), index);
}

Concatenated::Concatenated(std::vector<DatasetRef> parts) : parts_(std::move(parts)) {}
size_t Concatenated::size() const {
  size_t total = 0;
  for (const DatasetRef& part : parts_) total += part->size();
  return total;
}
Example Concatenated::get(size_t index) const {
  size_t at = index;
  for (const DatasetRef& part : parts_) {
    if (at < part->size()) return part->get(at);
    at -= part->size();
  }
  fail<IndexError>("[Concatenated] expected a number below {}, got {}", size(), index);
}

std::vector<DatasetRef> random_split(const DatasetRef& source, const std::vector<size_t>& sizes, uint64_t seed) {
  size_t total = 0;
  for (size_t size : sizes) total += size;
  TENON_CHECK_VALUE(total == source->size(), "[random_split] expected sizes of {} samples together, got {}",
                    source->size(), total);
  std::vector<size_t> order = permutation(total, seed, 0);
  std::vector<DatasetRef> parts;
  auto at = order.begin();
  for (size_t size : sizes) {
    auto end = at + static_cast<std::ptrdiff_t>(size);
    parts.push_back(std::make_shared<Subset>(source, std::vector<size_t>(at, end)));
    at = end;
  }
  return parts;
}

Tensor read_idx(const std::filesystem::path& path) {
  io::Bytes file = io::map_file(path, "read_idx");
  auto expect = [&](bool holds, std::string_view what) {
    TENON_CHECK_VALUE(holds, "[read_idx] {}: expected {}", file.name, what);
  };
  expect(
      file.size() >= 4 && file.span[0] == std::byte{0} && file.span[1] == std::byte{0} && file.span[2] == std::byte{8},
      "an IDX file of bytes");
  auto dims = static_cast<size_t>(file.span[3]);
  expect(dims >= 1 && file.size() >= 4 + 4 * dims, "sizes of at least one dimension");
  Ints sizes;
  for (size_t dim = 0; dim < dims; ++dim) {
    uint32_t size = 0;
    for (size_t byte = 0; byte < 4; ++byte) size = size << 8 | static_cast<uint32_t>(file.span[4 + 4 * dim + byte]);
    sizes.push_back(size);
  }
  std::optional<int64_t> count = io::element_count(sizes.span());
  size_t start = 4 + 4 * dims;
  expect(count && static_cast<size_t>(*count) == file.size() - start, "as many bytes as the sizes say");
  return io::tensor_on(file.part(start, file.size() - start), kUInt8, sizes, core::contiguous_strides(sizes.span()));
}

namespace {

Tensor scaled(const Tensor& bytes) {
  NoGrad off;
  return bytes.to(kFloat32) / 255.0;
}

Tensor mnist_images(const std::filesystem::path& folder, bool train) {
  Tensor images = read_idx(folder / (train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte"));
  TENON_CHECK_VALUE(images.dim() == 3, "[MNIST] expected images of rows and columns, got {}", images.description());
  return unsqueeze(scaled(images), 1);
}
Tensor mnist_labels(const std::filesystem::path& folder, bool train) {
  Tensor labels = read_idx(folder / (train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte"));
  TENON_CHECK_VALUE(labels.dim() == 1, "[MNIST] expected a list of labels, got {}", labels.description());
  return labels.to(kInt64);
}

// Rows of a label and 3 planes of 32 by 32 pixels.
Tensor cifar_rows(const std::filesystem::path& folder, bool train) {
  constexpr int64_t kRow = 1 + 3 * 32 * 32;
  std::vector<Tensor> parts;
  std::vector<std::string> names = {"test_batch.bin"};
  if (train)
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
  for (const std::string& name : names) {
    io::Bytes file = io::map_file(folder / name, "CIFAR10");
    TENON_CHECK_VALUE(file.size() > 0 && file.size() % kRow == 0,
                      "[CIFAR10] {}: expected rows of {} bytes, got {} bytes", file.name, kRow, file.size());
    Ints sizes{static_cast<int64_t>(file.size()) / kRow, kRow};
    parts.push_back(io::tensor_on(file, kUInt8, sizes, core::contiguous_strides(sizes.span())));
  }
  NoGrad off;
  return parts.size() == 1 ? parts[0] : cat(parts);
}

}  // namespace

MNIST::MNIST(const std::filesystem::path& folder, bool train)
    : TensorDataset(mnist_images(folder, train), mnist_labels(folder, train)) {}

CIFAR10::CIFAR10(const std::filesystem::path& folder, bool train)
    : TensorDataset([&] {
        Tensor rows = cifar_rows(folder, train);
        Tensor pixels = scaled(slice(rows, 1, 1)), labels = select(rows, 1, 0).to(kInt64);
        return TensorDataset(view(contiguous(pixels), {rows.size(0), 3, 32, 32}), labels);
      }()) {}

}  // namespace tenon::data
