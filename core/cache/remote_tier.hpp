// RemoteTier: the programs of other machines: signed layers on disk, then the configured remotes.
//
// A request waits for a remote only as long as its answers usually take, so that a remote never makes a start slower
// than a build. Errors of a remote are misses, counted by reason. Stores are opened, and threads
// started, when the first program is missing. Thread-safety: every method from any thread.
// Ownership: owns its threads and stores; devices are used in calls only.
#pragma once

#include "cache/background_work.hpp"
#include "cache/remote_endpoint.hpp"
#include "cache/single_flight.hpp"

#include <kiln/device.hpp>
#include <kiln/digest.hpp>
#include <kiln/program_cache.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// Before a lease is asked for again: 5 to 10 ms at first, 25 to 50 ms later. `random` is another one for each client.
std::chrono::microseconds lease_pause(unsigned round, std::uint8_t random) noexcept;
// How long the requests for so many programs together may take.
std::chrono::milliseconds batch_time(std::size_t programs) noexcept;

class RemoteTier {
 public:
  // nullptr: neither layers nor remotes are configured.
  static std::unique_ptr<RemoteTier> create(const CacheContext& context);
  explicit RemoteTier(const CacheContext& context);
  ~RemoteTier();
  // Waits up to 200 ms for programs that are being written, and drops the others. Later calls do nothing.
  void finish() noexcept;

  std::optional<SharedProgram> from_layers(const ProgramKey& key, const Device& device);
  // Waits for the answer a bounded time. nullopt: absent, late, not worth a request, or not usable.
  std::optional<SharedProgram> from_remotes(const ProgramKey& key, const Device& device);
  // Whether a layer, or a remote by its index, probably has the program. Sends no request.
  bool holds(const ProgramKey& key, const Device& device);
  // Requests the programs together; from_remotes() returns those that arrived, without a request.
  void prefetch(std::span<const ProgramKey* const> keys, const Device& device);

  // --- leases: one machine at a time builds a program

  enum class LeaseAnswer : std::uint8_t {
    build = 0,  // build it: this machine holds the lease, or there is none
    found,      // `program` is set: another machine built it meanwhile
    busy,       // another machine builds it, and the caller does not wait
  };
  struct LeaseResult {
    LeaseAnswer answer = LeaseAnswer::build;
    std::optional<SharedProgram> program;
  };
  // Call before a build, with the build lease of this host. Waits while another machine builds the program.
  LeaseResult acquire_lease(const ProgramKey& key, const Device& device, bool waits);
  // Call if the build failed.
  void build_failed(const ProgramKey& key);

  // --- write-back

  // Call when this process has built and stored the program.
  void built(const ProgramKey& key, std::uint64_t build_ns);
  // Call after the first successful dispatch: queues the program for the remotes that are written.
  void dispatched(const ProgramKey& key, const Device& device);

  void refused() {  // by the driver
    counters_->change([](SharedCounts& counts) { ++counts.refused; });
  }
  void hit(bool layer) {
    counters_->change([&](SharedCounts& counts) { ++(layer ? counts.layer_hits : counts.hits); });
  }
  SharedCounts counts() const { return counters_->counts(); }

 private:
  using Endpoints = std::vector<std::shared_ptr<RemoteEndpoint>>;
  struct Answer;   // of one request
  struct Arrived;  // programs that prefetch() requested

  // The remotes that may be asked now. Starts probes of those whose pause has ended.
  Endpoints askable();
  // Fetches the index in the background if it is old, or here if the cache has no threads.
  void refresh_index(const std::shared_ptr<RemoteEndpoint>& endpoint, const std::string& folder);
  static std::optional<SharedProgram> fetch_from(const Endpoints& endpoints, const AskedProgram& asked,
                                                 std::chrono::nanoseconds request, const std::atomic<bool>* stop,
                                                 SharedCounters& counters);
  std::optional<SharedProgram> wait_for(Endpoints chosen, AskedProgram asked, std::uint64_t expected_ns);
  RemoteLimits limits_for(std::chrono::nanoseconds time) const;
  // Whether a remote accepts the key now.
  bool is_accepted(const BundlePublicKey& signer) const;
  std::shared_ptr<RemoteEndpoint> lease_holder();  // nullptr: no lease is asked for
  std::uint64_t usual_build_ns();                  // the mean of what was built here; 0 before the first

  const Log log_;
  const CacheConfig config_;
  const bool own_threads_;
  const std::shared_ptr<SharedCounters> counters_;
  const std::shared_ptr<CurrentKeys> trusted_;
  Layers layers_;
  Endpoints endpoints_;
  const std::shared_ptr<Arrived> arrived_;
  const std::shared_ptr<HeldLeases> leases_;
  const std::shared_ptr<WriteBack> writes_;
  std::mutex mutex_;
  std::map<Digest, std::uint64_t> built_;            // built here and not dispatched yet: build time; guarded by mutex_
  std::uint64_t builds_ = 0, built_ns_ = 0;          // of all that were built here; guarded by mutex_
  std::vector<std::shared_ptr<Answer>> unanswered_;  // late answers; guarded by mutex_
  bool finished_ = false;                            // guarded by mutex_
  std::atomic<bool> asked_before_answer_{false};     // for a lease, while the first answer was late
  BackgroundWork work_;
};

}  // namespace kiln
