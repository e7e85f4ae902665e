// Files in every format: what was written is read back, what others wrote is read, and what is no such file is refused.
#include <tenon/io/tensors.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "error_of.h"
#include "unit/io/files.h"
#include "values_of.h"

namespace tenon::testing {
namespace {

using ::testing::HasSubstr;

const Tensor* find(const io::NamedTensors& tensors, const std::string& name) {
  for (const auto& [each, tensor] : tensors)
    if (each == name) return &tensor;
  return nullptr;
}

io::NamedTensors of_all_kinds(bool with_bfloat16) {
  io::NamedTensors all;
  for (int which = 0; which < kComputedDtypeCount; ++which) {
    auto dtype = static_cast<Dtype>(which);
    if (dtype == kBFloat16 && !with_bfloat16) continue;
    all.emplace_back(std::string("as ") + std::string(name(dtype)),
                     tensor({0.0, 1.0, 2.0, 1.0}).to(dtype).view({2, 2}));
  }
  all.emplace_back("none", zeros({0, 3}));
  all.emplace_back("one \"number\"\n", tensor(2.5));
  all.emplace_back("größe", arange(6).view({2, 3}).t());
  all.emplace_back("trained", ones({3}).set_requires_grad());
  return all;
}

void expect_same(const io::NamedTensors& got, const io::NamedTensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    const Tensor* found = find(got, name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->description(), tensor.description()) << name;
    EXPECT_EQ(values(*found), values(tensor)) << name;
  }
}

TEST(Files, TensorsComeBack) {
  for (const char* extension : {".safetensors", ".npz"}) {
    TemporaryFile file(extension);
    io::NamedTensors all = of_all_kinds(std::string(extension) == ".safetensors");
    io::save(file.path(), all);
    expect_same(io::load(file.path()), all);
    io::save(file.path(), {});
    EXPECT_TRUE(io::load(file.path()).empty());
  }
  TemporaryFile file(".npy");
  io::save(file.path(), {{"x", arange(6).view({2, 3}).t()}});
  EXPECT_EQ(values(io::load(file.path())[0].second), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Files, SafetensorsAreMapped) {
  TemporaryFile file(".safetensors");
  io::save_safetensors(file.path(), {{"a", ones({1000})}, {"b", tensor({true})}}, {{"format", "pt"}});
  Tensor kept;
  {
    io::Safetensors read = io::load_safetensors(file.path());
    EXPECT_EQ(read.metadata, (io::Metadata{{"format", "pt"}}));
    kept = *find(read.tensors, "a");
  }
  std::ifstream maps("/proc/self/maps");
  std::string text((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr(file.path().string()));
  kept.fill_(7);  // the tensor's, not the file's
  EXPECT_EQ(io::load(file.path())[0].second[0].item<float>(), 1);
  EXPECT_EQ(kept[999].item<float>(), 7);
}

TEST(Files, ASafetensorsFileByHand) {
  std::string header =
      R"({ "w\u00e4" : {"shape":[2],"data_offsets":[0,8],"dtype":"F32"}, "__metadata__":{"a":"b"} }  )";
  std::vector<std::byte> bytes(8 + header.size() + 8);
  bytes[0] = static_cast<std::byte>(header.size());
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  const float numbers[] = {1.5f, -2};
  std::memcpy(bytes.data() + 8 + header.size(), numbers, 8);
  io::Safetensors file = io::read_safetensors(io::copy_bytes(bytes, "by hand"));
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].first, "wä");
  EXPECT_EQ(values(file.tensors[0].second), (std::vector<double>{1.5, -2}));
}

TEST(Files, HostileSafetensors) {
  auto error = [](const std::string& header, size_t data = 8) {
    std::vector<std::byte> bytes(8 + header.size() + data);
    bytes[0] = static_cast<std::byte>(header.size() & 0xFF);
    bytes[1] = static_cast<std::byte>(header.size() >> 8);
    std::memcpy(bytes.data() + 8, header.data(), header.size());
    return error_of<ValueError>([&] { io::read_safetensors(io::copy_bytes(bytes, "f")); });
  };
  auto one = [](const std::string& fields) { return R"({"w":{)" + fields + "}}"; };
  const std::string start = "[load_safetensors] f: ";
  EXPECT_EQ(error("[]"), start + "expected a header that begins with '{'");
  EXPECT_EQ(error("{\"a\" 1}"), start + "the header is no JSON, at byte 5: expected ':'");
  EXPECT_EQ(error(one(R"("dtype":"F8","shape":[],"data_offsets":[0,8])")),
            start + "tensor 'w' has a dtype that we have not, F8");
  EXPECT_EQ(error(one(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])")),
            start + "expected data_offsets that fit dtype and shape of tensor 'w'");
  EXPECT_EQ(error(one(R"("dtype":"F32","shape":[3],"data_offsets":[0,12])")),
            start + "expected data_offsets within the file of tensor 'w'");
  EXPECT_EQ(error(one(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])")),
            start + "expected sizes of at least 0 of tensor 'w'");
  EXPECT_EQ(error(one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8])")),
            start + "expected sizes that fit into memory of tensor 'w'");
  EXPECT_EQ(error(one(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])")),
            start + "expected tensor 'w' at byte 0 of the data, got 4");
  EXPECT_EQ(error(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])")), start + "expected 4 bytes of data, got 8");
  EXPECT_EQ(error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
            start + "expected tensor 'b' at byte 8 of the data, got 4");
  EXPECT_EQ(error(R"({"a":1,"a":1})"),
            start + "the header is no JSON, at byte 10: expected another name than 'a', which there is already");
  EXPECT_THAT(error(std::string(140, '[')), HasSubstr("begins with"));
  EXPECT_THAT(error("{\"a\":" + std::string(140, '[')), HasSubstr("less nesting"));
}

// Written by the `safetensors` package of Python, which sorts by alignment and adds metadata.
TEST(Files, WhatThePythonPackageOfSafetensorsWrites) {
  io::NamedTensors state = io::load(data_file("python.safetensors"));
  std::map<std::string, Tensor> read(state.begin(), state.end());
  ASSERT_EQ(read.size(), 12u);
  const char* types[] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                         "int64", "float16", "bfloat16", "float32", "float64"};
  for (int at = 0; at < 10; ++at) {
    const Tensor& each = read.at("t" + std::to_string(at));
    EXPECT_EQ(each.description(), std::string(types[at]) + "[2, 3]");
    EXPECT_EQ(values(each), (std::vector<double>{0, 1, 0, 1, 0, 1}));
  }
  EXPECT_EQ(values(read.at("scalar")), std::vector<double>{2.5});
  EXPECT_EQ(read.at("empty").description(), "float32[0, 3]");
}

TEST(Files, WhatPyTorchWrites) {
  io::NamedTensors state = io::load(data_file("state_dict.pt"));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean",
                                             "1.running_var", "1.num_batches_tracked"}));
  EXPECT_EQ(state[0].second.description(), "float32[4, 3]");
  EXPECT_EQ(values(state[0].second)[11], 11 / 8.0);
  EXPECT_EQ(values(state[1].second), (std::vector<double>{1, 1.125, 1.25, 1.375}));
  EXPECT_EQ(state[6].second.description(), "int64[]");
}

TEST(Files, ACheckpointWithMoreThanTensors) {
  io::Object checkpoint = io::load_pytorch(data_file("checkpoint.pt"));
  EXPECT_EQ(checkpoint.at("epoch").integer(), 3);
  EXPECT_EQ(checkpoint.at("lr").real(), 0.25);
  EXPECT_FALSE(checkpoint.at("done").boolean());
  EXPECT_EQ(checkpoint.at("name").text(), "größe");
  EXPECT_EQ(checkpoint.at("nothing").kind(), io::Object::Kind::None);
  EXPECT_EQ(checkpoint.at("history").at(1).at(1).integer(), -7);
  EXPECT_EQ(checkpoint.at("big").integer(), int64_t{1} << 40);
  EXPECT_EQ(checkpoint.at("dtype").text(), "torch.float16");
  EXPECT_EQ(checkpoint.at("size").at(1).integer(), 3);
  Tensor shared = checkpoint.at("shared").tensor(), transposed = checkpoint.at("transposed").tensor();
  EXPECT_EQ(values(transposed), (std::vector<double>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_TRUE(shared.is_same_storage(transposed));
  EXPECT_EQ(values(checkpoint.at("row").tensor()), (std::vector<double>{4, 5, 6, 7}));
  EXPECT_EQ(checkpoint.at("scalar").tensor().item<int64_t>(), 5);
  EXPECT_EQ(checkpoint.at("empty").tensor().description(), "float32[0, 3]");
  EXPECT_EQ(values(checkpoint.at("parameter").tensor()), (std::vector<double>{1, 1}));
  for (Dtype dtype : {kFloat64, kFloat16, kBFloat16, kInt32, kInt16, kInt8, kUInt8, kBool}) {
    Tensor each = checkpoint.at("as " + std::string(name(dtype))).tensor();
    EXPECT_EQ(each.dtype(), dtype);
    EXPECT_EQ(values(each), (std::vector<double>{1, 0, dtype == kBool ? 1.0 : 2.0}));
  }
  EXPECT_EQ(checkpoint.at("model").tensors().size(), 7u);
  EXPECT_TRUE(find(checkpoint.tensors(), "model.0.weight"));
  EXPECT_THAT(checkpoint.str(), HasSubstr("{'epoch': 3, 'lr': 0.25, 'done': False, 'name': 'größe', 'nothing': None"));
  EXPECT_EQ(error_of<TypeError>([&] { checkpoint.at("epoch").text(); }),
            "[load_pytorch] expected a text, got an integer");
  EXPECT_THAT(error_of<IndexError>([&] { checkpoint.at("no"); }),
              HasSubstr("[load_pytorch] there is no 'no' in {'epoch'"));
}

TEST(Files, APickleThatRunsCodeIsRefused) {
  EXPECT_THAT(error_of<ValueError>([] { io::load_pytorch(data_file("whole_module.pt")); }),
              HasSubstr("'torch.nn.modules.container.Sequential' is neither a tensor nor a container, and is not run"));
  EXPECT_THAT(error_of<ValueError>([] { io::load_pytorch(data_file("legacy.pt")); }),
              HasSubstr("expected what torch.save writes since PyTorch 1.6"));
}

TEST(Files, WhatNumPyWrites) {
  for (const char* name : {"arrays.npz", "compressed.npz"}) {
    io::NamedTensors arrays = io::load(data_file(name));
    EXPECT_EQ(find(arrays, "a")->description(), "float64[2, 3]");
    EXPECT_EQ(values(*find(arrays, "f")), (std::vector<double>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(find(arrays, "f")->strides()[0], 1);
    EXPECT_EQ(values(*find(arrays, "big_endian")), (std::vector<double>{0, 1, 2}));
    EXPECT_EQ(values(*find(arrays, "half")), (std::vector<double>{0.5, -2}));
    EXPECT_EQ(find(arrays, "flag")->dtype(), kBool);
    EXPECT_EQ(find(arrays, "zero")->description(), "int16[]");
    EXPECT_EQ(find(arrays, "none")->description(), "float32[0, 2]");
  }
  Tensor counted = *find(io::load(data_file("compressed.npz")), "long");
  ASSERT_EQ(int64_t(counted.size(0)), 2000);
  for (int64_t at = 0; at < 2000; ++at) ASSERT_EQ(counted.data<int64_t>()[at], at % 17);
  EXPECT_THAT(error_of<ValueError>([] { io::load_npy(data_file("complex.npy")); }),
              HasSubstr("has a dtype that we have not, '<c16'"));
}

struct Format {
  const char* file;
  std::function<io::NamedTensors(const io::Bytes&)> read;
};

std::vector<Format> formats() {
  auto npy = [](const io::Bytes& bytes) { return io::NamedTensors{{"x", io::read_npy(bytes)}}; };
  auto pytorch = [](const io::Bytes& bytes) {
    io::Object object = io::read_pytorch(bytes);
    object.str();
    return object.kind() == io::Object::Kind::Dict ? object.tensors() : io::NamedTensors{};
  };
  return {{"fortran.npy", npy},
          {"arrays.npz", io::read_npz},
          {"compressed.npz", io::read_npz},
          {"state_dict.pt", pytorch},
          {"checkpoint.pt", pytorch},
          {"", [](const io::Bytes& bytes) { return io::read_safetensors(bytes).tensors; }}};
}

std::vector<std::byte> content_of(const Format& format) {
  if (*format.file) return content(data_file(format.file));
  TemporaryFile file(".safetensors");
  io::save(file.path(), of_all_kinds(true));
  return content(file.path());
}

// Wherever a file is cut, it is refused: every format says how long it is.
TEST(Files, CutAnywhere) {
  for (const Format& format : formats()) {
    std::vector<std::byte> whole = content_of(format);
    touch(format.read(io::copy_bytes(whole, "whole")));
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_NE(
          error_of<ValueError>([&] { touch(format.read(io::copy_bytes(std::span(whole).first(length), "cut"))); }),
          "no error")
          << format.file << " cut at " << length;
    }
  }
}

// Files that are longer than a page, mapped: cut at every page, and a byte to either side of it.
TEST(Files, CutAtEveryPage) {
  constexpr size_t kPage = 4096;
  std::vector<std::filesystem::path> paths = {data_file("gpt2.pt"), data_file("resnet18.pt")};
  TemporaryFile safetensors(".safetensors"), npz(".npz"), npy(".npy");
  const Tensor numbers = arange(9000).to(kFloat32);
  for (const TemporaryFile* file : {&safetensors, &npz, &npy}) {
    io::NamedTensors saved = {{"numbers", numbers}};
    if (file != &npy) saved.emplace_back("more", numbers.to(kInt64));
    io::save(file->path(), saved);
    paths.push_back(file->path());
  }
  for (const std::filesystem::path& path : paths) {
    const std::vector<std::byte> whole = content(path);
    ASSERT_GT(whole.size(), 2 * kPage) << path;
    const TemporaryFile part(path.extension());
    for (size_t page = kPage; page <= whole.size(); page += kPage)
      for (size_t length : {page - 1, page, std::min(page + 1, whole.size() - 1)}) {
        std::ofstream(part.path(), std::ios::binary)
            .write(reinterpret_cast<const char*>(whole.data()), static_cast<std::streamsize>(length));
        EXPECT_NE(error_of<ValueError>([&] { touch(io::load(part.path())); }), "no error")
            << path << " cut at " << length;
      }
  }
}

// A changed byte is refused, or changes values; it never makes the reader look elsewhere (run under asan).
TEST(Files, ChangedAnywhere) {
  for (const Format& format : formats()) {
    std::vector<std::byte> whole = content_of(format);
    for (size_t at = 0; at < whole.size(); ++at)
      for (int change : {0x01, 0x80, 0xFF}) {
        std::byte before = std::exchange(whole[at], whole[at] ^ static_cast<std::byte>(change));
        try {
          touch(format.read(io::copy_bytes(whole, "changed")));
        } catch (const Error&) {
        }
        whole[at] = before;
      }
  }
}

TEST(Files, Errors) {
  EXPECT_EQ(error_of<ValueError>([] { io::load("/no/such/file.npy"); }),
            "[load_npy] cannot open /no/such/file.npy: No such file or directory");
  EXPECT_EQ(error_of<ValueError>([] { io::load("model.bin"); }),
            "[load] expected a file .safetensors, .npz, .npy, .pt or .pth, got model.bin");
  EXPECT_EQ(error_of<ValueError>([] { io::save("/no/such/file.npz", {}); }),
            "[save_npz] cannot write /no/such/file.npz: No such file or directory");
  EXPECT_EQ(error_of<TypeError>([] { io::save_npy("x.npy", zeros({1}, kBFloat16)); }),
            "[save_npy] NumPy has no bfloat16: use safetensors, or convert it");
  EXPECT_FALSE(std::filesystem::exists("x.npy"));
  TemporaryFile file(".safetensors");
  EXPECT_EQ(error_of<ValueError>([&] { io::save(file.path(), {{"a", ones({1})}, {"a", ones({1})}}); }),
            "[save_safetensors] expected names that differ, got 'a' twice");
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

}  // namespace
}  // namespace tenon::testing
