// Rejection: why a stored entry was not handed over. One word for each figure of RejectedCounts.
//
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kiln {

enum class Rejection : std::uint8_t {
  none = 0,
  corrupt,         // checksum or length
  tampered,        // checksum right, authentication wrong; or not where or what Kiln writes
  foreign,         // another key, or another owner
  driver_changed,  // held for this device under another driver identity
  refused,         // by the driver
  quarantined,
};

inline constexpr std::size_t rejection_kinds = 7;

constexpr std::string_view to_string(Rejection rejection) noexcept {
  switch (rejection) {
    case Rejection::none:
      return "none";
    case Rejection::corrupt:
      return "corrupt";
    case Rejection::tampered:
      return "tampered";
    case Rejection::foreign:
      return "foreign";
    case Rejection::driver_changed:
      return "driver_changed";
    case Rejection::refused:
      return "refused";
    case Rejection::quarantined:
      return "quarantined";
  }
  return "invalid";
}

}  // namespace kiln
