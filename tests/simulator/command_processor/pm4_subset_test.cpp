// The tables, and the page that is printed from them.
#include "simulator/command_processor/packet_table.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace kiln::simulator {

TEST_CASE("simulator command processor: docs/pm4-subset.md is what the tables say") {
  const std::string path = std::string(KILN_SOURCE_DIR) + "/docs/pm4-subset.md";
  if (std::getenv("KILN_UPDATE_DOCS") != nullptr) std::ofstream(path) << pm4_subset();
  std::ifstream file(path);
  std::stringstream page;
  page << file.rdbuf();
  CHECK(page.str() == pm4_subset());
}

TEST_CASE("simulator command processor: no packet, event or register is in its table twice") {
  std::set<unsigned> opcodes, events;
  for (const PacketRule& rule : packet_rules()) {
    CHECK(opcodes.insert(rule.opcode).second);
    CHECK(refused_packet(rule.opcode).empty());
    CHECK(rule.act != nullptr);
    CHECK(rule.graphics.most >= rule.graphics.least);
    CHECK(rule.compute.most >= rule.compute.least);
  }
  for (const EventRule& rule : event_rules()) CHECK(events.insert(rule.type).second);
  for (const Generation generation : {Generation::gfx10_3, Generation::gfx11}) {
    std::set<std::uint32_t> offsets;
    for (const RegisterRule& rule : register_rules()) {
      CHECK(rule.treatment != Treatment::invalid);
      CHECK((rule.gfx10_3 || rule.gfx11));
      if (!(generation == Generation::gfx11 ? rule.gfx11 : rule.gfx10_3)) continue;
      for (std::uint32_t offset = rule.first; offset <= rule.last; offset += 4) {
        INFO(rule.name);
        CHECK(offsets.insert(offset).second);
        CHECK(RegisterMap(generation).find(offset) == &rule);
      }
    }
  }
}

}  // namespace kiln::simulator
