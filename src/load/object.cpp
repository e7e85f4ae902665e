#include "load/object.h"

#include "load/runtime_symbols.h"

#include <tenon/support/error.h>

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <unordered_map>

namespace tenon::load {
namespace {

std::atomic<int64_t> loaded{0};

// Why an object is refused.
struct Refused {
  std::string why;
};
template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Refused{fmt::format(text, std::forward<Args>(args)...)};
}

// A place in the object, or in what is being made of it, after it was seen to lie inside.
template <typename T>
T read_at(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) refuse("it ends before byte {}", at + sizeof(T));
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
std::string_view part_of(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) refuse("it ends before byte {}", at + size);
  return bytes.substr(at, size);
}

// Where code jumps to reach a function that may lie anywhere: `jmp *address`, and the address, which also serves
// whoever reads addresses from a table.
struct Stub {
  uint8_t jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc};
  uint64_t address = 0;
};
static_assert(sizeof(Stub) == 16);

class Linker {
 public:
  explicit Linker(std::string_view object) : object_(object) {}

  LoadedCode link() {
    read_sections();
    lay_out();
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t reserved = (stubs_at_ + stubs_.size() * sizeof(Stub) + page - 1) / page * page;
    void* memory = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) refuse("there is no memory for its code");
    ++loaded;
    std::shared_ptr<void> owner(memory, [reserved](void* code) {
      munmap(code, reserved);
      --loaded;
    });
    base_ = static_cast<char*>(memory);
    for (const Section& section : sections_)
      if (section.is_loaded)
        std::memcpy(base_ + section.place, part_of(object_, section.header.sh_offset, section.header.sh_size).data(),
                    section.header.sh_size);
    write_stubs();
    for (const Section& section : sections_)
      if (section.header.sh_type == SHT_RELA && section.header.sh_info < sections_.size() &&
          sections_[section.header.sh_info].is_loaded)
        relocate(section, sections_[section.header.sh_info]);
    if (!entry_) refuse("it has no function {}", kEntryName);
    char* entry = base_ + *entry_;
    if (mprotect(memory, reserved, PROT_READ | PROT_EXEC) != 0) refuse("its code may not be executed");
    return {reinterpret_cast<EntryPoint>(entry), std::move(owner)};
  }

 private:
  struct Section {
    Elf64_Shdr header;
    bool is_loaded = false;
    uint64_t place = 0;  // from the beginning of the memory
  };

  void read_sections() {
    const auto header = read_at<Elf64_Ehdr>(object_, 0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_REL || header.e_machine != EM_X86_64)
      refuse("it is no object file for x86-64");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) refuse("its sections are described in another way");
    for (size_t at = 0; at < header.e_shnum; ++at)
      sections_.push_back({read_at<Elf64_Shdr>(object_, header.e_shoff + at * sizeof(Elf64_Shdr))});
    for (const Section& section : sections_)
      if (section.header.sh_type == SHT_SYMTAB) {
        if (section.header.sh_link >= sections_.size()) refuse("its symbols have no names");
        const Elf64_Shdr& names = sections_[section.header.sh_link].header;
        names_ = part_of(object_, names.sh_offset, names.sh_size);
        std::string_view table = part_of(object_, section.header.sh_offset, section.header.sh_size);
        for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym))
          symbols_.push_back(read_at<Elf64_Sym>(table, at));
      }
  }

  // Code and constants behind each other, then a stub for each function outside.
  void lay_out() {
    uint64_t end = 0;
    for (Section& section : sections_) {
      const Elf64_Shdr& header = section.header;
      // Nothing is thrown through a kernel: it needs no tables for that.
      if (!(header.sh_flags & SHF_ALLOC) || header.sh_size == 0 || header.sh_type == SHT_X86_64_UNWIND ||
          is_unwind_table(header))
        continue;
      if (header.sh_flags & SHF_WRITE) refuse("it has data that is written to");
      if (header.sh_type != SHT_PROGBITS) refuse("it has a section of kind {}", header.sh_type);
      part_of(object_, header.sh_offset, header.sh_size);
      const uint64_t align = std::max<uint64_t>(1, header.sh_addralign);
      if ((align & (align - 1)) != 0 || align > 4096) refuse("it asks for an alignment of {}", align);
      section.is_loaded = true;
      section.place = (end + align - 1) & ~(align - 1);
      end = section.place + header.sh_size;
    }
    stubs_at_ = (end + 15) / 16 * 16;
    for (size_t at = 0; at < symbols_.size(); ++at) {
      const Elf64_Sym& symbol = symbols_[at];
      if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0)
        add_stub(at, reinterpret_cast<uint64_t>(external(name_of(symbol))));
      else if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && name_of(symbol) == kEntryName)
        entry_ = place_of(symbol);
    }
    // A constant whose address is read from a table, too.
    for (const Section& section : sections_)
      if (section.header.sh_type == SHT_RELA)
        each_relocation(section, [&](const Elf64_Rela& each) {
          const uint64_t type = ELF64_R_TYPE(each.r_info), symbol = ELF64_R_SYM(each.r_info);
          if (is_by_table(type) && !stub_of_.contains(symbol)) add_stub(symbol, 0);
        });
  }

  bool is_unwind_table(const Elf64_Shdr& header) const {
    const auto file = read_at<Elf64_Ehdr>(object_, 0);
    if (file.e_shstrndx >= sections_.size()) return false;
    const Elf64_Shdr& names = sections_[file.e_shstrndx].header;
    return text_at(part_of(object_, names.sh_offset, names.sh_size), header.sh_name) == ".eh_frame";
  }

  static std::string_view text_at(std::string_view texts, uint64_t at) {
    if (at >= texts.size()) refuse("a name lies outside of its table");
    const size_t end = texts.find('\0', at);
    if (end == std::string_view::npos) refuse("a name has no end");
    return texts.substr(at, end - at);
  }
  std::string_view name_of(const Elf64_Sym& symbol) const { return text_at(names_, symbol.st_name); }

  static const void* external(std::string_view name) {
    for (const RuntimeSymbol& symbol : runtime_symbols())
      if (name == symbol.name) return symbol.address;
    refuse("it calls {}, which nobody provides", name);
  }

  void add_stub(uint64_t symbol, uint64_t address) {
    stub_of_.emplace(symbol, stubs_.size());
    stubs_.emplace_back().address = address;
  }

  void write_stubs() {
    for (const auto& [symbol, at] : stub_of_) {
      if (stubs_[at].address == 0) stubs_[at].address = address_of(symbol);
      std::memcpy(base_ + stubs_at_ + at * sizeof(Stub), &stubs_[at], sizeof(Stub));
    }
  }

  // From the beginning of the memory.
  uint64_t place_of(const Elf64_Sym& symbol) const {
    if (symbol.st_shndx >= sections_.size()) refuse("a symbol is in no section");
    const Section& section = sections_[symbol.st_shndx];
    if (!section.is_loaded || symbol.st_value > section.header.sh_size) refuse("a symbol lies outside of its section");
    return section.place + symbol.st_value;
  }

  uint64_t address_of(uint64_t index) const {
    if (index >= symbols_.size()) refuse("there is no symbol {}", index);
    const Elf64_Sym& symbol = symbols_[index];
    if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
    // A call of a function outside may not reach it, but reaches its stub.
    if (symbol.st_shndx == SHN_UNDEF) return stub(index);
    return reinterpret_cast<uint64_t>(base_) + place_of(symbol);
  }

  uint64_t stub(uint64_t symbol) const {
    auto found = stub_of_.find(symbol);
    if (found == stub_of_.end()) refuse("a symbol without a name is used");
    return reinterpret_cast<uint64_t>(base_) + stubs_at_ + found->second * sizeof(Stub);
  }

  static bool is_by_table(uint64_t type) {
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
  }

  template <typename Visit>
  void each_relocation(const Section& section, const Visit& visit) const {
    std::string_view table = part_of(object_, section.header.sh_offset, section.header.sh_size);
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= table.size(); at += sizeof(Elf64_Rela))
      visit(read_at<Elf64_Rela>(table, at));
  }

  void relocate(const Section& relocations, const Section& section) {
    each_relocation(relocations, [&](const Elf64_Rela& each) {
      const uint64_t type = ELF64_R_TYPE(each.r_info), symbol = ELF64_R_SYM(each.r_info);
      const uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
      if (each.r_offset > section.header.sh_size || width > section.header.sh_size - each.r_offset)
        refuse("a relocation lies outside of its section");
      char* place = base_ + section.place + each.r_offset;
      const uint64_t from = reinterpret_cast<uint64_t>(place), added = static_cast<uint64_t>(each.r_addend);
      uint64_t value;
      switch (type) {
        case R_X86_64_64: value = target(symbol) + added; break;
        case R_X86_64_PC64:
        case R_X86_64_PC32:
        case R_X86_64_PLT32: value = address_of(symbol) + added - from; break;
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: value = stub(symbol) + offsetof(Stub, address) + added - from; break;
        default: refuse("it has a relocation of kind {}", type);
      }
      if (width == 4 && static_cast<int64_t>(value) != static_cast<int32_t>(value))
        refuse("a relocation does not reach");
      std::memcpy(place, &value, width);
    });
  }

  // The thing itself, not its stub.
  uint64_t target(uint64_t symbol) const {
    if (symbol < symbols_.size() && symbols_[symbol].st_shndx == SHN_UNDEF) {
      auto found = stub_of_.find(symbol);
      if (found == stub_of_.end()) refuse("a symbol without a name is used");
      return stubs_[found->second].address;
    }
    return address_of(symbol);
  }

  std::string_view object_, names_;
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::unordered_map<uint64_t, size_t> stub_of_;  // by symbol
  std::vector<Stub> stubs_;
  uint64_t stubs_at_ = 0;
  std::optional<uint64_t> entry_;
  char* base_ = nullptr;
};

}  // namespace

LoadedCode load_object_code(std::string_view object, std::string* error) {
  try {
    return Linker(object).link();
  } catch (const Refused& refused) {
    *error = refused.why;
    return {};
  }
}

int64_t loaded_object_count() { return loaded; }

}  // namespace tenon::load
