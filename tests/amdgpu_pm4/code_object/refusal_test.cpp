// One thing is changed in a good object, and the error names it.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/object_file.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;
using Catch::StartsWith;

}  // namespace

TEST_CASE("code_object: another kind of ELF file is refused with both sides named") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const auto byte = [](int value) { return static_cast<std::uint8_t>(value); };
  CHECK_THAT(good.with(0, byte(0)).refusal(), StartsWith("corrupt: not an ELF file"));
  CHECK_THAT(good.with(EI_CLASS, byte(1)).refusal(), StartsWith("unsupported: ELF class 1, expected 2"));
  CHECK_THAT(good.with(EI_DATA, byte(2)).refusal(), StartsWith("unsupported: ELF byte order 2"));
  CHECK_THAT(good.with(18, std::uint16_t{62}).refusal(), StartsWith("unsupported: ELF machine 62, expected 224"));
  CHECK_THAT(good.with(EI_OSABI, byte(0)).refusal(), StartsWith("unsupported: ELF OS ABI 0, expected 64"));
  CHECK_THAT(good.with(16, std::uint16_t{ET_EXEC}).refusal(), StartsWith("unsupported: ELF type 2"));
  CHECK_THAT(good.with(EI_ABIVERSION, byte(1)).refusal(), StartsWith("unsupported: code object version 3"));
  CHECK_THAT(ObjectFile::named("version6").refusal(), StartsWith("unsupported: code object version 6"));
  CHECK_THAT(ObjectFile::named("machine-gfx906").refusal(), StartsWith("unsupported: ELF flags 0x"));
  CHECK_THAT(good.with(48, std::uint32_t{0x37}).refusal(), StartsWith("unsupported: AMD GPU machine 0x37, expected "));
  CHECK_THAT(good.with(48, std::uint32_t{0x36}).refusal(), Contains("says amdgcn-amd-amdhsa--gfx1030"));
  CHECK_THAT(good.with(EI_ABIVERSION, byte(2)).refusal(), Contains("code object version 4, its metadata 5"));
}

TEST_CASE("code_object: what reaches beyond the file is refused") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  CHECK_THAT(ObjectFile::named("empty").refusal(), Contains("0 bytes"));
  CHECK_THAT(ObjectFile::named("truncated").refusal(), Contains("reach beyond its end"));
  CHECK_THAT(ObjectFile::named("sections-far-away").refusal(), Contains("reach beyond its end"));
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
  CHECK_THAT(ObjectFile::named("undefined-symbol").refusal(), Contains("'outside' is not defined"));
  CHECK_THAT(ObjectFile::named("got-relocation").refusal(), Contains("relocation 8 (R_AMDGPU_GOTPCREL32_LO)"));
  CHECK_THAT(ObjectFile::named("written-variable").refusal(), Contains("section '.data'"));
  const std::size_t first = good.offset_of(".rela.rodata");
  CHECK_THAT(good.with(first + 8, std::uint32_t{77}).refusal(), Contains("relocation 77 is not applied"));
  CHECK_THAT(good.with(first, std::uint64_t{64}).refusal(), Contains("at 64 of 68 bytes"));
  CHECK_THAT(good.with(first + 12, std::uint32_t{99}).refusal(), Contains("symbol 99 of 4"));
}

TEST_CASE("code_object: reserved fields of the kernel descriptor must be 0") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const std::size_t at = good.descriptor();
  for (const std::size_t reserved : {12, 15, 24, 43, 60, 63}) {
    INFO("byte " << reserved);
    CHECK_THAT(good.with(at + reserved, std::uint8_t{1}).refusal(), Contains("kernel 'saxpy': its reserved bytes"));
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
             Contains("loads 3 user SGPRs, its properties need 10"));
}

TEST_CASE("code_object: an entry lies in code, where its symbol says") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const std::size_t addend = good.offset_of(".rela.rodata") + 16;
  CHECK_THAT(good.with(addend, std::int64_t{16 + 4}).refusal(), Contains("expected a multiple of 256"));
  CHECK_THAT(good.with(addend, std::int64_t{16 + 256}).refusal(), Contains("its symbol at 0"));
  CHECK_THAT(good.with(addend, std::int64_t{16 - 256}).refusal(), Contains("lies in no code"));
  CHECK_THAT(good.with(addend, std::int64_t{1} << 40).refusal(), Contains("lies in no code"));
}

TEST_CASE("code_object: metadata that is missing, of another type or out of range is named by its key") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  CHECK_THAT(good.with_text(".kernarg_segment_size", ".kernarg_segment_siza").refusal(),
             Contains("kernel 'saxpy': .kernarg_segment_size is missing"));
  CHECK_THAT(good.with(good.behind(".wavefront_size"), std::uint8_t{0xC3}).refusal(),
             Contains(".wavefront_size is no number"));
  CHECK_THAT(good.with(good.behind(".kernarg_segment_align"), std::uint8_t{3}).refusal(), Contains("no power of two"));
  CHECK_THAT(good.with(good.behind(".offset"), std::uint8_t{16}).refusal(), Contains("end"));
  // A kind that is not known is no damage: it is refused at dispatch, by its name.
  const CodeObject unknown = good.with_text(".value_kind\xADglobal_buffer", ".value_kind\xADhidden_blocks").read();
  CHECK(unknown.kernels.at(0).arguments.at(0).kind == ArgumentKind::other);
  CHECK(unknown.kernels.at(0).arguments.at(0).value_kind == "hidden_blocks");
  CHECK_THAT(good.with_text("saxpy.kd", "saxpx.kd").refusal(),
             Contains("no symbol 'saxpx.kd'") || Contains("saxpy.kd"));
  CHECK_THAT(good.with_text("AMDGPU", "AMDGPV").refusal(), Contains("no metadata note"));
  CHECK_THAT(ObjectFile::named("metadata-deep").refusal(), Contains("no MessagePack of at most 16 levels"));
  CHECK_THAT(ObjectFile::named("metadata-long-array").refusal(), Contains("its metadata"));
}

}  // namespace kiln::amdgpu_pm4
