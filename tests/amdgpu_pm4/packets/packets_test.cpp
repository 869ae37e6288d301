// Streams that are no streams, and what the decoder says of them; golden streams against their text.

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <catch2/catch.hpp>

#include "amdgpu_pm4/packets/capabilities.hpp"
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

TEST_CASE("pm4: the printer takes the targets of either generation, and no other") {
  // COMPUTE_STATIC_THREAD_MGMT_SE4 of gfx11 is COMPUTE_RELAUNCH of gfx10.3.
  const std::vector<std::uint32_t> stream{0xC0017602, 0x22B, 1};
  Pm4Printer printer;
  for (const auto& [target, name] :
       {std::pair<std::string_view, std::string_view>{"", "COMPUTE_STATIC_THREAD_MGMT_SE4"},
        {"gfx1100", "COMPUTE_STATIC_THREAD_MGMT_SE4"},
        {"gfx1103", "COMPUTE_STATIC_THREAD_MGMT_SE4"},
        {"gfx1030", "COMPUTE_RELAUNCH"},
        {"gfx1036", "COMPUTE_RELAUNCH"}}) {
    const auto text = printer.print(std::as_bytes(std::span(stream)), target);
    REQUIRE(text.has_value());
    CHECK_THAT(*text, Catch::Contains(std::string(name)));
  }
  for (const std::string_view target : {"gfx1010", "gfx1200", "gfx906", "gfx", "navi31"}) {
    const auto text = printer.print(std::as_bytes(std::span(stream)), target);
    REQUIRE_FALSE(text.has_value());
    CHECK(text.error().code == StatusCode::invalid_argument);
    CHECK_THAT(text.error().message, Catch::Contains("target " + std::string(target) + ": expected"));
  }
}

TEST_CASE("pm4: bits of a header are words behind its name") {
  const auto line = [](std::uint32_t header) {
    const std::vector<std::uint32_t> stream{header, 0x228, 0};
    const std::string text = stream_text(stream, Generation::gfx11);
    return text.substr(0, text.find('\n'));
  };
  CHECK(line(0xC0017602) == "000000  c0017602  SET_SH_REG");
  CHECK(line(0xC0017600) == "000000  c0017600  SET_SH_REG graphics");
  CHECK(line(0xC0017603) == "000000  c0017603  SET_SH_REG predicated");
  CHECK(line(0xC0017606) == "000000  c0017606  SET_SH_REG reset_filter_cam");
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
  const std::array other{std::byte{0x78}, std::byte{0x56}, std::byte{0x34}, std::byte{0x12}};
  CHECK_THAT(*stream_text(std::span<const std::byte>(other), Generation::gfx11),
             Catch::StartsWith("000000  12345678  "));
}

TEST_CASE("pm4: consecutive fillers: two are printed, the others are counted") {
  const auto place = [](std::size_t at) { return "00000" + std::to_string(at) + "  "; };
  const std::string one = "000000  ffff1000  NOP\n", two = one + "000001  ffff1000  NOP\n";
  const std::vector<std::string> beginnings{"",
                                            one,
                                            two,
                                            two + "        1 more NOP of one dword\n",
                                            two + "        2 more NOP of one dword\n",
                                            two + "        3 more NOP of one dword\n"};
  for (std::size_t fillers = 0; fillers < beginnings.size(); ++fillers) {
    CAPTURE(fillers);
    std::vector<std::uint32_t> stream(fillers, 0xFFFF1000);
    CHECK(stream_text(stream, Generation::gfx11) == beginnings[fillers]);
    // Behind another packet they are counted anew.
    stream.insert(stream.end(), {0xC0001002, 7, 0xFFFF1000});
    CHECK(stream_text(stream, Generation::gfx11) == beginnings[fillers] + place(fillers) + "c0001002  NOP\n" +
                                                        place(fillers + 1) + "00000007    data\n" + place(fillers + 2) +
                                                        "ffff1000  NOP\n");
  }
}

// The bits of every word that has fields, as the hardware's headers have them.

namespace {

struct NamedBits {
  std::string_view name;
  std::uint32_t low = 0, width = 0;
  std::uint8_t generations = in_both;
};

struct WordBits {
  std::uint32_t header = 0;
  std::uint32_t first = 0;  // the body's first dword, where the word is another one: the register's offset
  std::size_t word = 0;     // of the body
  std::vector<NamedBits> fields;
};

std::vector<WordBits> words_of_packets() {
  const std::vector<NamedBits> offset_and_index{{"REG_OFFSET", 0, 16}, {"INDEX", 28, 4}};
  const std::vector<NamedBits> initiator{{"COMPUTE_SHADER_EN", 0, 1},
                                         {"PARTIAL_TG_EN", 1, 1},
                                         {"FORCE_START_AT_000", 2, 1},
                                         {"ORDERED_APPEND_ENBL", 3, 1},
                                         {"ORDERED_APPEND_MODE", 4, 1},
                                         {"USE_THREAD_DIMENSIONS", 5, 1},
                                         {"ORDER_MODE", 6, 1},
                                         {"SCALAR_L1_INV_VOL", 10, 1},
                                         {"VECTOR_L1_INV_VOL", 11, 1},
                                         {"TUNNEL_ENABLE", 13, 1},
                                         {"RESTORE", 14, 1},
                                         {"CS_W32_EN", 15, 1},
                                         {"AMP_SHADER_EN", 16, 1, in_gfx11},
                                         {"DISABLE_DISP_PREMPT_EN", 17, 1, in_gfx11}};
  return {
      {0xC0017602, 0, 0, offset_and_index},  // SET_SH_REG
      {0xC0017902, 0, 0, offset_and_index},  // SET_UCONFIG_REG
      {0xC0019B02, 0, 0, offset_and_index},  // SET_SH_REG_INDEX
      {0xC0031502, 0, 3, initiator},         // DISPATCH_DIRECT
      {0xC0021602, 0, 2, initiator},         // DISPATCH_INDIRECT
      {0xC0065802,                           // ACQUIRE_MEM
       0,
       0,
       {{"PWS_STAGE_SEL", 11, 3, in_gfx11},
        {"PWS_COUNTER_SEL", 14, 2, in_gfx11},
        {"PWS_ENA2", 17, 1, in_gfx11},
        {"PWS_COUNT", 18, 6, in_gfx11}}},
      {0xC0065802, 0, 2, {{"COHER_SIZE_HI", 0, 25}}},
      {0xC0065802, 0, 4, {{"COHER_BASE_HI", 0, 24}}},
      {0xC0065802, 0, 5, {{"POLL_INTERVAL", 0, 16}, {"PWS_ENA", 31, 1, in_gfx11}}},
      {0xC0065802,
       0,
       6,
       {{"GLI_INV", 0, 2},
        {"GL1_RANGE", 2, 2},
        {"GLM_WB", 4, 1},
        {"GLM_INV", 5, 1},
        {"GLK_WB", 6, 1},
        {"GLK_INV", 7, 1},
        {"GLV_INV", 8, 1},
        {"GL1_INV", 9, 1},
        {"GL2_US", 10, 1},
        {"GL2_RANGE", 11, 2},
        {"GL2_DISCARD", 13, 1},
        {"GL2_INV", 14, 1},
        {"GL2_WB", 15, 1},
        {"SEQ", 16, 2},
        {"RANGE_IS_PA", 18, 1}}},
      {0xC0064902,  // RELEASE_MEM
       0,
       0,
       {{"EVENT_TYPE", 0, 6},
        {"WAIT_SYNC", 7, 1, in_gfx11},
        {"EVENT_INDEX", 8, 4},
        {"GLM_WB", 12, 1},
        {"GLM_INV", 13, 1},
        {"GLV_INV", 14, 1},
        {"GL1_INV", 15, 1},
        {"GL2_US", 16, 1},
        {"GL2_RANGE", 17, 2},
        {"GL2_DISCARD", 19, 1},
        {"GL2_INV", 20, 1},
        {"GL2_WB", 21, 1},
        {"SEQ", 22, 2},
        {"GLK_WB", 24, 1, in_gfx11},
        {"CACHE_POLICY", 25, 2, in_gfx11},
        {"EXECUTE", 28, 2, in_gfx11},
        {"GLK_INV", 30, 1, in_gfx11},
        {"PWS_ENABLE", 31, 1, in_gfx11}}},
      {0xC0064902, 0, 1, {{"DST_SEL", 16, 2}, {"INT_SEL", 24, 3}, {"DATA_SEL", 29, 3}}},
      {0xC0004602, 0, 0, {{"EVENT_TYPE", 0, 6}, {"EVENT_INDEX", 8, 4}}},  // EVENT_WRITE
      {0xC0033702,                                                        // WRITE_DATA
       0,
       0,
       {{"DST_SEL", 8, 4},
        {"WR_ONE_ADDR", 16, 1},
        {"WR_CONFIRM", 20, 1},
        {"CACHE_POLICY", 25, 2},
        {"ENGINE_SEL", 30, 2}}},
      {0xC0044002,  // COPY_DATA
       0,
       0,
       {{"SRC_SEL", 0, 4},
        {"DST_SEL", 8, 4},
        {"SRC_CACHE_POLICY", 13, 2},
        {"COUNT_SEL", 16, 1},
        {"WR_CONFIRM", 20, 1},
        {"DST_CACHE_POLICY", 25, 2}}},
      {0xC0055002,  // DMA_DATA
       0,
       0,
       {{"ENGINE_SEL", 0, 1},
        {"SRC_CACHE_POLICY", 13, 2},
        {"DST_SEL", 20, 2},
        {"DST_CACHE_POLICY", 25, 2},
        {"SRC_SEL", 29, 2},
        {"CP_SYNC", 31, 1}}},
      {0xC0055002,
       0,
       5,
       {{"BYTE_COUNT", 0, 26},
        {"SAS", 26, 1},
        {"DAS", 27, 1},
        {"SAIC", 28, 1},
        {"DAIC", 29, 1},
        {"RAW_WAIT", 30, 1},
        {"DISABLE_WR_CONFIRM", 31, 1}}},
      {0xC0053C02,  // WAIT_REG_MEM
       0,
       0,
       {{"FUNCTION", 0, 3}, {"MEM_SPACE", 4, 2}, {"OPERATION", 6, 2}, {"ENGINE_SEL", 8, 1}, {"CACHE_POLICY", 25, 2}}},
      {0xC0053C02, 0, 5, {{"POLL_INTERVAL", 0, 16}}},
      {0xC0023F02,  // INDIRECT_BUFFER
       0,
       2,
       {{"IB_SIZE", 0, 20},
        {"CHAIN", 20, 1},
        {"PRE_ENA", 21, 1},
        {"VALID", 23, 1},
        {"VMID", 24, 4},
        {"CACHE_POLICY", 28, 2}}},
  };
}

// By the packet that sets them.
std::vector<WordBits> words_of_registers() {
  constexpr std::uint32_t set = 0xC0017602;
  return {
      {set, 0x207, 1, {{"NUM_THREAD_FULL", 0, 16}, {"NUM_THREAD_PARTIAL", 16, 16}}},
      {set, 0x20A, 1, {{"ENABLE", 0, 1}}},  // PIPELINESTAT_ENABLE
      {set, 0x21E, 1, {{"ENABLE", 0, 1}}},  // THREAD_TRACE_ENABLE
      {set, 0x20D, 1, {{"DATA", 0, 8}}},  // PGM_HI
      {set,                               // PGM_RSRC1
       0x212,
       1,
       {{"VGPRS", 0, 6},
        {"SGPRS", 6, 4},
        {"PRIORITY", 10, 2},
        {"FLOAT_MODE", 12, 8},
        {"PRIV", 20, 1},
        {"DX10_CLAMP", 21, 1},
        {"IEEE_MODE", 23, 1},
        {"BULKY", 24, 1},
        {"FP16_OVFL", 26, 1},
        {"WGP_MODE", 29, 1},
        {"MEM_ORDERED", 30, 1},
        {"FWD_PROGRESS", 31, 1}}},
      {set,  // PGM_RSRC2
       0x213,
       1,
       {{"SCRATCH_EN", 0, 1},
        {"USER_SGPR", 1, 5},
        {"TRAP_PRESENT", 6, 1},
        {"TGID_X_EN", 7, 1},
        {"TGID_Y_EN", 8, 1},
        {"TGID_Z_EN", 9, 1},
        {"TG_SIZE_EN", 10, 1},
        {"TIDIG_COMP_CNT", 11, 2},
        {"EXCP_EN_MSB", 13, 2},
        {"LDS_SIZE", 15, 9},
        {"EXCP_EN", 24, 7}}},
      {set,  // PGM_RSRC3
       0x228,
       1,
       {{"SHARED_VGPR_CNT", 0, 4},
        {"INST_PREF_SIZE", 4, 6, in_gfx11},
        {"TRAP_ON_START", 10, 1, in_gfx11},
        {"TRAP_ON_END", 11, 1, in_gfx11},
        {"IMAGE_OP", 31, 1, in_gfx11}}},
      {set,  // RESOURCE_LIMITS
       0x215,
       1,
       {{"WAVES_PER_SH", 0, 10},
        {"TG_PER_CU", 12, 4},
        {"LOCK_THRESHOLD", 16, 6},
        {"SIMD_DEST_CNTL", 22, 1},
        {"FORCE_SIMD_DIST", 23, 1},
        {"CU_GROUP_COUNT", 24, 3}}},
      {set, 0x216, 1, {{"SA0_CU_EN", 0, 16}, {"SA1_CU_EN", 16, 16}}},  // STATIC_THREAD_MGMT
      {set, 0x218, 1, {{"WAVES", 0, 12}, {"WAVESIZE", 12, 13, in_gfx10_3}, {"WAVESIZE", 12, 15, in_gfx11}}},
      {set, 0x27D, 1, {{"OFF_DELAY", 0, 10}, {"IMMEDIATE", 10, 1}}},  // DISPATCH_TUNNEL
  };
}

void check_bits(const WordBits& expected, Generation generation) {
  const std::uint8_t present = generation == Generation::gfx11 ? in_gfx11 : in_gfx10_3;
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    std::vector<std::uint32_t> stream(2 + (expected.header >> 16 & 0x3FFF));
    stream[0] = expected.header;
    stream[1] = expected.first;
    stream[1 + expected.word] = 1U << bit;
    const PacketDescription packet = describe(packets_of(stream).front(), generation);
    REQUIRE(expected.word < packet.words.size());
    const WordDescription& word = packet.words[expected.word];
    INFO(packet.name << ", " << word.name << ", bit " << bit << " on " << to_string(generation));
    const auto of = std::find_if(expected.fields.begin(), expected.fields.end(), [&](const NamedBits& each) {
      return (each.generations & present) != 0 && bit >= each.low && bit < each.low + each.width;
    });
    if (of == expected.fields.end()) {
      std::ostringstream why;
      why << "bits 0x" << std::hex << (1U << bit) << " are not known";
      CHECK(word.fields.empty());
      CHECK(word.why == why.str());
    } else {
      CHECK(word.why == "");
      REQUIRE(word.fields.size() == 1);
      CHECK(word.fields[0].name == of->name);
      CHECK(word.fields[0].value == 1U << (bit - of->low));
    }
  }
}

}  // namespace

TEST_CASE("pm4: each bit of a packet word has its field's name or is unknown") {
  for (const WordBits& word : words_of_packets()) {
    check_bits(word, Generation::gfx10_3);
    check_bits(word, Generation::gfx11);
  }
}

TEST_CASE("pm4: each register bit has its field's name or is unknown") {
  for (const WordBits& word : words_of_registers()) {
    check_bits(word, Generation::gfx10_3);
    check_bits(word, Generation::gfx11);
  }
  check_bits({0xC0017602, 0x22F, 1, {{"INTERLEAVE", 0, 10}}}, Generation::gfx11);  // DISPATCH_INTERLEAVE
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

}  // namespace kiln::amdgpu_pm4
