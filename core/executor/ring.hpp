// DepthController: the number of slots that keeps the slowest stage busy, from the stage times of recent jobs.
//
// A ring of N slots finishes a job every max(slowest stage, sum of stages ÷ N), so N = sum ÷ slowest is enough for
// constant times. If times vary, other slots must do the work of one that waits behind a long job: the margin grows
// with the variation of the total time. Thread-safety: none. Ownership: a value.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace kiln::executor {

class DepthController {
 public:
  explicit DepthController(std::uint32_t most) noexcept : most_(most) {}

  // Adds the times of one job: upload, device, readback. Returns the depth for later jobs.
  std::uint32_t add(const std::array<double, 3>& stages_ns) noexcept;
  std::uint32_t depth() const noexcept { return depth_; }

 private:
  const std::uint32_t most_;
  std::uint32_t depth_ = 3;
  std::uint32_t jobs_ = 0;
  std::array<double, 3> mean_{};
  std::array<double, 3> variance_{};
};

// RunAverage: the average time per job of one queue.
//
// Jobs overlap, so the time of a job starts at the end of the previous job, or at its own start if the queue was idle.
// Thread-safety: add() from one thread at a time; ns() from any.
class RunAverage {
 public:
  enum class Outcome : std::uint8_t { invalid = 0, finished, failed };

  // A failed job does not change the average, but the time of the next job starts at its end.
  void add(std::uint64_t started_ns, std::uint64_t ended_ns, Outcome outcome) noexcept {
    const double run = static_cast<double>(ended_ns - std::min(ended_ns, std::max(started_ns, last_end_ns_)));
    last_end_ns_ = std::max(last_end_ns_, ended_ns);
    if (outcome != Outcome::finished) return;
    const double old = static_cast<double>(ns_.load(std::memory_order_relaxed));
    ns_.store(static_cast<std::uint64_t>(old == 0 ? run : old + alpha * (run - old)), std::memory_order_relaxed);
  }
  std::uint64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }

 private:
  static constexpr double alpha = 0.2;

  std::uint64_t last_end_ns_ = 0;
  std::atomic<std::uint64_t> ns_{0};
};

// UsualCopy: the expected time of a copy, in proportion to the mean size and time of recent copies.
//
// Thread-safety: every method from any thread; of two simultaneous learn() calls one may be lost. Ownership: values.
class UsualCopy {
 public:
  // Assumes 4 GB/s until a copy was measured.
  std::uint64_t ns(std::uint64_t bytes) const noexcept {
    const double usual = bytes_.load(std::memory_order_relaxed);
    const double count = static_cast<double>(bytes);
    return static_cast<std::uint64_t>(usual == 0 ? count / 4 : ns_.load(std::memory_order_relaxed) * (count / usual));
  }
  // REQUIRES: bytes is not 0.
  void learn(std::uint64_t bytes, std::uint64_t ns) noexcept {
    const bool first = bytes_.load(std::memory_order_relaxed) == 0;
    follow(ns_, static_cast<double>(ns), first);
    follow(bytes_, static_cast<double>(bytes), first);
  }

 private:
  static void follow(std::atomic<double>& mean, double value, bool first) noexcept {
    const double old = first ? value : mean.load(std::memory_order_relaxed);
    mean.store(old + 0.2 * (value - old), std::memory_order_relaxed);
  }

  std::atomic<double> ns_{0};
  std::atomic<double> bytes_{0};
};

// Ring: the order of jobs: seats in flight, the lanes that they pass through, and which lanes to wake after a change.
//
// It does not wait and starts no thread; its caller does both, under one lock, so tests can try every order of events.
// Thread-safety: none. Ownership: borrows the seats, which outlive it.

// Seat: the state of a job in flight for the ring. A Slot is a seat with the memory of the job.
//
// Thread-safety: none; used under the lock of the ring's owner. Ownership: values.
inline constexpr std::uint32_t most_in_flight = 16;

struct Seat {
  std::uint64_t value = 0;      // the job's fence
  std::uint64_t batch = 0;      // fence of the first seat in the same submission to the device
  bool over = false;            // ends without the device: failed before, or cancelled
  bool ordered = true;          // finishes after earlier jobs, also if it is over early
  bool cancelled = false;       // over as soon as its lane releases it; does not wait for its turn
  bool small = false;           // may share lanes and a submission with small neighbours
  bool readback_apart = false;  // its readback is long enough for a separate thread
};

// The lanes that a job passes through. Each works on one job at a time, in fence order. beside: takes jobs that wait
// for `retire` and may finish before longer readbacks ahead of them.
enum class Lane : std::uint8_t { upload = 0, dispatch, retire, beside };
inline constexpr std::size_t lane_count = 4;

constexpr std::size_t index_of(Lane lane) noexcept { return static_cast<std::size_t>(lane); }

// SeatQueue: a FIFO of at most most_in_flight seats; does not allocate.
//
// Thread-safety: none. Ownership: borrows the seats.
class SeatQueue {
 public:
  bool empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return count_; }
  Seat* operator[](std::size_t i) const noexcept { return seats_[(head_ + i) % most_in_flight]; }
  Seat* front() const noexcept { return seats_[head_]; }

  // REQUIRES: size() < most_in_flight.
  void push_back(Seat* seat) noexcept { seats_[(head_ + count_++) % most_in_flight] = seat; }
  void push_front(Seat* seat) noexcept {
    head_ = (head_ + most_in_flight - 1) % most_in_flight;
    seats_[head_] = seat;
    ++count_;
  }
  // REQUIRES: not empty.
  Seat* pop_front() noexcept {
    Seat* const seat = seats_[head_];
    head_ = (head_ + 1) % most_in_flight;
    --count_;
    return seat;
  }
  // Inserts in fence order. REQUIRES: size() < most_in_flight, and the queue is in fence order.
  void insert(Seat* seat) noexcept {
    push_back(seat);
    for (std::size_t i = count_ - 1; i > 0 && (*this)[i - 1]->value > seat->value; --i) {
      std::swap(seats_[(head_ + i - 1) % most_in_flight], seats_[(head_ + i) % most_in_flight]);
    }
  }
  // REQUIRES: i < size().
  void remove(std::size_t i) noexcept {
    for (; i + 1 < count_; ++i) seats_[(head_ + i) % most_in_flight] = seats_[(head_ + i + 1) % most_in_flight];
    --count_;
  }

 private:
  std::array<Seat*, most_in_flight> seats_{};
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

// The callers whose claim() or take_free() may now return another result.
struct Wake {
  std::array<bool, lane_count> lanes{};
  bool submitter = false;
  bool lane(Lane which) const noexcept { return lanes[index_of(which)]; }
};

// The seats that a lane works on: one, or several that share a submission. Empty: no work.
struct Claim {
  Lane lane = Lane::upload;
  SeatQueue seats;
  explicit operator bool() const noexcept { return !seats.empty(); }
};

class Ring {
 public:
  // REQUIRES: 1 to most_in_flight seats.
  explicit Ring(std::span<Seat* const> seats);

  // Sets how many seats may be in use: 1 to the number of seats. Seats in use remain in use.
  Wake set_depth(std::uint32_t depth) noexcept;
  std::uint32_t depth() const noexcept { return depth_; }
  std::uint32_t taken() const noexcept { return taken_; }

  // Returns a free seat; null: all are in use.
  Seat* take_free() noexcept;
  // Queues the seat's job for upload. REQUIRES: the seat is from take_free().
  Wake enter(Seat& seat) noexcept;

  // Returns the lane's next work. Until pass_on() or put_back() it returns no more.
  Claim claim(Lane lane) noexcept;
  bool ready(Lane lane) const noexcept;
  // Returns the first seat that claim() would return; null: none.
  const Seat* next(Lane lane) const noexcept;
  // Ends the lane's work on the claim. Finished seats are appended to `finished`, in the order in which their results
  // must appear; the caller passes each to release().
  Wake pass_on(Claim& claim, SeatQueue& finished) noexcept;
  // Returns the claim undone: it remains the lane's next work.
  void put_back(Claim& claim) noexcept;
  // Makes the seat free.
  Wake release(Seat& seat) noexcept;

  enum class Cancelled : std::uint8_t { invalid = 0, removed, marked, too_late, absent };
  // removed: the seat has left its lane; the caller finishes it. marked: its lane will release it as cancelled.
  // too_late: the device works on it.
  Cancelled cancel(std::uint64_t value, Seat*& removed) noexcept;

 private:
  Wake wake() const noexcept;
  // Returns the index of the first seat waiting for `retire` that may overtake; the number of seats: none.
  // It must be unordered, behind results that a thread reads already or that a separate thread will read.
  std::size_t overtaking() const noexcept;

  SeatQueue free_;
  std::array<SeatQueue, lane_count> queues_;  // waiting for each lane; unused for `beside`
  std::array<SeatQueue, lane_count> held_;    // seats that each lane works on
  std::uint32_t taken_ = 0;
  std::uint32_t depth_;
};

}  // namespace kiln::executor
