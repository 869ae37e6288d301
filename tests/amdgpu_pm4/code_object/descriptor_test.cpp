// Kernel descriptors made here byte by byte: what is read from them, and what their fields may not say.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/code_object/metadata.hpp"
#include "amdgpu_pm4/code_object/object_file.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using DescriptorBytes = std::array<std::byte, 64>;

template <class Value>
void put(DescriptorBytes& bytes, std::size_t at, Value value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Two user SGPRs, waves of 32.
DescriptorBytes plain_descriptor() {
  DescriptorBytes bytes{};
  put(bytes, 52, std::uint32_t{2 << 1});
  put(bytes, 56, std::uint16_t{1 << 10 | 1 << 3});
  return bytes;
}

std::string refusal_of_field(std::size_t at, std::uint32_t value, Target target = Target::gfx1100) {
  DescriptorBytes bytes = plain_descriptor();
  put(bytes, at, value);
  const auto read = read_descriptor(bytes, target);
  return read ? std::string("it was read") : read.error().text();
}

KernelDescriptor matching_descriptor() {
  KernelDescriptor descriptor;
  descriptor.lds_bytes = 512;
  descriptor.scratch_bytes = 16;
  descriptor.kernarg_bytes = 40;
  descriptor.rsrc1 = 2;  // three times eight VGPRs, or four of a wave of 64
  descriptor.properties = 1 << 10;
  return descriptor;
}

KernelMetadata matching_metadata() {
  KernelMetadata metadata;
  metadata.lds_bytes = 512;
  metadata.scratch_bytes = 16;
  metadata.kernarg_bytes = 40;
  metadata.wave_lanes = 32;
  metadata.vgprs = 24;
  return metadata;
}

}  // namespace

TEST_CASE("descriptor: every field is read from its place") {
  DescriptorBytes bytes{};
  put(bytes, 0, std::uint32_t{1024});
  put(bytes, 4, std::uint32_t{48});
  put(bytes, 8, std::uint32_t{88});
  put(bytes, 16, std::int64_t{-4352});
  put(bytes, 44, std::uint32_t{0x00000015});
  put(bytes, 48, std::uint32_t{0x00AC0043});
  put(bytes, 52, std::uint32_t{0x00000391});
  put(bytes, 56, std::uint16_t{0x0449});
  const auto read = read_descriptor(bytes, Target::gfx1100);
  INFO((read ? std::string() : read.error().text()));
  REQUIRE(read);
  CHECK(read->lds_bytes == 1024);
  CHECK(read->scratch_bytes == 48);
  CHECK(read->kernarg_bytes == 88);
  CHECK(read->entry == -4352);
  CHECK(read->rsrc3 == 0x15);
  CHECK(read->rsrc1 == 0x00AC0043);
  CHECK(read->rsrc2 == 0x391);
  CHECK(read->properties == 0x0449);
  CHECK(has_wave32(*read));
  CHECK_FALSE(has_dynamic_stack(*read));
  CHECK(user_sgprs(*read) == 8);
  const std::vector<UserSgprSlot> slots = user_sgpr_slots(*read);
  REQUIRE(slots.size() == 3);
  CHECK(slots[0].value == UserSgpr::private_segment_buffer);
  CHECK(slots[0].first == 0);
  CHECK(slots[0].count == 4);
  CHECK(slots[1].value == UserSgpr::kernarg_pointer);
  CHECK(slots[1].first == 4);
  CHECK(slots[1].count == 2);
  CHECK(slots[2].value == UserSgpr::private_segment_size);
  CHECK(slots[2].first == 6);
  CHECK(slots[2].count == 1);
}

TEST_CASE("descriptor: each bit of the properties is one value of user SGPRs, or a fact of the wave") {
  const std::pair<UserSgpr, std::uint32_t> values[] = {
      {UserSgpr::private_segment_buffer, 4}, {UserSgpr::dispatch_pointer, 2}, {UserSgpr::queue_pointer, 2},
      {UserSgpr::kernarg_pointer, 2},        {UserSgpr::dispatch_id, 2},      {UserSgpr::flat_scratch_init, 2},
      {UserSgpr::private_segment_size, 1}};
  KernelDescriptor descriptor;
  unsigned bit = 0;
  for (const auto& [value, count] : values) {
    descriptor.properties = static_cast<std::uint16_t>(1u << bit++);
    const auto slots = user_sgpr_slots(descriptor);
    REQUIRE(slots.size() == 1);
    CHECK(slots[0].value == value);
    CHECK(slots[0].first == 0);
    CHECK(slots[0].count == count);
  }
  for (const unsigned other : {7u, 10u, 11u}) {
    descriptor.properties = static_cast<std::uint16_t>(1u << other);
    CHECK(user_sgpr_slots(descriptor).empty());
    CHECK(has_wave32(descriptor) == (other == 10));
    CHECK(has_dynamic_stack(descriptor) == (other == 11));
  }
  descriptor.rsrc2 = 0xFFFFFFFF;
  CHECK(user_sgprs(descriptor) == 31);
  descriptor.rsrc2 = ~std::uint32_t{0x3E};
  CHECK(user_sgprs(descriptor) == 0);
}

TEST_CASE("descriptor: reserved bytes are 0, each of them") {
  for (std::size_t at = 0; at < 64; ++at) {
    DescriptorBytes bytes = plain_descriptor();
    if (bytes[at] != std::byte{0}) continue;
    bytes[at] = std::byte{1};
    const auto read = read_descriptor(bytes, Target::gfx1100);
    const std::string said = read ? "" : read.error().text();
    const bool reserved = (at >= 12 && at < 16) || (at >= 24 && at < 44) || at >= 60;
    INFO("byte " << at);
    CHECK((said == "corrupt: reserved bytes are not 0") == reserved);
    CHECK((said.find("kernarg_preload is 0x") != std::string::npos) == (at == 58 || at == 59));
  }
  CHECK(refusal_of_field(56, 0x03000408) == "corrupt: kernarg_preload is 0x300, expected 0");
}

TEST_CASE("descriptor: numbers up to the last that the target has") {
  CHECK(refusal_of_field(0, 65536) == "it was read");
  CHECK(refusal_of_field(0, 65537) == "corrupt: 65537 bytes of LDS, expected at most 65536");
  CHECK(refusal_of_field(4, 0) == "it was read");
  CHECK(refusal_of_field(4, 1) == "corrupt: 1 bytes of scratch, but compute_pgm_rsrc2 disables scratch");
  CHECK(refusal_of_field(52, 1 << 1) ==
        "corrupt: compute_pgm_rsrc2 loads 1 user SGPRs, expected at least 2 and at most 16");
  CHECK(refusal_of_field(52, 2 << 1) == "it was read");
  CHECK(refusal_of_field(52, 16 << 1) == "it was read");
  CHECK(refusal_of_field(52, 17 << 1) ==
        "corrupt: compute_pgm_rsrc2 loads 17 user SGPRs, expected at least 2 and at most 16");
  DescriptorBytes bytes = plain_descriptor();
  put(bytes, 4, std::uint32_t{1});
  put(bytes, 52, std::uint32_t{2 << 1 | 1});
  CHECK(read_descriptor(bytes, Target::gfx1100).has_value());
}

TEST_CASE("descriptor: what must be 0 depends on the generation") {
  const auto said = [](std::uint32_t rsrc3, Target target) { return refusal_of_field(44, rsrc3, target); };
  CHECK(said(0x8, Target::gfx1030) == "it was read");
  CHECK(said(0x10, Target::gfx1030) == "corrupt: compute_pgm_rsrc3 is 0x10: bits 0x10 must be 0");
  CHECK(said(0x3FF, Target::gfx1100) == "it was read");
  CHECK(said(0x4FF, Target::gfx1103) == "corrupt: compute_pgm_rsrc3 is 0x4ff: bits 0x400 must be 0");
  CHECK(said(0x80000001, Target::gfx1152) == "it was read");
  CHECK(said(0x1, Target::gfx1200) == "corrupt: compute_pgm_rsrc3 is 0x1: bits 0x1 must be 0");
  CHECK(said(0x1, Target::gfx1201) == "corrupt: compute_pgm_rsrc3 is 0x1: bits 0x1 must be 0");
  CHECK(said(0x2000, Target::gfx1200) == "it was read");
}

TEST_CASE("descriptor: it and the metadata agree, or both sides are named") {
  CHECK(compare(matching_descriptor(), matching_metadata()).text() == "ok");
  const auto with = [](auto change) {
    KernelDescriptor descriptor = matching_descriptor();
    KernelMetadata metadata = matching_metadata();
    change(descriptor, metadata);
    return compare(descriptor, metadata).text();
  };
  CHECK(with([](auto&, auto& m) { m.lds_bytes = 513; }) ==
        "corrupt: LDS is 512 in the kernel descriptor and 513 in the metadata");
  CHECK(with([](auto&, auto& m) { m.scratch_bytes = 15; }) ==
        "corrupt: scratch is 16 in the kernel descriptor and 15 in the metadata");
  CHECK(with([](auto&, auto& m) { m.kernarg_bytes = 44; }) ==
        "corrupt: the kernarg segment's size is 40 in the kernel descriptor and 44 in the metadata");
  CHECK(with([](auto&, auto& m) { m.wave_lanes = 64; }) ==
        "corrupt: the wave's size is 32 in the kernel descriptor and 64 in the metadata");
  CHECK(with([](auto& d, auto&) { d.properties = 0; }) ==
        "corrupt: the wave's size is 64 in the kernel descriptor and 32 in the metadata");
  CHECK(with([](auto&, auto& m) { m.dynamic_stack = true; }) ==
        "corrupt: the dynamic stack is 0 in the kernel descriptor and 1 in the metadata");
  CHECK(with([](auto& d, auto&) { d.properties = 3 << 10; }) ==
        "corrupt: the dynamic stack is 1 in the kernel descriptor and 0 in the metadata");
  CHECK(with([](auto& d, auto& m) { d.properties = 3 << 10, m.dynamic_stack = true; }) == "ok");
}

TEST_CASE("descriptor: VGPRs are allocated by eights in a wave of 32, by fours in a wave of 64") {
  const auto with = [](std::uint32_t lanes, std::uint32_t rsrc1, std::uint32_t vgprs) {
    KernelDescriptor descriptor = matching_descriptor();
    KernelMetadata metadata = matching_metadata();
    descriptor.properties = lanes == 32 ? 1 << 10 : 0;
    descriptor.rsrc1 = rsrc1;
    metadata.wave_lanes = lanes;
    metadata.vgprs = vgprs;
    return compare(descriptor, metadata).text();
  };
  CHECK(with(32, 2, 24) == "ok");
  CHECK(with(32, 2, 25) == "corrupt: the number of VGPRs is 24 in the kernel descriptor and 25 in the metadata");
  CHECK(with(64, 2, 12) == "ok");
  CHECK(with(64, 2, 13) == "corrupt: the number of VGPRs is 12 in the kernel descriptor and 13 in the metadata");
  CHECK(with(32, 0, 8) == "ok");
  CHECK(with(32, 0, 9) == "corrupt: the number of VGPRs is 8 in the kernel descriptor and 9 in the metadata");
  CHECK(with(32, 0x3F, 512) == "ok");  // 64 eights
  CHECK(with(32, 0x40, 9) == "corrupt: the number of VGPRs is 8 in the kernel descriptor and 9 in the metadata");
}

TEST_CASE("descriptor: the machine in an object's header is one target") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const std::pair<std::uint32_t, const char*> machines[] = {{0x36, "gfx1030"}, {0x46, "gfx1101"}, {0x47, "gfx1102"},
                                                            {0x44, "gfx1103"}, {0x43, "gfx1150"}, {0x4A, "gfx1151"},
                                                            {0x55, "gfx1152"}, {0x48, "gfx1200"}, {0x4E, "gfx1201"}};
  for (const auto& [flags, name] : machines) {
    CHECK(good.with(48, flags).refusal() == "corrupt: target is 'amdgcn-amd-amdhsa--" + std::string(name) +
                                                "' in the ELF header and 'amdgcn-amd-amdhsa--gfx1100' in the metadata");
  }
  CHECK(good.with(48, std::uint32_t{0x41}).read().target == Target::gfx1100);
  CHECK(good.with(48, std::uint32_t{0x42}).refusal() ==
        "unsupported: AMD GPU machine 0x42, expected one of gfx1030, gfx1100, gfx1101, gfx1102, gfx1103, gfx1150, "
        "gfx1151, gfx1152, gfx1200, gfx1201");
  CHECK(good.with(48, std::uint32_t{0x141}).refusal() ==
        "unsupported: ELF flags 0x141: targets with XNACK, SRAM ECC or generic versions are not supported");
  const auto version = [&good](std::uint8_t abi) { return good.with(8, abi).refusal(); };
  CHECK(version(1) == "unsupported: code object version 3 (ELF ABI version 1), expected 4 or 5");
  CHECK(version(4) == "unsupported: code object version 6 (ELF ABI version 4), expected 4 or 5");
}

TEST_CASE("descriptor: its symbol has 64 bytes at a multiple of 64") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const Elf64_Shdr symbols = good.section(".symtab");
  std::size_t at = 0;
  for (std::size_t i = 0; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    const std::size_t each = symbols.sh_offset + i * sizeof(Elf64_Sym);
    const auto symbol = good.get<Elf64_Sym>(each);
    if (symbol.st_size == 64) at = each;
  }
  REQUIRE(at != 0);
  const std::string flaw = "corrupt: kernel 'saxpy': kernel descriptor has ";
  CHECK_THAT(good.with(at + 16, std::uint64_t{63}).refusal(), Catch::StartsWith(flaw + "63 bytes at offset "));
  CHECK_THAT(
      good.with(at + 8, std::uint64_t{4}).refusal(),
      Catch::StartsWith(flaw + "64 bytes at offset ") && Catch::EndsWith(", expected 64 bytes at a multiple of 64"));
}

TEST_CASE("descriptor: an entry has at least one instruction in front of the code's end") {
  const ObjectFile good = ObjectFile::named("readable-gfx1100");
  const auto header = good.get<Elf64_Ehdr>(0);
  std::size_t text = 0;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const std::size_t each = header.e_shoff + i * sizeof(Elf64_Shdr);
    const auto section = good.get<Elf64_Shdr>(each);
    if (section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_EXECINSTR) != 0) text = each;
  }
  REQUIRE(text != 0);
  const std::size_t addend = good.offset_of(".rela.rodata") + 16;
  // Its code ends `bytes` from the start, and the kernel begins at 256.
  const auto with = [&](std::uint64_t bytes) {
    return good.with(text + offsetof(Elf64_Shdr, sh_size), bytes).with(addend, std::int64_t{16 + 256}).refusal();
  };
  const std::string outside = "is outside the code";
  CHECK_THAT(with(256), Catch::Contains(outside));
  CHECK_THAT(with(259), Catch::Contains(outside));
  CHECK_THAT(with(260), Catch::Contains("256 in the kernel descriptor and 0 in the symbol table"));
}

}  // namespace kiln::amdgpu_pm4
