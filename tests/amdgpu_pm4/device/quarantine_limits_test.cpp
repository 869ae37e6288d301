// When a verdict begins and ends, to the second, and which verdicts a note keeps.
#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "amdgpu_pm4/device/quarantine.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

struct TheNote final : DriverNotes {
  std::optional<std::vector<std::byte>> find(std::string_view asked) noexcept override {
    if (!kept || asked != name) return std::nullopt;
    return kept;
  }
  void keep(std::string_view told, std::span<const std::byte> bytes) noexcept override {
    name = told;
    kept.emplace(bytes.begin(), bytes.end());
    ++times;
  }
  std::string name;
  std::optional<std::vector<std::byte>> kept;
  int times = 0;
};

Digest numbered(int i) { return sha256("numbered " + std::to_string(i)); }

constexpr std::int64_t week_s = 604800, then = 1'796'083'200;  // 2026-12-01

}  // namespace

TEST_CASE("quarantine: a verdict begins a week before its time and ends a week after it, to the second") {
  Quarantine quarantine(nullptr, "gfx1100");
  quarantine.add(numbered(1), then);
  CHECK(quarantine.holds(numbered(1), then));
  CHECK(quarantine.holds(numbered(1), then + week_s - 1));
  CHECK_FALSE(quarantine.holds(numbered(1), then + week_s));
  CHECK(quarantine.holds(numbered(1), then - week_s + 1));  // the clock was set back
  CHECK_FALSE(quarantine.holds(numbered(1), then - week_s));
  CHECK_FALSE(quarantine.holds(numbered(2), then));
  CHECK(quarantine.check(numbered(2), "k", then).text() == "ok");
  CHECK(quarantine.check(numbered(1), "k", then + week_s).text() == "ok");
  CHECK(quarantine.check(numbered(1), "kernel 'k'", then + week_s - 1).text() ==
        "unsupported: kernel 'k' caused a hang or a fault of this device (2026-12-01) and is quarantined until "
        "2026-12-08. `kiln cache clear` ends the quarantine");
}

TEST_CASE("quarantine: a second verdict counts from its own time") {
  Quarantine quarantine(nullptr, "gfx1100");
  quarantine.add(numbered(1), then);
  quarantine.add(numbered(1), then + 86400);
  CHECK(quarantine.holds(numbered(1), then + week_s + 86399));
  CHECK_FALSE(quarantine.holds(numbered(1), then + week_s + 86400));
}

TEST_CASE("quarantine: a note has the digest and the time of each verdict, the newest first") {
  TheNote note;
  Quarantine quarantine(&note, "gfx1100 revision=1");
  quarantine.add(numbered(1), then);
  quarantine.add(numbered(2), then + 5);
  quarantine.add(numbered(3), then + 1);
  CHECK(note.name == "amdgpu_pm4 quarantine 3 gfx1100 revision=1");
  CHECK(note.times == 3);
  REQUIRE(note.kept);
  REQUIRE(note.kept->size() == 120);
  const auto is = [&note](std::size_t at, const Digest& digest, std::int64_t since) {
    std::int64_t found = 0;
    std::memcpy(&found, note.kept->data() + at * 40 + 32, 8);
    CHECK(std::memcmp(note.kept->data() + at * 40, digest.bytes.data(), 32) == 0);
    CHECK(found == since);
  };
  is(0, numbered(3), then + 1);  // the one that came last
  is(1, numbered(2), then + 5);
  is(2, numbered(1), then);
  CHECK(Quarantine(&note, "gfx1100 revision=1").holds(numbered(1), then));
  CHECK_FALSE(Quarantine(&note, "gfx1100 revision=2").holds(numbered(1), then));
}

TEST_CASE("quarantine: a note keeps 1024 verdicts, the one that came last among them") {
  TheNote note;
  Quarantine quarantine(&note, "gfx1100");
  for (int i = 0; i < 1023; ++i) quarantine.add(numbered(i), then + i);
  CHECK(note.kept->size() == 1023 * 40);
  quarantine.add(numbered(1023), then - 1);  // the oldest
  CHECK(note.kept->size() == 1024 * 40);
  quarantine.add(numbered(1024), then - 2);
  CHECK(note.kept->size() == 1024 * 40);
  const Quarantine later(&note, "gfx1100");
  CHECK(later.holds(numbered(1024), then));
  CHECK_FALSE(later.holds(numbered(1023), then));
  CHECK(later.holds(numbered(0), then));
  CHECK(quarantine.holds(numbered(1023), then));  // this process has not forgotten it
}

TEST_CASE("quarantine: a note loses what has ended when another is added, and no second earlier") {
  TheNote note;
  Quarantine quarantine(&note, "gfx1100");
  quarantine.add(numbered(1), then);
  quarantine.add(numbered(2), then + week_s - 1);
  CHECK(note.kept->size() == 80);
  quarantine.add(numbered(3), then + week_s);
  CHECK(note.kept->size() == 80);
  const Quarantine later(&note, "gfx1100");
  CHECK_FALSE(later.holds(numbered(1), then));
  CHECK(later.holds(numbered(2), then + week_s));
}

TEST_CASE("quarantine: a note of another size is none") {
  for (const std::size_t bytes : {0u, 39u, 40u, 41u, 79u, 80u}) {
    TheNote note;
    Quarantine(&note, "gfx1100").add(numbered(1), then);
    note.kept->resize(bytes);
    INFO(bytes << " bytes");
    CHECK(Quarantine(&note, "gfx1100").holds(numbered(1), then) == (bytes == 40 || bytes == 80));
  }
}

TEST_CASE("quarantine: suspicions are counted where they begin and where a verdict ends them") {
  Quarantine quarantine(nullptr, "gfx1100");
  CHECK(quarantine.suspicions() == 0);
  quarantine.suspect(numbered(1));
  CHECK(quarantine.suspicions() == 1);
  quarantine.suspect(numbered(1));
  CHECK(quarantine.suspicions() == 1);
  quarantine.suspect(numbered(2));
  CHECK(quarantine.suspicions() == 2);
  quarantine.add(numbered(3), then);  // was no suspect
  CHECK(quarantine.suspicions() == 2);
  quarantine.add(numbered(1), then);
  CHECK(quarantine.suspicions() == 3);
  CHECK_FALSE(quarantine.is_suspect(numbered(1)));
  CHECK(quarantine.is_suspect(numbered(2)));
}

}  // namespace kiln::amdgpu_pm4
