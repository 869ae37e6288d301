// Machines that start together: leases of builds, and what happens without them.
#include "cache/manifest.hpp"
#include "core/cache/shared/sharing.hpp"

#include <kiln/stop_scope.hpp>

#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace kiln::test
