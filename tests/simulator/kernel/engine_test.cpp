// The engine that the devices of programs have: what a job leaves in memory, and the cache between two jobs.
#include "simulator/kernel/engine.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "simulator/kernel/settings.hpp"

namespace kiln::simulator::kernel {
namespace {

using Dwords = std::vector<std::uint32_t>;

constexpr std::uint32_t base = 0x10'0000;  // of packets; a page behind it the data
constexpr std::uint32_t data = base + 4096;
constexpr std::uint32_t to_l2 = 2U << 8, to_memory = 5U << 8, wide = 1U << 16;

Dwords packet(std::uint32_t opcode, const Dwords& body) {
  Dwords all{3U << 30 | static_cast<std::uint32_t>(body.size() - 1) << 16 | opcode << 8 | 2};
  all.insert(all.end(), body.begin(), body.end());
  return all;
}

Dwords write(std::uint32_t value, std::uint32_t at) { return packet(0x37, {to_l2, at, 0, value}); }
Dwords copy(std::uint32_t control, std::uint32_t from, std::uint32_t to) {
  return packet(0x40, {control, from, 0, to, 0});
}

struct Jobs {
  Jobs() {
    buffer = std::make_shared<BufferMemory>(BufferMemory{1, block->bytes.data(), block->bytes.size(), false});
    static_cast<void>(table.map({base, 8192, 0, {true, true, true}, Caching::cached, buffer}));
  }

  std::optional<Fault> run(const Dwords& stream, bool invalidate_first = false) {
    std::memcpy(block->bytes.data(), stream.data(), stream.size() * 4);
    const std::array<IndirectBuffer, 1> buffers{{{base, stream.size() * 4}}};
    const std::array<std::uint64_t, 1> listed{1};
    return engine.run({Ring::compute, buffers, table.snapshot(), listed, invalidate_first});
  }

  template <class T = std::uint32_t>
  T get(std::size_t byte) const {
    T word;
    std::memcpy(&word, block->bytes.data() + 4096 + byte, sizeof word);
    return word;
  }
  void set(std::size_t byte, std::uint32_t word) { std::memcpy(block->bytes.data() + 4096 + byte, &word, sizeof word); }

  struct alignas(4096) Block {
    std::array<std::byte, 8192> bytes{};
  };
  std::unique_ptr<Block> block = std::make_unique<Block>();
  std::shared_ptr<BufferMemory> buffer;
  PageTable table;
  ProcessorEngine engine{*find_target("gfx1100"), ComputeLimits{}};
};

}  // namespace

TEST_CASE("simulated kernel: what a job wrote is in memory when it has ended, and lost where it failed") {
  Jobs jobs;
  CHECK_FALSE(jobs.run(write(7, data)));
  CHECK(jobs.get(0) == 7);
  Dwords failing = write(8, data);
  failing.push_back(0);  // no packet
  const auto fault = jobs.run(failing);
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::unknown_packet);
  CHECK(jobs.get(0) == 7);
  CHECK_FALSE(jobs.run(write(9, data + 4)));
  CHECK(jobs.get(0) == 7);
  CHECK(jobs.get(4) == 9);
}

TEST_CASE("simulated kernel: a job reads what the cache holds, unless it is to be invalidated first") {
  Jobs jobs;
  jobs.set(0, 1);
  const Dwords read = copy(2 | to_memory, data, data + 64);
  CHECK_FALSE(jobs.run(read));
  CHECK(jobs.get(64) == 1);
  jobs.set(0, 2);
  CHECK_FALSE(jobs.run(read));
  CHECK(jobs.get(64) == 1);
  CHECK_FALSE(jobs.run(read, true));
  CHECK(jobs.get(64) == 2);
}

TEST_CASE("simulated kernel: packets read the clock with the frequency that the device tells of") {
  Jobs jobs;
  const auto ticks = [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count()) / 10;  // 100 MHz
  };
  const std::uint64_t before = ticks();
  CHECK_FALSE(jobs.run(copy(9 | to_memory | wide, 0, data)));
  CHECK(jobs.get<std::uint64_t>(0) >= before);
  CHECK(jobs.get<std::uint64_t>(0) <= ticks() + 1);
}

TEST_CASE("simulated kernel: an engine that is stopped ends its jobs with the reason until it may go on") {
  Jobs jobs;
  jobs.engine.stop("for this test");
  const auto fault = jobs.run(write(7, data));
  REQUIRE(fault);
  CHECK(fault->kind == FaultKind::planted);
  CHECK_THAT(fault->reason, Catch::Contains("for this test"));
  CHECK(jobs.get(0) == 0);
  jobs.engine.stop(nullptr);
  CHECK_FALSE(jobs.run(write(7, data)));
  CHECK(jobs.get(0) == 7);
}

}  // namespace kiln::simulator::kernel
