#include "amdgpu_pm4/winsys/chip.hpp"

#include <catch2/catch.hpp>

namespace kiln::amdgpu_pm4 {

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
  CHECK(family.error().message == "unknown chip: family 177, revision 3");
  CHECK(identify_chip(145, 0).error().message == "unknown chip: family 145, revision 0");
  CHECK(identify_chip(143, 0x50).error().message == "unknown chip: family 143, revision 80");
  CHECK(identify_chip(141, 1).error().message == "unknown chip: family 141, revision 1");
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
