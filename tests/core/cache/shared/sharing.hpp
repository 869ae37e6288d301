// Machines that share programs: each with a cache folder, a key file and trusted keys of its own; and a store in memory
// that is slow, fails or lies as told.
//
// Thread-safety: as RemoteStore; a test may change a MemoryStore's settings at any time. Ownership: a test's.
#pragma once

#include "cache/remote_state.hpp"
#include "core/cache/workplace.hpp"

#include <kiln/cache_sharing.hpp>
#include <kiln/clock.hpp>
#include <kiln/remote_store.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace kiln::test {

// What a server holds; stores of several machines share it.
struct SharedServer {
  std::mutex mutex;
  std::map<std::string, std::vector<std::byte>> objects;
  std::map<std::string, std::pair<std::string, Clock::time_point>> leases;  // token and end
  std::atomic<int> gets{0}, puts{0}, batches{0}, indexes{0}, leases_asked{0}, leases_taken{0};
  std::atomic<int> delay_ms{0};
  std::atomic<bool> leases_at_once{false};  // requests for leases are answered without delay
  std::atomic<bool> fails{false}, hangs{false}, refuses_writes{false};
  std::atomic<std::uint64_t> most_bytes_asked{0};
  std::atomic<std::size_t> most_bytes_taken{~std::size_t{0}};  // of one object
};

class MemoryStore : public RemoteStore {
 public:
  explicit MemoryStore(std::shared_ptr<SharedServer> server) : server_(std::move(server)) {}

  Result<std::optional<std::vector<std::byte>>> get(const std::string& name,
                                                    const RemoteLimits& limits) noexcept override {
    ++server_->gets;
    server_->most_bytes_asked = limits.most_bytes;
    if (Status status = answer(limits); !status.ok()) return status;
    return found(name);
  }
  Status get_many(std::span<const std::string> names, const RemoteLimits& limits,
                  const OnObject& on_object) noexcept override {
    ++server_->batches;
    if (Status status = answer(limits); !status.ok()) return status;
    for (std::size_t place = 0; place < names.size(); ++place) {
      if (auto object = found(names[place])) on_object(place, std::move(*object));
    }
    return {};
  }
  Status put(const std::string& name, std::span<const std::byte> bytes, const RemoteLimits& limits) noexcept override {
    ++server_->puts;
    if (server_->refuses_writes) return unsupported("the server takes no writes");
    if (bytes.size() > server_->most_bytes_taken) return invalid_argument("the object is too large for the server");
    if (Status status = answer(limits); !status.ok()) return status;
    const std::lock_guard lock(server_->mutex);
    server_->objects[name] = {bytes.begin(), bytes.end()};
    return {};
  }
  Result<std::optional<RemoteIndex>> index(const std::string& folder, const RemoteLimits& limits) noexcept override {
    ++server_->indexes;
    return RemoteStore::index(folder, limits);
  }

 protected:
  Status answer(const RemoteLimits& limits) const {
    const Deadline answered = Deadline::after(std::chrono::milliseconds(server_->delay_ms.load()));
    while (server_->hangs || !answered.passed()) {
      if (limits.stop != nullptr && *limits.stop) return cancelled("stopped");
      if (limits.deadline.passed()) return timed_out("the server did not answer");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return server_->fails ? unavailable("the server fails") : ok_status();
  }
  std::optional<std::vector<std::byte>> found(const std::string& name) const {
    const std::lock_guard lock(server_->mutex);
    const auto at = server_->objects.find(name);
    return at == server_->objects.end() ? std::nullopt : std::optional(at->second);
  }

  const std::shared_ptr<SharedServer> server_;
};

class LeasingStore final : public MemoryStore, public RemoteLeases {
 public:
  using MemoryStore::MemoryStore;

  Result<bool> acquire(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                       const RemoteLimits& limits) noexcept override {
    ++server_->leases_asked;
    if (!server_->leases_at_once) {
      if (Status status = answer(limits); !status.ok()) return status;
    }
    const std::lock_guard lock(server_->mutex);
    auto& [holder, end] = server_->leases[name];
    if (!holder.empty() && Clock::now() < end) return false;
    holder = token, end = Clock::now() + life;
    ++server_->leases_taken;
    return true;
  }
  Result<bool> renew(const std::string& name, const std::string& token, std::chrono::milliseconds life,
                     const RemoteLimits&) noexcept override {
    const std::lock_guard lock(server_->mutex);
    auto& [holder, end] = server_->leases[name];
    if (holder != token) return false;
    end = Clock::now() + life;
    return true;
  }
  Status release(const std::string& name, const std::string& token, const RemoteLimits&) noexcept override {
    const std::lock_guard lock(server_->mutex);
    const auto at = server_->leases.find(name);
    if (at != server_->leases.end() && at->second.first == token) server_->leases.erase(at);
    return {};
  }
};

struct SharingMachine : Workplace {
  SyntheticDevice device;
  RemoteStores stores;

  SharingMachine() { config.trust_folders = {temporary.path() / "etc", temporary.path() / "config"}; }
  explicit SharingMachine(const std::shared_ptr<SharedServer>& server, bool leases = false) : SharingMachine() {
    stores["http"] = [server, leases](const RemoteContext&) -> Result<std::unique_ptr<RemoteStore>> {
      if (leases) return std::unique_ptr<RemoteStore>(std::make_unique<LeasingStore>(server));
      return std::unique_ptr<RemoteStore>(std::make_unique<MemoryStore>(server));
    };
  }

  // Creates the key "ci" and writes with it. Its builds take so long that readers ask for its programs and wait for the
  // answers, also on a busy machine.
  void write_to(const std::string& url) {
    if (!device.on_build) {
      device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
    }
    if (sharing_keys(config).keys.empty()) must(create_sharing_key(config, "ci", "", KeyFolder::user));
    config.remotes = {{url, true, {"ci"}, "ci", "", "plain", {}}};
  }
  // Trusts the writer's key as "ci" and reads with it.
  void read_from(const std::string& url, const SharingMachine& writer, const std::string& until = "") {
    must(trust_sharing_key(config, "ci", writer.key(), until, KeyFolder::user));
    config.remotes = {{url, false, {"ci"}, "", "", "plain", {}}};
  }
  // As if the server had once answered slowly: a busy machine may take 100 ms instead of 20 to run the answering
  // thread.
  void expect_slow_answers(const std::string& url) {
    std::filesystem::create_directories(config.directory);
    std::filesystem::permissions(config.directory, std::filesystem::perms::owner_all);
    RemoteBreaker(config.directory, true, url).measured(0, 250'000);
  }
  std::string key() const { return sharing_keys(config).keys.at(0).public_key; }

  std::unique_ptr<TieredCache> open(ProcessSharing sharing = {}, OwnThreads threads = OwnThreads::yes) {
    const std::filesystem::path none = temporary.path() / "none";
    CacheContext context{{&log, LogLevel::info}, config, threads, nullptr, trial};
    context.remote_stores = stores;
    auto cache = TieredCache::create(context, std::move(sharing), {none, none, none});
    if (!cache) throw std::runtime_error(cache.error().text());
    return std::move(cache).value();
  }
  void build(const std::vector<std::string>& texts) {
    const auto cache = open();
    for (const std::string& text : texts) must(acquire(*cache, text, device));
  }
  // Builds and runs each program once, and waits until it is written.
  void build_and_run(TieredCache& cache, const std::string& text) {
    must(acquire(cache, text, device));
    Measurement ran;
    ran.first_run = true;
    cache.record(key_for(text, device), device, ran, 0);
  }
  PushOutcome push() {
    auto outcomes = push_cache(config, stores, {});
    must(outcomes);
    return outcomes->at(0);
  }
  PullOutcome pull() {
    const DeviceInfo info = device.info();
    auto outcomes = pull_cache(config, stores, std::span(&info, 1));
    must(outcomes);
    return outcomes->at(0);
  }

  template <class T>
  static void must(const Result<T>& result) {
    if (!result) throw std::runtime_error(result.error().text());
  }
};

// Waits for something that a thread of the cache does.
template <class Condition>
bool becomes_true(const Condition& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

inline const std::string mesa_name = "ab/0123456789abcdef0123456789abcdef012345";

inline const std::string url = "http://cache.example/kiln";

inline std::vector<std::byte>& only_program(SharedServer& server) {
  for (auto& [name, object] : server.objects) {
    if (!name.ends_with("/index")) return object;
  }
  throw std::runtime_error("no program was written");
}

}  // namespace kiln::test
