// Linked files: segments keep their distances from each other; what the dynamic linker would do is done here.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "amdgpu_pm4/code_object/elf/laid_out.hpp"
#include "amdgpu_pm4/code_object/elf/relocation_type.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

class Segments {
 public:
  explicit Segments(const ElfFile& file) : file_(file) {}

  Result<LaidOut> run() {
    if (Status status = collect(); !status.ok()) return status;
    if (Status status = copy(); !status.ok()) return status;
    if (Status status = read_dynamic_symbols(); !status.ok()) return status;
    for (const ElfSection& section : file_.sections) {
      if ((section.flags & SHF_ALLOC) == 0) continue;
      if (section.type == SHT_REL) return unsupported("it has relocations without addends");
      if (section.type != SHT_RELA) continue;
      if (Status status = relocate(section); !status.ok()) return status;
    }
    return std::move(out_);
  }

 private:
  Status collect() {
    for (const ElfSegment& segment : file_.segments) {
      if (segment.type != PT_LOAD || segment.memory_bytes == 0) continue;
      if (segment.memory_bytes > most_image_bytes || segment.address > UINT64_MAX - 2 * most_image_bytes) {
        return corrupt("a segment of " + std::to_string(segment.memory_bytes) + " bytes at " +
                       std::to_string(segment.address));
      }
      if ((segment.flags & PF_W) != 0 && !is_read_only_after(segment)) {
        return unsupported("a segment that kernels can write: variables outside kernels");
      }
      loads_.push_back(&segment);
    }
    if (loads_.empty()) return corrupt("it has nothing to load");
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
      if (begin < out_end_) return corrupt("its segments overlap");
      if (begin > most_image_bytes - segment->memory_bytes) {
        return unsupported("its segments span more than " + std::to_string(most_image_bytes) + " bytes");
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
      if (!symbols_.empty()) return corrupt("it has two dynamic symbol tables");
      auto symbols = read_symbols(file_, section);
      if (!symbols) return symbols.error();
      symbols_ = std::move(*symbols);
    }
    for (const ElfSymbol& symbol : symbols_) {
      if (symbol.name.empty() || symbol.section == SHN_UNDEF || symbol.section >= SHN_LORESERVE) continue;
      if (symbol.value < base_ || symbol.value - base_ > out_.image.size() ||
          symbol.size > out_.image.size() - (symbol.value - base_)) {
        return corrupt("symbol '" + std::string(symbol.name) + "' lies outside what is loaded");
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
          return unsupported("symbol '" + std::string(symbol.name) +
                             "' is not defined: nothing is linked to a code object");
        }
        target = symbol.value + addend - base_;
      } else {
        return unsupported(relocation_name(relocation.type) + " is not applied to linked files");
      }
      const std::uint64_t at = relocation.offset - base_;
      if (relocation.offset < base_ || out_.image.size() < 8 || at > out_.image.size() - 8 ||
          target > out_.image.size()) {
        return corrupt(relocation_name(relocation.type) + " at " + std::to_string(relocation.offset) +
                       " lies, or points, outside what is loaded");
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

}  // namespace kiln::amdgpu_pm4
