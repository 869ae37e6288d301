// Encode, decode, compare: random values through every encoder and back through the reader and its descriptions.
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <vector>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/packets/registers.hpp"
#include "amdgpu_pm4/packets/stream_text.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

struct Random {
  std::mt19937_64 engine{20240611};

  std::uint32_t word() { return static_cast<std::uint32_t>(engine()); }
  std::uint64_t address() { return engine(); }
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(engine() % end); }
};

// The one packet in the stream, described.
PacketDescription only_packet(std::span<const std::uint32_t> stream, Generation generation) {
  PacketReader reader(stream);
  PacketView packet;
  REQUIRE(reader.next(packet));
  REQUIRE(packet.finding == Finding::known);
  REQUIRE(packet.body.size() + 1 == stream.size());
  PacketDescription description = describe(packet, generation);
  PacketView none;
  REQUIRE_FALSE(reader.next(none));
  return description;
}

const WordDescription& named(const PacketDescription& packet, std::string_view name) {
  for (const WordDescription& word : packet.words) {
    if (word.name == name) return word;
  }
  FAIL(packet.name << " has no word " << name);
  return packet.words.front();
}

std::uint32_t field(const PacketDescription& packet, std::string_view word, std::string_view name) {
  for (const FieldValue& value : named(packet, word).fields) {
    if (value.name == name) return value.value;
  }
  return 0;
}

template <class Emit>
PacketDescription described(const Emit& emit) {
  std::vector<std::uint32_t> room(64);
  PacketWriter out(room);
  REQUIRE(emit(out));
  return only_packet(out.written(), Generation::gfx11);
}

}  // namespace

TEST_CASE("pm4: registers come back by name with their values") {
  Random random;
  for (const RegisterInfo& info : all_registers()) {
    const Generation generation = (info.generations & in_gfx11) != 0 ? Generation::gfx11 : Generation::gfx10_3;
    const std::uint32_t known =
        info.fields.empty() ? ~0U : known_bits(info.fields, generation == Generation::gfx11 ? in_gfx11 : in_gfx10_3);
    for (int round = 0; round < 20; ++round) {
      std::vector<std::uint32_t> room(8);
      PacketWriter out(room);
      const std::uint32_t value = random.word() & known;
      const auto which = static_cast<Register>(info.address);
      REQUIRE((info.address >= uconfig_space ? emit_set_uconfig_reg(out, which, value)
                                             : emit_set_sh_reg(out, which, value)));
      const PacketDescription packet = only_packet(out.written(), generation);
      REQUIRE(packet.words.size() == 2);
      const WordDescription& word = packet.words[1];
      CHECK(word.name == info.name);
      CHECK(word.value == value);
      CHECK(word.why.empty());
      if (info.fields.empty()) continue;
      std::uint32_t rebuilt = 0;
      for (const Field& of : info.fields) {
        for (const FieldValue& told : word.fields) {
          if (told.name == of.name) rebuilt |= of.put(told.value);
        }
      }
      CHECK(rebuilt == value);
      // A bit that nobody knows is told.
      if (known == ~0U) continue;
      room[2] = value | (~known & (~known ^ (~known - 1)));
      CHECK_THAT(only_packet(out.written(), generation).words[1].why, Catch::Contains("not known"));
    }
  }
}

TEST_CASE("pm4: a packet's values come back") {
  Random random;
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t address = random.address(), other = random.address();
    const std::uint32_t a = random.word(), b = random.word(), c = random.word();

    const std::uint32_t initiator = a & known_bits(dispatch_initiator::fields, in_gfx11);
    auto packet = described([&](PacketWriter& out) { return emit_dispatch_direct(out, {a, b, c}, initiator); });
    CHECK(packet.name == "DISPATCH_DIRECT");
    CHECK(named(packet, "GROUPS_X").value == a);
    CHECK(named(packet, "GROUPS_Y").value == b);
    CHECK(named(packet, "GROUPS_Z").value == c);
    CHECK(field(packet, "DISPATCH_INITIATOR", "CS_W32_EN") == (initiator >> 15 & 1));
    CHECK(field(packet, "DISPATCH_INITIATOR", "ORDER_MODE") == (initiator >> 6 & 1));

    packet = described([&](PacketWriter& out) { return emit_dispatch_indirect(out, address, initiator); });
    CHECK(named(packet, "ADDRESS_LO").address == address);
    CHECK(named(packet, "DISPATCH_INITIATOR").value == initiator);

    const std::uint32_t actions = a & known_bits(gcr::fields, in_both);
    packet = described([&](PacketWriter& out) { return emit_acquire_mem(out, actions); });
    CHECK(field(packet, "GCR_CNTL", "GL2_WB") == gcr::gl2_wb.of(actions));
    CHECK(field(packet, "GCR_CNTL", "GLI_INV") == (actions & 3));
    CHECK(field(packet, "GCR_CNTL", "SEQ") == (actions >> 16 & 3));
    CHECK(named(packet, "COHER_SIZE").value == ~0U);

    const auto data = static_cast<ReleasedData>(random.below(4));
    packet = described([&](PacketWriter& out) {
      return emit_release_mem(out,
                              {Event::cache_flush_and_inv_ts, release_mem::gl2_wb.put(a & 1), data, address, other});
    });
    CHECK(field(packet, "EVENT", "EVENT_TYPE") == 0x14);
    CHECK(field(packet, "EVENT", "EVENT_INDEX") == 5);
    CHECK(field(packet, "EVENT", "GL2_WB") == (a & 1));
    CHECK(field(packet, "SELECT", "DATA_SEL") == static_cast<std::uint32_t>(data));
    CHECK(field(packet, "SELECT", "INT_SEL") == (data == ReleasedData::none ? 0 : 3));
    CHECK(named(packet, "ADDRESS_LO").address == address);
    CHECK(named(packet, "DATA_LO").value == static_cast<std::uint32_t>(other));
    CHECK(named(packet, "DATA_HI").value == other >> 32);

    const std::uint32_t index = random.below(16);
    packet = described([&](PacketWriter& out) { return emit_event_write(out, Event::cs_done, index); });
    CHECK(field(packet, "EVENT", "EVENT_TYPE") == 0x2F);
    CHECK(field(packet, "EVENT", "EVENT_INDEX") == index);

    std::vector<std::uint32_t> values(1 + random.below(20));
    for (std::uint32_t& value : values) value = random.word();
    packet = described([&](PacketWriter& out) { return emit_write_data(out, address, values); });
    CHECK(named(packet, "DST_ADDR_LO").address == address);
    REQUIRE(packet.words.size() == 3 + values.size());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(packet.words[3 + i].value == values[i]);

    packet = described([&](PacketWriter& out) {
      return emit_copy_data(out, {CopySource::l2, other, address, (a & 1) != 0 ? CopyBits::b64 : CopyBits::b32});
    });
    CHECK(field(packet, "CONTROL", "SRC_SEL") == 2);
    CHECK(field(packet, "CONTROL", "COUNT_SEL") == (a & 1));
    CHECK(named(packet, "SRC_LO").address == other);
    CHECK(named(packet, "DST_LO").address == address);

    const std::uint32_t bytes = random.below(most_dma_bytes + 1);
    packet = described([&](PacketWriter& out) { return emit_dma_copy(out, address, other, bytes); });
    CHECK(named(packet, "SRC_LO").address == other);
    CHECK(named(packet, "DST_LO").address == address);
    CHECK(field(packet, "COMMAND", "BYTE_COUNT") == bytes);
    packet = described([&](PacketWriter& out) { return emit_dma_fill(out, address, b, bytes); });
    CHECK(field(packet, "CONTROL", "SRC_SEL") == 2);
    CHECK(named(packet, "SRC_LO").value == b);

    const auto function = static_cast<Compare>(random.below(7));
    packet = described([&](PacketWriter& out) { return emit_wait_reg_mem(out, {function, address, b, c}); });
    CHECK(field(packet, "CONTROL", "FUNCTION") == static_cast<std::uint32_t>(function));
    CHECK(named(packet, "ADDRESS_LO").address == address);
    CHECK(named(packet, "REFERENCE").value == b);
    CHECK(named(packet, "MASK").value == c);

    const std::uint32_t size = random.below(1U << 20);
    packet = described([&](PacketWriter& out) { return emit_chain(out, address, size); });
    CHECK(named(packet, "IB_BASE_LO").address == address);
    CHECK(field(packet, "CONTROL", "IB_SIZE") == size);
    CHECK(field(packet, "CONTROL", "CHAIN") == 1);
  }
}

TEST_CASE("pm4: a stream of packets comes back packet by packet") {
  Random random;
  const std::vector<std::function<bool(PacketWriter&)>> kinds{
      [&](PacketWriter& out) {
        return emit_set_sh_reg(out, Register::user_data_0, std::vector<std::uint32_t>(1 + random.below(16)));
      },
      [&](PacketWriter& out) {
        return emit_dispatch_direct(out, {1, 1, 1}, 5);
      },
      [&](PacketWriter& out) { return emit_acquire_mem(out, 0x380); },
      [&](PacketWriter& out) { return emit_event_write(out, Event::cs_partial_flush, 4); },
      [&](PacketWriter& out) { return emit_fillers(out, 1); },
      [&](PacketWriter& out) { return emit_nop(out, std::vector<std::uint32_t>(1 + random.below(9), 0xC0031502)); },
      [&](PacketWriter& out) { return emit_wait_reg_mem(out, {}); }};
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint32_t> room(512);
    PacketWriter out(room);
    std::vector<std::size_t> starts;
    for (;;) {
      const std::size_t start = out.size();
      if (!kinds[random.below(static_cast<std::uint32_t>(kinds.size()))](out)) break;
      starts.push_back(start);
    }
    PacketReader reader(out.written());
    PacketView packet;
    for (const std::size_t start : starts) {
      REQUIRE(reader.next(packet));
      REQUIRE(packet.at == start);
      REQUIRE((packet.finding == Finding::known || packet.finding == Finding::filler));
    }
    CHECK_FALSE(reader.next(packet));
  }
}

}  // namespace kiln::amdgpu_pm4
