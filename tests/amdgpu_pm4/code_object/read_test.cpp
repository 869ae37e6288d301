// What is read from objects that a compiler wrote: numbers, arguments, and bytes where they shall lie.
#include <catch2/catch.hpp>

#include "amdgpu_pm4/code_object/object_file.hpp"

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

}  // namespace kiln::amdgpu_pm4
