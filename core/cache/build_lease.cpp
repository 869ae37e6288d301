#include "cache/build_lease.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

namespace kiln {
namespace {

// The kernel has no lock wait with a timeout that leaves other threads alone. A try costs a microsecond.
constexpr std::chrono::microseconds first_pause{50};
constexpr std::chrono::microseconds longest_pause{2000};

// The lease, or nothing where patience ended before somebody else's did.
std::optional<Lease> wait_for(ProcessTable& table, const LeaseRequest& request) {
  const Deadline deadline = Deadline::after(request.patience);
  for (std::chrono::nanoseconds pause = first_pause; !deadline.passed();) {
    std::this_thread::sleep_for(std::min(pause, deadline.left()));
    if (Lease lease = table.try_lease(request.digest); lease.state() != Lease::State::busy) return lease;
    pause = std::min<std::chrono::nanoseconds>(pause * 2, longest_pause);
  }
  return std::nullopt;
}

}  // namespace

BuildLease acquire_lease(ProcessTable& table, const LeaseRequest& request, CacheCounters& counters) {
  Lease lease = table.try_lease(request.digest);
  if (lease.state() == Lease::State::none) return {};
  if (lease.state() == Lease::State::held) {
    if (request.published()) return {LeaseState::published};  // since it was looked for
    return {LeaseState::ours, std::move(lease)};
  }
  if (request.if_busy == IfBusy::leave) return {LeaseState::busy};
  counters.lease_waits.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t start = now_ns();
  std::optional<Lease> waited_for = wait_for(table, request);
  counters.lease_wait_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
  if (!waited_for) {
    counters.lease_timeouts.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  if (request.published()) return {LeaseState::published};
  // Its holder died, or could not build or store it.
  counters.lease_takeovers.fetch_add(1, std::memory_order_relaxed);
  return {LeaseState::ours, std::move(*waited_for)};
}

}  // namespace kiln
