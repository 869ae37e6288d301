#include "amdgpu_pm4/device/quarantine.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <thread>

#include "device/queue_fixture.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

struct Notes final : DriverNotes {
  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override {
    const auto at = kept.find(std::string(name));
    if (at == kept.end()) return std::nullopt;
    return at->second;
  }
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override {
    kept[std::string(name)] = {bytes.begin(), bytes.end()};
  }
  std::map<std::string, std::vector<std::byte>> kept;
};

Digest digest_of(int i) { return sha256("program " + std::to_string(i)); }

}  // namespace

TEST_CASE("quarantine: a verdict stands for the processes after this one, on this device") {
  Notes notes;
  {
    Quarantine quarantine(&notes, "gfx1100");
    CHECK_FALSE(quarantine.holds(digest_of(1)));
    quarantine.add(digest_of(1));
    quarantine.add(digest_of(2));
    quarantine.add(digest_of(2));
    CHECK(quarantine.holds(digest_of(1)));
  }
  const Quarantine later(&notes, "gfx1100");
  CHECK(later.holds(digest_of(1)));
  CHECK(later.holds(digest_of(2)));
  CHECK_FALSE(later.holds(digest_of(3)));
  REQUIRE(notes.kept.size() == 1);
  CHECK(notes.kept.begin()->second.size() == 2 * 40);
  CHECK_FALSE(Quarantine(&notes, "gfx1101").holds(digest_of(1)));
}

TEST_CASE("quarantine: two processes keep each other's verdicts") {
  Notes notes;
  Quarantine one(&notes, "gfx1100"), other(&notes, "gfx1100");
  one.add(digest_of(1));
  other.add(digest_of(2));
  const Quarantine later(&notes, "gfx1100");
  CHECK(later.holds(digest_of(1)));
  CHECK(later.holds(digest_of(2)));
}

TEST_CASE("quarantine: without notes it holds for the process, and a damaged note is none") {
  Quarantine alone(nullptr, "gfx1100");
  alone.add(digest_of(1));
  CHECK(alone.holds(digest_of(1)));
  Notes notes;
  Quarantine(&notes, "gfx1100").add(digest_of(1));
  notes.kept.begin()->second.pop_back();
  CHECK_FALSE(Quarantine(&notes, "gfx1100").holds(digest_of(1)));
}

TEST_CASE("quarantine: it is bounded, and keeps the newest") {
  Notes notes;
  Quarantine quarantine(&notes, "gfx1100");
  for (int i = 0; i < 1030; ++i) quarantine.add(digest_of(i));
  CHECK(notes.kept.begin()->second.size() == 1024 * 40);
  CHECK(Quarantine(&notes, "gfx1100").holds(digest_of(1029)));
}

TEST_CASE("quarantine: a verdict stands for a week, and says until when") {
  Notes notes;
  constexpr std::int64_t day = 24 * 3600, found = 1'796'083'200;  // 2026-12-01
  Quarantine quarantine(&notes, "gfx1100");
  quarantine.add(digest_of(1), found);
  const Quarantine later(&notes, "gfx1100");
  CHECK(later.holds(digest_of(1), found + 6 * day));
  CHECK(later.check(digest_of(1), "blur", found + 6 * day).message ==
        "blur caused a hang or a fault of this device (2026-12-01) and is quarantined until 2026-12-08. "
        "`kiln cache clear` ends the quarantine");
  CHECK_FALSE(later.holds(digest_of(1), found + 8 * day));
  CHECK(later.check(digest_of(1), "blur", found + 8 * day).ok());
  quarantine.add(digest_of(2), found + 8 * day);  // the note keeps no verdict that has ended
  CHECK(notes.kept.begin()->second.size() == 40);
}

TEST_CASE("quarantine: a suspect is no convict") {
  Quarantine quarantine(nullptr, "gfx1100");
  quarantine.suspect(digest_of(1));
  CHECK(quarantine.is_suspect(digest_of(1)));
  CHECK_FALSE(quarantine.holds(digest_of(1)));
  quarantine.add(digest_of(1));
  CHECK_FALSE(quarantine.is_suspect(digest_of(1)));
  CHECK(quarantine.holds(digest_of(1)));
}

TEST_CASE("quarantine: who hung is known also where the kernel driver tells no guilt") {
  const QueueFixture f;
  f.gpu->innocent = true;
  f.gpu->hang_error = GENERATE(-ENODATA, -ETIME);  // all stamps are written, or those before the hang
  f.gpu->hang_at = 1;
  const Status status = f.wait(f.submit({f.pass(f.good, 0, 1), f.pass(f.bad, 1, 2), f.pass(f.good, 2, 3)}));
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message, Catch::Contains("submission 1: pass 1: kernel 'bad' (program ") &&
                                 Catch::Contains(") hung the device and is in quarantine"));
  CHECK(f.quarantine.holds(f.bad->quarantine_key));
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
  CHECK(f.gpu->contexts == 2);
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
}

TEST_CASE("quarantine: work that may have run twice after another program's reset is no result, and blames nobody") {
  const QueueFixture f;
  f.gpu->held = true;
  const std::uint64_t value = f.submit({f.pass(f.good)});
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  f.gpu->runs_again = true;
  f.gpu->states[1].reset = true;
  f.gpu->run_held();
  const Status status = f.wait(value);
  CHECK(status.code == StatusCode::unavailable);
  CHECK_THAT(status.message,
             Catch::Contains("another program's work") && Catch::Contains("the work may have run twice"));
  CHECK_FALSE(f.quarantine.holds(f.good->quarantine_key));
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
  CHECK(f.gpu->contexts == 2);
}

TEST_CASE("quarantine: the first submission of a new context waits for the fence that the one before waited for") {
  const QueueFixture f;
  REQUIRE(f.queue->wait_for_fence(3).ok());
  REQUIRE(f.queue->wait_for_fence(3).ok());
  f.gpu->hang_at = 0;
  CHECK(f.wait(f.submit({f.pass(f.bad)})).code == StatusCode::unavailable);
  for (int i = 0; i < 2; ++i) CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
  CHECK(f.gpu->waits == std::vector<std::vector<std::uint64_t>>{{2}, {2}, {}});
}

TEST_CASE("quarantine: a context whose earlier work was given up is replaced") {
  const QueueFixture f;
  f.gpu->submit_errors = {GENERATE(-ENODATA, -ETIME)};
  CHECK(f.wait(f.submit({f.pass(f.good)})).ok());
  CHECK(f.gpu->contexts == 2);
}

}  // namespace kiln::amdgpu_pm4
