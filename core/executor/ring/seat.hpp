// Seat: what the ring knows of a job in flight. A slot is a seat with the job's memory.
//
// Thread-safety: none; under the lock of the ring's owner. Ownership: values.
#pragma once

#include <cstdint>

namespace kiln::executor {

inline constexpr std::uint32_t most_in_flight = 16;

struct Seat {
  std::uint64_t value = 0;  // the job's fence
  std::uint64_t batch = 0;  // seats that went to the device as one carry the same, the fence of the first
  bool over = false;        // it ends without the device: it failed on its way there, or was cancelled
  bool ordered = true;      // it finishes after those before it, also when it is over early
  bool cancelled = false;   // as over, once its lane lets go of it; and it does not wait for its turn
  bool small = false;       // goes through its lanes, and to the device, together with neighbours that are small too
  bool readback_apart = false;  // its results take long to come back: worth a thread of their own
};

// The lanes that a job goes through. Each has one job at a time, in the order of the fences. beside: takes from among
// those that wait for `retire` what may come back before longer results ahead of it.
enum class Lane : std::uint8_t { upload = 0, dispatch, retire, beside };
inline constexpr std::size_t lane_count = 4;

constexpr std::size_t index_of(Lane lane) noexcept { return static_cast<std::size_t>(lane); }

}  // namespace kiln::executor
