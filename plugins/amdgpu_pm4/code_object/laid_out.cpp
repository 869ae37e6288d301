#include "amdgpu_pm4/code_object/elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace kiln::amdgpu_pm4 {

std::uint32_t relocation_bytes(std::uint32_t type) noexcept {
  switch (type) {
    case relocation_abs64:
    case relocation_rel64:
    case relocation_relative64:
      return 8;
    case relocation_rel32:
    case relocation_rel32_lo:
    case relocation_rel32_hi:
      return 4;
    default:
      return 0;
  }
}

std::string relocation_name(std::uint32_t type) {
  static constexpr std::array<const char*, 15> names = {
      "NONE",          "ABS32_LO",      "ABS32_HI", "ABS64",    "REL32", "REL64",      "ABS32", "GOTPCREL",
      "GOTPCREL32_LO", "GOTPCREL32_HI", "REL32_LO", "REL32_HI", nullptr, "RELATIVE64", "REL16"};
  std::string text = "relocation " + std::to_string(type);
  if (type < names.size() && names[type] != nullptr) text += std::string(" (R_AMDGPU_") + names[type] + ")";
  return text;
}

// Linked files: segments keep their distances from each other; what the dynamic linker would do is done here.

namespace {

Status no_definition(const ElfSymbol& symbol) {
  return unsupported("function or variable '" + std::string(symbol.name) + "' has no definition in the text");
}

class Segments {
 public:
  explicit Segments(const ElfFile& file) : file_(file) {}

  Result<LaidOut> run() {
    if (Status status = collect(); !status.ok()) return status;
    if (Status status = copy(); !status.ok()) return status;
    if (Status status = read_dynamic_symbols(); !status.ok()) return status;
    for (const ElfSection& section : file_.sections) {
      if ((section.flags & SHF_ALLOC) == 0) continue;
      if (section.type == SHT_REL) return unsupported("relocations without addends (SHT_REL) are not supported");
      if (section.type == SHT_RELR) return unsupported("packed relative relocations (SHT_RELR) are not supported");
      if (section.type != SHT_RELA) continue;
      if (Status status = relocate(section); !status.ok()) return status;
    }
    return std::move(out_);
  }

 private:
  Status collect() {
    for (const ElfSegment& segment : file_.segments) {
      if (segment.type != PT_LOAD || segment.memory_bytes == 0) continue;
      if (segment.memory_bytes > most_image_bytes) {
        return corrupt("segment at address " + std::to_string(segment.address) + " has " +
                       std::to_string(segment.memory_bytes) + " bytes, expected at most " +
                       std::to_string(most_image_bytes));
      }
      if (segment.address > UINT64_MAX - 2 * most_image_bytes) {
        return corrupt("segment address is " + std::to_string(segment.address) + ", expected at most " +
                       std::to_string(UINT64_MAX - 2 * most_image_bytes));
      }
      if ((segment.flags & PF_W) != 0 && !is_read_only_after(segment)) {
        return unsupported("variables outside kernels must be constant, found a writable segment");
      }
      loads_.push_back(&segment);
    }
    if (loads_.empty()) return corrupt("the code object has no segment to load");
    std::sort(loads_.begin(), loads_.end(),
              [](const ElfSegment* a, const ElfSegment* b) { return a->address < b->address; });
    base_ = loads_.front()->address & ~(image_alignment - 1);
    return {};
  }

  // Whether the segment is written by relocation alone, and the file says so.
  bool is_read_only_after(const ElfSegment& segment) const {
    return std::any_of(file_.segments.begin(), file_.segments.end(), [&](const ElfSegment& relro) {
      return relro.type == PT_GNU_RELRO && relro.address <= segment.address &&
             relro.memory_bytes >= segment.memory_bytes &&
             segment.address - relro.address <= relro.memory_bytes - segment.memory_bytes;
    });
  }

  Status copy() {
    for (const ElfSegment* const segment : loads_) {
      const std::uint64_t begin = segment->address - base_;
      if (begin < out_end_) return corrupt("segments overlap");
      if (begin > most_image_bytes - segment->memory_bytes) {
        return unsupported("segments span more than " + std::to_string(most_image_bytes) + " bytes");
      }
      if (code_ends_)
        fill_code_end(out_.image, out_end_, std::min(begin & ~std::uint64_t{3}, out_end_ + code_end_bytes));
      out_end_ = begin + segment->memory_bytes;
      out_.image.resize(std::max<std::uint64_t>(out_.image.size(), out_end_));
      std::copy(segment->contents.begin(), segment->contents.end(),
                out_.image.begin() + static_cast<std::ptrdiff_t>(begin));
      code_ends_ = (segment->flags & PF_X) != 0;
      if (code_ends_) out_.code.push_back({begin, out_end_});
    }
    if (code_ends_) fill_code_end(out_.image, out_end_, out_end_ + code_end_bytes);
    return {};
  }

  Status read_dynamic_symbols() {
    for (const ElfSection& section : file_.sections) {
      if (section.type != SHT_DYNSYM) continue;
      if (!symbols_.empty()) return corrupt("the code object has more than one dynamic symbol table");
      auto symbols = read_symbols(file_, section);
      if (!symbols) return symbols.error();
      symbols_ = std::move(*symbols);
    }
    for (const ElfSymbol& symbol : symbols_) {
      if (symbol.name.empty() || symbol.section == SHN_UNDEF || symbol.section >= SHN_LORESERVE) continue;
      if (symbol.value < base_ || symbol.value - base_ > out_.image.size() ||
          symbol.size > out_.image.size() - (symbol.value - base_)) {
        return corrupt("symbol '" + std::string(symbol.name) + "' is outside the loaded segments");
      }
      out_.symbols.push_back({symbol.name, symbol.value - base_, symbol.size});
    }
    return {};
  }

  Status relocate(const ElfSection& section) {
    const auto relocations = read_relocations(section);
    if (!relocations) return relocations.error();
    for (const ElfRelocation& relocation : *relocations) {
      if (relocation.type == relocation_none) continue;
      const auto addend = static_cast<std::uint64_t>(relocation.addend);
      std::uint64_t target = 0;
      if (relocation.type == relocation_relative64) {
        target = addend - base_;
      } else if (relocation.type == relocation_abs64 && relocation.symbol != 0 && relocation.symbol < symbols_.size()) {
        const ElfSymbol& symbol = symbols_[relocation.symbol];
        if (symbol.section == SHN_UNDEF) {
          return no_definition(symbol);
        }
        target = symbol.value + addend - base_;
      } else {
        return unsupported(relocation_name(relocation.type) + " is not supported in linked files");
      }
      const std::uint64_t at = relocation.offset - base_;
      if (relocation.offset < base_ || out_.image.size() < 8 || at > out_.image.size() - 8 ||
          target > out_.image.size()) {
        return corrupt(relocation_name(relocation.type) + " at address " + std::to_string(relocation.offset) +
                       " is, or points, outside the loaded segments");
      }
      out_.address_words.push_back({at, target});
    }
    return {};
  }

  const ElfFile& file_;
  std::vector<const ElfSegment*> loads_;  // by address
  std::uint64_t base_ = 0;                // the address that the image's first byte stands for
  std::uint64_t out_end_ = 0;
  bool code_ends_ = false;  // the segment copied last is code
  std::vector<ElfSymbol> symbols_;
  LaidOut out_;
};

}  // namespace

Result<LaidOut> lay_out_linked(const ElfFile& file) { return Segments(file).run(); }

// Relocatable files: every section gets a place, then each relocation its value.

namespace {

constexpr std::uint64_t code_alignment = 256;

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

bool is_code(const ElfSection& section) { return (section.flags & SHF_EXECINSTR) != 0; }

class Layout {
 public:
  explicit Layout(const ElfFile& file) : file_(file), places_(file.sections.size()) {}

  Result<LaidOut> run() {
    for (const bool code : {true, false}) {
      for (std::size_t i = 1; i < file_.sections.size(); ++i) {
        if (!is_loaded(file_.sections[i]) || is_code(file_.sections[i]) != code) continue;
        if (Status status = place(i); !status.ok()) return status;
      }
    }
    if (out_.image.empty()) return corrupt("the code object has no section to load");
    if (Status status = read_symbol_table(); !status.ok()) return status;
    for (const ElfSection& section : file_.sections) {
      if (Status status = relocate(section); !status.ok()) return status;
    }
    return std::move(out_);
  }

 private:
  static bool is_loaded(const ElfSection& section) {
    return (section.flags & SHF_ALLOC) != 0 && section.type != SHT_NOTE && section.size > 0;
  }

  // The error of a section that kernels can write, which names its variables as far as the file does.
  Status written_variables(std::size_t index) const {
    std::string names;
    std::size_t count = 0;
    for (const ElfSection& table : file_.sections) {
      if (table.type != SHT_SYMTAB) continue;
      const auto symbols = read_symbols(file_, table);
      if (!symbols) break;
      for (const ElfSymbol& symbol : *symbols) {
        if (symbol.section != index || symbol.size == 0 || symbol.name.empty()) continue;
        names += (count++ == 0 ? "" : ", ") + in_quotes(symbol.name);
      }
    }
    if (count == 0) {
      return unsupported("section " + in_quotes(file_.sections[index].name) +
                         " is writable; only constant variables are supported outside kernels");
    }
    return unsupported((count == 1 ? "variable " : "variables ") + names +
                       " outside kernels can be written by a kernel; only constant variables are supported. Pass " +
                       (count == 1 ? "the variable as a binding" : "the variables as bindings"));
  }

  Status place(std::size_t index) {
    const ElfSection& section = file_.sections[index];
    const std::string name = "section " + in_quotes(section.name);
    if (section.type != SHT_PROGBITS && section.type != SHT_NOBITS) {
      return unsupported(name + " has type " + std::to_string(section.type) + ", expected 1 (PROGBITS) or 8 (NOBITS)");
    }
    if ((section.flags & SHF_TLS) != 0) return unsupported(name + ": thread-local variables are not supported");
    // Relocated constants are written once, before any kernel runs.
    if ((section.flags & SHF_WRITE) != 0 && !section.name.starts_with(".data.rel.ro")) {
      return written_variables(index);
    }
    if (is_code(section) && section.type == SHT_NOBITS) return corrupt(name + " is code without contents");
    const std::uint64_t alignment = std::max(section.alignment, is_code(section) ? code_alignment : 1);
    const std::uint64_t begin = (out_.image.size() + alignment - 1) & ~(alignment - 1);
    const std::uint64_t tail = is_code(section) ? code_end_bytes + 3 : 0;
    if (section.size > most_image_bytes - tail || begin > most_image_bytes - tail - section.size) {
      return unsupported(name + " makes the image larger than " + std::to_string(most_image_bytes) + " bytes");
    }
    const std::uint64_t end = begin + section.size;
    out_.image.resize(end);
    std::copy(section.contents.begin(), section.contents.end(),
              out_.image.begin() + static_cast<std::ptrdiff_t>(begin));
    places_[index] = begin;
    if (is_code(section)) {
      out_.code.push_back({begin, end});
      fill_code_end(out_.image, end, end + code_end_bytes);
    }
    return {};
  }

  Status read_symbol_table() {
    for (const ElfSection& section : file_.sections) {
      if (section.type != SHT_SYMTAB) continue;
      if (table_ != nullptr) return corrupt("the code object has more than one symbol table");
      auto symbols = read_symbols(file_, section);
      if (!symbols) return symbols.error();
      symbols_ = std::move(*symbols);
      table_ = &section;
    }
    for (const ElfSymbol& symbol : symbols_) {
      const std::optional<std::uint64_t> at = place_of(symbol);
      if (symbol.name.empty() || !at) continue;
      if (symbol.size > out_.image.size() - *at) {
        return corrupt("symbol " + in_quotes(symbol.name) + " reaches beyond the end of the image");
      }
      out_.symbols.push_back({symbol.name, *at, symbol.size});
    }
    return {};
  }

  // nullopt: it lies in no section that is loaded, or beyond that section's end.
  std::optional<std::uint64_t> place_of(const ElfSymbol& symbol) const {
    if (symbol.section == SHN_UNDEF || symbol.section >= places_.size() || !places_[symbol.section] ||
        symbol.value > file_.sections[symbol.section].size) {
      return std::nullopt;
    }
    return *places_[symbol.section] + symbol.value;
  }

  Status relocate(const ElfSection& section) {
    if (section.type != SHT_RELA && section.type != SHT_REL) return {};
    if (section.info >= places_.size()) {
      return corrupt("section " + in_quotes(section.name) + " relocates section " + std::to_string(section.info) +
                     ", expected a number less than " + std::to_string(places_.size()));
    }
    if (!places_[section.info]) return {};  // of what is not loaded, such as debugging information
    if (section.type == SHT_REL) {
      return unsupported("section " + in_quotes(section.name) + " has unsupported relocations without addends");
    }
    if (table_ == nullptr || section.link != static_cast<std::uint64_t>(table_ - file_.sections.data())) {
      return corrupt("section " + in_quotes(section.name) + " refers to symbols of section " +
                     std::to_string(section.link) + ", which is not the symbol table");
    }
    const auto relocations = read_relocations(section);
    if (!relocations) return relocations.error();
    for (const ElfRelocation& relocation : *relocations) {
      if (relocation_bytes(relocation.type) != 0 && relocation.symbol != 0 && relocation.symbol < symbols_.size() &&
          symbols_[relocation.symbol].section == SHN_UNDEF) {
        return no_definition(symbols_[relocation.symbol]);
      }
      if (Status status = apply(relocation, section.info); !status.ok()) {
        return status.within("section " + in_quotes(section.name));
      }
    }
    return {};
  }

  Status apply(const ElfRelocation& relocation, std::size_t into) {
    const std::uint32_t width = relocation_bytes(relocation.type);
    if (relocation.type == relocation_none) return {};
    if (width == 0) return unsupported(relocation_name(relocation.type) + " is not supported");
    const std::uint64_t size = file_.sections[into].contents.size();
    if (relocation.offset > size || width > size - relocation.offset) {
      return corrupt(relocation_name(relocation.type) + " at offset " + std::to_string(relocation.offset) +
                     " reaches beyond the " + std::to_string(size) + " bytes of the section");
    }
    if (relocation.symbol == 0 || relocation.symbol >= symbols_.size()) {
      return corrupt(relocation_name(relocation.type) + " refers to symbol " + std::to_string(relocation.symbol) +
                     ", expected at least 1 and less than " + std::to_string(symbols_.size()));
    }
    const ElfSymbol& symbol = symbols_[relocation.symbol];
    const std::optional<std::uint64_t> place = place_of(symbol);
    if (!place) return corrupt("symbol " + in_quotes(symbol.name) + " is outside the loaded sections");
    // Modulo 2^64, as addresses are.
    const std::uint64_t target = *place + static_cast<std::uint64_t>(relocation.addend);
    const std::uint64_t at = *places_[into] + relocation.offset;
    if (relocation.type == relocation_abs64) {
      if (target > out_.image.size()) return corrupt(relocation_name(relocation.type) + " points outside the image");
      out_.address_words.push_back({at, target});
      return {};
    }
    const std::uint64_t distance = target - at;
    const auto as_signed = static_cast<std::int64_t>(distance);
    if (relocation.type == relocation_rel32 && (as_signed < std::numeric_limits<std::int32_t>::min() ||
                                                as_signed > std::numeric_limits<std::int32_t>::max())) {
      return corrupt(relocation_name(relocation.type) + " needs a distance of more than 32 bits");
    }
    const std::uint64_t value = relocation.type == relocation_rel32_hi ? distance >> 32 : distance;
    std::memcpy(out_.image.data() + at, &value, width);  // little-endian, as the host
    return {};
  }

  static_assert(std::endian::native == std::endian::little);

  const ElfFile& file_;
  std::vector<std::optional<std::uint64_t>> places_;  // of each section in the image
  const ElfSection* table_ = nullptr;
  std::vector<ElfSymbol> symbols_;
  LaidOut out_;
};

}  // namespace

Result<LaidOut> lay_out_relocatable(const ElfFile& file) { return Layout(file).run(); }

void fill_code_end(std::vector<std::byte>& image, std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint32_t s_code_end = 0xBF9F0000;
  begin = (begin + 3) & ~std::uint64_t{3};
  end = (end + 3) & ~std::uint64_t{3};
  if (image.size() < end) image.resize(end);
  for (std::uint64_t at = begin; at < end; at += sizeof s_code_end) {
    std::memcpy(image.data() + at, &s_code_end, sizeof s_code_end);
  }
}

}  // namespace kiln::amdgpu_pm4
