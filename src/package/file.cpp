#include "file.h"

#include "fields.h"
#include "io/atomic_file.h"
#include "io/bytes.h"
#include "io/readers.h"
#include "io/safetensors_parts.h"
#include "load/object.h"

#include <tenon/core/tensor.h>
#include <tenon/generated/version.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

namespace tenon::package {

// What the file says of a kernel besides its code.
struct KernelEntry {
  std::string name;
  std::vector<std::string> integers;
  bool is_parallel = false, is_vector = false;
  sym::Expr extent, work;
  std::vector<sym::Expr> scratch;
  std::vector<std::string> checks;
};

// A tensor of the file: what it is, on the elements of the one of its name, which is contiguous.
struct TensorEntry {
  std::string name;
  std::vector<int64_t> sizes, strides;
};

// A part of the file. They lie behind each other, and nothing lies between.
struct Section {
  std::string name;
  size_t size = 0;
  int64_t hash = 0;
};

struct Header {
  std::string version;
  std::vector<Section> sections;
};

struct Description {
  std::string name;
  bool numbers_are_constants = false;
  std::vector<KernelEntry> kernels;
  std::vector<std::vector<size_t>> kernels_of_plan;  // in the order of `each_plan`, variant by variant
  std::vector<TensorEntry> tensors;
  std::vector<Variant> variants;
};

template <typename A>
void fields(A& a, KernelEntry& kernel) {
  a("name", kernel.name);
  a("integers", kernel.integers);
  a("is_parallel", kernel.is_parallel);
  a("is_vector", kernel.is_vector);
  a("extent", kernel.extent);
  a("work", kernel.work);
  a("scratch", kernel.scratch);
  a("checks", kernel.checks);
}

template <typename A>
void fields(A& a, TensorEntry& tensor) {
  a("name", tensor.name);
  a("sizes", tensor.sizes);
  a("strides", tensor.strides);
}

template <typename A>
void fields(A& a, Section& section) {
  a("name", section.name);
  a("size", section.size);
  a("hash", section.hash);
}

template <typename A>
void fields(A& a, Header& header) {
  a("tenon", header.version);
  a("sections", header.sections);
}

template <typename A>
void fields(A& a, Description& description) {
  a("name", description.name);
  a("numbers_are_constants", description.numbers_are_constants);
  // Each of them is read in a pool of its own.
  if constexpr (!A::kReads) a("kernels", description.kernels);
  a("kernels_of_plan", description.kernels_of_plan);
  a("tensors", description.tensors);
  a("variants", description.variants);
}

namespace {

constexpr std::string_view kMagic = "tenon function 1";
constexpr size_t kAlignment = 64;
constexpr size_t kBeforeHeader = kMagic.size() + 2 * sizeof(uint64_t);  // the header's length and hash

using Bytes = std::span<const std::byte>;

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

void fill_up(std::string& text, char with) {
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, with);
}

std::string objects_name(int bits) { return bits == 512 ? "objects x86-64-v4" : "objects x86-64-v3"; }

KernelEntry describe_kernel(const load::Kernel& kernel) {
  KernelEntry entry{kernel.name,
                    {},
                    kernel.shape.parallel(),
                    kernel.shape.vector(),
                    kernel.shape.extent(),
                    kernel.shape.work(),
                    kernel.scratch,
                    kernel.checks};
  for (sym::Expr each : kernel.integers) entry.integers.push_back(each.name());
  return entry;
}

// Code of kernels behind each other, after a list of where each begins and ends.
std::string joined(const Objects& objects) {
  std::string starts, code;
  auto add = [&](uint64_t number) { starts.append(reinterpret_cast<const char*>(&number), sizeof number); };
  for (const std::string& each : objects.code) {
    add(code.size());
    code += each;
  }
  add(code.size());
  std::string all = starts + code;
  fill_up(all, '\0');
  return all;
}

std::vector<std::string_view> taken_apart(Bytes section, size_t count) {
  const size_t first = (count + 1) * sizeof(uint64_t);
  if (first > section.size()) Reader::refuse("a section of objects is cut short");
  auto start = [&](size_t at) { return io::little<uint64_t>(section, at * sizeof(uint64_t)); };
  std::vector<std::string_view> objects;
  for (size_t at = 0; at < count; ++at) {
    if (start(at) > start(at + 1) || start(at + 1) > section.size() - first)
      Reader::refuse("an object lies outside of its section");
    objects.emplace_back(reinterpret_cast<const char*>(section.data()) + first + start(at), start(at + 1) - start(at));
  }
  return objects;
}

// The elements that a tensor looks at, as one that is contiguous: itself, or its memory from end to end.
Tensor contiguous_part(const Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  SymInt reach = core::reach(tensor.sizes(), tensor.strides());
  return core::make_view(tensor, SymInts{reach}, SymInts{SymInt(1)}, tensor.storage_offset());
}

Tensor whole_tensor(const Tensor& stored, const TensorEntry& entry) {
  if (stored.sizes() == IntSpan(entry.sizes) && stored.strides() == IntSpan(entry.strides)) return stored;
  for (int64_t each : entry.strides)
    if (each < 0) Reader::refuse("a stride is below zero");
  if (entry.strides.size() != entry.sizes.size() || stored.dim() != 1 ||
      core::reach(entry.sizes, entry.strides) > stored.sizes()[0])
    Reader::refuse("tensor '" + entry.name + "' reaches beyond its elements");
  return core::make_view(stored, SymInts(std::span<const int64_t>(entry.sizes)),
                         SymInts(std::span<const int64_t>(entry.strides)), stored.storage_offset());
}

}  // namespace

int64_t hash_of(std::span<const std::byte> bytes) {
  auto mix = [](uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  // Several at a time: one multiplication waits for another.
  uint64_t lanes[] = {0x243F6A8885A308D3ull, 0x13198A2E03707344ull, 0xA4093822299F31D0ull, 0x082EFA98EC4E6C89ull};
  size_t at = 0;
  for (; at + sizeof lanes <= bytes.size(); at += sizeof lanes)
    for (size_t lane = 0; lane < std::size(lanes); ++lane) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + at + 8 * lane, sizeof word);
      lanes[lane] = mix(lanes[lane] ^ word, 0xE7037ED1A0B428DBull) + 0x9E3779B97F4A7C15ull;
    }
  uint64_t all = bytes.size();
  for (uint64_t lane : lanes) all = mix(all ^ lane, 0xA0761D6478BD642Full) + 0x632BE59BD9B4E019ull;
  for (; at < bytes.size(); ++at)
    all = mix(all ^ static_cast<uint64_t>(bytes[at]), 0xA0761D6478BD642Full) + 0x632BE59BD9B4E019ull;
  return static_cast<int64_t>(all);
}

NumberedKernels number_kernels(const Function& function) {
  NumberedKernels numbered;
  std::map<const load::Kernel*, size_t> number_of;
  for (const Variant& variant : function.variants)
    each_plan(variant.plan, [&](const runtime::Plan& plan) {
      std::vector<size_t>& numbers = numbered.of_plan.emplace_back();
      for (const load::KernelRef& kernel : plan.kernels) {
        auto [at, is_new] = number_of.try_emplace(kernel.get(), numbered.kernels.size());
        if (is_new) numbered.kernels.push_back(kernel);
        numbers.push_back(at->second);
      }
    });
  return numbered;
}

void write(const std::filesystem::path& path, const Function& function, const NumberedKernels& kernels,
           std::span<const Objects> objects) {
  Writer writer;
  Description description{function.name, function.numbers_are_constants, {}, kernels.of_plan, {}, function.variants};
  // Each kernel's expressions belong to a pool of its own, so the texts need none.
  for (const load::KernelRef& kernel : kernels.kernels) description.kernels.push_back(describe_kernel(*kernel));
  io::NamedTensors stored;
  for (size_t at = 0; at < function.tensors.size(); ++at) {
    const Tensor& tensor = function.tensors[at];
    stored.emplace_back(function.tensor_names[at], contiguous_part(tensor));
    description.tensors.push_back({function.tensor_names[at],
                                   {tensor.sizes().begin(), tensor.sizes().end()},
                                   {tensor.strides().begin(), tensor.strides().end()}});
  }
  std::string text = io::json_text(writer.to_json(description));
  fill_up(text, ' ');

  std::vector<std::string> held = {std::move(text)};
  Header header{TENON_VERSION, {{"function", 0, 0}}};
  for (const Objects& each : objects) {
    held.push_back(joined(each));
    header.sections.push_back({objects_name(each.bits), 0, 0});
  }
  held.push_back(io::safetensors_header(stored, {}));
  header.sections.push_back({"header of tensors", 0, 0});
  std::vector<Bytes> parts(held.size());
  for (size_t at = 0; at < held.size(); ++at) parts[at] = bytes_of(held[at]);
  for (const auto& [name, tensor] : stored) {
    parts.push_back(io::bytes_of(tensor));
    header.sections.push_back({name, 0, 0});
  }
  for (size_t at = 0; at < parts.size(); ++at) {
    header.sections[at].size = parts[at].size();
    header.sections[at].hash = hash_of(parts[at]);
  }
  std::string header_text = io::json_text(writer.to_json(header));
  // Sections begin where vectors may.
  while ((kBeforeHeader + header_text.size()) % kAlignment != 0) header_text += ' ';

  io::AtomicFile file(path, "save_compiled");
  file.write(kMagic);
  const uint64_t numbers[] = {header_text.size(), static_cast<uint64_t>(hash_of(bytes_of(header_text)))};
  file.write(std::as_bytes(std::span(numbers)));
  file.write(header_text);
  for (Bytes part : parts) file.write(part);
  file.commit();
}

namespace {

bool machine_has(int bits) {
  __builtin_cpu_init();
  bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (bits == 512)
    has = has && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512cd");
  return has;
}

// A file whose hashes are right.
class File {
 public:
  explicit File(io::Bytes bytes) : bytes_(std::move(bytes)) {
    Bytes all = bytes_.span;
    if (all.size() < kBeforeHeader || std::memcmp(all.data(), kMagic.data(), kMagic.size()) != 0)
      Reader::refuse("it is no file of save_compiled");
    const auto length = io::little<uint64_t>(all, kMagic.size());
    const auto hash = io::little<int64_t>(all, kMagic.size() + sizeof length);
    if (length > all.size() - kBeforeHeader) Reader::refuse("its header is cut short");
    Bytes text = all.subspan(kBeforeHeader, length);
    if (hash_of(text) != hash) Reader::refuse("its header is damaged");
    Reader reader;
    reader.from_json(io::parse_json(text_in(text)), header_);
    if (header_.version != TENON_VERSION)
      Reader::refuse(fmt::format("it was saved by version {}, this is version {}", header_.version, TENON_VERSION));
    size_t at = kBeforeHeader + length;
    for (const Section& section : header_.sections) {
      if (section.size > all.size() - at) Reader::refuse("section '" + section.name + "' is cut short");
      if (hash_of(all.subspan(at, section.size)) != section.hash)
        Reader::refuse("section '" + section.name + "' is damaged");
      starts_.push_back(at);
      at += section.size;
    }
    if (at != all.size()) Reader::refuse("something stands behind its last section");
    Section& first = header_.sections.empty() ? missing("function") : header_.sections[0];
    if (first.name != "function") missing("function");
    io::Json json = io::parse_json(text_in(all.subspan(starts_[0], first.size)));
    reader.from_json(json, description);
    read_kernels(reader, json);
  }

  Bytes section(std::string_view name) const {
    for (size_t at = 0; at < header_.sections.size(); ++at)
      if (header_.sections[at].name == name) return Bytes(bytes_.span).subspan(starts_[at], header_.sections[at].size);
    missing(name);
  }

  // The tensors are the last sections, behind their header.
  std::vector<Tensor> tensors() const {
    size_t at = 0;
    while (at < starts_.size() && header_.sections[at].name != "header of tensors") ++at;
    if (at == starts_.size()) missing("header of tensors");
    io::Safetensors stored = io::read_safetensors(bytes_.part(starts_[at], bytes_.size() - starts_[at]));
    std::map<std::string, Tensor> by_name(stored.tensors.begin(), stored.tensors.end());
    std::vector<Tensor> tensors;
    for (const TensorEntry& entry : description.tensors) {
      auto found = by_name.find(entry.name);
      if (found == by_name.end()) missing(entry.name);
      tensors.push_back(whole_tensor(found->second, entry));
    }
    return tensors;
  }

  std::vector<load::KernelRef> kernels() const {
    int bits = 0;
    for (int level : kLevels)
      if (machine_has(level)) bits = level;
    if (bits == 0) Reader::refuse("its kernels are made for x86-64-v3 (AVX2, FMA, F16C), which this machine is not");
    std::vector<std::string_view> objects = taken_apart(section(objects_name(bits)), description.kernels.size());
    std::vector<load::KernelRef> loaded;
    for (size_t at = 0; at < objects.size(); ++at) {
      const KernelEntry& entry = description.kernels[at];
      auto kernel = std::make_shared<load::Kernel>();
      std::string problem;
      load::LoadedCode code = load::load_object_code(objects[at], &problem);
      if (!code.entry) Reader::refuse(fmt::format("kernel {} cannot be loaded: {}", entry.name, problem));
      kernel->name = entry.name;
      kernel->entry = code.entry;
      kernel->code = std::move(code.owner);
      kernel->pool = pools_[at];
      for (const std::string& integer : entry.integers) kernel->integers.push_back(pools_[at]->find_symbol(integer));
      if (entry.is_parallel && !(entry.extent.defined() && entry.work.defined()))
        Reader::refuse("a kernel does not say how far it goes");
      if (entry.is_parallel)
        kernel->shape = load::LaunchShape(entry.extent, entry.work, entry.is_vector, kernel->integers);
      kernel->scratch = entry.scratch;
      kernel->checks = entry.checks;
      loaded.push_back(std::move(kernel));
    }
    return loaded;
  }

  const std::vector<Section>& sections() const { return header_.sections; }

  Description description;

 private:
  [[noreturn]] static Section& missing(std::string_view name) {
    Reader::refuse("there is no '" + std::string(name) + "' in it");
  }
  static std::string_view text_in(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

  // Each in a pool of its own, which has the symbols that it is given.
  void read_kernels(Reader& reader, const io::Json& json) {
    for (const io::Json::Member& member : object_of(json))
      if (member.name == "kernels")
        for (const io::Json& each : list_of(member.value)) {
          std::shared_ptr<sym::ExprPool>& pool = pools_.emplace_back(std::make_shared<sym::ExprPool>());
          for (const io::Json::Member& field : object_of(each))
            if (field.name == "integers")
              for (const io::Json& name : list_of(field.value)) (void)pool->symbol(text_of(name));
          InPool<Reader> in(reader, pool.get());
          reader.from_json(each, description.kernels.emplace_back());
        }
  }

  io::Bytes bytes_;
  Header header_;
  std::vector<size_t> starts_;
  std::vector<std::shared_ptr<sym::ExprPool>> pools_;  // by kernel
};

// What goes wrong while a file is looked at is the file's fault.
template <typename Look>
auto in_file(const std::string& name, const Look& look) {
  try {
    return look();
  } catch (const ValueError& error) {
    if (std::string_view(error.what()).starts_with("[load_compiled]")) throw;
    fail<ValueError>("[load_compiled] {}: {}", name, error.what());
  }
}

// Plans were read just now: nobody else has one.
void give_kernels(Description& description, const std::vector<load::KernelRef>& kernels) {
  size_t next = 0;
  for (const Variant& variant : description.variants)
    each_plan(variant.plan, [&](const runtime::Plan& plan) {
      if (next >= description.kernels_of_plan.size()) Reader::refuse("a plan has no kernels");
      for (size_t kernel : description.kernels_of_plan[next]) {
        if (kernel >= kernels.size()) Reader::refuse("a plan launches a kernel that is not there");
        const_cast<runtime::Plan&>(plan).kernels.push_back(kernels[kernel]);
      }
      ++next;
    });
  if (next != description.kernels_of_plan.size()) Reader::refuse("there are kernels of a plan that is not there");
}

Function read(io::Bytes bytes) {
  return in_file(std::string(bytes.name), [&] {
    File file(std::move(bytes));
    Description& description = file.description;
    give_kernels(description, file.kernels());
    Function function{
        description.name, description.numbers_are_constants, std::move(description.variants), {}, file.tensors()};
    for (const TensorEntry& entry : description.tensors) function.tensor_names.push_back(entry.name);
    for (const Variant& variant : function.variants) check(variant, function.tensors.size());
    return function;
  });
}

// The tensors of the file that the function writes to, or shows to its caller, who may.
std::set<int32_t> given_away(const Function& function) {
  std::set<int32_t> found;
  auto see = [&](const Place& place) {
    if (place.kind == Place::Kind::File) found.insert(place.index);
  };
  for (const Variant& variant : function.variants) {
    for (const WriteBack& each : variant.written) see(each.place);
    for (const ResultRule& rule : variant.results) see(rule.place);
  }
  return found;
}

}  // namespace

Function read(const std::filesystem::path& path) { return read(io::map_file(path, "load_compiled")); }

Function read(std::span<const std::byte> bytes, const std::string& name) {
  Function function = read(io::Bytes{{const_cast<std::byte*>(bytes.data()), bytes.size()}, nullptr, name});
  for (int32_t at : given_away(function)) {
    Tensor& tensor = function.tensors[static_cast<size_t>(at)];
    Tensor stored = contiguous_part(tensor);
    io::Bytes copy = io::copy_bytes(io::bytes_of(stored), name);
    tensor = whole_tensor(
        io::tensor_on(copy, stored.dtype(), Ints(stored.sizes()), Ints(stored.strides())),
        {"", {tensor.sizes().begin(), tensor.sizes().end()}, {tensor.strides().begin(), tensor.strides().end()}});
  }
  return function;
}

std::string describe(const std::filesystem::path& path) {
  return in_file(path.string(), [&] {
    File file(io::map_file(path, "load_compiled"));
    Description& description = file.description;
    std::vector<load::KernelRef> named;
    for (const KernelEntry& entry : description.kernels) {
      auto kernel = std::make_shared<load::Kernel>();
      kernel->name = entry.name;
      named.push_back(std::move(kernel));
    }
    give_kernels(description, named);
    std::string text = fmt::format("{}: {} way{} of calling it, {} kernel{}, {} tensor{}\n", description.name,
                                   description.variants.size(), description.variants.size() == 1 ? "" : "s",
                                   description.kernels.size(), description.kernels.size() == 1 ? "" : "s",
                                   description.tensors.size(), description.tensors.size() == 1 ? "" : "s");
    text += "\nsections\n";
    for (const Section& section : file.sections())
      text +=
          fmt::format("  {:>12} bytes  {:016x}  {}\n", section.size, static_cast<uint64_t>(section.hash), section.name);
    text += "\ntensors\n";
    for (const TensorEntry& entry : description.tensors)
      text += fmt::format("  {} [{}]\n", entry.name, fmt::join(entry.sizes, ", "));
    text += "\nkernels\n";
    for (const KernelEntry& kernel : description.kernels)
      text += fmt::format("  {}({})\n", kernel.name, fmt::join(kernel.integers, ", "));
    for (size_t at = 0; at < description.variants.size(); ++at) {
      const Variant& variant = description.variants[at];
      text += fmt::format("\ncall {}\n", at);
      for (const ArgumentRule& rule : variant.arguments)
        text += fmt::format("  {}: {}, {} dimensions\n", rule.name, name(rule.dtype), rule.rank);
      for (const dispatch::Value& constant : variant.constants)
        text += fmt::format("  a number is {}\n", constant.str());
      for (const std::string& line : variant.sizes.describe()) text += "  " + line + "\n";
      size_t bodies = 0;
      each_plan(variant.plan, [&](const runtime::Plan& plan) {
        if (bodies++ > 0) text += fmt::format("\ncall {}, body {}\n", at, bodies - 1);
        text += runtime::to_string(plan);
      });
    }
    return text;
  });
}

}  // namespace tenon::package
