// Machines that start together: leases of builds, and what happens without them.
#include "cache/manifest.hpp"
#include "cache/remote_tier.hpp"
#include "core/cache/shared/sharing.hpp"

#include <kiln/cache_admin.hpp>
#include <kiln/stop_scope.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("sharing: clients that start together build each program once, with leases") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine first(server, true);
  first.write_to(url);
  std::vector<std::unique_ptr<SharingMachine>> machines;
  for (int i = 0; i < 6; ++i) {
    machines.push_back(std::make_unique<SharingMachine>(server, true));
    SharingMachine& machine = *machines.back();
    machine.config.trust_folders = first.config.trust_folders;
    machine.config.remotes = first.config.remotes;
    machine.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(30ms); };
  }
  constexpr int programs = 8;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    threads.emplace_back([&, i] {
      SharingMachine& machine = *machines[i];
      const auto cache = machine.open();
      for (int program = 0; program < programs; ++program) {
        const std::string text = "program " + std::to_string((program + static_cast<int>(i)) % programs);
        try {
          machine.build_and_run(*cache, text);
        } catch (...) {
          ++failed;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  int builds = 0;
  for (const auto& machine : machines) builds += machine->device.builds;
  // Waits may end early on a busy machine. Without leases there would be six builds of each program.
  CHECK(builds <= programs * 3);
}

TEST_CASE("sharing: a holder that dies is replaced") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  const std::string name =
      device_folder_name(machine.device.info()) + "/" + key_for("one", machine.device).digest.hex() + ".lease";
  server->leases[name] = {"dead", Clock::now() + 150ms};
  const auto cache = machine.open();
  CHECK(acquire(*cache, "one", machine.device)->tier == Tier::built);
  CHECK(cache->stats().shared.lease_takeovers == 1);
  CHECK(cache->stats().shared.lease_waits == 1);
  CHECK(server->leases_asked <= 31);  // at most every 5 ms
}

TEST_CASE("sharing: a build of another machine is waited for, where nothing tells how long builds take") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine builder(server, true), waiter(server, true);
  builder.write_to(url);
  waiter.config.trust_folders = builder.config.trust_folders;
  waiter.config.remotes = builder.config.remotes;
  std::atomic<bool> builds{false};
  builder.device.on_build = [&](const KernelSource&) {
    builds = true;
    std::this_thread::sleep_for(2500ms);  // more than three builds of the length that is assumed
  };
  std::thread other([&] { builder.build_and_run(*builder.open(), "one"); });
  REQUIRE(becomes_true([&] { return builds.load(); }));
  const auto cache = waiter.open();
  CHECK(acquire(*cache, "one", waiter.device)->tier == Tier::remote);
  other.join();
  CHECK(waiter.device.builds == 0);
  const SharedCounts counts = cache->stats().shared;
  CHECK(counts.lease_waits == 1);
  CHECK(counts.lease_takeovers == 0);
  CHECK(counts.lease_timeouts == 0);
  CHECK(counts.unleased_builds == 0);
}

TEST_CASE("sharing: whoever is asked to stop does not wait for another machine's build") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  const std::string name =
      device_folder_name(machine.device.info()) + "/" + key_for("one", machine.device).digest.hex() + ".lease";
  server->leases[name] = {"other", Clock::now() + 1h};
  const auto cache = machine.open();
  const std::atomic<bool> stop{true};
  const StopScope scope(&stop);
  const auto got = acquire(*cache, "one", machine.device);
  REQUIRE(got);
  CHECK(got->tier == Tier::built);
  const SharedCounts counts = cache->stats().shared;
  CHECK(counts.lease_waits == 1);
  CHECK(counts.lease_takeovers == 0);
  CHECK(counts.lease_timeouts == 1);
  CHECK(counts.unleased_builds == 1);
  CHECK(server->leases.at(name).first == "other");
}

TEST_CASE("sharing: a failed build releases its lease") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  machine.device.fail_builds = true;
  const auto cache = machine.open();
  CHECK_FALSE(acquire(*cache, "one", machine.device));
  CHECK(server->leases_taken == 1);
  CHECK(becomes_true([&] {
    const std::lock_guard lock(server->mutex);
    for (const auto& [name, lease] : server->leases) {
      if (!lease.first.empty()) return false;  // it has a holder
    }
    return true;
  }));
}

TEST_CASE("sharing: a lease lasts half a minute at most, however long an index says that a build takes") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  const ProgramKey key = key_for("one", machine.device);
  const std::string folder = device_folder_name(machine.device.info());
  server->objects[remote_index_name(folder)] = encode_remote_index({{key.digest, std::uint64_t{1} << 62}});
  const auto cache = machine.open();
  REQUIRE(acquire(*cache, "none", machine.device));
  REQUIRE(becomes_true([&] { return cache->holds(key, machine.device); }));  // by the index
  CHECK(acquire(*cache, "one", machine.device)->tier == Tier::built);
  const std::lock_guard lock(server->mutex);
  const auto left = server->leases.at(folder + "/" + key.digest.hex() + ".lease").second - Clock::now();
  CHECK(left > 20s);
  CHECK(left <= 30s);
}

TEST_CASE("sharing: a lease lasts three times as long as its build is said to take, and a second at least") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  machine.device.on_build = {};
  const std::string folder = device_folder_name(machine.device.info());
  const ProgramKey shorter = key_for("shorter", machine.device), longer = key_for("longer", machine.device);
  RemoteIndex index{{shorter.digest, 250'000'000}, {longer.digest, 8'000'000'000}};
  std::ranges::sort(index, {}, &RemoteIndexEntry::key);
  server->objects[remote_index_name(folder)] = encode_remote_index(index);
  const auto cache = machine.open();
  REQUIRE(acquire(*cache, "none", machine.device));
  REQUIRE(becomes_true([&] { return cache->holds(longer, machine.device); }));  // by the index
  const std::pair<const char*, std::chrono::milliseconds> rows[] = {{"shorter", 1000ms}, {"longer", 24'000ms}};
  for (const auto& [text, life] : rows) {
    CAPTURE(text);
    const auto before = Clock::now();
    REQUIRE(acquire(*cache, text, machine.device)->tier == Tier::built);
    const std::lock_guard lock(server->mutex);
    const auto end = server->leases.at(folder + "/" + key_for(text, machine.device).digest.hex() + ".lease").second;
    CHECK(end >= before + life);
    CHECK(end <= Clock::now() + life);
  }
}

// A store whose answers about leases a test decides.
class DecidedLeases final : public MemoryStore, public RemoteLeases {
 public:
  using Decide = std::function<Result<bool>(const std::string& name)>;
  DecidedLeases(std::shared_ptr<SharedServer> server, Decide decide)
      : MemoryStore(std::move(server)), decide_(std::move(decide)) {}

  Result<bool> acquire(const std::string& name, const std::string&, std::chrono::milliseconds,
                       const RemoteLimits&) noexcept override {
    return decide_(name);
  }
  Result<bool> renew(const std::string&, const std::string&, std::chrono::milliseconds,
                     const RemoteLimits&) noexcept override {
    return true;
  }
  Status release(const std::string&, const std::string&, const RemoteLimits&) noexcept override {
    ++server_->leases_taken;  // here: given back
    return {};
  }

 private:
  Decide decide_;
};

struct DecidedMachine : SharingMachine {
  const std::shared_ptr<SharedServer> server = std::make_shared<SharedServer>();
  DecidedLeases::Decide decide;

  DecidedMachine() {
    stores["http"] = [this](const RemoteContext&) -> Result<std::unique_ptr<RemoteStore>> {
      return std::unique_ptr<RemoteStore>(
          std::make_unique<DecidedLeases>(server, [this](const std::string& name) { return decide(name); }));
    };
  }
};

TEST_CASE("sharing: a program that was written while its lease was asked for is loaded, and the lease given back") {
  DecidedMachine machine;
  machine.decide = [](const std::string&) { return true; };
  machine.write_to(url);
  machine.build({"one", "two"});
  REQUIRE(machine.push().written == 2);
  const auto written = machine.server->objects;
  const std::string folder = device_folder_name(machine.device.info());
  const auto name_of = [&](const std::string& text) {
    return folder + "/" + key_for(text, machine.device).digest.hex();
  };
  for (const bool at_once : {true, false}) {  // or while another machine has the lease
    CAPTURE(at_once);
    const std::string text = at_once ? "one" : "two";
    machine.server->objects.clear();
    std::filesystem::remove_all(machine.config.directory);
    machine.expect_slow_answers(url);
    int asked = 0;
    machine.decide = [&](const std::string& name) {
      CHECK(name == name_of(text) + ".lease");
      const std::lock_guard lock(machine.server->mutex);
      machine.server->objects[name_of(text)] = written.at(name_of(text));
      ++asked;
      return at_once;
    };
    const auto cache = machine.open();
    machine.server->leases_taken = 0;
    const int builds = machine.device.builds;
    CHECK(acquire(*cache, text, machine.device)->tier == Tier::remote);
    CHECK(machine.device.builds == builds);
    CHECK(asked == (at_once ? 1 : 2));
    CHECK(machine.server->leases_taken == (at_once ? 1 : 0));
    CHECK(cache->stats().shared.lease_waits == (at_once ? 0 : 1));
    CHECK(cache->stats().shared.hits == 1);
  }
}

TEST_CASE("sharing: a server that fails at a lease is left alone, and one whose request was stopped is not") {
  const std::pair<StatusCode, std::uint64_t> rows[] = {
      {StatusCode::unavailable, 1}, {StatusCode::timeout, 1}, {StatusCode::cancelled, 0}};
  for (const auto& [code, failures] : rows) {
    CAPTURE(to_string(code));
    DecidedMachine machine;
    machine.decide = [](const std::string&) { return true; };
    machine.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(30ms); };  // worth a lease
    machine.write_to(url);
    machine.expect_slow_answers(url);
    const auto cache = machine.open();
    REQUIRE(acquire(*cache, "none", machine.device));
    REQUIRE(becomes_true([&] { return machine.server->indexes == 1 && machine.server->gets > 1; }));  // it has answered
    machine.decide = [code = code](const std::string&) { return Result<bool>(Status{code, "told to"}); };
    CHECK(acquire(*cache, "one", machine.device)->tier == Tier::built);
    CHECK(cache->stats().shared.unleased_builds == 1);
    CHECK(known_remotes(machine.config).at(0).failures == failures);
    CHECK(acquire(*cache, "two", machine.device)->tier == Tier::built);
    CHECK(cache->stats().shared.closed == failures);
    CHECK(cache->stats().shared.unleased_builds == 2);
  }
}

TEST_CASE("sharing: all leases are given back when a process ends") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  machine.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(20ms); };  // worth a lease
  {
    const auto cache = machine.open();
    for (const char* text : {"one", "two", "three"}) REQUIRE(acquire(*cache, text, machine.device));
    const std::lock_guard lock(server->mutex);
    CHECK(server->leases.size() == 3);
  }
  CHECK(server->leases.empty());
}

TEST_CASE("sharing: who does not wait is told that another machine builds the program") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  const auto key = key_for("one", machine.device);
  const auto source = source_of("one");
  const std::string lease = device_folder_name(machine.device.info()) + "/" + key.digest.hex() + ".lease";
  server->leases[lease] = {"another machine", Clock::now() + 1h};
  const auto cache = machine.open();
  const auto busy = cache->try_get_or_build({&key, &source, &machine.device});
  REQUIRE(busy);
  CHECK_FALSE(busy->has_value());
  CHECK(machine.device.builds == 0);
  CHECK(cache->stats().misses == 0);
  CHECK(cache->stats().shared.lease_waits == 0);
  {
    const std::lock_guard lock(server->mutex);
    server->leases.erase(lease);
  }
  const auto built = cache->try_get_or_build({&key, &source, &machine.device});
  REQUIRE(built);
  REQUIRE(built->has_value());
  CHECK((*built)->tier == Tier::built);
}

TEST_CASE("sharing: a slow answer of a server that has answered costs no lease") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  machine.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(20ms); };
  const auto cache = machine.open();
  REQUIRE(acquire(*cache, "none", machine.device));
  REQUIRE(becomes_true([&] { return server->indexes > 0 && server->leases_taken == 1; }));
  server->delay_ms = 60;
  CHECK(acquire(*cache, "one", machine.device)->tier == Tier::built);
  CHECK(acquire(*cache, "two", machine.device)->tier == Tier::built);
  CHECK(server->leases_taken == 3);
  CHECK(cache->stats().shared.unleased_builds == 0);
}

TEST_CASE("sharing: a late first answer costs no lease") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  server->leases_at_once = true;
  server->delay_ms = 150;  // the first answer is waited for 20 ms
  const auto cache = machine.open();
  CHECK(acquire(*cache, "one", machine.device)->tier == Tier::built);
  CHECK(server->leases_taken == 1);
  CHECK(cache->stats().shared.late == 1);
  CHECK(cache->stats().shared.unleased_builds == 0);
}

TEST_CASE("sharing: a server that answers nothing is asked for one lease") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.write_to(url);
  machine.device.on_build = [](const KernelSource&) {};
  server->hangs = true;
  const auto cache = machine.open();
  for (const char* text : {"one", "two", "three", "four"}) {
    CHECK(acquire(*cache, text, machine.device)->tier == Tier::built);
  }
  CHECK(server->leases_asked == 1);
  CHECK(cache->stats().shared.unleased_builds == 4);
}

TEST_CASE("sharing: no lease is taken where builds take less than three round trips") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server, true);
  machine.device.on_build = [](const KernelSource&) {};
  machine.write_to(url);
  machine.expect_slow_answers(url);
  server->delay_ms = 20;
  const auto cache = machine.open();
  REQUIRE(acquire(*cache, "one", machine.device)->tier == Tier::built);  // how long builds take is not known yet
  const int taken = server->leases_taken;
  const auto unleased = cache->stats().shared.unleased_builds;
  CHECK(acquire(*cache, "two", machine.device)->tier == Tier::built);
  CHECK(acquire(*cache, "three", machine.device)->tier == Tier::built);
  CHECK(server->leases_taken == taken);
  CHECK(cache->stats().shared.unleased_builds == unleased + 2);
}

TEST_CASE("sharing: without leases, duplicate builds are counted") {
  const auto server = std::make_shared<SharedServer>();
  SharingMachine machine(server);
  machine.write_to(url);
  const auto cache = machine.open();
  REQUIRE(acquire(*cache, "one", machine.device));
  CHECK(cache->stats().shared.unleased_builds == 1);
}

TEST_CASE("sharing: the pause before a lease is asked for again, and the time for a batch, grow up to a bound") {
  struct Pause {
    unsigned round;
    std::uint8_t random;
    std::chrono::microseconds expected;
  };
  for (const Pause& each : {Pause{0, 0, 5ms}, Pause{0, 255, 10ms}, Pause{1, 51, 12ms}, Pause{3, 0, 20ms},
                            Pause{4, 255, 50ms}, Pause{5, 0, 25ms}, Pause{1000, 102, 35ms}}) {
    CAPTURE(each.round, int{each.random});
    CHECK(lease_pause(each.round, each.random) == each.expected);
  }
  const std::pair<std::size_t, std::chrono::milliseconds> batches[] = {
      {1, 250ms}, {15, 250ms}, {16, 500ms}, {33, 750ms}, {640, 10'250ms}, {10'000, 10'250ms}};
  for (const auto& [programs, expected] : batches) CHECK(batch_time(programs) == expected);
}

}  // namespace
}  // namespace kiln::test
