#include "object_file.h"

#include "io/atomic_file.h"
#include "io/readers.h"
#include "package/file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstring>

namespace tenon::deploy {
namespace {

constexpr size_t kAlignment = 64;  // as sections of the file have it

void fill_up(std::string& text, size_t alignment) {
  text.resize((text.size() + alignment - 1) / alignment * alignment);
}

template <typename T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Names behind each other, each with a zero at its end.
struct Names {
  std::string text = std::string(1, '\0');
  Elf64_Word add(const std::string& name) {
    auto at = static_cast<Elf64_Word>(text.size());
    text += name + '\0';
    return at;
  }
};

// What a header says of the calls that a file takes.
std::string calls(const package::Function& function) {
  std::string text;
  for (const package::Variant& variant : function.variants) {
    text += "//   ";
    for (const package::ArgumentRule& rule : variant.arguments)
      text += fmt::format("{}{}: {}, {} dimension{}", &rule == variant.arguments.data() ? "" : "; ", rule.name,
                          name(rule.dtype), rule.rank, rule.rank == 1 ? "" : "s");
    text += variant.arguments.empty() ? "no tensors\n" : "\n";
  }
  return text;
}

std::string header_text(const package::Function& function, const std::string& file, const std::string& name) {
  return fmt::format(R"(// {1}, as a part of the program. Written by `tenon package`, which writes it again.
//
//   auto function = tenon::packaged::{0}<Tensor(Tensor)>();
//
// It takes these tensors (`tenon show {1}` says more):
{2}#pragma once

#include <tenon/package/load_compiled.h>

extern "C" const std::byte tenon_packaged_{0}[];
extern "C" const uint64_t tenon_packaged_{0}_size;

namespace tenon::packaged {{

template <typename Signature>
Loaded<Signature> {0}() {{
  return load_compiled<Signature>({{tenon_packaged_{0}, tenon_packaged_{0}_size}}, "{0}");
}}

}}  // namespace tenon::packaged
)",
                     name, file, calls(function));
}

}  // namespace

std::string object_file(std::string_view bytes, const std::string& symbol) {
  enum : Elf64_Half { kNone, kData, kSymbols, kSymbolNames, kStack, kSectionNames, kCount };
  Names names, section_names;

  // The bytes, then how many they are.
  std::string data(bytes);
  fill_up(data, sizeof(uint64_t));
  const size_t size_at = data.size();
  append(data, static_cast<uint64_t>(bytes.size()));

  std::string symbols;
  append(symbols, Elf64_Sym{});
  auto add_symbol = [&](const std::string& name, size_t at, size_t size) {
    Elf64_Sym entry{};
    entry.st_name = names.add(name);
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    entry.st_shndx = kData;
    entry.st_value = at;
    entry.st_size = size;
    append(symbols, entry);
  };
  add_symbol(symbol, 0, bytes.size());
  add_symbol(symbol + "_size", size_at, sizeof(uint64_t));

  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::array<Elf64_Shdr, kCount> sections{};
  auto add = [&](Elf64_Half at, const char* name, Elf64_Word type, const std::string& content, size_t alignment) {
    fill_up(file, alignment);
    sections[at].sh_name = section_names.add(name);
    sections[at].sh_type = type;
    sections[at].sh_offset = file.size();
    sections[at].sh_size = content.size();
    sections[at].sh_addralign = alignment;
    file += content;
  };
  add(kData, ".rodata", SHT_PROGBITS, data, kAlignment);
  sections[kData].sh_flags = SHF_ALLOC;
  add(kSymbols, ".symtab", SHT_SYMTAB, symbols, alignof(Elf64_Sym));
  sections[kSymbols].sh_link = kSymbolNames;
  sections[kSymbols].sh_info = 1;  // the first that is global
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  add(kSymbolNames, ".strtab", SHT_STRTAB, names.text, 1);
  add(kStack, ".note.GNU-stack", SHT_PROGBITS, "", 1);  // the stack need not be executable
  Names with_own = section_names;
  with_own.add(".shstrtab");
  add(kSectionNames, ".shstrtab", SHT_STRTAB, with_own.text, 1);

  fill_up(file, alignof(Elf64_Shdr));
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = file.size();
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kCount;
  header.e_shstrndx = kSectionNames;
  for (const Elf64_Shdr& section : sections) append(file, section);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

bool is_identifier(std::string_view name) {
  auto fits = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && std::ranges::all_of(name, fits);
}

void write_object(const std::filesystem::path& file, const std::filesystem::path& object,
                  const std::filesystem::path& header, const std::string& name) {
  TENON_CHECK_VALUE(is_identifier(name), "[package] expected a name of C++, got '{}': give one by --name", name);
  io::Bytes bytes = io::map_file(file, "package");
  const package::Function function = package::read(bytes.span, file.string());  // refuses what is damaged
  std::string_view content(reinterpret_cast<const char*>(bytes.span.data()), bytes.size());
  io::AtomicFile object_file_there(object, "package"), header_there(header, "package");
  object_file_there.write(object_file(content, "tenon_packaged_" + name));
  header_there.write(header_text(function, file.filename().string(), name));
  object_file_there.commit();
  header_there.commit();
}

}  // namespace tenon::deploy
