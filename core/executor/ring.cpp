#include "executor/ring.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::executor {
namespace {

constexpr double alpha = 0.1;
constexpr std::uint32_t settled = 4;  // jobs before the first decision

// Additional slots per unit of relative deviation of the job time; determined on the simulated device.
constexpr double margin = 14.0;

}  // namespace

std::uint32_t DepthController::add(const std::array<double, 3>& stages_ns) noexcept {
  ++jobs_;
  const double weight = std::max(alpha, 1.0 / jobs_);
  for (std::size_t i = 0; i < stages_ns.size(); ++i) {
    const double apart = stages_ns[i] - mean_[i];
    mean_[i] += weight * apart;
    variance_[i] = (1 - weight) * (variance_[i] + weight * apart * apart);
  }
  if (jobs_ < settled) return depth_ = std::min(depth_, most_);
  const double sum = mean_[0] + mean_[1] + mean_[2];
  const double slowest = *std::max_element(mean_.begin(), mean_.end());
  if (slowest <= 0) return depth_;
  const double deviation = std::sqrt(variance_[0] + variance_[1] + variance_[2]);
  const double wanted = std::ceil(sum / slowest - 0.02) + std::ceil(margin * deviation / slowest - 0.1);
  depth_ = std::clamp(static_cast<std::uint32_t>(std::clamp(wanted, 1.0, 64.0)), 1u, most_);
  return depth_;
}

Ring::Ring(std::span<Seat* const> seats) : depth_(static_cast<std::uint32_t>(seats.size())) {
  for (Seat* const seat : seats) free_.push_back(seat);
}

Wake Ring::wake() const noexcept {
  Wake wake;
  for (std::size_t lane = 0; lane < lane_count; ++lane) wake.lanes[lane] = ready(static_cast<Lane>(lane));
  wake.submitter = taken_ < depth_;
  return wake;
}

Wake Ring::set_depth(std::uint32_t depth) noexcept {
  depth_ = depth;
  return wake();
}

Seat* Ring::take_free() noexcept {
  if (taken_ >= depth_ || free_.empty()) return nullptr;
  ++taken_;
  return free_.pop_front();
}

Wake Ring::enter(Seat& seat) noexcept {
  queues_[index_of(Lane::upload)].push_back(&seat);
  return wake();
}

std::size_t Ring::overtaking() const noexcept {
  const SeatQueue& waiting = queues_[index_of(Lane::retire)];
  bool is_behind = !held_[index_of(Lane::retire)].empty();
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (is_behind && !waiting[i]->ordered) return i;
    is_behind = is_behind || waiting[i]->readback_apart;
  }
  return waiting.size();
}

bool Ring::ready(Lane lane) const noexcept {
  if (!held_[index_of(lane)].empty()) return false;
  if (lane == Lane::beside) return overtaking() < queues_[index_of(Lane::retire)].size();
  const SeatQueue& queue = queues_[index_of(lane)];
  if (queue.empty()) return false;
  // An ordered job finishes after an earlier one that has left the queue to overtake others.
  const SeatQueue& overtakes = held_[index_of(Lane::beside)];
  return lane != Lane::retire || overtakes.empty() || !queue.front()->ordered ||
         overtakes.front()->value > queue.front()->value;
}

const Seat* Ring::next(Lane lane) const noexcept {
  if (!ready(lane)) return nullptr;
  return lane == Lane::beside ? queues_[index_of(Lane::retire)][overtaking()] : queues_[index_of(lane)].front();
}

Claim Ring::claim(Lane lane) noexcept {
  Claim claim{lane, {}};
  if (!ready(lane)) return claim;
  const bool comes_back = lane == Lane::retire || lane == Lane::beside;
  SeatQueue& queue = queues_[index_of(comes_back ? Lane::retire : lane)];
  const std::size_t at = lane == Lane::beside ? overtaking() : 0;
  const auto take = [&] {
    Seat* const seat = queue[at];
    queue.remove(at);
    claim.seats.push_back(seat);
    return seat;
  };
  const Seat* const first = take();
  const auto goes_along = [&](const Seat& next) {
    if (comes_back) return first->batch != 0 && next.batch == first->batch;
    return first->small && !first->over && next.small && !next.over && first->ordered == next.ordered;
  };
  while (at < queue.size() && goes_along(*queue[at])) take();
  held_[index_of(lane)] = claim.seats;
  return claim;
}

Wake Ring::pass_on(Claim& claim, SeatQueue& finished) noexcept {
  held_[index_of(claim.lane)] = {};
  while (!claim.seats.empty()) {
    Seat* const seat = claim.seats.pop_front();
    if (seat->cancelled) seat->over = true;
    const bool comes_back = claim.lane == Lane::retire || claim.lane == Lane::beside;
    const bool leaves = comes_back || (seat->over && (seat->cancelled || !seat->ordered));
    if (leaves) {
      finished.push_back(seat);
    } else {
      queues_[index_of(claim.lane) + 1].push_back(seat);
    }
  }
  return wake();
}

void Ring::put_back(Claim& claim) noexcept {
  SeatQueue& queue = queues_[index_of(claim.lane == Lane::beside ? Lane::retire : claim.lane)];
  held_[index_of(claim.lane)] = {};
  for (std::size_t i = claim.seats.size(); i > 0; --i) queue.insert(claim.seats[i - 1]);
  claim.seats = {};
}

Wake Ring::release(Seat& seat) noexcept {
  seat = Seat{};
  free_.push_front(&seat);  // the next job reuses its buffers, and slots beyond the depth never allocate any
  --taken_;
  return wake();
}

Ring::Cancelled Ring::cancel(std::uint64_t value, Seat*& removed) noexcept {
  for (const Lane lane : {Lane::upload, Lane::dispatch}) {
    SeatQueue& queue = queues_[index_of(lane)];
    for (std::size_t i = 0; i < queue.size(); ++i) {
      if (queue[i]->value != value) continue;
      removed = queue[i];
      removed->over = removed->cancelled = true;
      queue.remove(i);
      return Cancelled::removed;
    }
  }
  const SeatQueue& uploading = held_[index_of(Lane::upload)];
  for (std::size_t i = 0; i < uploading.size(); ++i) {
    if (uploading[i]->value != value) continue;
    uploading[i]->cancelled = true;
    return Cancelled::marked;
  }
  const SeatQueue* const beyond[] = {&held_[index_of(Lane::dispatch)], &queues_[index_of(Lane::retire)],
                                     &held_[index_of(Lane::retire)], &held_[index_of(Lane::beside)]};
  for (const SeatQueue* queue : beyond) {
    for (std::size_t i = 0; i < queue->size(); ++i) {
      if ((*queue)[i]->value == value) return Cancelled::too_late;
    }
  }
  return Cancelled::absent;
}

}  // namespace kiln::executor
