// SetAside: devices that are left alone for a while because they were lost or keep failing: back-off by doubling.
//
// Thread-safety: none; the device table locks. Ownership: values.
#pragma once

#include <kiln/clock.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

class SetAside {
 public:
  static constexpr std::chrono::seconds first_pause{1};
  static constexpr std::chrono::minutes longest_pause{5};
  static constexpr std::uint32_t most_failures = 3;  // in a row

  // For how long.
  std::chrono::nanoseconds put(std::string_view id, std::string why, Clock::time_point now);
  // Why, with the time that is left; nullopt: it may serve.
  std::optional<std::string> why_not(std::string_view id, Clock::time_point now) const;
  // Ends the pause early, where there is nothing else to choose; the next pause is longer all the same.
  void try_again(std::string_view id, Clock::time_point now);
  // Whether so many jobs failed in a row that it should be put aside.
  bool failed(std::string_view id);
  // A device that serves for longer than it was last set aside starts again from the first pause.
  void served(std::string_view id, Clock::time_point now);

 private:
  struct Entry {
    std::uint32_t failures = 0;  // in a row
    std::chrono::nanoseconds pause{0};
    Clock::time_point until{};
    std::string why;
  };

  std::map<std::string, Entry, std::less<>> entries_;
};

std::string pause_text(std::chrono::nanoseconds pause);  // "1.0 s"

}  // namespace kiln
