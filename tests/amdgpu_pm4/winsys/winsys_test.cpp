#include <cerrno>

#include <catch2/catch.hpp>

#include "amdgpu_pm4/winsys/chip.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

TEST_CASE("winsys: every error number has its type and keeps its words") {
  CHECK(status_of(0, "anything").ok());
  struct Case {
    int error;
    StatusCode code;
    const char* words;
  };
  for (const Case& each : {Case{-ETIME, StatusCode::timeout, "Timer expired"},
                           {-ECANCELED, StatusCode::cancelled, "the context was lost because the device was reset"},
                           {-ENODEV, StatusCode::device_lost, "removed"},
                           {-ENOMEM, StatusCode::unavailable, "Cannot allocate memory"},
                           {-ENOSPC, StatusCode::unavailable, "No space left"},
                           {-EACCES, StatusCode::unavailable, "Permission denied"},
                           {-EINVAL, StatusCode::invalid_argument, "Invalid argument"},
                           {-EIO, StatusCode::io, "Input/output error"},
                           {-ENODATA, StatusCode::io, "No data available"}}) {
    const Status status = status_of(each.error, "the call");
    INFO(status.text());
    CHECK(status.code == each.code);
    CHECK_THAT(status.message, Catch::StartsWith("the call: ") && Catch::Contains(each.words));
    CHECK(status_of(-each.error, "the call").message == status.message);
  }
}

TEST_CASE("winsys: work that the kernel driver gave up is cancelled, and its own fault") {
  for (const int error : {-ETIME, -ENODATA, ETIME}) {
    const Outcome outcome = outcome_of(error, "the work");
    CHECK(outcome.how.code == StatusCode::cancelled);
    CHECK_THAT(outcome.how.message, Catch::StartsWith("the work: ") &&
                                        Catch::Contains("the kernel driver stopped the work because it ran too long"));
    CHECK(outcome.own_fault);
  }
  for (const int error : {0, -ECANCELED, -ENODEV, -ENOMEM}) {
    CHECK(outcome_of(error, "the work").how.text() == status_of(error, "the work").text());
    CHECK_FALSE(outcome_of(error, "the work").own_fault);
  }
}

namespace {

constexpr BufferUse uses[] = {BufferUse::upload,    BufferUse::readback, BufferUse::storage,
                              BufferUse::constant,  BufferUse::code,     BufferUse::commands,
                              BufferUse::arguments, BufferUse::reports,  BufferUse::scratch};

MemoryFacts memory(std::uint64_t visible) { return {16, visible, 8, 12, 6}; }

}  // namespace

TEST_CASE("placement: with all of VRAM visible the host fills it directly") {
  const MemoryFacts whole = memory(16);
  for (const BufferUse use : {BufferUse::upload, BufferUse::storage, BufferUse::constant, BufferUse::code}) {
    CHECK(placement_of(use, whole) == Placement{Heap::vram, HostMapping::write_combined});
    CHECK(most_bytes(use, whole) == 12);
  }
  CHECK(placement_of(BufferUse::arguments, whole) == Placement{Heap::gtt, HostMapping::write_combined});
}

TEST_CASE("placement: through a window, jobs' inputs lie in system memory and the rest where it fits") {
  const MemoryFacts window = memory(1);
  CHECK(placement_of(BufferUse::upload, window) == Placement{Heap::gtt, HostMapping::write_combined});
  CHECK(most_bytes(BufferUse::upload, window) == 6);
  for (const BufferUse use : {BufferUse::storage, BufferUse::constant, BufferUse::code}) {
    CHECK(placement_of(use, window) == Placement{Heap::vram_or_gtt, HostMapping::write_combined});
    CHECK(most_bytes(use, window) == 12);
  }
}

TEST_CASE("placement: what the host reads it may cache, and what it never sees has no mapping") {
  for (const MemoryFacts& each : {memory(16), memory(1)}) {
    for (const BufferUse use : {BufferUse::readback, BufferUse::reports, BufferUse::commands}) {
      CHECK(placement_of(use, each) == Placement{Heap::gtt, HostMapping::cached});
    }
    CHECK(placement_of(BufferUse::scratch, each) == Placement{Heap::vram, HostMapping::none});
  }
}

TEST_CASE("placement: the GPU may do no more than a buffer's use needs") {
  for (const BufferUse use : uses) {
    const GpuAccess access = access_of(use);
    INFO(static_cast<int>(use));
    CHECK((access == GpuAccess::read_execute) == (use == BufferUse::code));
    const bool written = use == BufferUse::readback || use == BufferUse::storage || use == BufferUse::reports ||
                         use == BufferUse::scratch;
    CHECK((access == GpuAccess::read_write) == written);
  }
  CHECK(access_of(BufferUse::invalid) == GpuAccess::invalid);
  CHECK(placement_of(BufferUse::invalid, memory(16)) == Placement{});
}

TEST_CASE("chip: family and revision tell the chip and what its code is compiled for") {
  struct Case {
    std::uint32_t family, first, last;
    const char* name;
    const char* isa;
    Target target;
  };
  const Case cases[] = {
      {145, 0x01, 0x0f, "Navi31", "gfx1100", Target::gfx1100}, {145, 0x20, 0xff, "Navi32", "gfx1101", Target::gfx1101},
      {145, 0x10, 0x1f, "Navi33", "gfx1102", Target::gfx1102}, {148, 0x01, 0xff, "Phoenix", "gfx1103", Target::gfx1103},
      {143, 0x28, 0x31, "Navi21", "gfx1030", Target::gfx1030}, {143, 0x32, 0x3b, "Navi22", "gfx1031", Target::gfx1030},
      {143, 0x3c, 0x45, "Navi23", "gfx1032", Target::gfx1030}, {143, 0x46, 0x4f, "Navi24", "gfx1034", Target::gfx1030},
  };
  for (const Case& each : cases) {
    for (const std::uint32_t revision : {each.first, each.last}) {
      INFO(each.name << ", revision " << revision);
      const auto chip = identify_chip(each.family, revision);
      REQUIRE(chip.has_value());
      CHECK(chip->name == each.name);
      CHECK(chip->isa == each.isa);
      CHECK(chip->target == each.target);
      CHECK(chip->lanes_a_clock == (each.family == 143 ? 64 : 128));
    }
  }
}

TEST_CASE("chip: one that is unknown is unsupported, by family and revision") {
  const auto family = identify_chip(177, 3);
  REQUIRE_FALSE(family.has_value());
  CHECK(family.error().code == StatusCode::unsupported);
  CHECK(family.error().message == "unknown chip: family 177, revision 3, expected gfx10.3 or gfx11");
  CHECK(identify_chip(145, 0).error().message == "unknown chip: family 145, revision 0, expected gfx10.3 or gfx11");
  CHECK(identify_chip(143, 0x50).error().message == "unknown chip: family 143, revision 80, expected gfx10.3 or gfx11");
  CHECK(identify_chip(141, 1).error().message == "unknown chip: family 141, revision 1, expected gfx10.3 or gfx11");
}

TEST_CASE("chip: one that is known and not dispatched to says so") {
  for (const auto& [family, revision, isa] : {std::tuple{143u, 1u, "gfx1010"},
                                              {144u, 1u, "gfx1033"},
                                              {150u, 1u, "gfx1150"},
                                              {150u, 0xc0u, "gfx1151"},
                                              {152u, 0x40u, "gfx1200"},
                                              {152u, 0x50u, "gfx1201"}}) {
    const auto chip = identify_chip(family, revision);
    REQUIRE_FALSE(chip.has_value());
    CHECK(chip.error().code == StatusCode::unsupported);
    CHECK_THAT(chip.error().message, Catch::Contains(isa) && Catch::Contains("family " + std::to_string(family)));
  }
}

}  // namespace kiln::amdgpu_pm4
