// Streams: what begins and ends them, dispatches in numbers, chained buffers, and what costs memory.
#include "amdgpu_pm4/packets/command_stream.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "amdgpu_pm4/packets/capabilities.hpp"
#include "amdgpu_pm4/packets/packet_fields.hpp"
#include "amdgpu_pm4/packets/packet_reader.hpp"
#include "recipe/sample.hpp"
#include "support/allocation_count.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Dwords = std::vector<std::uint32_t>;

RecordedDispatch sample_dispatch(std::uint32_t x = 64) {
  const KernelCode kernel = sample_kernel_gfx11();
  DispatchPlace place = sample_place(kernel, navi31);
  place.workgroup[0] = x;
  return *RecordedDispatch::record(kernel, navi31, place);
}

// Packets that set its state.
const std::size_t sample_dispatch_packets = [] {
  const RecordedDispatch sample = sample_dispatch();
  PacketReader reader(sample.state());
  std::size_t count = 0;
  for (PacketView packet; reader.next(packet);) ++count;
  return count;
}();

// Every packet that the command processor would read, chains followed, fillers and the chains themselves left out.
struct Read {
  std::vector<Dwords> packets;
  std::size_t buffers = 0;

  std::size_t count(Opcode opcode) const {
    return static_cast<std::size_t>(std::count_if(
        packets.begin(), packets.end(), [&](const Dwords& packet) { return packet_opcode(packet.front()) == opcode; }));
  }
};

Read read_all(std::span<const CommandBuffer> buffers) {
  Read read;
  CommandBuffer at = buffers.front();
  for (;;) {
    ++read.buffers;
    REQUIRE(at.dwords.size() % 8 == 0);
    REQUIRE(at.va % 32 == 0);
    PacketReader reader(at.dwords);
    const CommandBuffer* next = nullptr;
    std::size_t next_size = 0;
    for (PacketView packet; reader.next(packet);) {
      REQUIRE(next == nullptr);  // nothing follows a chain
      if (packet.finding == Finding::filler) continue;
      REQUIRE(packet.finding == Finding::known);
      if (!packet.is(Opcode::indirect_buffer)) {
        read.packets.emplace_back(1, packet.header);
        read.packets.back().insert(read.packets.back().end(), packet.body.begin(), packet.body.end());
        continue;
      }
      REQUIRE((packet.body[2] >> 20) == 0x9);  // CHAIN and VALID
      next_size = packet.body[2] & 0xFFFFF;
      for (const CommandBuffer& other : buffers) {
        if (other.va == (std::uint64_t{packet.body[1]} << 32 | packet.body[0])) next = &other;
      }
      REQUIRE(next != nullptr);
    }
    if (next == nullptr) return read;
    REQUIRE(next->dwords.size() == next_size);
    at = *next;
  }
}

}  // namespace

TEST_CASE("pm4 stream: begins with caches and state, ends at 8 dwords") {
  SampleChunks chunks(256);
  CommandStream stream(navi31, chunks);
  REQUIRE(stream.begin().ok());
  const auto buffers = stream.finish();
  REQUIRE(buffers.has_value());
  REQUIRE(buffers->size() == 1);
  const Dwords gfx11(buffers->front().dwords.begin(), buffers->front().dwords.end());
  CHECK(gfx11 == Dwords{0xC0065802, 0,          0xFFFFFFFF, 0x00FFFFFF, 0,          0,
                        10,         0x0000C3B1,                                                  // ACQUIRE_MEM
                        0xC0037602, 0x204,      0,          0,          0,                       // START
                        0xC0027602, 0x216,      0xFFFFFFFF, 0xFFFFFFFF,                          // masks of SE0, SE1
                        0xC0027602, 0x219,      0xFFFFFFFF, 0xFFFFFFFF,                          // SE2, SE3
                        0xC0047602, 0x224,      0,          0,          0,          0,           // USER_ACCUM
                        0xC0047602, 0x22B,      0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF,  // SE4 to SE7
                        0xC0017602, 0x22F,      64,                                              // DISPATCH_INTERLEAVE
                        0xFFFF1000, 0xFFFF1000, 0xFFFF1000, 0xFFFF1000});
  SampleChunks other(256);
  CommandStream older(navi21, other);
  REQUIRE(older.begin().ok());
  const auto read = read_all(*older.finish());
  CHECK(read.packets.size() == 6);
  CHECK(read.packets[4] == Dwords{0xC0017902, 0x7B, 0x20});  // CP_COHER_START_DELAY
  CHECK(read.packets[5] == Dwords{0xC0047602, 0x224, 0, 0, 0, 0});
}

TEST_CASE("pm4 stream: a dispatch at the address of the one before is its launch alone") {
  SampleChunks chunks(96);
  CommandStream stream(navi31, chunks);
  REQUIRE(stream.begin().ok());
  const RecordedDispatch one = sample_dispatch(), other = sample_dispatch(32);
  const auto dispatch = [&](const RecordedDispatch& what, std::uint64_t va) {
    REQUIRE(stream.dispatch(what, {va, {1, 1, 1}, {}}).ok());
  };
  dispatch(one, sample_kernarg_va);
  for (int i = 0; i < 20; ++i) {  // over the end of a chunk
    dispatch(one, sample_kernarg_va);
    REQUIRE(stream.barrier().ok());
  }
  dispatch(other, sample_kernarg_va);
  dispatch(one, sample_kernarg_va);
  dispatch(one, sample_kernarg_va + 64);
  const auto buffers = stream.finish();
  REQUIRE(buffers.has_value());
  const Read read = read_all(*buffers);
  CHECK(read.buffers > 2);
  CHECK(read.count(Opcode::dispatch_direct) == 24);
  const std::size_t whole = sample_dispatch_packets;
  // All state three times, once the address alone; the beginning sets six groups of registers.
  CHECK(read.count(Opcode::set_sh_reg) == 6 + 3 * whole + 1);
}

TEST_CASE("pm4 stream: a failed stream takes nothing until it begins again") {
  SampleChunks chunks(256);
  CommandStream stream(navi31, chunks);
  const auto refused = [&] {
    const Status status = stream.barrier();
    CHECK(stream.timestamp(0x10000).message == status.message);
    return status.message;
  };
  CHECK_THAT(refused(), Catch::Contains("not begun, or already finished"));
  REQUIRE(stream.begin().ok());
  REQUIRE(stream.barrier().ok());
  REQUIRE(stream.finish().has_value());
  CHECK_THAT(refused(), Catch::Contains("not begun, or already finished"));
  SampleChunks small(16);
  CommandStream failing(navi31, small);
  const std::string why = failing.begin().message;
  CHECK_THAT(why, Catch::Contains("buffer has 16 dwords"));
  CHECK(failing.barrier().message == why);
  REQUIRE_FALSE(failing.finish().has_value());
}

TEST_CASE("pm4 stream: barriers, clocks, signals, copies") {
  SampleChunks chunks(512);
  CommandStream stream(navi31, chunks);
  REQUIRE(stream.begin().ok());
  REQUIRE(stream.timestamp(0x10000).ok());
  REQUIRE(stream.dispatch(sample_dispatch(), {sample_kernarg_va, {1, 1, 1}, {}}).ok());
  REQUIRE(stream.barrier().ok());
  REQUIRE(stream.dispatch(sample_dispatch(), {sample_kernarg_va + 64, {2, 1, 1}, {}}).ok());
  REQUIRE(stream.dispatch(sample_dispatch(32), {sample_kernarg_va, {3, 1, 1}, {}}).ok());
  REQUIRE(stream.copy(0x40000, 0x80000, 200'000'000).ok());
  REQUIRE(stream.fill(0x40000, 9, 16).ok());
  REQUIRE(stream.wait(0x30000, 5, 0xFF).ok());
  REQUIRE(stream.timestamp(0x10008).ok());
  REQUIRE(stream.signal(0x20000, 77).ok());
  const auto buffers = stream.finish();
  REQUIRE(buffers.has_value());
  const Read read = read_all(*buffers);
  const std::size_t state = 7;  // packets of the beginning
  CHECK(read.packets[state] == Dwords{0xC0064902, 0x528, 0x63000000, 0x10000, 0, 0, 0, 0});
  // All state, then only the arguments' address where the same program follows, then all again for another.
  CHECK(read.packets[state + 8][1] == 1);  // DISPATCH_DIRECT of 1 group
  CHECK(read.packets[state + 9] == Dwords{0xC0004602, 0x407});
  CHECK(read.packets[state + 10] == Dwords{0xC0065802, 0, ~0U, 0xFFFFFF, 0, 0, 10, 0x380});
  CHECK(read.packets[state + 11] == Dwords{0xC0027602, 0x240, 0x00300080, 0xFFFF8001});
  CHECK(read.packets[state + 12] == Dwords{0xC0031502, 2, 1, 1, 0x8045});
  CHECK(read.count(Opcode::dispatch_direct) == 3);
  CHECK(read.packets[state + 20] == Dwords{0xC0031502, 3, 1, 1, 0x8045});
  // 26 bits of length: three parts
  CHECK(read.packets[state + 21] == Dwords{0xC0055002, 0xE0300000, 0x80000, 0, 0x40000, 0, 67104768});
  CHECK(read.packets[state + 22] ==
        Dwords{0xC0055002, 0xE0300000, 0x80000 + 67104768, 0, 0x40000 + 67104768, 0, 67104768});
  CHECK(read.packets[state + 23][6] == 200'000'000 - 2 * 67104768);
  CHECK(read.packets[state + 24] == Dwords{0xC0055002, 0xC0300000, 9, 0, 0x40000, 0, 16});
  CHECK(read.packets[state + 25] == Dwords{0xC0053C02, 0x15, 0x30000, 0, 5, 0xFF, 4});
  CHECK(read.packets[state + 27] == Dwords{0xC0064902, 0x603514, 0x43000000, 0x20000, 0, 77, 0, 0});
  CHECK(read.packets.size() == state + 28);
}

TEST_CASE("pm4 stream: what is longer than a packet's length is copied and filled in parts") {
  constexpr std::uint64_t part = 67104768;  // whole pages below 2^26 bytes
  struct Length {
    std::uint64_t bytes;
    std::vector<std::uint32_t> parts;
  };
  for (const auto& [bytes, parts] : {Length{0, {}}, Length{4, {4}}, Length{part, {part}}, Length{part + 4, {part, 4}},
                                     Length{2 * part + 4096, {part, part, 4096}}}) {
    INFO(bytes);
    SampleChunks chunks(512);
    CommandStream stream(navi31, chunks);
    REQUIRE(stream.begin().ok());
    REQUIRE(stream.copy(0x100000000, 0x900000000, bytes).ok());
    REQUIRE(stream.fill(0x500000000, 9, bytes).ok());
    REQUIRE(stream.timestamp(0x10008).ok());
    const auto buffers = stream.finish();
    REQUIRE(buffers.has_value());
    const Read read = read_all(*buffers);
    const std::size_t state = 7;  // packets of the beginning
    REQUIRE(read.packets.size() == state + 2 * parts.size() + 1);
    std::uint32_t done = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK(read.packets[state + i] == Dwords{0xC0055002, 0xE0300000, done, 9, done, 1, parts[i]});
      CHECK(read.packets[state + parts.size() + i] == Dwords{0xC0055002, 0xC0300000, 9, 0, done, 5, parts[i]});
      done += parts[i];
    }
  }
}

TEST_CASE("pm4 stream: what one buffer does not hold goes on in the next, nothing lost") {
  for (const std::size_t size : {least_chunk_dwords, std::size_t{97}, std::size_t{128}, std::size_t{1000}}) {
    SampleChunks chunks(size);
    CommandStream stream(navi31, chunks);
    REQUIRE(stream.begin().ok());
    const RecordedDispatch one = sample_dispatch(64), two = sample_dispatch(32);
    for (std::uint32_t i = 0; i < 200; ++i) {
      REQUIRE(stream.dispatch(i % 3 == 0 ? one : two, {sample_kernarg_va + 64 * i, {i + 1, 1, 1}, {}}).ok());
      if (i % 5 == 0) REQUIRE(stream.barrier().ok());
    }
    REQUIRE(stream.signal(0x20000, 1).ok());
    const auto buffers = stream.finish();
    REQUIRE(buffers.has_value());
    const Read read = read_all(*buffers);
    CHECK(read.buffers == buffers->size());
    CHECK(read.buffers > 5);
    std::uint32_t groups = 0;
    for (const Dwords& packet : read.packets) {
      if (packet_opcode(packet.front()) == Opcode::dispatch_direct) CHECK(packet[1] == ++groups);
    }
    CHECK(groups == 200);
    CHECK(read.count(Opcode::acquire_mem) == 1 + 40);
    CHECK(read.count(Opcode::release_mem) == 1);
  }
}

TEST_CASE("pm4 stream: a buffer is never longer than its size field holds") {
  SampleChunks chunks(0x100010);
  CommandStream stream(navi31, chunks);
  REQUIRE(stream.begin().ok());
  while (chunks.taken == 1) REQUIRE(stream.barrier().ok());
  const auto buffers = stream.finish();
  REQUIRE(buffers.has_value());
  CHECK(buffers->front().dwords.size() <= 0xFFFFF);
  CHECK(buffers->front().dwords.size() > 0xFFF00);
  CHECK(read_all(*buffers).buffers == 2);
}

TEST_CASE("pm4 stream: fails typed where room is missing or odd, and stays failed") {
  SampleChunks one(128, 1);
  CommandStream stream(navi31, one);
  CHECK(stream.barrier().code == StatusCode::internal);  // not begun
  REQUIRE(stream.begin().ok());
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = stream.barrier();
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Catch::Contains("command stream: no more chunks"));
  CHECK(stream.signal(0, 0).code == StatusCode::unavailable);
  CHECK(stream.finish().error().code == StatusCode::unavailable);

  SampleChunks small(least_chunk_dwords - 1);
  CommandStream cramped(navi31, small);
  CHECK(cramped.begin().code == StatusCode::invalid_argument);

  SampleChunks enough(128);
  CommandStream nowhere({}, enough);
  CHECK(nowhere.begin().code == StatusCode::unsupported);
  CommandStream twice(navi31, enough);
  REQUIRE(twice.begin().ok());
  REQUIRE(twice.finish().has_value());
  CHECK_FALSE(twice.finish().has_value());
  CHECK(twice.begin().ok());
}

TEST_CASE("pm4 stream: what fits a buffer to its last dword goes on in no other") {
  using Emit = Status (*)(CommandStream&);
  const std::pair<std::size_t, Emit> packets[] = {{7, [](CommandStream& s) { return s.wait(0x30000, 5, 0xFF); }},
                                                  {7, [](CommandStream& s) { return s.copy(0x40000, 0x80000, 16); }},
                                                  {7, [](CommandStream& s) { return s.fill(0x40000, 9, 16); }},
                                                  {8, [](CommandStream& s) { return s.timestamp(0x10000); }},
                                                  {8, [](CommandStream& s) { return s.signal(0x20000, 77); }},
                                                  {10, [](CommandStream& s) { return s.barrier(); }}};
  constexpr std::size_t begin = 36, end = 11;  // a buffer's first packets, and the room for a chain behind the last
  for (const auto& [dwords, emit] : packets) {
    SampleChunks chunks(begin + 10 * dwords + end);
    CommandStream stream(navi31, chunks);
    REQUIRE(stream.begin().ok());
    for (int i = 0; i < 10; ++i) REQUIRE(emit(stream).ok());
    CHECK(chunks.taken == 1);
    REQUIRE(emit(stream).ok());
    CHECK(chunks.taken == 2);
  }
}

TEST_CASE("pm4 stream: one that begins again has nothing of what was before") {
  SampleChunks chunks(128);
  CommandStream stream(navi31, chunks);
  std::vector<Read> reads;
  for (int turn = 0; turn < 2; ++turn) {
    chunks.taken = 0;
    REQUIRE(stream.begin().ok());
    for (int i = 0; i < 9; ++i) REQUIRE(stream.dispatch(sample_dispatch(), {sample_kernarg_va, {1, 1, 1}, {}}).ok());
    const auto buffers = stream.finish();
    REQUIRE(buffers.has_value());
    CHECK(buffers->size() == 2);
    reads.push_back(read_all(*buffers));
  }
  CHECK(reads[0].buffers == 2);
  CHECK(reads[1].buffers == 2);
  CHECK(reads[0].packets == reads[1].packets);
  SampleChunks one(128, 1);
  CommandStream failing(navi31, one);
  REQUIRE(failing.begin().ok());
  REQUIRE(failing.dispatch(sample_dispatch(), {sample_kernarg_va, {1, 1, 1}, {}}).ok());
  const Status full = failing.dispatch(sample_dispatch(32), {sample_kernarg_va, {1, 1, 1}, {}});
  CHECK(full.code == StatusCode::unavailable);
  CHECK(failing.barrier().message == full.message);  // for which there is room
}

TEST_CASE("pm4 stream: a buffer starts at a multiple of 32 bytes") {
  struct Askew final : ChunkSource {
    explicit Askew(std::uint64_t at) : va(at) {}
    Result<StreamChunk> next_chunk() noexcept override { return StreamChunk{dwords, va}; }
    std::vector<std::uint32_t> dwords = std::vector<std::uint32_t>(least_chunk_dwords);
    std::uint64_t va;
  };
  for (const std::uint64_t at : {0x10000ULL, 0x10020ULL, 0x10010ULL, 0x10004ULL}) {
    CAPTURE(at);
    Askew chunks(at);
    CommandStream stream(navi31, chunks);
    const Status status = stream.begin();
    CHECK(status.ok() == (at % 32 == 0));
    if (at % 32 != 0) {
      CHECK_THAT(status.message, Catch::Contains("buffer address is " + std::to_string(at)));
      CHECK(stream.barrier().code == StatusCode::invalid_argument);
    }
  }
}

TEST_CASE("pm4 stream: dispatching allocates nothing", "[unsanitized]") {
  if (!support::counts_allocations) {
    WARN("skipped: a sanitizer has an operator new of its own");
    return;
  }
  SampleChunks chunks(1024);
  CommandStream stream(navi31, chunks);
  const RecordedDispatch dispatch = sample_dispatch(), other = sample_dispatch(32);
  const auto submit = [&] {
    bool ok = stream.begin().ok();
    for (std::uint32_t i = 0; i < 200; ++i) {
      ok = ok && stream.dispatch(i % 2 == 0 ? dispatch : other, {sample_kernarg_va, {i + 1, 1, 1}, {}}).ok();
      ok = ok && stream.barrier().ok();
    }
    return ok && stream.finish().has_value();
  };
  REQUIRE(submit());
  chunks.taken = 0;
  const std::uint64_t before = support::allocation_count();
  const bool again = submit();
  const std::uint64_t after = support::allocation_count();
  CHECK(again);
  CHECK(after == before);
}

}  // namespace kiln::amdgpu_pm4
