// What is read from objects that a compiler wrote: numbers, arguments, and bytes where they shall lie.

#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/code_object.hpp"
#include "amdgpu_pm4/code_object/object_file.hpp"
#include "support/test_length.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t s_code_end = 0xBF9F0000, s_endpgm = 0xBFB00000;

std::uint32_t word_at(const CodeObject& object, std::uint64_t offset) {
  REQUIRE(offset + 4 <= object.image.size());
  std::uint32_t word;
  std::memcpy(&word, object.image.data() + offset, sizeof word);
  return word;
}

float float_at(const CodeObject& object, std::uint64_t offset) {
  REQUIRE(offset + 4 <= object.image.size());
  float value;
  std::memcpy(&value, object.image.data() + offset, sizeof value);
  return value;
}

// Every kernel begins at a multiple of 256 and ends before at least 64 dwords that are in the image.
void check_code(const CodeObject& object) {
  for (const KernelCode& kernel : object.kernels) {
    INFO("kernel " << kernel.name);
    CHECK(kernel.entry % 256 == 0);
    std::uint64_t at = kernel.entry;
    while (word_at(object, at) != s_endpgm && word_at(object, at) != 0xBF810000) at += 4;  // gfx11, gfx10
    CHECK(at + 4 + 64 * 4 <= object.image.size());
  }
}

}  // namespace

TEST_CASE("code_object: a kernel for gfx1100 as the compiler wrote it") {
  const ObjectFile file = ObjectFile::named("readable-gfx1100");
  const CodeObject object = file.read();
  CHECK(object.target == Target::gfx1100);
  CHECK(object.version == 5);
  CHECK(object.address_words.empty());
  REQUIRE(object.kernels.size() == 1);
  const KernelCode& kernel = object.kernels[0];
  CHECK(kernel.name == "saxpy");
  CHECK(&kernel == find_kernel(object, "saxpy"));
  CHECK(find_kernel(object, "saxp") == nullptr);
  CHECK(kernel.rsrc1 == file.get<std::uint32_t>(file.descriptor() + 48));
  CHECK(kernel.rsrc2 == file.get<std::uint32_t>(file.descriptor() + 52));
  CHECK(kernel.rsrc3 == file.get<std::uint32_t>(file.descriptor() + 44));
  CHECK(kernel.properties == 0x0408);
  CHECK(kernel.lds_bytes == 0);
  CHECK(kernel.scratch_bytes == 0);
  CHECK(kernel.kernarg_bytes == 20);
  CHECK(kernel.kernarg_alignment == 8);
  CHECK(kernel.wave_lanes == 32);
  CHECK(kernel.user_sgprs == 15);  // more than the pointer needs: the compiler's way around a fault of this target
  REQUIRE(kernel.user_sgpr_slots.size() == 1);
  CHECK(kernel.user_sgpr_slots[0].value == UserSgpr::kernarg_pointer);
  CHECK(kernel.user_sgpr_slots[0].first == 0);
  CHECK(kernel.user_sgpr_slots[0].count == 2);
  CHECK(kernel.required_workgroup == std::array<std::uint32_t, 3>{64, 1, 1});
  CHECK(kernel.max_workgroup_lanes == 64);
  CHECK(kernel.vgprs > 0);
  REQUIRE(kernel.arguments.size() == 3);
  CHECK(kernel.arguments[0].name == "x");
  CHECK(kernel.arguments[1].kind == ArgumentKind::global_buffer);
  CHECK(kernel.arguments[1].offset == 8);
  CHECK(kernel.arguments[2].kind == ArgumentKind::by_value);
  CHECK(kernel.arguments[2].offset == 16);
  CHECK(kernel.arguments[2].size == 4);
}

TEST_CASE("code_object: code is copied, and s_code_end lies behind it") {
  const ObjectFile file = ObjectFile::named("readable-gfx1100");
  const CodeObject object = file.read();
  const Elf64_Shdr text = file.section(".text");
  REQUIRE(object.image.size() >= text.sh_size + 256);
  CHECK(std::memcmp(object.image.data(), file.bytes.data() + text.sh_offset, text.sh_size) == 0);
  for (std::uint64_t i = 0; i < 64; ++i) CHECK(word_at(object, text.sh_size + i * 4) == s_code_end);
  check_code(object);
}

TEST_CASE("code_object: gfx1030 loads a scratch resource in front of the kernel's arguments") {
  const CodeObject object = ObjectFile::named("readable-gfx1030").read();
  CHECK(object.target == Target::gfx1030);
  const KernelCode& kernel = object.kernels.at(0);
  CHECK(kernel.user_sgprs == 6);
  REQUIRE(kernel.user_sgpr_slots.size() == 2);
  CHECK(kernel.user_sgpr_slots[0].value == UserSgpr::private_segment_buffer);
  CHECK(kernel.user_sgpr_slots[1].value == UserSgpr::kernarg_pointer);
  CHECK(kernel.user_sgpr_slots[1].first == 4);
  check_code(object);
}

TEST_CASE("code_object: the other forms of one kernel") {
  CHECK(ObjectFile::named("readable-version4").read().version == 4);
  CHECK(ObjectFile::named("readable-wave64").read().kernels.at(0).wave_lanes == 64);
  CHECK(ObjectFile::named("readable-gfx1201").read().target == Target::gfx1201);
  // Debugging information is relocated too, and is none of what is loaded.
  CHECK(ObjectFile::named("readable-debug").read().image.size() ==
        ObjectFile::named("readable-gfx1100").read().image.size());
}

TEST_CASE("code_object: constants, and addresses among them, are relocated") {
  for (const char* const name : {"readable-relocated", "readable-relocated-gfx1030", "readable-linked"}) {
    INFO(name);
    const CodeObject object = ObjectFile::named(name).read();
    REQUIRE(object.kernels.size() == 2);
    CHECK(object.kernels[0].name == "first");
    check_code(object);
    // "pick" holds the addresses of table[0] and table[2].
    REQUIRE(object.address_words.size() == 2);
    CHECK(object.address_words[1].offset == object.address_words[0].offset + 8);
    CHECK(float_at(object, object.address_words[0].target) == 1.0f);
    CHECK(float_at(object, object.address_words[0].target + 4) == 2.0f);
    CHECK(float_at(object, object.address_words[1].target) == 3.0f);
    const KernelCode& second = object.kernels[1];
    CHECK(second.lds_bytes == 400);
    CHECK(second.scratch_bytes > 0);
    CHECK(second.arguments.size() == 14);
    CHECK(second.arguments.back().kind == ArgumentKind::hidden_grid_dims);
  }
}

TEST_CASE("code_object: distances in code are those of the places in the image") {
  const ObjectFile file = ObjectFile::named("readable-relocated");
  const CodeObject object = file.read();
  const Elf64_Shdr relocations = file.section(".rela.text");
  const Elf64_Shdr symbols = file.section(".symtab");
  REQUIRE(relocations.sh_size == 4 * sizeof(Elf64_Rela));
  // Each pair of halves leads from its word to a place that the address words and the table tell too.
  const std::uint64_t pick = object.address_words[0].offset, table = object.address_words[0].target;
  for (std::size_t i = 0; i < 4; i += 2) {
    const auto low = file.get<Elf64_Rela>(relocations.sh_offset + i * sizeof(Elf64_Rela));
    const auto high = file.get<Elf64_Rela>(relocations.sh_offset + (i + 1) * sizeof(Elf64_Rela));
    CHECK(ELF64_R_TYPE(low.r_info) == 10);
    CHECK(ELF64_R_TYPE(high.r_info) == 11);
    const auto symbol = file.get<Elf64_Sym>(symbols.sh_offset + ELF64_R_SYM(low.r_info) * sizeof(Elf64_Sym));
    const std::uint64_t expected = symbol.st_value == 0 ? pick : table;
    const std::int64_t distance = static_cast<std::int64_t>((std::uint64_t{word_at(object, high.r_offset)} << 32) |
                                                            word_at(object, low.r_offset));
    CHECK(static_cast<std::int64_t>(low.r_offset) + distance - low.r_addend == static_cast<std::int64_t>(expected));
  }
}

TEST_CASE("code_object: names go both ways") {
  for (int i = 1; i <= static_cast<int>(Target::gfx1201); ++i) {
    CHECK(target_named(to_string(static_cast<Target>(i))) == static_cast<Target>(i));
  }
  CHECK(target_named("gfx906") == Target::invalid);
  CHECK(target_named("invalid") == Target::invalid);
  for (int i = 1; i < static_cast<int>(ArgumentKind::other); ++i) {
    CHECK(argument_kind_named(to_string(static_cast<ArgumentKind>(i))) == static_cast<ArgumentKind>(i));
  }
  CHECK(argument_kind_named("hidden_hostcall_buffer") == ArgumentKind::other);
  CHECK(argument_kind_named("invalid") == ArgumentKind::other);
}

// One thing is changed in a good object, and the error names it.

namespace {

using Catch::Contains;
using Catch::StartsWith;

}  // namespace

TEST_CASE("code_object: another kind of ELF file is refused with both sides named") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const auto byte = [](int value) { return static_cast<std::uint8_t>(value); };
  CHECK_THAT(good.with(0, byte(0)).refusal(), StartsWith("corrupt: the code object is not an ELF file"));
  CHECK_THAT(good.with(EI_CLASS, byte(1)).refusal(), StartsWith("unsupported: ELF class 1, expected 2"));
  CHECK_THAT(good.with(EI_DATA, byte(2)).refusal(), StartsWith("unsupported: ELF byte order 2"));
  CHECK_THAT(good.with(18, std::uint16_t{62}).refusal(), StartsWith("unsupported: ELF machine 62, expected 224"));
  CHECK_THAT(good.with(EI_OSABI, byte(0)).refusal(), StartsWith("unsupported: ELF OS ABI 0, expected 64"));
  CHECK_THAT(good.with(16, std::uint16_t{ET_EXEC}).refusal(), StartsWith("unsupported: ELF type 2"));
  CHECK_THAT(good.with(EI_ABIVERSION, byte(1)).refusal(), StartsWith("unsupported: code object version 3"));
  CHECK_THAT(ObjectFile::named("version6").refusal(), StartsWith("unsupported: code object version 6"));
  CHECK_THAT(ObjectFile::named("machine-gfx906").refusal(), StartsWith("unsupported: ELF flags 0x"));
  CHECK_THAT(good.with(48, std::uint32_t{0x37}).refusal(), StartsWith("unsupported: AMD GPU machine 0x37, expected "));
  CHECK_THAT(good.with(48, std::uint32_t{0x36}).refusal(), Contains("'amdgcn-amd-amdhsa--gfx1030' in the ELF header"));
  CHECK_THAT(good.with(EI_ABIVERSION, byte(2)).refusal(),
             Contains("code object version is 4 in the ELF header and 5 in the metadata"));
}

TEST_CASE("code_object: what reaches beyond the file is refused") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  CHECK_THAT(ObjectFile::named("empty").refusal(), Contains("0 bytes"));
  CHECK_THAT(ObjectFile::named("truncated").refusal(), Contains("reach beyond the end of the file"));
  CHECK_THAT(ObjectFile::named("sections-far-away").refusal(), Contains("reach beyond the end of the file"));
  CHECK_THAT(good.with(60, std::uint16_t{0}).refusal(), Contains("no metadata"));
  const std::size_t headers = good.get<Elf64_Ehdr>(0).e_shoff;
  CHECK_THAT(good.with(headers + 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), ~std::uint64_t{0}).refusal(),
             Contains("section 2 reaches beyond"));
  CHECK_THAT(
      good.with(headers + 2 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_addralign), std::uint64_t{3}).refusal(),
      Contains("aligned to 3"));
}

TEST_CASE("code_object: relocations and symbols that are not served are named") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  CHECK_THAT(ObjectFile::named("undefined-symbol").refusal(),
             Contains("function or variable 'outside' has no definition in the text"));
  CHECK_THAT(ObjectFile::named("got-relocation").refusal(), Contains("relocation 8 (R_AMDGPU_GOTPCREL32_LO)"));
  CHECK_THAT(ObjectFile::named("written-variable").refusal(),
             Contains("outside kernels can be written by a kernel; only constant variables"));
  const std::size_t first = good.offset_of(".rela.rodata");
  CHECK_THAT(good.with(first + 8, std::uint32_t{77}).refusal(), Contains("relocation 77 is not supported"));
  CHECK_THAT(good.with(first, std::uint64_t{64}).refusal(), Contains("at offset 64 reaches beyond the 68 bytes"));
  CHECK_THAT(good.with(first + 12, std::uint32_t{99}).refusal(),
             Contains("symbol 99, expected at least 1 and less than 4"));
}

TEST_CASE("code_object: packed relocations of a linked file are not passed over") {
  const ObjectFile good = ObjectFile::named("readable-linked");
  const auto header = good.get<Elf64_Ehdr>(0);
  std::size_t at = header.e_shoff + offsetof(Elf64_Shdr, sh_type);
  while (good.get<std::uint32_t>(at) != SHT_RELA) at += sizeof(Elf64_Shdr);
  CHECK(good.with(at, std::uint32_t{SHT_RELR}).refusal() ==
        "unsupported: packed relative relocations (SHT_RELR) are not supported");
}

TEST_CASE("code_object: reserved fields of the kernel descriptor must be 0") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const std::size_t at = good.descriptor();
  for (const std::size_t reserved : {12, 15, 24, 43, 60, 63}) {
    INFO("byte " << reserved);
    CHECK_THAT(good.with(at + reserved, std::uint8_t{1}).refusal(), Contains("kernel 'saxpy': reserved bytes"));
  }
  CHECK_THAT(good.with(at + 58, std::uint16_t{4}).refusal(), Contains("kernarg_preload is 0x4"));
  const auto with_bit = [&](std::size_t field, unsigned bit) {
    return good.with(at + field, good.get<std::uint32_t>(at + field) | 1u << bit).refusal();
  };
  for (const unsigned bit : {10, 11, 20, 22, 24, 25, 27, 28}) CHECK_THAT(with_bit(48, bit), Contains("rsrc1 is"));
  for (const unsigned bit : {6, 13, 14, 15, 23, 31}) CHECK_THAT(with_bit(52, bit), Contains("rsrc2 is"));
  for (const unsigned bit : {10, 11, 12, 30}) CHECK_THAT(with_bit(44, bit), Contains("rsrc3 is"));
  for (const unsigned bit : {7, 9, 12, 15}) CHECK_THAT(with_bit(56, bit), Contains("kernel_code_properties is"));
}

TEST_CASE("code_object: each descriptor bit that must be 0 is rejected by name, and no other bit") {
  struct Word {
    std::size_t at;
    const char* name;
    unsigned bits;
    std::uint32_t zero;  // bits that must be 0
  };
  const std::pair<const char*, std::uint32_t> files[] = {
      {"readable-gfx1030", 0xFFFFFFF0}, {"readable-gfx1100", 0x7FFFFC00}, {"readable-gfx1201", 0x7FFFD00F}};
  for (const auto& [name, zero_of_rsrc3] : files) {
    INFO(name);
    const ObjectFile good = ObjectFile::named(name);
    const Word words[] = {{44, "compute_pgm_rsrc3", 32, zero_of_rsrc3},
                          {48, "compute_pgm_rsrc1", 32, 0x1B500C00},
                          {52, "compute_pgm_rsrc2", 32, 0x80FFE040},
                          {56, "kernel_code_properties", 16, 0xF380}};
    for (const Word& word : words) {
      const std::size_t at = good.descriptor() + word.at;
      for (unsigned bit = 0; bit < word.bits; ++bit) {
        INFO(word.name << ", bit " << bit);
        const auto object = read_code_object(good.with(at, good.get<std::uint32_t>(at) | 1u << bit).bytes);
        const std::string said = object ? "" : object.error().text();
        if ((word.zero >> bit & 1) == 0) {
          CHECK_THAT(said, !Contains("must be 0"));
        } else {
          std::ostringstream flaw;
          flaw << ": bits 0x" << std::hex << (1u << bit) << " must be 0";
          CHECK_THAT(said, Contains(std::string(word.name) + " is 0x") && Contains(flaw.str()));
        }
      }
    }
  }
}

TEST_CASE("code_object: a workgroup has up to three dimensions") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const std::size_t at = good.descriptor() + 52;
  const std::uint32_t one = good.get<std::uint32_t>(at) & ~(3u << 11);
  for (const std::uint32_t more : {0u, 1u, 2u}) {
    CHECK(good.with(at, one | more << 11).read().kernels.at(0).rsrc2 == (one | more << 11));
  }
  CHECK(good.with(at, one | 3u << 11).refusal() ==
        "corrupt: kernel 'saxpy': compute_pgm_rsrc2: ENABLE_VGPR_WORKITEM_ID is 3, expected at most 2");
}

TEST_CASE("code_object: a default kernel has no entry, registers, memory or lanes") {
  const KernelCode none;
  CHECK(none.entry == 0);
  CHECK(none.rsrc1 == 0);
  CHECK(none.rsrc2 == 0);
  CHECK(none.rsrc3 == 0);
  CHECK(none.properties == 0);
  CHECK(none.lds_bytes == 0);
  CHECK(none.scratch_bytes == 0);
  CHECK(none.kernarg_bytes == 0);
  CHECK(none.kernarg_alignment == 0);
  CHECK(none.wave_lanes == 0);
  CHECK(none.sgprs == 0);
  CHECK(none.vgprs == 0);
  CHECK(none.user_sgprs == 0);
  CHECK(none.max_workgroup_lanes == 0);
  CHECK_FALSE(none.dynamic_stack);
}

TEST_CASE("code_object: the descriptor and the metadata must agree") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const std::size_t at = good.descriptor();
  CHECK_THAT(good.with(at, std::uint32_t{512}).refusal(), Contains("LDS is 512 in the kernel descriptor and 0"));
  CHECK_THAT(good.with(at, std::uint32_t{70000}).refusal(), Contains("70000 bytes of LDS"));
  CHECK_THAT(good.with(at + 4, std::uint32_t{16}).refusal(), Contains("16 bytes of scratch"));
  CHECK_THAT(good.with(at + 8, std::uint32_t{24}).refusal(), Contains("size is 24 in the kernel descriptor and 20"));
  CHECK_THAT(good.with(at + 56, std::uint16_t{0x0008}).refusal(), Contains("wave's size is 64"));
  CHECK_THAT(good.with(at + 56, std::uint16_t{0x0C08}).refusal(), Contains("dynamic stack is 1"));
  CHECK_THAT(good.with(good.behind(".vgpr_count"), std::uint8_t{100}).refusal(), Contains("number of VGPRs"));
  // 4 + 2 + 2 + 2 user SGPRs where the count says 3.
  const std::uint32_t rsrc2 = (good.get<std::uint32_t>(at + 52) & ~0x3Eu) | 3u << 1;
  CHECK_THAT(good.with(at + 52, rsrc2).with(at + 56, std::uint16_t{0x040F}).refusal(),
             Contains("loads 3 user SGPRs, expected at least 10"));
}

TEST_CASE("code_object: an entry lies in code, where its symbol says") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const std::size_t addend = good.offset_of(".rela.rodata") + 16;
  CHECK_THAT(good.with(addend, std::int64_t{16 + 4}).refusal(), Contains("expected a multiple of 256"));
  CHECK_THAT(good.with(addend, std::int64_t{16 + 256}).refusal(), Contains("and 0 in the symbol table"));
  CHECK_THAT(good.with(addend, std::int64_t{16 - 256}).refusal(), Contains("is outside the code"));
  CHECK_THAT(good.with(addend, std::int64_t{1} << 40).refusal(), Contains("is outside the code"));
}

TEST_CASE("code_object: metadata that is missing, of another type or out of range is named by its key") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  CHECK_THAT(good.with_text(".kernarg_segment_size", ".kernarg_segment_siza").refusal(),
             Contains("kernel 'saxpy': .kernarg_segment_size is missing"));
  CHECK_THAT(good.with(good.behind(".wavefront_size"), std::uint8_t{0xC3}).refusal(),
             Contains(".wavefront_size is not an unsigned integer"));
  CHECK_THAT(good.with(good.behind(".kernarg_segment_align"), std::uint8_t{3}).refusal(),
             Contains("not a power of two"));
  CHECK_THAT(good.with(good.behind(".offset"), std::uint8_t{16}).refusal(), Contains("end"));
  // A kind that is not known is no damage: it is refused at dispatch, by its name.
  const CodeObject unknown = good.with_text(".value_kind\xADglobal_buffer", ".value_kind\xADhidden_blocks").read();
  CHECK(unknown.kernels.at(0).arguments.at(0).kind == ArgumentKind::other);
  CHECK(unknown.kernels.at(0).arguments.at(0).value_kind == "hidden_blocks");
  CHECK_THAT(good.with_text("saxpy.kd", "saxpx.kd").refusal(),
             Contains("kernel descriptor symbol 'saxpx.kd' is missing") || Contains("saxpy.kd"));
  CHECK_THAT(good.with_text("AMDGPU", "AMDGPV").refusal(), Contains("no metadata note"));
  CHECK_THAT(ObjectFile::named("metadata-deep").refusal(), Contains("not MessagePack of at most 16 levels"));
  CHECK_THAT(ObjectFile::named("metadata-long-array").refusal(), StartsWith("corrupt: metadata"));
}

// Every file of the kept corpus, every beginning of each, and each with single bytes changed: an answer or a refusal.

namespace {

// What is read keeps its promises, whatever the bytes.
void check_promises(std::span<const std::byte> bytes) {
  const auto object = read_code_object(bytes);
  if (!object) {
    if (object.error().message.empty()) FAIL("a refusal without a word");
    return;
  }
  if (object->kernels.empty() || object->target == Target::invalid) FAIL("an object without kernels or target");
  for (const KernelCode& kernel : object->kernels) {
    if (kernel.entry % 256 != 0 || kernel.entry + 256 > object->image.size()) FAIL("an entry outside the image");
    for (const KernelArgument& argument : kernel.arguments) {
      if (argument.offset + argument.size > kernel.kernarg_bytes) FAIL("an argument outside its segment");
    }
  }
  for (const AddressWord& word : object->address_words) {
    if (word.offset + 8 > object->image.size() || word.target > object->image.size()) FAIL("an address outside");
  }
  if (describe(*object).empty()) FAIL("an object without a word");
}

}  // namespace

TEST_CASE("corpus: the readable files are read, the others refused") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/corpus/code_object")) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    ++files;
    CHECK(read_code_object(ObjectFile::named(name).bytes).has_value() == name.starts_with("readable"));
  }
  CHECK(files >= 18);
}

TEST_CASE("corpus: beginnings and changed bytes are answered or refused") {
  for (const char* const name : {"readable-gfx1100", "readable-linked", "readable-relocated"}) {
    INFO(name);
    ObjectFile file = ObjectFile::named(name);
    for (std::size_t size = 0; size < file.bytes.size(); size += 3) {
      check_promises(std::span<const std::byte>(file.bytes).first(size));
    }
    std::uint32_t state = 12345;
    for (std::size_t at = 0; at < file.bytes.size(); ++at) {
      state = state * 1664525 + 1013904223;
      const std::byte kept = file.bytes[at];
      const std::array changes{std::byte{0}, std::byte{0xFF}, static_cast<std::byte>(state >> 24)};
      for (std::size_t i = 0; i < changes.size(); ++i) {
        if (i != at % changes.size() && !test::is_long()) continue;
        file.bytes[at] = changes[i];
        check_promises(file.bytes);
      }
      file.bytes[at] = kept;
    }
  }
}

}  // namespace kiln::amdgpu_pm4
