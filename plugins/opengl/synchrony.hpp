// Synchrony: finds out whether a driver has done a dispatch's work when its call returns, as software rasterizers do.
//
// Where it has, the host's clock around the call tells the device's time, and the two timestamp queries, which cost
// such a driver more than a small kernel, are left out but for now and then one. Found by comparing both times, not by
// the driver's name: on a device that runs beside the host the call returns long before the end. Thread-safety: on a
// context's thread.
#pragma once

#include <cstdint>

namespace kiln::opengl {

class Synchrony {
 public:
  // Whether the next dispatch is to be stamped by the device too.
  bool wants_stamps() noexcept { return agreed_ < enough || ++since_compared_ >= between_comparisons; }

  // Of one dispatch: by the device's stamps, and by the host's clock around the call.
  void compare(std::uint64_t device_ns, std::uint64_t host_ns) noexcept {
    since_compared_ = 0;
    const std::uint64_t apart = device_ns > host_ns ? device_ns - host_ns : host_ns - device_ns;
    const bool agree = device_ns != 0 && apart <= slack_ns + device_ns / 8;
    // A kernel as short as the slack proves nothing, but what disagrees once has to begin anew.
    if (!agree) {
      agreed_ = 0;
    } else if (device_ns > 2 * slack_ns && agreed_ < enough) {
      ++agreed_;
    }
  }

 private:
  static constexpr std::uint32_t enough = 4;
  static constexpr std::uint32_t between_comparisons = 64;
  static constexpr std::uint64_t slack_ns = 100'000;  // of the calls around the work
  std::uint32_t agreed_ = 0;
  std::uint32_t since_compared_ = 0;
};

}  // namespace kiln::opengl
