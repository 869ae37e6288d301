// Ring: which job is whose turn: seats in flight, the lanes they go through, and who has to look again after a change.
//
// It waits for nothing and starts no thread: what calls it does, under one lock. So every order of events can be tried.
// Thread-safety: none. Ownership: borrows the seats, which outlive it.
#pragma once

#include "executor/ring/seat_queue.hpp"

#include <span>

namespace kiln::executor {

// Whose question would be answered otherwise now: a lane's claim() or a submitter's take_free().
struct Wake {
  std::array<bool, lane_count> lanes{};
  bool submitter = false;
  bool lane(Lane which) const noexcept { return lanes[index_of(which)]; }
};

// Seats that a lane works on: one, or several that share a submission. Empty: nothing to do.
struct Claim {
  Lane lane = Lane::upload;
  SeatQueue seats;
  explicit operator bool() const noexcept { return !seats.empty(); }
};

class Ring {
 public:
  // REQUIRES: 1 to most_in_flight seats.
  explicit Ring(std::span<Seat* const> seats);

  // How many seats may be taken at once: 1 to as many as there are. Those taken already stay taken.
  Wake set_depth(std::uint32_t depth) noexcept;
  std::uint32_t depth() const noexcept { return depth_; }
  std::uint32_t taken() const noexcept { return taken_; }

  // A free seat, or null where all are taken.
  Seat* take_free() noexcept;
  // The seat's job waits for its upload now. REQUIRES: the seat is from take_free().
  Wake enter(Seat& seat) noexcept;

  // What the lane has to do next; until pass_on() or put_back() it answers nothing more.
  Claim claim(Lane lane) noexcept;
  bool ready(Lane lane) const noexcept;
  // The first that claim() would answer; null: nothing.
  const Seat* next(Lane lane) const noexcept;
  // The lane has done its work on the claim. What needs no more of the ring comes out in `finished`, in the order in
  // which results shall appear; each of them is handed to release() by the caller.
  Wake pass_on(Claim& claim, SeatQueue& finished) noexcept;
  // The lane has done nothing: the claim stays the next.
  void put_back(Claim& claim) noexcept;
  // The seat is free again.
  Wake release(Seat& seat) noexcept;

  enum class Cancelled : std::uint8_t { invalid = 0, removed, marked, too_late, absent };
  // removed: the seat has left its lane, and is the caller's to finish. marked: its lane will let it go as cancelled.
  // too_late: it is with the device.
  Cancelled cancel(std::uint64_t value, Seat*& removed) noexcept;

 private:
  Wake wake() const noexcept;
  // Where the first that may overtake lies among those that wait for `retire`; as many as they are: none may.
  // Unordered, behind results that somebody takes already or that a thread apart is to take.
  std::size_t overtaking() const noexcept;

  SeatQueue free_;
  std::array<SeatQueue, lane_count> queues_;  // waiting for each lane; for `beside` nobody does
  std::array<SeatQueue, lane_count> held_;    // what each lane works on
  std::uint32_t taken_ = 0;
  std::uint32_t depth_;
};

}  // namespace kiln::executor
