#include "compile/object_code.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace candelabra::cpu {

namespace {

constexpr uint64_t largest_code = uint64_t{1} << 24;

[[noreturn]] void refuse(const char* reason) {
  throw failure(CB_RUNTIME_ERROR, "compiled code cannot be loaded: %s", reason);
}

// The sections of a file. All reads are within its bounds.
class ObjectFile {
 public:
  explicit ObjectFile(std::span<const std::byte> file) : file_(file) {
    const auto header = read<Elf64_Ehdr>(0);
    const bool is_known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                          header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL &&
                          header.e_machine == EM_X86_64 && header.e_shentsize == sizeof(Elf64_Shdr);
    if (!is_known) refuse("it is no object file of this processor");
    for (uint64_t k = 0; k < header.e_shnum; ++k)
      sections_.push_back(read<Elf64_Shdr>(header.e_shoff + k * sizeof(Elf64_Shdr)));
    names_ = header.e_shstrndx;
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const Elf64_Shdr& section(uint64_t number) const {
    if (number >= sections_.size()) refuse("a section is missing");
    return sections_[number];
  }
  std::span<const std::byte> contents(const Elf64_Shdr& section) const {
    check_range(section.sh_offset, section.sh_size);
    return file_.subspan(section.sh_offset, section.sh_size);
  }
  template <typename Entry>
  Entry entry(const Elf64_Shdr& section, uint64_t number) const {
    const std::span<const std::byte> all = contents(section);
    if (number >= all.size() / sizeof(Entry)) refuse("an entry is missing");
    return read<Entry>(section.sh_offset + number * sizeof(Entry));
  }
  std::string name(const Elf64_Shdr& strings, uint64_t offset) const {
    const std::span<const std::byte> all = contents(strings);
    if (offset >= all.size()) refuse("a name is missing");
    const auto* const begin = reinterpret_cast<const char*>(all.data()) + offset;
    return {begin, ::strnlen(begin, all.size() - offset)};
  }
  std::string name_of(const Elf64_Shdr& section) const { return name(this->section(names_), section.sh_name); }

 private:
  void check_range(uint64_t offset, uint64_t bytes) const {
    if (offset > file_.size() || bytes > file_.size() - offset) refuse("it is cut off");
  }
  template <typename T>
  T read(uint64_t offset) const {
    check_range(offset, sizeof(T));
    T result;
    std::memcpy(&result, file_.data() + offset, sizeof(T));
    return result;
  }

  std::span<const std::byte> file_;
  std::vector<Elf64_Shdr> sections_;
  uint64_t names_ = 0;
};

constexpr uint64_t nowhere = std::numeric_limits<uint64_t>::max();

// Where the sections with code and constants lie in memory, in bytes. Those that unwind the stack
// are not needed: nothing throws.
std::vector<uint64_t> placed_sections(const ObjectFile& file, uint64_t& end) {
  std::vector<uint64_t> places;
  end = 0;
  for (const Elf64_Shdr& section : file.sections()) {
    const bool is_needed = (section.sh_flags & SHF_ALLOC) && section.sh_type == SHT_PROGBITS && section.sh_size > 0 &&
                           file.name_of(section) != ".eh_frame";
    if (!is_needed) {
      places.push_back(nowhere);
      continue;
    }
    const uint64_t alignment = section.sh_addralign ? section.sh_addralign : 1;
    if (alignment > 4096 || (alignment & (alignment - 1)) || section.sh_size > largest_code)
      refuse("a section is too large");
    end = (end + alignment - 1) / alignment * alignment;
    places.push_back(end);
    end += section.sh_size;
    if (end > largest_code) refuse("it is too large");
  }
  if (end == 0) refuse("it has no code");
  return places;
}

// The address of a symbol that the file defines.
uint64_t address_of(const ObjectFile& file, const std::vector<uint64_t>& places, const Elf64_Sym& symbol,
                    uint64_t memory) {
  if (symbol.st_shndx >= places.size() || places[symbol.st_shndx] == nowhere) refuse("it needs other symbols");
  if (symbol.st_value > file.section(symbol.st_shndx).sh_size) refuse("a symbol lies outside of its section");
  return memory + places[symbol.st_shndx] + symbol.st_value;
}

void relocate(const ObjectFile& file, const std::vector<uint64_t>& places, const Elf64_Shdr& relocations,
              std::byte* memory) {
  const uint64_t target = relocations.sh_info;
  if (target >= places.size() || places[target] == nowhere) return;
  const Elf64_Shdr& symbols = file.section(relocations.sh_link);
  for (uint64_t k = 0; k < relocations.sh_size / sizeof(Elf64_Rela); ++k) {
    const auto one = file.entry<Elf64_Rela>(relocations, k);
    const auto type = ELF64_R_TYPE(one.r_info);
    const uint64_t width = type == R_X86_64_64 ? 8 : 4;
    const uint64_t size = file.section(target).sh_size;
    if (one.r_offset > size || width > size - one.r_offset) refuse("a relocation lies outside of its section");
    std::byte* const place = memory + places[target] + one.r_offset;
    const uint64_t value = address_of(file, places, file.entry<Elf64_Sym>(symbols, ELF64_R_SYM(one.r_info)),
                                      reinterpret_cast<uint64_t>(memory)) +
                           static_cast<uint64_t>(one.r_addend);
    if (type == R_X86_64_64) {
      std::memcpy(place, &value, sizeof value);
      continue;
    }
    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) refuse("it has relocations of an unknown kind");
    const auto distance = static_cast<int64_t>(value - reinterpret_cast<uint64_t>(place));
    const auto narrow = static_cast<int32_t>(distance);
    if (narrow != distance) refuse("a relocation is too far");
    std::memcpy(place, &narrow, sizeof narrow);
  }
}

void* find_function(const ObjectFile& file, const std::vector<uint64_t>& places, std::string_view name,
                    std::byte* memory) {
  for (const Elf64_Shdr& table : file.sections()) {
    if (table.sh_type != SHT_SYMTAB) continue;
    for (uint64_t k = 0; k < table.sh_size / sizeof(Elf64_Sym); ++k) {
      const auto symbol = file.entry<Elf64_Sym>(table, k);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || file.name(file.section(table.sh_link), symbol.st_name) != name)
        continue;
      return reinterpret_cast<void*>(address_of(file, places, symbol, reinterpret_cast<uint64_t>(memory)));
    }
  }
  refuse("its function is missing");
}

}  // namespace

ObjectCode::ObjectCode(std::span<const std::byte> bytes, std::string_view function_name) {
  const ObjectFile file(bytes);
  uint64_t end = 0;
  const std::vector<uint64_t> places = placed_sections(file, end);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  bytes_ = (end + page - 1) / page * page;
  void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw failure(CB_OUT_OF_MEMORY, "no memory for compiled code");
  memory_ = static_cast<std::byte*>(mapped);
  try {
    for (size_t k = 0; k < places.size(); ++k) {
      if (places[k] == nowhere) continue;
      const std::span<const std::byte> contents = file.contents(file.sections()[k]);
      std::memcpy(memory_ + places[k], contents.data(), contents.size());
    }
    for (const Elf64_Shdr& section : file.sections())
      if (section.sh_type == SHT_RELA) relocate(file, places, section, memory_);
    function_ = find_function(file, places, function_name, memory_);
    if (::mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) != 0) refuse("the system forbids code that is made here");
  } catch (...) {
    ::munmap(memory_, bytes_);
    throw;
  }
}

ObjectCode::~ObjectCode() {
  ::munmap(memory_, bytes_);
}

}  // namespace candelabra::cpu
