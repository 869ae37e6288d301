// Streams that are no streams, and what the decoder says of them; golden streams against their text.

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "amdgpu_pm4/packets/registers.hpp"
#include "amdgpu_pm4/packets/stream_text.hpp"
#include "packets/dword_file.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

std::vector<PacketView> packets_of(std::span<const std::uint32_t> stream) {
  std::vector<PacketView> packets;
  PacketReader reader(stream);
  for (PacketView packet; reader.next(packet);) packets.push_back(packet);
  return packets;
}

std::string why_of(const std::vector<std::uint32_t>& stream, Generation generation = Generation::gfx11) {
  const auto packets = packets_of(stream);
  REQUIRE_FALSE(packets.empty());
  return describe(packets.front(), generation).why;
}

}  // namespace

TEST_CASE("pm4: what is not known is told, with the reason") {
  CHECK(why_of({0xC0007702, 0}) == "opcode 0x77 is not known");
  CHECK(why_of({0xC0027602, 0x204, 0}) == "3 dwords of body announced, the stream has 2");
  CHECK(why_of({0xC0041502, 1, 1, 1, 5, 0}) == "5 dwords of body, expected 4");
  CHECK(why_of({0xC0007602, 0x204}) == "1 dword of body, expected at least 2");
  CHECK(why_of({0x80000000}) == "a packet of type 2 is for older firmware");
  CHECK(why_of({0x40000000}) == "there are no packets of type 1");
  CHECK(why_of({0x00002E04, 0}) == "a packet of type 0 is not for compute rings");
  CHECK(why_of({0xC0016902, 0x10, 0}) == "not for a compute ring of gfx11");
  CHECK(why_of({0xC0016902, 0x10, 0}, Generation::invalid).empty());
  CHECK(why_of({0xC0017902, 0x7B, 0x20}) == "not for a compute ring of gfx11");
  CHECK(why_of({0xC0017902, 0x7B, 0x20}, Generation::gfx10_3).empty());
  CHECK(why_of({0xC0012802, 0, 0}) == "its body is not put into words");
  CHECK(why_of({0xC001760A, 0x228, 0}) == "header bits 0x8 are not known");
  CHECK(why_of({0xFFFF1000}).empty());
}

TEST_CASE("pm4: words within a packet are told apart") {
  const std::vector<std::uint32_t> stream{0xC0027602, 0x223, 7, 0};  // 0xB88C has no name, then USER_ACCUM_0
  const PacketDescription packet = describe(packets_of(stream).front(), Generation::gfx11);
  CHECK(packet.why.empty());
  REQUIRE(packet.words.size() == 3);
  CHECK(packet.words[1].name == "register 0xB88C");
  CHECK(packet.words[1].why == "no such register is known");
  CHECK(packet.words[2].name == "COMPUTE_USER_ACCUM_0");
  CHECK(packet.words[2].why.empty());
  // The same number is another register on the other generation, and another field.
  const std::vector<std::uint32_t> relaunch{0xC0017602, 0x22B, 1};
  CHECK(describe(packets_of(relaunch).front(), Generation::gfx11).words[1].name == "COMPUTE_STATIC_THREAD_MGMT_SE4");
  CHECK(describe(packets_of(relaunch).front(), Generation::gfx10_3).words[1].name == "COMPUTE_RELAUNCH");
  const std::vector<std::uint32_t> interrupt{0xC0064902, 0x80000014, 0, 0, 0, 0, 0, 0};
  CHECK(describe(packets_of(interrupt).front(), Generation::gfx11).words[0].why.empty());
  CHECK(describe(packets_of(interrupt).front(), Generation::gfx10_3).words[0].why == "bits 0x80000000 are not known");
}

TEST_CASE("pm4: any stream is read to its end, each dword once") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint32_t> stream(random() % 40);
    for (std::uint32_t& word : stream) {
      word = static_cast<std::uint32_t>(random());
      if (random() % 2 == 0) word = 0xC0000002 | (word & 0x00070000) | static_cast<std::uint32_t>(random() % 256) << 8;
    }
    std::size_t at = 0;
    for (const PacketView& packet : packets_of(stream)) {
      REQUIRE(packet.at == at);
      at += 1 + packet.body.size();
      const PacketDescription description = describe(packet, Generation::gfx10_3);
      REQUIRE(description.words.size() == packet.body.size());
      REQUIRE_FALSE(description.name.empty());
      if (packet.finding != Finding::known && packet.finding != Finding::filler) REQUIRE_FALSE(description.why.empty());
    }
    REQUIRE(at == stream.size());
    REQUIRE(stream_text(stream, Generation::invalid).empty() == stream.empty());
  }
}

TEST_CASE("pm4: bytes that are no dwords are refused") {
  const std::array<std::byte, 6> bytes{};
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{6}}) {
    const auto text = stream_text(std::span(bytes).first(size), Generation::gfx11);
    REQUIRE_FALSE(text.has_value());
    CHECK(text.error().code == StatusCode::invalid_argument);
  }
  const std::array filler{std::byte{0x00}, std::byte{0x10}, std::byte{0xFF}, std::byte{0xFF}};
  const auto text = stream_text(std::span<const std::byte>(filler), Generation::gfx11);
  REQUIRE(text.has_value());
  CHECK(*text == "000000  ffff1000  NOP\n");
}

TEST_CASE("pm4: golden streams read as their text says") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_pm4_folder())) {
    if (entry.path().extension() != ".dwords") continue;
    ++files;
    INFO(entry.path().filename().string());
    const DwordFile golden = read_dword_file(entry.path());
    CHECK_FALSE(golden.provenance.empty());
    REQUIRE(golden.generation != Generation::invalid);
    auto text_path = entry.path();
    CHECK(stream_text(golden.dwords, golden.generation) == text_of_file(text_path.replace_extension(".txt")));
  }
  CHECK(files >= 4);
}

// The table of registers: that it does not contradict itself, and whose registers are a submitter's.

TEST_CASE("pm4: a register has one entry a generation, and fields that do not overlap") {
  for (const Generation generation : {Generation::gfx10_3, Generation::gfx11}) {
    const auto bit = static_cast<std::uint8_t>(1U << column_of(generation));
    std::set<std::uint32_t> addresses;
    std::set<std::string_view> names;
    for (const RegisterInfo& info : all_registers()) {
      if ((info.generations & bit) == 0) continue;
      INFO(info.name);
      CHECK(addresses.insert(info.address).second);
      CHECK(names.insert(info.name).second);
      CHECK(info.owner != RegisterOwner::invalid);
      CHECK(find_register(info.address, generation) == &info);
      std::uint32_t taken = 0;
      for (const Field& field : info.fields) {
        if ((field.generations & bit) == 0) continue;
        CHECK(field.low + field.width <= 32);
        CHECK((taken & field.mask()) == 0);
        taken |= field.mask();
      }
    }
    CHECK(find_register(0xB88C, generation) == nullptr);
    CHECK(find_register(0xB801, generation) == nullptr);
    CHECK(find_register(0x28000, generation) == nullptr);
  }
}

TEST_CASE("pm4: the allow-list is what a dispatch sets, and no more") {
  CHECK(allowed_bits(0xB810, Generation::gfx11) == ~0U);
  CHECK(allowed_bits(0xB834, Generation::gfx11) == 0xFF);
  CHECK(allowed_bits(0xB850, Generation::gfx11) == 0);  // VMID
  CHECK(allowed_bits(0xB800, Generation::gfx11) == 0);  // comes with the packet
  CHECK(allowed_bits(0xB878, Generation::gfx11) == 0);  // thread trace
  CHECK(allowed_bits(0xB840, Generation::gfx11) == ~0U);
  CHECK(allowed_bits(0xB840, Generation::gfx10_3) == 0);
  CHECK(allowed_bits(0xB8AC, Generation::gfx11) == ~0U);  // SE4's mask
  CHECK(allowed_bits(0xB8AC, Generation::gfx10_3) == 0);  // COMPUTE_RELAUNCH
  CHECK(allowed_bits(0xB860, Generation::gfx10_3) == 0x01FFFFFF);
  CHECK(allowed_bits(0xB860, Generation::gfx11) == 0x07FFFFFF);
  CHECK(allowed_bits(0xB8A0, Generation::gfx10_3) == 0xF);
  CHECK(allowed_bits(0x301EC, Generation::gfx10_3) == ~0U);
  CHECK(allowed_bits(0x301EC, Generation::gfx11) == 0);
  CHECK(allowed_bits(0x30E00, Generation::gfx11) == 0);
  for (const Generation generation : {Generation::gfx10_3, Generation::gfx11}) {
    const ComputeBits& row = allowed_compute_bits(generation);
    for (std::size_t i = 0; i < row.size(); ++i) {
      CHECK(row[i] == allowed_bits(compute_registers + 4 * static_cast<std::uint32_t>(i), generation));
    }
  }
}

}  // namespace kiln::amdgpu_pm4
