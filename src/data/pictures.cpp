// Collections of pictures, from files that the user gives.
#include <tenon/data/dataset.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>

#include "data/readers.h"

#include <fmt/format.h>

namespace tenon::data {

Tensor read_idx(const io::Bytes& file) {
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

Tensor read_idx(const std::filesystem::path& path) { return read_idx(io::map_file(path, "read_idx")); }

Tensor read_cifar10(const io::Bytes& file) {
  constexpr int64_t kRow = 1 + 3 * 32 * 32;
  TENON_CHECK_VALUE(file.size() > 0 && file.size() % kRow == 0, "[CIFAR10] {}: expected rows of {} bytes, got {} bytes",
                    file.name, kRow, file.size());
  Ints sizes{static_cast<int64_t>(file.size()) / kRow, kRow};
  return io::tensor_on(file, kUInt8, sizes, core::contiguous_strides(sizes.span()));
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

Tensor cifar10_rows(const std::filesystem::path& folder, bool train) {
  std::vector<Tensor> parts;
  std::vector<std::string> names = {"test_batch.bin"};
  if (train)
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
  for (const std::string& name : names) parts.push_back(read_cifar10(io::map_file(folder / name, "CIFAR10")));
  NoGrad off;
  return parts.size() == 1 ? parts[0] : cat(parts);
}

}  // namespace

MNIST::MNIST(const std::filesystem::path& folder, bool train)
    : TensorDataset(mnist_images(folder, train), mnist_labels(folder, train)) {}

CIFAR10::CIFAR10(const std::filesystem::path& folder, bool train)
    : TensorDataset([&] {
        Tensor rows = cifar10_rows(folder, train);
        Tensor pixels = scaled(slice(rows, 1, 1)), labels = select(rows, 1, 0).to(kInt64);
        return TensorDataset(view(contiguous(pixels), {rows.size(0), 3, 32, 32}), labels);
      }()) {}

}  // namespace tenon::data
