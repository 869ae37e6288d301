// What waits to be written to the remotes, and the leases that are held until it is.
#include "cache/background_work.hpp"
#include "cache/manifest.hpp"
#include "cache/remote_endpoint.hpp"
#include "cache/signing_keys.hpp"
#include "core/cache/shared/sharing.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("write back: the queue holds eight megabytes") {
  WriteBack writes;
  const auto item = [](std::size_t bytes) {
    WriteBack::Item made;
    made.folder = "f" + std::to_string(bytes);
    made.entry.resize(bytes);
    return made;
  };
  CHECK(writes.add(item((8 << 20) - 1)));
  CHECK_FALSE(writes.add(item(2)));
  CHECK(writes.add(item(1)));
  CHECK_FALSE(writes.add(item(1)));
  CHECK(writes.begin());
  CHECK_FALSE(writes.begin());  // somebody serves it already
  writes.not_served();
  CHECK(writes.begin());
  writes.not_served();
  CHECK(writes.finish(0ms) == 2);  // dropped
  CHECK(writes.finish(0ms) == 0);
  CHECK(writes.add(item(8 << 20)));
}

TEST_CASE("write back: what was taken from the queue leaves its room to others, and what was dropped too") {
  const Workplace place;
  WriteBack writes;
  HeldLeases leases;
  SharedCounters counters;
  REQUIRE(read_secret_key(place.config.key_file, IfMissing::create));
  const auto add = [&](std::size_t bytes) {
    WriteBack::Item item;
    item.entry.resize(bytes);
    return writes.add(std::move(item));
  };
  const std::atomic<bool> stop{false};
  for (int i = 0; i < 4; ++i) {
    CHECK(add(5 << 20));
    CHECK_FALSE(add(4 << 20));
    CHECK(add(3 << 20));
    CHECK_FALSE(add(1));
    REQUIRE(writes.begin());
    writes.serve({}, place.config, leases, counters, {}, stop);  // to no remote
    CHECK(writes.begin());                                       // nobody serves it any more
    writes.not_served();
  }
  CHECK(add(5 << 20));
  CHECK(writes.finish(0ms) == 1);
  CHECK(add(8 << 20));
  // Who serves it is waited for.
  REQUIRE(writes.begin());
  const auto serving =
      std::async(std::launch::async, [&] { writes.serve({}, place.config, leases, counters, {}, stop); });
  CHECK(writes.finish(60s) == 0);
}

// A machine with two stored programs and the entries of them that wait for the remotes.
struct WritingMachine : SharingMachine {
  explicit WritingMachine(const std::shared_ptr<SharedServer>& server) : SharingMachine(server, true) {
    device.on_build = [](const KernelSource&) {};
    write_to(url);
    build({"one", "two"});
  }
  WriteBack::Item item(const std::string& text, std::uint64_t build_ns) {
    const Digest key = key_for(text, device).digest;
    return {device_folder_name(device.info()), "{}", key, build_ns, contents(named(key.hex() + ".bin").at(0))};
  }
  WriteBack::Endpoints endpoints() {
    WriteBack::Endpoints all;
    for (const RemoteConfig& remote : config.remotes) {
      all.push_back(std::make_shared<RemoteEndpoint>(Log{}, remote, config,
                                                     std::make_shared<CurrentKeys>(config.trust_folders), stores));
    }
    return all;
  }
  void serve(WriteBack& writes, HeldLeases& leases, SharedCounters& counters, bool stopped = false) {
    const std::atomic<bool> stop{stopped};
    writes.serve(endpoints(), config, leases, counters, {&log, LogLevel::info}, stop);
  }
};

TEST_CASE("write back: what waits is written to each remote that is written, listed, and its lease released") {
  const auto server = std::make_shared<SharedServer>();
  WritingMachine machine(server);
  machine.config.remotes.insert(machine.config.remotes.begin(), {url, false, {"ci"}, "", "", "plain", {}});
  WriteBack writes;
  HeldLeases leases;
  SharedCounters counters;
  const WriteBack::Item one = machine.item("one", 50), two = machine.item("two", 70);
  REQUIRE(writes.add(one));
  REQUIRE(writes.add(two));
  REQUIRE(writes.begin());
  const auto end = Clock::now() + 3600s;
  for (const char* name : {"one", "other"}) server->leases[name] = {"token", end};
  leases.add(one.key, {machine.endpoints()[1], "one", "token", 9s, Clock::now(), end});
  leases.add(sha256("other"), {machine.endpoints()[1], "other", "token", 9s, Clock::now(), end});
  machine.serve(writes, leases, counters);
  CHECK(counters.counts().written == 2);
  CHECK(counters.counts().write_failed == 0);
  for (const WriteBack::Item& item : {one, two}) CHECK(server->objects.contains(item.folder + "/" + item.key.hex()));
  const auto index = decode_remote_index(server->objects.at(one.folder + "/index"));
  REQUIRE(index);
  CHECK(*index == merged_index({{one.key, 50}}, {{two.key, 70}}));
  CHECK_FALSE(server->leases.contains("one"));
  CHECK(server->leases.contains("other"));
  CHECK(writes.begin());  // nobody serves any more
  CHECK(writes.finish(0ms) == 0);
}

TEST_CASE("write back: what is not written is told with its reason") {
  const auto server = std::make_shared<SharedServer>();
  WritingMachine machine(server);
  WriteBack writes;
  HeldLeases leases;
  SharedCounters counters;
  WriteBack::Item damaged = machine.item("one", 50);
  damaged.entry[70] ^= std::byte{1};
  REQUIRE(writes.add(damaged));
  machine.serve(writes, leases, counters);
  const auto said = [&](const std::string& text, const std::string& why) {
    return machine.log.said("remote " + url + ": program " + key_for(text, machine.device).digest.hex() +
                            " is not written: " + why);
  };
  CHECK(said("one", "the checksum does not match the content") == 1);
  server->fails = true;
  for (const char* text : {"one", "two"}) REQUIRE(writes.add(machine.item(text, 50)));
  machine.serve(writes, leases, counters);
  CHECK(said("one", "the server fails") == 1);
  CHECK(said("two", "an earlier request to the server failed") == 1);
  CHECK(counters.counts().written == 0);
  CHECK(counters.counts().write_failed == 3);
  CHECK(server->puts == 1);
  CHECK(server->objects.empty());
}

TEST_CASE("write back: a stop, or a lost key, leaves what waits, and another task may serve it") {
  const auto server = std::make_shared<SharedServer>();
  WritingMachine machine(server);
  WriteBack writes;
  HeldLeases leases;
  SharedCounters counters;
  REQUIRE(writes.add(machine.item("one", 50)));
  REQUIRE(writes.begin());
  machine.serve(writes, leases, counters, true);
  REQUIRE(writes.begin());
  const auto away = machine.temporary.path() / "away";
  std::filesystem::rename(machine.config.key_file, away);
  machine.serve(writes, leases, counters);
  CHECK_FALSE(std::filesystem::exists(machine.config.key_file));
  CHECK(server->puts == 0);
  CHECK(counters.counts().write_failed == 0);
  std::filesystem::rename(away, machine.config.key_file);
  REQUIRE(writes.begin());
  machine.serve(writes, leases, counters);
  CHECK(counters.counts().written == 1);
}

// Leases that are counted, of a server where another machine may have taken them.
struct CountedLeases final : MemoryStore, RemoteLeases {
  struct Calls {
    std::mutex mutex;
    std::map<std::string, int> renewed, released;  // by name
    bool lost = false;
    std::function<void(const std::string& name)> on_call;  // of either
  };
  CountedLeases(std::shared_ptr<SharedServer> server, std::shared_ptr<Calls> counted)
      : MemoryStore(std::move(server)), calls(std::move(counted)) {}

  Result<bool> acquire(const std::string&, const std::string&, std::chrono::milliseconds,
                       const RemoteLimits&) noexcept override {
    return true;
  }
  Result<bool> renew(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                     const RemoteLimits&) noexcept override {
    if (calls->on_call) calls->on_call(name);
    const std::lock_guard lock(calls->mutex);
    if (token == "mine" && life == 9s) ++calls->renewed[name];
    return !calls->lost;
  }
  Status release(const std::string& name, const std::string& token, const RemoteLimits&) noexcept override {
    if (calls->on_call) calls->on_call(name);
    const std::lock_guard lock(calls->mutex);
    if (token == "mine") ++calls->released[name];
    return {};
  }

  const std::shared_ptr<Calls> calls;
};

struct Leasing : SharingMachine {
  const std::shared_ptr<CountedLeases::Calls> calls = std::make_shared<CountedLeases::Calls>();
  std::shared_ptr<RemoteEndpoint> endpoint;
  HeldLeases leases;
  const Clock::time_point now = Clock::now();

  Leasing() {
    stores["http"] = [server = std::make_shared<SharedServer>(),
                      counted = calls](const RemoteContext&) -> Result<std::unique_ptr<RemoteStore>> {
      return std::unique_ptr<RemoteStore>(std::make_unique<CountedLeases>(server, counted));
    };
    stores["none"] = [](const RemoteContext&) -> Result<std::unique_ptr<RemoteStore>> {
      return std::unique_ptr<RemoteStore>(std::make_unique<MemoryStore>(std::make_shared<SharedServer>()));
    };
    config.directory.clear();
    endpoint = endpoint_of(url);
  }
  std::shared_ptr<RemoteEndpoint> endpoint_of(const std::string& of) {
    return std::make_shared<RemoteEndpoint>(Log{}, RemoteConfig{of, false, {}, "", "", "plain", {}}, config,
                                            std::make_shared<CurrentKeys>(config.trust_folders), stores);
  }
  HeldLeases::Held held(const std::string& name, Clock::time_point renewed, Clock::time_point ends) const {
    return {endpoint, name, "mine", 9s, renewed, ends};
  }
  bool is_released(const std::string& name) const {
    const std::lock_guard lock(calls->mutex);
    return calls->released.contains(name);
  }
};

// In the order of the leases.
Digest numbered(std::uint8_t number) {
  Digest digest{};
  digest.bytes.front() = number;
  return digest;
}

TEST_CASE("held leases: they are renewed after a third of their life, and released at their end") {
  using Counts = std::map<std::string, int>;
  Leasing machine;
  HeldLeases& leases = machine.leases;
  const auto& calls = machine.calls;
  const auto now = machine.now;
  const auto held = [&](const std::string& name, Clock::time_point renewed, Clock::time_point ends) {
    return machine.held(name, renewed, ends);
  };
  const std::atomic<bool> stop{false}, stopped{true};
  CHECK(leases.add(sha256("over"), held("over", now, now - 1s)));
  CHECK_FALSE(leases.add(sha256("due"), held("due", now - 4s, now + 3600s)));
  CHECK_FALSE(leases.add(sha256("young"), held("young", now + 3600s, now + 7200s)));
  leases.keep(stopped);  // does nothing
  CHECK(calls->released.empty());
  std::thread keeper([&] { leases.keep(stop); });  // until none is held
  CHECK(becomes_true([&] {
    const std::lock_guard lock(calls->mutex);
    return calls->renewed.contains("due") && calls->released.contains("over");
  }));
  for (const char* name : {"due", "young"}) leases.end_at(sha256(name), now);
  keeper.join();
  CHECK(calls->released == Counts{{"over", 1}, {"due", 1}, {"young", 1}});
  CHECK(calls->renewed == Counts{{"due", 1}});
  CHECK(leases.take_all().empty());
  // One that another machine has by now is let go, and not released.
  calls->lost = true;
  calls->released.clear();
  CHECK(leases.add(sha256("lost"), held("lost", now - 4s, now + 3600s)));  // the renewal had ended
  leases.keep(stop);
  CHECK(calls->renewed == Counts{{"due", 1}, {"lost", 1}});
  CHECK(calls->released.empty());
  leases.add(sha256("one"), held("one", now, now + 3600s));
  leases.release(sha256("other"));
  CHECK(calls->released.empty());
  leases.release(sha256("one"));
  CHECK(calls->released == Counts{{"one", 1}});
}

TEST_CASE("held leases: one is renewed once in a third of its life, however often it is looked at") {
  Leasing machine;
  std::atomic<bool> stop{false};
  CHECK(machine.leases.add(numbered(1), machine.held("due", machine.now - 4s, machine.now + 3600s)));
  std::thread keeper([&] { machine.leases.keep(stop); });
  for (std::uint8_t round = 2; round < 5; ++round) {
    const std::string name = "over " + std::to_string(round);
    machine.leases.add(numbered(round), machine.held(name, machine.now, machine.now - 1s));
    CHECK(becomes_true([&] { return machine.is_released(name); }));
  }
  stop = true;
  keeper.join();
  CHECK(machine.calls->renewed == std::map<std::string, int>{{"due", 1}});
}

TEST_CASE("held leases: a round looks at each, also behind one that ended or was taken meanwhile") {
  Leasing machine;
  std::atomic<bool> stop{false};
  machine.calls->on_call = [&](const std::string& name) {
    stop = true;  // after this round
    if (name == "first") static_cast<void>(machine.leases.take(numbered(2)));
  };
  machine.leases.add(numbered(1), machine.held("over", machine.now, machine.now - 1s));
  machine.leases.add(numbered(2), machine.held("first", machine.now - 4s, machine.now + 3600s));
  machine.leases.add(numbered(3), machine.held("second", machine.now - 4s, machine.now + 3600s));
  machine.leases.keep(stop);
  CHECK(machine.calls->released == std::map<std::string, int>{{"over", 1}});
  CHECK(machine.calls->renewed == std::map<std::string, int>{{"first", 1}, {"second", 1}});
  const auto left = machine.leases.take_all();
  REQUIRE(left.size() == 1);
  CHECK(left.begin()->second.name == "second");
  CHECK(left.begin()->second.renewed >= machine.now);
}

TEST_CASE("held leases: where the remote has none, the lease is let go") {
  Leasing machine;
  machine.endpoint = machine.endpoint_of("none://cache.example");
  std::atomic<bool> stop{false};
  CHECK(machine.leases.add(numbered(1), machine.held("due", machine.now - 4s, machine.now + 3600s)));
  auto kept = std::async(std::launch::async, [&] { machine.leases.keep(stop); });
  const bool ended = kept.wait_for(20s) == std::future_status::ready;
  stop = true;
  CHECK(ended);
  CHECK(HeldLeases::release(machine.held("due", machine.now, machine.now)).ok());
}

}  // namespace
}  // namespace kiln::test
