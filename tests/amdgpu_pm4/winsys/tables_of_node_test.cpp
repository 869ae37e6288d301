// What error numbers, memory and revisions of chips mean, to the first and the last of each.
#include <catch2/catch.hpp>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/winsys/chip.hpp"
#include "amdgpu_pm4/winsys/winsys.hpp"

namespace kiln::amdgpu_pm4 {

TEST_CASE("winsys: each error number by its name") {
  const std::pair<int, const char*> rows[] = {
      {0, "ok"},
      {ETIME, "timeout: the call: Timer expired"},
      {ETIMEDOUT, "timeout: the call: Connection timed out"},
      {ECANCELED, "cancelled: the call: Operation canceled: the context was lost because the device was reset"},
      {ENODEV, "device_lost: the call: No such device: the device was removed"},
      {ENOMEM, "unavailable: the call: Cannot allocate memory"},
      {ENOSPC, "unavailable: the call: No space left on device"},
      {EBUSY, "unavailable: the call: Device or resource busy"},
      {EACCES, "unavailable: the call: Permission denied"},
      {EPERM, "unavailable: the call: Operation not permitted"},
      {EINVAL, "invalid_argument: the call: Invalid argument"},
      {ERANGE, "invalid_argument: the call: Numerical result out of range"},
      {ENOENT, "invalid_argument: the call: No such file or directory"},
      {ENODATA, "io: the call: No data available"},
      {EIO, "io: the call: Input/output error"}};
  for (const auto& [error, text] : rows) {
    CHECK(status_of(error, "the call").text() == text);
    CHECK(status_of(-error, "the call").text() == text);
    const Outcome outcome = outcome_of(-error, "the call");
    CHECK(outcome.own_fault == (error == ETIME || error == ENODATA));
    if (!outcome.own_fault) CHECK(outcome.how.text() == text);
  }
  CHECK(outcome_of(-ETIME, "the work").how.text() ==
        "cancelled: the work: Timer expired: the kernel driver stopped the work because it ran too long");
  CHECK(outcome_of(ENODATA, "the work").how.text() ==
        "cancelled: the work: No data available: the kernel driver stopped the work because it ran too long");
}

TEST_CASE("placement: VRAM is visible as a whole where the host can map as much as there is") {
  MemoryFacts facts{16, 15, 8, 12, 6};
  CHECK_FALSE(facts.whole_vram_visible());
  facts.visible_vram_bytes = 16;
  CHECK(facts.whole_vram_visible());
  facts.visible_vram_bytes = 17;
  CHECK(facts.whole_vram_visible());
}

TEST_CASE("placement: the most that a buffer of each use can have") {
  struct Row {
    BufferUse use;
    std::uint64_t whole, window;  // of 12 in VRAM and 20 in system memory
  };
  using U = BufferUse;
  const Row rows[] = {{U::upload, 12, 20},  {U::readback, 20, 20}, {U::storage, 12, 20},   {U::constant, 12, 20},
                      {U::code, 12, 20},    {U::commands, 20, 20}, {U::arguments, 20, 20}, {U::reports, 20, 20},
                      {U::scratch, 12, 12}, {U::invalid, 0, 0}};
  for (const Row& row : rows) {
    INFO(static_cast<int>(row.use));
    CHECK(most_bytes(row.use, {16, 16, 8, 12, 20}) == row.whole);
    CHECK(most_bytes(row.use, {16, 15, 8, 12, 20}) == row.window);
  }
  CHECK(most_bytes(U::storage, {16, 15, 8, 21, 20}) == 21);
}

TEST_CASE("placement: what the GPU may do with a buffer of each use") {
  using U = BufferUse;
  const std::pair<U, GpuAccess> rows[] = {{U::invalid, GpuAccess::invalid},     {U::upload, GpuAccess::read},
                                          {U::readback, GpuAccess::read_write}, {U::storage, GpuAccess::read_write},
                                          {U::constant, GpuAccess::read},       {U::code, GpuAccess::read_execute},
                                          {U::commands, GpuAccess::read},       {U::arguments, GpuAccess::read},
                                          {U::reports, GpuAccess::read_write},  {U::scratch, GpuAccess::read_write}};
  for (const auto& [use, access] : rows) {
    INFO(static_cast<int>(use));
    CHECK(access_of(use) == access);
  }
}

TEST_CASE("chip: each revision from the first to the last of every chip") {
  struct Row {
    std::uint32_t family, revision;
    const char* isa;  // empty: unknown
    bool dispatched;
  };
  const Row rows[] = {{143, 0x00, "", false},        {143, 0x01, "gfx1010", false}, {143, 0x09, "gfx1010", false},
                      {143, 0x0a, "gfx1011", false}, {143, 0x13, "gfx1011", false}, {143, 0x14, "gfx1012", false},
                      {143, 0x27, "gfx1012", false}, {143, 0x28, "gfx1030", true},  {143, 0x31, "gfx1030", true},
                      {143, 0x32, "gfx1031", true},  {143, 0x3b, "gfx1031", true},  {143, 0x3c, "gfx1032", true},
                      {143, 0x45, "gfx1032", true},  {143, 0x46, "gfx1034", true},  {143, 0x4f, "gfx1034", true},
                      {143, 0x50, "", false},        {144, 0x00, "", false},        {144, 0x01, "gfx1033", false},
                      {144, 0xff, "gfx1033", false}, {144, 0x100, "", false},       {146, 0x01, "gfx1035", false},
                      {146, 0xff, "gfx1035", false}, {147, 0x01, "", false},        {149, 0x01, "gfx1036", false},
                      {149, 0xff, "gfx1036", false}, {151, 0x01, "gfx1037", false}, {151, 0xff, "gfx1037", false},
                      {145, 0x00, "", false},        {145, 0x01, "gfx1100", true},  {145, 0x0f, "gfx1100", true},
                      {145, 0x10, "gfx1102", true},  {145, 0x1f, "gfx1102", true},  {145, 0x20, "gfx1101", true},
                      {145, 0xff, "gfx1101", true},  {145, 0x100, "", false},       {148, 0x00, "", false},
                      {148, 0x01, "gfx1103", true},  {148, 0xff, "gfx1103", true},  {148, 0x100, "", false},
                      {150, 0x00, "", false},        {150, 0x01, "gfx1150", false}, {150, 0x3f, "gfx1150", false},
                      {150, 0x40, "", false},        {150, 0xbf, "", false},        {150, 0xc0, "gfx1151", false},
                      {150, 0xff, "gfx1151", false}, {152, 0x3f, "", false},        {152, 0x40, "gfx1200", false},
                      {152, 0x4f, "gfx1200", false}, {152, 0x50, "gfx1201", false}, {152, 0xff, "gfx1201", false},
                      {152, 0x100, "", false},       {153, 0x01, "", false}};
  for (const Row& row : rows) {
    const auto chip = identify_chip(row.family, row.revision);
    const std::string met = "family " + std::to_string(row.family) + ", revision " + std::to_string(row.revision);
    INFO(met);
    REQUIRE(chip.has_value() == row.dispatched);
    if (chip) {
      CHECK(chip->isa == row.isa);
    } else if (std::string(row.isa).empty()) {
      CHECK(chip.error().text() == "unsupported: unknown chip: " + met + ", expected gfx10.3 or gfx11");
    } else {
      CHECK_THAT(chip.error().text(),
                 Catch::StartsWith("unsupported: chip ") &&
                     Catch::EndsWith(" (" + met + "), " + row.isa + ", is not supported by this version"));
    }
  }
}

TEST_CASE("chip: what is not supported is named with its family") {
  const std::pair<std::uint32_t, const char*> names[] = {
      {144, "Van Gogh"}, {146, "Rembrandt"}, {149, "Raphael"}, {150, "Strix"}, {151, "Mendocino"}};
  for (const auto& [family, name] : names) {
    CHECK_THAT(identify_chip(family, 1).error().message, Catch::StartsWith("chip " + std::string(name) + " (family " +
                                                                           std::to_string(family) + ", revision 1), "));
  }
}

TEST_CASE("chip: those that are dispatched to, each once") {
  std::string isas;
  for (const Chip& chip : dispatched_chips()) isas += std::string(chip.isa) + " ";
  CHECK(isas == "gfx1030 gfx1031 gfx1032 gfx1034 gfx1100 gfx1102 gfx1101 gfx1103 ");
}

}  // namespace kiln::amdgpu_pm4
