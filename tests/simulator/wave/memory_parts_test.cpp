// What memory instructions stand on, without them: ports to pages, and how lanes that lie side by side are found.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>

#include "simulator/wave/op.hpp"
#include "tests/simulator/wave/bench.hpp"

namespace kiln::simulator::test {

TEST_CASE("simulator memory ports: over page ends, of no bytes, and after as many attachments as there are tags",
          "[simulator][wave]") {
  FakeMemory first, second;
  const std::uint64_t at = first.allocate(2 * Page::bytes);
  REQUIRE(second.allocate(2 * Page::bytes) == at);
  const auto port = std::make_unique<MemoryPort>();
  port->attach(first);
  const std::uint64_t eight = 0x8877665544332211;
  REQUIRE(port->store(at + Page::bytes - 3, &eight, 8));
  std::uint64_t back = 0;
  REQUIRE(port->load(at + Page::bytes - 3, &back, 8));
  CHECK(back == eight);
  CHECK(first.values<std::uint8_t>(at + Page::bytes - 4, 10) ==
        std::vector<std::uint8_t>{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0});
  CHECK(port->store(at, &eight, 0));
  CHECK_FALSE(port->store(at + 2 * Page::bytes - 4, &eight, 8));  // nothing of it
  CHECK(first.values<std::uint32_t>(at + 2 * Page::bytes - 4, 1)[0] == 0);
  CHECK(port->store(at + 2 * Page::bytes - 8, &eight, 8));
  std::memset(second.host(at), 7, 2 * Page::bytes);
  for (unsigned i = 0; i < 4095; ++i) port->attach(second);
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(*port->read(at) == std::byte{7});
    CHECK(port->write(at) == second.host(at));
    CHECK(port->read(8) == nullptr);  // as an empty entry's page, and not there
    port->attach(second);
  }
}

TEST_CASE("simulator memory: detection of consecutive lanes", "[simulator][wave]") {
  constexpr std::uint64_t base = 0x5'0000'1000, upper = 0x7'0000'0000;
  for (const VectorChoice vectors : {VectorChoice::best, VectorChoice::no_avx512, VectorChoice::portable}) {
    for (const std::uint32_t bytes : {4U, 8U, 16U}) {
      INFO(bytes << " bytes a lane");
      Bench bench({.vectors = vectors});
      bench.set_sgpr64(2, base);
      bench.set_vgpr(2, static_cast<std::uint32_t>(upper >> 32U));  // beside v1, where there is no scalar base
      for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) = 64 + lane * bytes;
      Op based;
      based.kind[0] = SourceKind::row;
      based.kind[2] = SourceKind::scalar;
      based.reg[0] = scratch_rows + 1;
      based.sdst = 2;
      based.offset = 16;
      Op wide = based;
      wide.kind[2] = SourceKind::none;
      struct Found {
        bool based, wide, local;
        std::uint64_t based_at, wide_at, local_at;
      };
      const auto find = [&](std::uint32_t mask) {
        bench.set_exec(mask);
        const LaneMemory& lanes = *bench.wave.lane_memory;
        Found found{};
        found.based = lanes.side_by_side_global(bench.wave, based, 0, bytes, found.based_at);
        found.wide = lanes.side_by_side_global(bench.wave, wide, 0, bytes, found.wide_at);
        found.local = lanes.side_by_side_local(bench.wave, based, 0, bytes, 16, found.local_at);
        return found;
      };
      const auto expect = [&](std::uint32_t mask, bool side_by_side) {
        INFO(std::hex << "mask " << mask);
        const Found found = find(mask);
        CHECK(found.based == side_by_side);
        CHECK(found.wide == side_by_side);
        CHECK(found.local == side_by_side);
        if (!side_by_side) return;
        CHECK(found.based_at == base + 80);
        CHECK(found.wide_at == upper + 80);
        CHECK(found.local_at == 80U);
      };
      for (const std::uint32_t mask : {~0U, 1U, 2U, 0x80000000U, 0x0FF0A5A5U}) expect(mask, true);
      for (const unsigned odd : {0U, 1U, 13U, 31U}) {  // one lane elsewhere, which counts while it is on
        bench.vgpr(1, odd) += bytes;
        expect(~0U, false);
        expect(~(1U << odd), true);
        bench.vgpr(1, odd) -= bytes;
        ++bench.vgpr(2, odd);  // in another 4 GiB
        const Found apart = find(~0U);
        CHECK(apart.based);
        CHECK_FALSE(apart.wide);
        --bench.vgpr(2, odd);
      }
      for (unsigned lane = 0; lane < 32; ++lane) bench.vgpr(1, lane) += 2;  // on no word's boundary
      expect(~0U, false);
    }
  }
}

}  // namespace kiln::simulator::test
