// What is in order passes; each thing that would hang, fault or reach too far is refused, at its place, with both
// sides.
#include <catch2/catch.hpp>
#include <random>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/encoders.hpp"
#include "amdgpu_pm4/packets/packet_reader.hpp"
#include "safety/submission.hpp"
#include "support/allocation_count.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint64_t data = Submission::data_va;

template <class Emit>
Dwords packet_of(const Emit& emit) {
  Dwords room(64);
  PacketWriter out(room);
  REQUIRE(emit(out));
  room.resize(out.size());
  return room;
}

// The value of a register that a SET_SH_REG packet of `count` values sets, in the first buffer.
Change set_register_to(std::uint32_t count, std::uint32_t offset, std::size_t index, std::uint32_t value) {
  return [=](Submission& s) {
    const std::size_t at = s.find(0xC0007602 | count << 16, offset);
    s.dword(at + 2 + index) = value;
  };
}

}  // namespace

TEST_CASE("pm4 safety: submissions in order pass, in one buffer or many, on both generations") {
  for (const DeviceShape& shape : {navi31, navi21}) {
    for (const std::size_t chunk : {std::size_t{96}, std::size_t{160}, std::size_t{100'000}}) {
      Submission submission(shape, chunk, 40);
      INFO(submission.validate().text());
      CHECK(submission.validate().ok());
    }
  }
}

TEST_CASE("pm4 safety: a refusal names buffer, packet, dword and both sides") {
  const std::string why = refused(set_register_to(3, 0x207, 0, 0));
  CHECK_THAT(why, Catch::Contains("command buffer 0xFFFF800100400000, packet 15 (DISPATCH_DIRECT) at dword 84") &&
                      Catch::Contains("NUM_THREAD of axis 0 is 0x0, expected 1 to 1024"));
}

TEST_CASE("pm4 safety: packets and registers that are not on the lists") {
  CHECK_THAT(refused_packet({0xC0002202, 0}, StatusCode::unsupported), Catch::Contains("opcode 0x22"));
  CHECK_THAT(refused_packet({0xC0007702, 0}, StatusCode::unsupported), Catch::Contains("header 0xC0007702"));
  CHECK_THAT(refused_packet({0xC0016902, 0x10, 0}, StatusCode::unsupported), Catch::Contains("SET_CONTEXT_REG"));
  CHECK_THAT(refused_packet({0x80000000}, StatusCode::unsupported), Catch::Contains("0x80000000"));
  CHECK_THAT(refused_packet({0x00000000}, StatusCode::unsupported), Catch::Contains("0x0"));
  CHECK_THAT(refused_packet({0xC0017902, 0x7B, 0x20}, StatusCode::unsupported), Catch::Contains("gfx11"));
  CHECK(passes_packet({0xC0017902, 0x7B, 0x20}, navi21));
  CHECK_THAT(refused_packet({0xC0017902, 0x380, 0}, StatusCode::unsupported, navi21),
             Catch::Contains("TA_CS_BC_BASE_ADDR"));
  CHECK_THAT(refused_packet({0xC0017602, 0x214, 0}, StatusCode::unsupported), Catch::Contains("COMPUTE_VMID"));
  CHECK_THAT(refused_packet({0xC0017602, 0x21E, 0}, StatusCode::unsupported),
             Catch::Contains("COMPUTE_THREAD_TRACE_ENABLE"));
  CHECK_THAT(refused_packet({0xC0017602, 0x00C, 0}, StatusCode::unsupported), Catch::Contains("register 0xB030"));
  CHECK_THAT(refused_packet({0xC0017602, 0xFFFF, 0}, StatusCode::unsupported), Catch::Contains("register 0x4AFFC"));
  CHECK_THAT(refused_packet({0xC0027602, 0x213, 0, 0}, StatusCode::unsupported), Catch::Contains("dword 3"));
  CHECK_THAT(refused_packet({0xC0017602, 0x22B, 0}, StatusCode::unsupported, navi21),
             Catch::Contains("COMPUTE_RELAUNCH"));
  CHECK_THAT(refused_packet({0xC0017602, 0x20D, 0x100}), Catch::Contains("COMPUTE_PGM_HI is 0x100"));
  CHECK_THAT(refused_packet({0xC0017602, 0x30000216, ~0U}), Catch::Contains("INDEX is 0x3"));
  CHECK(passes_packet({0xC0019B02, 0x30000216, ~0U}));
  CHECK(passes_packet({0xC0049B02, 0x3000022B, ~0U, ~0U, ~0U, ~0U}));
  CHECK_THAT(refused_packet({0xC0019B02, 0x216, ~0U}), Catch::Contains("INDEX is 0x0"));
  CHECK_THAT(refused_packet({0xC0019B02, 0x30000212, 0}, StatusCode::unsupported),
             Catch::Contains("0xB848, which is not a compute unit mask"));
  CHECK_THAT(refused_packet({0xC0029B02, 0x30000217, ~0U, 0}, StatusCode::unsupported),
             Catch::Contains("dword 3 sets register 0xB860, which is not a compute unit mask"));
  CHECK_THAT(refused_packet({0xC0017602, (0x301EC - 0xB000) / 4, 0x20}, StatusCode::unsupported, navi21),
             Catch::Contains("sets register 0x301EC, beyond"));  // CP_COHER_START_DELAY
  CHECK_THAT(refused_packet({0xC0017602, 0x00010216, ~0U}), Catch::Contains("REGISTER is 0x10216"));
}

TEST_CASE("pm4 safety: what equals a packet that passed is judged with what has changed since") {
  const Dwords launch{0xC0031502, 1, 1, 1, 0x8045};
  const auto twice = [&](Dwords between, Dwords second) {  // behind the sample's own last dispatch
    Dwords packets = launch;
    packets.insert(packets.end(), between.begin(), between.end());
    packets.insert(packets.end(), second.begin(), second.end());
    return packets;
  };
  CHECK(passes_packet(twice({}, launch)));
  CHECK_THAT(refused_packet(twice({}, {0xC0031502, 1, 1, 1, 0x0045})), Catch::Contains("CS_W32_EN sets waves of 64"));
  CHECK_THAT(refused_packet(twice({}, {0xC0031502, 0, 1, 1, 0x8045})), Catch::Contains("a grid of 0x1x1 groups"));
  CHECK_THAT(refused_packet(twice({0xC0017602, 0x204, 1}, launch)), Catch::Contains("START of axis 0 is 1"));
  CHECK_THAT(refused_packet(twice({0xC0027602, 0x240, lo(data), hi(data) + 1}, launch)),
             Catch::Contains("arguments at") && Catch::Contains("the submission has no buffer there"));
  CHECK_THAT(refused_packet(twice({}, {0xC0021602, lo(data), hi(data), 0x0045})), Catch::Contains("CS_W32_EN"));

  const Dwords acquire{0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 0x380};
  const auto both = [&](std::size_t dword, std::uint32_t value) {
    Dwords packets = acquire;
    packets.insert(packets.end(), acquire.begin(), acquire.end());
    packets[acquire.size() + dword] = value;
    return packets;
  };
  CHECK(passes_packet(both(0, acquire[0])));
  CHECK_THAT(refused_packet(both(0, 0xC0065800)), Catch::Contains("low byte is 0x0"));
  const std::uint32_t wrong[] = {0, 1, 0xFFFFFFFE, 0xFFFFFE, 1, 1, 0x8000000A, 0x2380};
  for (std::size_t dword = 1; dword < acquire.size(); ++dword) {
    CAPTURE(dword);
    CHECK_THAT(refused_packet(both(dword, wrong[dword])), Catch::Contains("(ACQUIRE_MEM)"));
  }
}

TEST_CASE("pm4 safety: headers") {
  CHECK_THAT(refused_packet({0xC0017600, 0x228, 0}), Catch::Contains("low byte is 0x0"));
  CHECK_THAT(refused_packet({0xC0017603, 0x228, 0}), Catch::Contains("low byte is 0x3"));
  CHECK_THAT(refused_packet({0xC0017606, 0x228, 0}), Catch::Contains("low byte is 0x6"));
  CHECK_THAT(refused_packet({0xFFFF1002}), Catch::Contains("0xFFFF1000"));
  CHECK_THAT(refused_packet({0xC0041502, 1, 1, 1, 0x8045, 0}), Catch::Contains("the body has 5 dwords, expected 4"));
  CHECK_THAT(refused_packet({0xC0FF7602, 0x240, 0}), Catch::Contains("is truncated after"));
  CHECK(passes_packet({0xC0021002, 0xC0031502, 1, 2}));
}

TEST_CASE("pm4 safety: workgroups, wave sizes, resources") {
  Submission widest(navi31, 1024, 1);
  set_register_to(3, 0x207, 0, 1024)(widest);
  CHECK(widest.validate().text() == "ok");
  CHECK_THAT(refused(set_register_to(3, 0x207, 1, 1025)), Catch::Contains("axis 1 is 0x401"));
  CHECK_THAT(refused(set_register_to(3, 0x207, 2, 17)), Catch::Contains("1088 lanes, expected at most 1024"));
  CHECK_THAT(refused(set_register_to(3, 0x207, 0, 0x00400040)), Catch::Contains("no partial group"));
  CHECK_THAT(refused(set_register_to(3, 0x204, 1, 3)), Catch::Contains("START of axis 1 is 3"));
  CHECK_THAT(refused(set_register_to(2, 0x212, 0, 0x60AF0081)),
             Catch::Contains("0x60AF0081") && Catch::Contains("0x60AF0080"));
  CHECK_THAT(refused(set_register_to(2, 0x212, 1, 0x0001009C)),
             Catch::Contains("PGM_RSRC2 without its LDS size is 0x9C"));
  CHECK_THAT(refused(set_register_to(2, 0x212, 1, 0x0000809E)), Catch::Contains("512 bytes, expected 600 to 65536"));
  CHECK_THAT(refused(set_register_to(2, 0x212, 1, 0x0040809E)), Catch::Contains("66048 bytes"));
  CHECK_THAT(refused(set_register_to(1, 0x228, 0, 0)), Catch::Contains("PGM_RSRC3 is 0x0"));
  CHECK_THAT(refused(set_register_to(2, 0x216, 0, 0)), Catch::Contains("STATIC_THREAD_MGMT_SE0 is 0"));
  CHECK_THAT(refused(set_register_to(2, 0x216, 1, 0)), Catch::Contains("STATIC_THREAD_MGMT_SE1 is 0"));
  CHECK_THAT(refused(set_register_to(4, 0x22B, 1, 0)), Catch::Contains("STATIC_THREAD_MGMT_SE5 is 0"));
  CHECK(Submission({Generation::gfx11, 1, 12}).validate().ok());
  Submission few({Generation::gfx11, 1, 12});
  set_register_to(4, 0x22B, 1, 0)(few);  // an engine that this device does not have
  CHECK(few.validate().ok());
  // Of a device with more engines than mask registers, those registers count and none behind them.
  const DeviceShape many{Generation::gfx11, 12, 96}, many_older{Generation::gfx10_3, 8, 80};
  CHECK_THAT(refused(set_register_to(4, 0x22B, 3, 0), StatusCode::invalid_argument, many),
             Catch::Contains("STATIC_THREAD_MGMT_SE7 is 0"));
  CHECK_THAT(refused(set_register_to(2, 0x219, 1, 0), StatusCode::invalid_argument, many_older),
             Catch::Contains("STATIC_THREAD_MGMT_SE3 is 0"));
  Submission behind(many);
  set_register_to(1, 0x22F, 0, 0)(behind);  // DISPATCH_INTERLEAVE
  CHECK(behind.validate().text() == Status().text());
  const auto launch = [](std::uint32_t initiator) {
    return [initiator](Submission& s) { s.dword(s.find(0xC0031502, 1) + 4) = initiator; };
  };
  CHECK_THAT(refused(launch(0x0045)), Catch::Contains("waves of 64 lanes, expected 32"));
  CHECK_THAT(refused(launch(0x8044)), Catch::Contains("0x8044"));
  CHECK_THAT(refused(launch(0x8041)), Catch::Contains("0x8041"));
  CHECK_THAT(refused(launch(0x8065)), Catch::Contains("0x8065"));
  CHECK_THAT(refused(launch(0x80008045)), Catch::Contains("DISPATCH_INITIATOR is 0x80008045"));
  CHECK_THAT(refused([](Submission& s) { s.dword(s.find(0xC0031502, 1) + 2) = 0; }), Catch::Contains("1x0x1"));
  // Facts that contradict each other are the submitter's fault, and found too.
  CHECK_THAT(refused([](Submission& s) {
               s.programs[0].rsrc1 |= 63;
               set_register_to(2, 0x212, 0, 0x60AF00BF)(s);
             }),
             Catch::Contains("VGPRS is 63, expected at most 31 for waves of 32 lanes"));
  const auto rows = [](std::uint32_t count) {  // of 64 lanes, with 256 registers each
    return [count](Submission& s) {
      s.programs[0].rsrc1 |= 31;
      set_register_to(2, 0x212, 0, 0x60AF009F)(s);
      set_register_to(3, 0x207, 1, count)(s);
    };
  };
  CHECK_THAT(refused(rows(12)), Catch::Contains("1584 vector registers on one SIMD, expected at most 16 and 1536"));
  Submission most(navi31, 1024, 1);
  rows(10)(most);
  CHECK(most.validate().ok());
  CHECK_THAT(refused(rows(10), StatusCode::invalid_argument, navi33),
             Catch::Contains("1280 vector registers on one SIMD, expected at most 16 and 1024"));
}

TEST_CASE("pm4 safety: a dispatch depends on nothing that another submission left") {
  // Each packet of state in turn becomes a NOP: the first dispatch that needs it is refused.
  Submission whole(navi31);
  std::vector<PacketView> packets;
  PacketReader reader(whole.stream.front());
  for (PacketView packet; reader.next(packet);) packets.push_back(packet);
  std::size_t without = 0;
  for (const PacketView& packet : packets) {
    if (!packet.is(Opcode::set_sh_reg)) continue;
    if (packet.at > whole.find(0xC0031502, 1)) break;
    const std::uint32_t offset = packet.body[0];
    if (offset == 0x224 || offset == 0x22F) continue;  // USER_ACCUM, DISPATCH_INTERLEAVE: no dispatch fails for them
    INFO(offset);
    const std::string why = refused([&](Submission& s) { s.dword(packet.at) = (packet.header & 0xFFFF00FF) | 0x1000; });
    CHECK_THAT(why, Catch::Contains("is not set by this submission") && Catch::Contains("DISPATCH_DIRECT"));
    ++without;
  }
  CHECK(without == 11);
}

TEST_CASE("pm4 safety: code, arguments and scratch lie where the submission's buffers do") {
  CHECK_THAT(refused([](Submission& s) { s.programs.clear(); }),
             Catch::Contains("no program of the submission starts at this address"));
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(sample_image_va).rights = may_read; }),
             Catch::Contains("needs permission to read and execute, found permission to read"));
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(sample_image_va).bytes = sample_image_bytes + 255; }),
             Catch::Contains("code and the 256 bytes after it"));
  Submission tail(navi31);
  tail.buffer_at(sample_image_va).bytes = sample_image_bytes + 256;
  CHECK(tail.validate().ok());
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(sample_kernarg_va - 64).bytes = 64 + 23; }),
             Catch::Contains("arguments at 0xFFFF800100300040: 24 bytes, expected at most 23 up"));
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(sample_kernarg_va - 64).rights = may_write; }),
             Catch::Contains("arguments"));
  CHECK_THAT(refused(set_register_to(16, 0x240, 0, lo(sample_kernarg_va) + 8)), Catch::Contains("a multiple of 16"));
  CHECK_THAT(refused(set_register_to(16, 0x240, 1, 0x1234)), Catch::Contains("the submission has no buffer there"));
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(sample_scratch_va).bytes = 1 << 20; }),
             Catch::Contains("scratch"));
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(sample_scratch_va).rights = may_read; }),
             Catch::Contains("scratch"));
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(sample_scratch_va).bytes = 1 << 20; },
                     StatusCode::invalid_argument, navi21),
             Catch::Contains("scratch at 0xFFFF800110000000"));
  CHECK_THAT(refused([](Submission& s) {
               const std::size_t at = s.find(0xC0027602, 0x210);  // DISPATCH_SCRATCH_BASE
               s.dword(at) = 0xC0021002;
             }),
             Catch::Contains("DISPATCH_SCRATCH_BASE is not set"));
  CHECK_THAT(refused([](Submission& s) {
               const std::size_t at = s.find(0xC0027602, 0x210);
               s.dword(at + 6) = 512;  // TMPRING_SIZE: slots of nothing
             }),
             Catch::Contains("TMPRING_SIZE is 0x200: slots of 0 bytes"));
  CHECK_THAT(refused([](Submission& s) { s.programs[1].scratch_bytes = 4096; }),
             Catch::Contains("expected slots of at least 131072"));
  Submission level(navi31);
  level.programs[1].scratch_bytes = 104;  // a slot of 3328 bytes for 32 lanes
  CHECK(level.validate().text() == "ok");
  CHECK_THAT(refused([](Submission& s) { s.programs[1].scratch_bytes = 105; }),
             Catch::Contains("slots of 3328 bytes") && Catch::Contains("at least 3360"));
  CHECK_THAT(refused([](Submission& s) { std::swap(s.buffers[2], s.buffers[3]); }),
             Catch::Contains("ascending addresses without overlap"));
  CHECK_THAT(refused([](Submission& s) { std::swap(s.buffers[0], s.buffers[1]); }),
             Catch::Contains("ascending addresses without overlap"));
  CHECK_THAT(refused([](Submission& s) { s.buffers[0].bytes = 1ULL << 40; }),
             Catch::Contains("ascending addresses without overlap"));
}

TEST_CASE("pm4 safety: caches and events") {
  const auto acquire = [](std::uint32_t actions) { return Dwords{0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, actions}; };
  CHECK(passes_packet(acquire(0xC3B1)));
  CHECK_THAT(refused_packet(acquire(1U << 13)), Catch::Contains("GCR_CNTL is 0x2000"));  // GL2_DISCARD loses data
  CHECK_THAT(refused_packet(acquire(0x10)), Catch::Contains("GLM_WB with GLM_INV"));
  CHECK_THAT(refused_packet(acquire(2)), Catch::Contains("whole caches"));
  CHECK_THAT(refused_packet(acquire(1U << 19)), Catch::Contains("no bits outside"));
  CHECK_THAT(refused_packet({0xC0065802, 0, 0x1000, 0, 0, 0, 10, 0x380}), Catch::Contains("a range of memory"));
  CHECK_THAT(refused_packet({0xC0065802, 0x800, ~0U, 0xFFFFFF, 0, 0, 10, 0x380}),
             Catch::Contains("COHER_CNTL is 0x800"));
  CHECK_THAT(refused_packet({0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 0x8000000A, 0x380}), Catch::Contains("PWS_ENA"));
  CHECK_THAT(refused_packet({0xC0004602, 0x0407 + 1}), Catch::Contains("EVENT is 0x408"));
  CHECK_THAT(refused_packet({0xC0004602, 0x0007}), Catch::Contains("EVENT is 0x7"));
}

TEST_CASE("pm4 safety: what the command processor writes and reads") {
  const auto release = [](std::uint32_t event, std::uint32_t select, std::uint64_t va) {
    return Dwords{0xC0064902, event, select, lo(va), hi(va), 1, 0, 0};
  };
  CHECK(passes_packet(release(0x603514, 0x43000000, data)));
  CHECK_THAT(refused_packet(release(0x603514, 0x42000000, data)), Catch::Contains("INT_SEL is 0x2"));
  CHECK_THAT(refused_packet(release(0x603514, 0x41000000, data)), Catch::Contains("INT_SEL is 0x1"));
  CHECK_THAT(refused_packet(release(0x603514, 0x83000000, data)), Catch::Contains("DATA_SEL is 0x4"));
  CHECK_THAT(refused_packet(release(0x603514, 0x43020000, data)), Catch::Contains("DST_SEL is 0x2"));
  CHECK_THAT(refused_packet(release(0x60352F, 0x43000000, data)), Catch::Contains("EVENT is 0x60352F"));
  CHECK_THAT(refused_packet(release(0x603414, 0x43000000, data)), Catch::Contains("index 5"));
  CHECK_THAT(refused_packet(release(0x80683514, 0x43000000, data)), Catch::Contains("no bits outside"));
  CHECK_THAT(refused_packet(release(0x603514, 0x43000000, data + 4)), Catch::Contains("a multiple of 8"));
  CHECK(passes_packet(release(0x603514, 0x23000000, data + 4)));
  CHECK_THAT(refused_packet(release(0x603514, 0x43000000, sample_kernarg_va)),
             Catch::Contains("needs permission to write"));
  CHECK_THAT(refused_packet(release(0x603514, 0x43000000, data + Submission::data_bytes)),
             Catch::Contains("no buffer"));
  // An address may leave out the copies of its bit 47, and nothing else.
  CHECK(passes_packet(release(0x603514, 0x43000000, data & 0xFFFFFFFFFFFF)));
  CHECK_THAT(refused_packet(release(0x603514, 0x43000000, data & 0xFFFEFFFFFFFFFFFF)),
             Catch::Contains("the upper half of a 48-bit address"));

  const auto write = [](std::uint32_t control, std::uint64_t va) {
    return Dwords{0xC0043702, control, lo(va), hi(va), 1, 2};
  };
  CHECK(passes_packet(write(0x100500, data + Submission::data_bytes - 8)));
  CHECK_THAT(refused_packet(write(0x100500, data + Submission::data_bytes - 4)),
             Catch::Contains("8 bytes, expected at most 4 up"));
  CHECK_THAT(refused_packet(write(0x100500, data + 2)), Catch::Contains("a multiple of 4"));
  CHECK_THAT(refused_packet(write(0x100000, data)), Catch::Contains("DST_SEL is 0x0"));
  CHECK_THAT(refused_packet(write(0x40100500, data)), Catch::Contains("ENGINE_SEL"));
  CHECK_THAT(refused_packet(write(0x110500, data)), Catch::Contains("WR_ONE_ADDR"));

  const auto copy = [](std::uint32_t control, std::uint64_t from, std::uint64_t to) {
    return Dwords{0xC0044002, control, lo(from), hi(from), lo(to), hi(to)};
  };
  CHECK(passes_packet(copy(0x110501, sample_kernarg_va, data)));
  CHECK(passes_packet(copy(0x110509, 0, data)));
  CHECK(passes_packet(copy(0x100505, 0xDEADBEEFCAFEBABE, data)));
  CHECK_THAT(refused_packet(copy(0x110501, sample_kernarg_va + 4, data)), Catch::Contains("a multiple of 8"));
  CHECK_THAT(refused_packet(copy(0x110500, 0x2C00, data)), Catch::Contains("SRC_SEL is 0x0"));
  CHECK_THAT(refused_packet(copy(0x110001, data, 0x2C00)), Catch::Contains("DST_SEL is 0x0"));
  CHECK_THAT(refused_packet(copy(0x110501, data, sample_kernarg_va)), Catch::Contains("COPY_DATA destination"));
  CHECK_THAT(refused_packet(copy(0x110501, 0x1000, data)), Catch::Contains("COPY_DATA source"));

  const auto dma = [](std::uint32_t control, std::uint64_t from, std::uint64_t to, std::uint32_t command) {
    return Dwords{0xC0055002, control, lo(from), hi(from), lo(to), hi(to), command};
  };
  CHECK(passes_packet(dma(0xE0300000, sample_kernarg_va, data, 64)));
  CHECK_THAT(refused_packet(dma(0x60300000, sample_kernarg_va, data, 64)), Catch::Contains("CP_SYNC"));
  CHECK_THAT(refused_packet(dma(0xE0100000, data, data, 64)), Catch::Contains("DST_SEL is 0x1"));
  CHECK_THAT(refused_packet(dma(0xA0300000, data, data, 64)), Catch::Contains("SRC_SEL is 0x1"));
  CHECK_THAT(refused_packet(dma(0xE0300000, data, data, 0)), Catch::Contains("BYTE_COUNT is 0x0"));
  CHECK_THAT(refused_packet(dma(0xE0300000, data, data, 6)), Catch::Contains("BYTE_COUNT is 0x6"));
  CHECK_THAT(refused_packet(dma(0xE0300000, data, data, 0x10000040)), Catch::Contains("COMMAND"));
  CHECK_THAT(refused_packet(dma(0xE0300000, data, data, 2 << 20)),
             Catch::Contains("2097152 bytes, expected at most 1048576 up"));
  CHECK_THAT(refused_packet(dma(0xE0300000, data, sample_kernarg_va, 64)),
             Catch::Contains("needs permission to write"));

  CHECK(passes_packet({0xC0021602, lo(data), hi(data), 0x8045}));
  CHECK_THAT(refused_packet({0xC0021602, lo(data) + 2, hi(data), 0x8045}), Catch::Contains("group counts"));
  CHECK_THAT(refused_packet({0xC0021602, lo(data + Submission::data_bytes - 8), hi(data), 0x8045}),
             Catch::Contains("12 bytes, expected at most 8 up"));
}

TEST_CASE("pm4 safety: a range is allowed inside its buffer, with the buffer's permissions") {
  const BufferRange buffers[] = {{0x1000, 0x100, may_read},
                                 {0x1100, 0x100, may_read | may_write},
                                 {0x2000, 0x100, may_execute},
                                 {0x3000, 0x100, 0}};
  const auto said = [&buffers](std::uint64_t va, std::uint64_t bytes, std::uint8_t rights) {
    RangeFinder finder(buffers);
    return finder.check(va, bytes, rights, "it").text();
  };
  CHECK(said(0x1000, 0x100, may_read) == "ok");
  CHECK(said(0x10FF, 1, may_read) == "ok");
  CHECK(said(0x1100, 0x100, may_read | may_write) == "ok");
  CHECK(said(0x11FF, 1, may_write) == "ok");
  CHECK(said(0x2000, 1, may_execute) == "ok");
  for (const std::uint64_t va : {0xFFFu, 0x1200u, 0x1FFFu, 0x2100u, 0x3100u}) {
    CAPTURE(va);
    CHECK_THAT(said(va, 1, may_read), Catch::EndsWith(": the submission has no buffer there"));
  }
  CHECK(said(0x1000, 0x101, may_read) ==
        "invalid_argument: it at 0x1000: 257 bytes, expected at most 256 up to the end of the buffer");
  CHECK(said(0x10FF, 2, may_read) ==
        "invalid_argument: it at 0x10FF: 2 bytes, expected at most 1 up to the end of the buffer");
  CHECK(said(0x1000, 4, may_write) ==
        "invalid_argument: it at 0x1000: needs permission to write, found permission to read");
  CHECK(said(0x1100, 4, may_read | may_execute) ==
        "invalid_argument: it at 0x1100: needs permission to read and execute, found permission to read and write");
  CHECK(said(0x2000, 4, may_read | may_write | may_execute) ==
        "invalid_argument: it at 0x2000: needs permission to read and write and execute, found permission to execute");
  CHECK(said(0x3000, 4, may_read) ==
        "invalid_argument: it at 0x3000: needs permission to read, found permission to do nothing");
}

TEST_CASE("pm4 safety: buffers and their chain") {
  CHECK_THAT(refused([](Submission& s) { s.stream_va[0] += 4; }), Catch::Contains("a multiple of 32"));
  CHECK_THAT(refused([](Submission& s) { s.stream[0].push_back(filler_dword); }), Catch::Contains("a multiple of 8"));
  CHECK_THAT(refused([](Submission& s) { s.stream[0].clear(); }), Catch::Contains("0 dwords"));
  CHECK_THAT(refused([](Submission& s) { s.stream[0].resize(0x100000, filler_dword); }),
             Catch::Contains("1048576 dwords"));
  CHECK_THAT(refused([](Submission& s) { s.buffer_at(s.stream_va[0]).bytes = 64; }),
             Catch::Contains("a command buffer at"));
  Submission tight(navi31);
  tight.buffer_at(tight.stream_va[0]).bytes = 4 * tight.stream[0].size();
  CHECK(tight.validate().text() == "ok");
  CHECK_THAT(refused([](Submission& s) { s.stream.clear(); }), Catch::Contains("has no command buffer"));
  CHECK_THAT(refused([](Submission& s) { s.shape.generation = Generation::invalid; }, StatusCode::unsupported),
             Catch::Contains("unknown device generation"));

  const auto chained = [](const Change& change) {
    Submission submission(navi31, 160, 12);
    REQUIRE(submission.stream.size() > 3);
    REQUIRE(submission.validate().ok());
    change(submission);
    const Status status = submission.validate();
    CHECK(status.code == StatusCode::invalid_argument);
    return status.message;
  };
  CHECK_THAT(chained([](Submission& s) { s.stream[0].insert(s.stream[0].end(), 8, filler_dword); }),
             Catch::Contains("follows the packet that chains to"));
  CHECK_THAT(chained([](Submission& s) { s.stream[1].resize(s.stream[1].size() - 8); }),
             Catch::Contains("the submission has"));
  CHECK_THAT(chained([](Submission& s) { s.stream_va[2] += 0x1000; }),
             Catch::Contains("the submission has no buffer there"));
  CHECK_THAT(chained([](Submission& s) { *(s.stream[0].end() - 3) = lo(s.stream_va[0]); }),
             Catch::Contains("contains a loop"));
  CHECK_THAT(chained([](Submission& s) { s.stream[0].back() &= ~0x100000U; }), Catch::Contains("CHAIN is 0x0"));
  CHECK_THAT(chained([](Submission& s) { s.stream[0].back() |= 1U << 24; }), Catch::Contains("CONTROL"));  // VMID
  CHECK_THAT(chained([](Submission& s) { s.stream[0].back() &= ~0x800000U; }), Catch::Contains("CONTROL"));
  CHECK_THAT(chained([](Submission& s) { s.stream[0].back() &= 0xFFF00000; }), Catch::Contains("chains to 0 dwords"));
  // The last one jumps back to itself.
  CHECK_THAT(refused([](Submission& s) {
               const auto size = static_cast<std::uint32_t>(s.stream[0].size());
               s.append({0xC0023F02, lo(s.stream_va[0]), hi(s.stream_va[0]), 0});
               const std::size_t fillers = (8 - (size + 4) % 8) % 8;
               Dwords& all = s.stream[0];
               while (all.back() == filler_dword) all.pop_back();
               const Dwords chain(all.end() - 4, all.end());
               all.resize(all.size() - 4);
               while ((all.size() + 4) % 8 != 0) all.push_back(filler_dword);
               all.insert(all.end(), chain.begin(), chain.end());
               all.back() = 0x900000 | static_cast<std::uint32_t>(all.size());
               static_cast<void>(fillers);
             }),
             Catch::Contains("contains a loop"));
}

TEST_CASE("pm4 safety: no spoilt stream crashes the validator, and what reaches memory is always looked up") {
  std::mt19937_64 random(99);
  for (const DeviceShape& shape : {navi31, navi21}) {
    const Submission good(shape, 192, 8);
    std::size_t refusals = 0;
    for (int round = 0; round < 3000; ++round) {
      Submission bad = good;
      const std::size_t buffer = random() % bad.stream.size();
      std::uint32_t& word = bad.stream[buffer][random() % bad.stream[buffer].size()];
      word = random() % 2 == 0 ? static_cast<std::uint32_t>(random()) : word ^ 1U << random() % 32;
      const Status status = bad.validate();
      if (!status.ok()) ++refusals;
      if (!status.ok()) CHECK_FALSE(status.message.empty());
      // Without any buffer nothing passes.
      bad.buffers.clear();
      REQUIRE_FALSE(bad.validate().ok());
    }
    CHECK(refusals > 1000);
  }
}

TEST_CASE("pm4 safety: looking costs no allocation", "[unsanitized]") {
  if (!support::counts_allocations) {
    WARN("skipped: a sanitizer has an operator new of its own");
    return;
  }
  const Submission submission(navi31, 512, 100);
  std::vector<CommandBuffer> views;
  for (std::size_t i = 0; i < submission.stream.size(); ++i)
    views.push_back({submission.stream_va[i], submission.stream[i]});
  const SubmissionScope scope{submission.shape, submission.buffers, submission.programs, views};
  const std::uint64_t before = support::allocation_count();
  const bool passed = validate(scope).ok();
  const std::uint64_t after = support::allocation_count();
  CHECK(passed);
  CHECK(after == before);
}

}  // namespace kiln::amdgpu_pm4
