// As ../weights.cpp. LibTorch reads pickles and its own archives; safetensors and NumPy's arrays are written out here.
#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace nn = torch::nn;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

using NamedTensors = torch::OrderedDict<std::string, torch::Tensor>;

NamedTensors tensors_of(const nn::Module& module) {
  NamedTensors all = module.named_parameters();
  all.update(module.named_buffers());
  return all;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return "[" + text + "]";
}

void load_pytorch(const nn::Module& module, const std::string& path) {
  const std::string bytes = read_file(path);
  const auto state = torch::pickle_load(std::vector<char>(bytes.begin(), bytes.end())).toGenericDict();
  NamedTensors own = tensors_of(module);
  std::vector<std::string> missing, unexpected;
  for (const auto& entry : state) {
    const std::string& name = entry.key().toStringRef();
    if (torch::Tensor* found = own.find(name))
      found->detach().copy_(entry.value().toTensor());
    else
      unexpected.push_back(name);
  }
  for (const auto& item : own)
    if (!state.contains(item.key())) missing.push_back(item.key());
  std::printf("missing %s unexpected %s\n", joined(missing).c_str(), joined(unexpected).c_str());
}

const std::map<torch::ScalarType, std::string> kNames = {{torch::kFloat32, "F32"}, {torch::kInt64, "I64"}};

void save_safetensors(const std::string& path, const NamedTensors& tensors) {
  std::ostringstream header, data;
  for (const auto& item : tensors) {
    const torch::Tensor plain = item.value().contiguous();
    const auto begin = data.tellp();
    data.write(static_cast<const char*>(plain.data_ptr()), static_cast<std::streamsize>(plain.nbytes()));
    header << (header.tellp() == 0 ? "{" : ",") << '"' << item.key() << "\":{\"dtype\":\""
           << kNames.at(plain.scalar_type()) << "\",\"shape\":[";
    for (int64_t dim = 0; dim < plain.dim(); ++dim) header << (dim ? "," : "") << plain.size(dim);
    header << "],\"data_offsets\":[" << begin << "," << data.tellp() << "]}";
  }
  header << "}";
  const uint64_t length = header.str().size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header.str() << data.str();
}

// Enough JSON for what save_safetensors wrote.
void load_safetensors(const std::string& path, const NamedTensors& tensors) {
  const std::string bytes = read_file(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const std::string header = bytes.substr(8, length);
  for (const auto& item : tensors) {
    const std::string& name = item.key();
    const size_t entry = header.find('"' + name + '"'), offsets = header.find("data_offsets", entry);
    TORCH_CHECK(entry != std::string::npos, "no ", name, " in ", path);
    const size_t begin = std::stoull(header.substr(header.find('[', offsets) + 1));
    torch::Tensor value = torch::empty_like(item.value(), torch::MemoryFormat::Contiguous);
    TORCH_CHECK(8 + length + begin + value.nbytes() <= bytes.size(), path, " is too short");
    std::memcpy(value.data_ptr(), bytes.data() + 8 + length + begin, value.nbytes());
    item.value().detach().copy_(value);
  }
}

void save_npy(const std::string& path, const torch::Tensor& tensor) {
  std::ostringstream header;
  header << "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) header << tensor.size(dim) << ",";
  header << "), }";
  std::string text = header.str();
  text.append(63 - (10 + text.size()) % 64, ' ') += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << text;
  const torch::Tensor plain = tensor.contiguous();
  file.write(static_cast<const char*>(plain.data_ptr()), static_cast<std::streamsize>(plain.nbytes()));
}

torch::Tensor load_npy(const std::string& path, torch::IntArrayRef sizes) {
  const std::string bytes = read_file(path);
  uint16_t length = 0;
  std::memcpy(&length, bytes.data() + 8, 2);
  torch::Tensor tensor = torch::empty(sizes);
  TORCH_CHECK(bytes.size() == 10u + length + tensor.nbytes(), path, " has other sizes");
  std::memcpy(tensor.data_ptr(), bytes.data() + 10 + length, tensor.nbytes());
  return tensor;
}

int main(int, char** words) {
  nn::Sequential model(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Tanh(), nn::Linear(4, 2));
  for (const torch::Tensor& each : model->parameters()) each.detach().fill_(0.5);
  load_pytorch(*model, words[1]);
  model->eval();

  torch::NoGradGuard off;
  torch::Tensor output = model->forward(torch::arange(6).to(torch::kFloat32).view({2, 3}));
  save_safetensors("weights.safetensors", tensors_of(*model));
  save_npy("output.npy", output);
  nn::Sequential again(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::Tanh(), nn::Linear(4, 2));
  load_safetensors("weights.safetensors", tensors_of(*again));
  again->eval();
  torch::Tensor same = again->forward(torch::arange(6).to(torch::kFloat32).view({2, 3}));
  std::printf("%s %.4f\n", same.equal(load_npy("output.npy", output.sizes())) ? "true" : "false",
              output.sum().item<double>());
}
