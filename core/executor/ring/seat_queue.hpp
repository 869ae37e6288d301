// SeatQueue: as many seats as a ring has at most, first in, first out, without allocating.
//
// Thread-safety: none. Ownership: borrows the seats.
#pragma once

#include "executor/ring/seat.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace kiln::executor {

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
  // Among seats that lie in the order of their fences. REQUIRES: size() < most_in_flight.
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

}  // namespace kiln::executor
