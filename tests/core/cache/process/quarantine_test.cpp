// A driver that dies of what it is given: it dies once, and the program is built anew from then on.
#include "core/cache/in_child.hpp"
#include "core/cache/workplace.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace kiln::test {
namespace {

struct Stored : Workplace {
  SyntheticDevice device;
  std::filesystem::path file;

  explicit Stored(const std::string& text = "one") {
    REQUIRE(acquire(*open(), text, device));
    file = files(".bin").at(0);
  }

  // What becomes of a process that asks for the program, where the driver dies loading it.
  ChildEnd asked_for(const std::string& text, int signal = SIGSEGV) {
    return in_child([&]() -> std::string {
      SyntheticDevice dying;
      dying.on_load = [&](const KernelSource& source) {
        std::signal(SIGSEGV, SIG_DFL);  // not the test framework's
        if (source.text == text) raise(signal);
      };
      const auto cache = open();
      const auto got = acquire(*cache, text, dying);
      if (!got || text_of(*got) != text) return "was not served";
      const auto quarantined = cache->stats().rejected.quarantined;
      return got->tier == Tier::built && quarantined == 1 ? "" : "was not built for having been quarantined";
    });
  }
};

TEST_CASE("cache::quarantine: the driver dies of an entry once; later processes build, and are told why") {
  Stored s;
  CHECK(s.asked_for("one").signal == SIGSEGV);
  CHECK(s.files(".bin").size() == 1);
  for (int later = 0; later < 3; ++later) {
    const ChildEnd end = s.asked_for("one");
    CHECK(end.signal == 0);
    CHECK(end.said == "");
  }
  CHECK(s.files(".bin").empty());  // the same bytes are not stored again
  CHECK(s.files(".quarantined").size() == 1);
}

TEST_CASE("cache::quarantine: said once, when it begins") {
  Stored s;
  CHECK(s.asked_for("one").signal == SIGSEGV);
  const std::string digest = key_for("one", s.device).digest.hex();
  {
    const auto cache = s.open();
    CHECK(acquire(*cache, "one", s.device)->tier == Tier::built);
    CHECK(acquire(*cache, "one", s.device)->tier == Tier::memory);
    CHECK(cache->stats().rejected.quarantined == 1);
  }
  REQUIRE(s.log.warnings().size() == 1);
  CHECK(s.log.warnings().front().starts_with("program " + digest + " in folder "));
  CHECK(
      s.log.warnings().front().ends_with("a process died while its driver loaded it: it is set aside and built anew"));
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  CHECK(s.log.warnings().size() == 1);
}

TEST_CASE("cache::quarantine: an entry that a power cut left under both names is set aside all the same") {
  Stored s;
  CHECK(s.asked_for("one").signal == SIGSEGV);
  auto aside = s.file;
  std::filesystem::create_hard_link(s.file, aside.replace_extension(".quarantined"));
  const ChildEnd end = s.asked_for("one");
  CHECK(end.signal == 0);
  CHECK(end.said == "");
  CHECK(s.files(".bin").empty());
  CHECK(s.files(".quarantined").size() == 1);
}

TEST_CASE("cache::quarantine: the others are served as before, and nobody is quarantined by a death elsewhere") {
  Stored s;
  REQUIRE(acquire(*s.open(), "two", s.device));
  SECTION("while another entry was loaded") { CHECK(s.asked_for("one").signal == SIGSEGV); }
  SECTION("after it was loaded") {
    const ChildEnd end = in_child([&]() -> std::string {
      const auto cache = s.open();
      if (acquire(*cache, "two", s.device)->tier != Tier::disk) return "was not loaded";
      kill(getpid(), SIGKILL);
      return "was not killed";
    });
    CHECK(end.signal == SIGKILL);
  }
  SECTION("while it was built") {
    const ChildEnd end = in_child([&]() -> std::string {
      s.device.on_build = [](const KernelSource&) { kill(getpid(), SIGKILL); };
      static_cast<void>(acquire(*s.open(), "three", s.device));
      return "was not killed";
    });
    CHECK(end.signal == SIGKILL);
  }
  const auto cache = s.open();
  CHECK(acquire(*cache, "two", s.device)->tier == Tier::disk);
  CHECK(cache->stats().rejected.quarantined == 0);
}

TEST_CASE("cache::quarantine: it ends when the program is built with other bytes") {
  Stored s;
  CHECK(s.asked_for("one").signal == SIGSEGV);
  s.device.build_number = 7;  // as a compiler that is not deterministic
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  CHECK(s.files(".bin").size() == 1);
  CHECK(s.files(".quarantined").empty());
  const auto cache = s.open();
  CHECK(acquire(*cache, "one", s.device)->tier == Tier::disk);
  CHECK(cache->stats().rejected.quarantined == 0);
}

TEST_CASE("cache::quarantine: it ends by itself after a week: who was killed by chance is stored again") {
  Stored s;
  CHECK(s.asked_for("one", SIGKILL).signal == SIGKILL);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  REQUIRE(s.files(".quarantined").size() == 1);
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(s.files(".quarantined").front(), now - std::chrono::hours(24 * 8));
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
  CHECK(s.files(".quarantined").empty());
}

TEST_CASE("cache::quarantine: an entry that was published after the death is another one, and is kept") {
  Stored s;
  CHECK(s.asked_for("one").signal == SIGSEGV);
  std::filesystem::last_write_time(s.file, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(2));
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
  CHECK(s.files(".quarantined").empty());
}

TEST_CASE("cache::quarantine: the process that is loading lives: nothing is quarantined") {
  Stored s;
  SyntheticDevice other;
  s.device.on_load = [&](const KernelSource&) { CHECK(acquire(*s.open(), "one", other)->tier == Tier::disk); };
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
  CHECK(s.files(".quarantined").empty());
}

TEST_CASE("cache::quarantine: many loads at one time, more than can be marked, are all served") {
  Workplace place;
  SyntheticDevice device;
  constexpr int programs = 40;
  for (int i = 0; i < programs; ++i) REQUIRE(acquire(*place.open(), std::to_string(i), device));
  const auto cache = place.open();
  std::vector<std::thread> threads;
  std::atomic<int> loading{0}, right{0};
  device.on_load = [&](const KernelSource&) {
    ++loading;
    while (loading < programs) std::this_thread::yield();
  };
  for (int i = 0; i < programs; ++i) {
    threads.emplace_back([&, i] {
      const auto got = acquire(*cache, std::to_string(i), device);
      right += got && got->tier == Tier::disk && text_of(*got) == std::to_string(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == programs);
}

}  // namespace
}  // namespace kiln::test
