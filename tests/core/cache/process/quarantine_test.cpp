// A driver that dies of what it is given: it dies once, and the program is built anew from then on.
#include "cache/cache_root.hpp"
#include "core/cache/workplace.hpp"
#include "support/in_child.hpp"

#include <catch2/catch.hpp>

#include <kiln/cache_admin.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <thread>

namespace kiln::test {
namespace {

struct Stored : Workplace {
  SyntheticDevice device;
  std::filesystem::path file;

  explicit Stored(const std::string& text = "one") {
    REQUIRE(acquire(*open(), text, device));
    file = files(".bin").at(0);
    trial = [this](const ProgramKey& suspect, const ProgramBinary& stored, const DeviceInfo&) {
      CHECK(files(".suspect").size() >= 1);
      CHECK(suspect.label.starts_with("the label of "));
      CHECK_FALSE(stored.bytes.empty());
      ++tried;
      return outcome;
    };
  }
  // What the child that tries a suspect comes to.
  TrialOutcome outcome{TrialVerdict::died, "SIGSEGV"};
  int tried = 0;

  // What becomes of a process that asks for the program, where the driver dies loading it.
  ChildEnd asked_for(const std::string& text, int signal = SIGSEGV) {
    return in_child([&]() -> std::string {
      SyntheticDevice dying;
      dying.on_load = [&](const KernelSource& source) {
        std::signal(signal, SIG_DFL);  // not the test framework's
        if (source.text == text) raise(signal);
      };
      const auto cache = open();
      const auto got = acquire(*cache, text, dying);
      if (!got || text_of(*got) != text) return "was not served";
      const CacheStats stats = cache->stats();
      const bool counted = stats.rejected.quarantined == 1 && stats.absent == 0;
      return got->tier == Tier::built && counted ? "" : "was not built for having been quarantined";
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
  CHECK_THAT(s.log.warnings().front(), Catch::Contains(digest) &&
                                           Catch::Contains("a child process that loaded the program died (SIGSEGV)") &&
                                           Catch::Contains("`kiln cache release " + digest.substr(0, 12) + "` ends"));
  CHECK(s.tried == 1);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  CHECK(s.log.warnings().size() == 1);
}

TEST_CASE("cache::quarantine: an entry that a power cut left under both names is set aside all the same") {
  Stored s;
  CHECK(s.asked_for("one").signal == SIGSEGV);
  auto aside = s.file;
  std::filesystem::create_hard_link(s.file, aside.replace_extension(".suspect"));
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

TEST_CASE("cache::quarantine: it ends by itself after a week") {
  Stored s;
  CHECK(s.asked_for("one").signal == SIGSEGV);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  REQUIRE(s.files(".quarantined").size() == 1);
  const auto now = std::filesystem::file_time_type::clock::now();
  const int weeks = GENERATE(-1, 1);  // 1: the clock was set back
  std::filesystem::last_write_time(s.files(".quarantined").front(), now + weeks * std::chrono::hours(24 * 8));
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

// A death proves nothing: the process may have been killed for want of memory, by a user, by a test's time limit.
TEST_CASE(
    "cache::suspect: a program that was being loaded at a death is loaded again where a child says that it is good") {
  Stored s;
  s.outcome = {TrialVerdict::good, {}};
  for (const int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGABRT, SIGBUS, SIGKILL}) {
    CHECK(s.asked_for("one", signal).signal == signal);
    const int before = s.tried;
    const auto cache = s.open();
    CHECK(acquire(*cache, "one", s.device)->tier == Tier::disk);
    CHECK(s.tried == before + 1);
    CHECK(cache->stats().rejected.quarantined == 0);
    CHECK(cache->stats().builds == 0);
    CHECK(s.files(".suspect").empty());
    CHECK(s.files(".quarantined").empty());
    CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);  // and is no suspect any more
    CHECK(s.tried == before + 1);
  }
}

TEST_CASE("cache::suspect: where no child can try it, it is built anew and stored again") {
  Stored s;
  s.outcome = {TrialVerdict::unknown, "no kiln-probe"};
  CHECK(s.asked_for("one", SIGKILL).signal == SIGKILL);
  const auto cache = s.open();
  CHECK(acquire(*cache, "one", s.device)->tier == Tier::built);
  CHECK(cache->stats().rejected.quarantined == 0);
  CHECK(s.log.said(" cannot be tried in a child process and is built again: no kiln-probe") == 1);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
  CHECK(s.files(".suspect").empty());
}

TEST_CASE("cache::suspect: what is not sound is tried in no child, and is counted and built anew") {
  for (const bool damaged : {true, false}) {
    CAPTURE(damaged);
    Stored s;
    s.outcome = {TrialVerdict::good, {}};
    CHECK(s.asked_for("one", SIGKILL).signal == SIGKILL);
    REQUIRE(acquire(*s.open(), "two", s.device));  // looks after the dead process
    const auto suspect = s.files(".suspect").at(0);
    auto bytes = contents(damaged ? suspect : s.files(".bin").at(0));
    if (damaged) bytes[90] ^= std::byte{4};
    overwrite(suspect, bytes);
    const auto cache = s.open();
    CHECK(acquire(*cache, "one", s.device)->tier == Tier::built);
    CHECK(s.tried == 0);
    CHECK(cache->stats().rejected.corrupt == (damaged ? 1 : 0));
    CHECK(cache->stats().rejected.tampered == (damaged ? 0 : 1));
    CHECK(s.files(".suspect").empty());
  }
}

TEST_CASE("cache::suspect: while one process tries a program, no other does, and who does not wait gets nothing") {
  Stored s;
  const auto trial = s.trial;
  int asked_meanwhile = 0;
  s.trial = [&](const ProgramKey& suspect, const ProgramBinary& stored, const DeviceInfo& info) {
    if (++asked_meanwhile == 1) {
      const auto key = key_for("one", s.device);
      const auto source = source_of("one");
      const auto answer = s.open()->try_get_or_build({&key, &source, &s.device});
      CHECK(answer);
      CHECK((answer && !answer->has_value()));
    }
    return trial(suspect, stored, info);
  };
  s.outcome = {TrialVerdict::good, {}};
  CHECK(s.asked_for("one", SIGKILL).signal == SIGKILL);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
  CHECK(s.tried == 1);
  CHECK(asked_meanwhile == 1);
  CHECK(s.device.builds == 1);  // at the beginning
  CHECK(s.files(".suspect").empty());
}

TEST_CASE("cache::suspect: many programs in flight at one death are suspects, and none of them is lost") {
  Stored s;
  s.outcome = {TrialVerdict::good, {}};
  constexpr int programs = 14;
  for (int i = 0; i < programs; ++i) REQUIRE(acquire(*s.open(), "many " + std::to_string(i), s.device));
  const ChildEnd end = in_child([&]() -> std::string {
    SyntheticDevice slow;
    std::atomic<int> loading{0};
    slow.on_load = [&](const KernelSource&) {
      if (++loading == programs) kill(getpid(), SIGKILL);
      while (true) pause();
    };
    const auto cache = s.open();
    std::vector<std::thread> threads;
    for (int i = 0; i < programs; ++i) {
      threads.emplace_back([&, i] { static_cast<void>(acquire(*cache, "many " + std::to_string(i), slow)); });
    }
    for (std::thread& thread : threads) thread.join();
    return "was not killed";
  });
  CHECK(end.signal == SIGKILL);
  const auto cache = s.open();
  for (int i = 0; i < programs; ++i) {
    CHECK(acquire(*cache, "many " + std::to_string(i), s.device)->tier == Tier::disk);
  }
  CHECK(s.tried == programs);
  CHECK(s.files(".bin").size() == programs + 1);
  CHECK(s.files(".quarantined").empty());
}

TEST_CASE("cache::suspect: without children one death builds it anew, and a second one soon after quarantines it") {
  Stored s;
  s.trial = {};
  CHECK(s.asked_for("one").signal == SIGSEGV);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  CHECK(s.files(".quarantined").empty());
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
  SECTION("soon after") {
    CHECK(s.asked_for("one").signal == SIGSEGV);
    const ChildEnd later = s.asked_for("one");
    CHECK(later.signal == 0);
    CHECK(later.said == "");
    CHECK(s.files(".quarantined").size() == 1);
  }
  SECTION("two hours later") {
    const auto now = std::filesystem::file_time_type::clock::now();
    std::filesystem::last_write_time(s.files(".suspect").at(0), now - std::chrono::hours(2));
    CHECK(s.asked_for("one").signal == SIGSEGV);
    CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
    CHECK(s.files(".quarantined").empty());
  }
}

TEST_CASE("cache::suspect: what is suspect or quarantined is shown with reason and time, and can be released") {
  Stored s;
  const std::string key = key_for("one", s.device).digest.hex();
  CHECK(s.asked_for("one", SIGKILL).signal == SIGKILL);
  REQUIRE(acquire(*s.open(), "two", s.device));  // looks after the one that died
  const auto look = [&] { return *cache_inventory(s.config, Detail::programs); };
  REQUIRE(look().aside.size() == 1);
  CHECK_FALSE(look().aside[0].quarantined);
  CHECK(look().aside[0].label == "the label of one");
  CHECK(inspect_program(s.config, key.substr(0, 8))->verdict == "suspect");
  CHECK(verify_cache(s.config, BadEntries::keep)->aside.size() == 1);
  REQUIRE(release_programs(s.config, key.substr(0, 8)));
  CHECK(look().aside.empty());
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
  CHECK(s.tried == 0);

  CHECK(s.asked_for("one").signal == SIGSEGV);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  REQUIRE(look().aside.size() == 1);
  CHECK(look().aside[0].quarantined);
  CHECK(look().aside[0].until_s - look().aside[0].since_s == 7 * 24 * 3600);
  const auto inspected = inspect_program(s.config, "the label of one");
  REQUIRE(inspected);
  CHECK(inspected->verdict == "quarantined");
  CHECK_THAT(inspected->why, Catch::Contains("until ") && Catch::Contains("kiln cache release " + key.substr(0, 12)));
  CHECK_THAT(explain_misses(s.config, key)->at(0).why, Catch::Contains("quarantined until "));
  CHECK(release_programs(s.config, "nothing").error().code == StatusCode::not_found);
  REQUIRE(release_programs(s.config, "the label of one"));
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::disk);
}

TEST_CASE("cache::quarantine: a miss says until when, to the minute") {
  Stored s;
  const auto aside = std::filesystem::path(s.file).replace_extension(".quarantined");
  std::filesystem::rename(s.file, aside);
  const std::time_t since = std::time(nullptr) - 24 * 3600, until = since + 7 * 24 * 3600;
  const timespec times[] = {{since, 0}, {since, 0}};
  REQUIRE(utimensat(AT_FDCWD, aside.c_str(), times, 0) == 0);
  CHECK(acquire(*s.open(), "one", s.device)->tier == Tier::built);
  std::tm utc{};
  char date[32] = "";
  REQUIRE(gmtime_r(&until, &utc) != nullptr);
  REQUIRE(std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc) != 0);
  const auto misses = explain_misses(s.config, "the label of one");
  REQUIRE(misses);
  CHECK(misses->at(0).why ==
        "quarantined until " + std::string(date) + ": a process that loaded the program died or timed out");
}

TEST_CASE("cache::suspect: what is released comes back, unless a newer program is stored or it has no bytes") {
  Stored s;
  const auto bytes = contents(s.file), newer = copied_bytes("newer");
  const auto aside = std::filesystem::path(s.file).replace_extension(".quarantined");
  const auto release = [&] { return release_programs(s.config, key_for("one", s.device).digest.hex()); };
  std::filesystem::rename(s.file, aside);
  auto released = release();
  REQUIRE(released);
  REQUIRE(released->size() == 1);
  CHECK(released->at(0).quarantined);
  CHECK(contents(s.file) == bytes);
  std::filesystem::rename(s.file, aside);
  overwrite(s.file, newer);
  REQUIRE(release());
  CHECK(contents(s.file) == newer);
  CHECK_FALSE(std::filesystem::exists(aside));
  std::filesystem::remove(s.file);
  overwrite(aside, {});  // keeps the program of a layer out
  const auto empty = inspect_program(s.config, key_for("one", s.device).digest.hex());
  REQUIRE(empty);
  CHECK(empty->verdict == "quarantined");
  CHECK(empty->schema == 0);
  REQUIRE(release());
  CHECK_FALSE(std::filesystem::exists(aside));
  CHECK_FALSE(std::filesystem::exists(s.file));
  // Of one that is gone meanwhile nothing is told.
  const auto root = CacheRoot::open(s.config);
  REQUIRE(root);
  AsideProgram gone = released->at(0);
  CHECK(root->release(gone).ok());
  gone.folder = "none-0123456789abcdef-0123456789abcdef";
  CHECK(root->release(gone).ok());
  // A folder that others can write is not touched.
  overwrite(aside, bytes);
  gone = released->at(0);
  for (const auto& folder : {aside.parent_path(), aside.parent_path().parent_path()}) {
    std::filesystem::permissions(folder, std::filesystem::perms::all);
    CHECK_THAT(root->release(gone).message, Catch::Contains("has mode 0777"));
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  }
  CHECK(contents(aside) == bytes);
  s.config.read_only = true;
  CHECK(release().error().code == StatusCode::invalid_argument);
}

}  // namespace
}  // namespace kiln::test
