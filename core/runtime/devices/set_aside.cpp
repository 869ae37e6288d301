#include "runtime/devices/set_aside.hpp"

#include <algorithm>
#include <cstdio>

namespace kiln {

std::string pause_text(std::chrono::nanoseconds pause) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(pause).count());
  return text;
}

std::chrono::nanoseconds SetAside::put(std::string_view id, std::string why, Clock::time_point now) {
  Entry& entry = entries_[std::string(id)];
  if (now < entry.until) return entry.until - now;  // told twice of one loss
  entry.pause = entry.pause.count() == 0 ? std::chrono::nanoseconds(first_pause)
                                         : std::min<std::chrono::nanoseconds>(2 * entry.pause, longest_pause);
  entry.until = now + entry.pause;
  entry.why = std::move(why);
  entry.failures = 0;
  return entry.pause;
}

std::optional<std::string> SetAside::why_not(std::string_view id, Clock::time_point now) const {
  const auto at = entries_.find(id);
  if (at == entries_.end() || now >= at->second.until) return std::nullopt;
  return "set aside for another " + pause_text(at->second.until - now) + ": " + at->second.why;
}

void SetAside::try_again(std::string_view id, Clock::time_point now) {
  const auto at = entries_.find(id);
  if (at != entries_.end()) at->second.until = std::min(at->second.until, now);
}

bool SetAside::failed(std::string_view id) { return ++entries_[std::string(id)].failures >= most_failures; }

void SetAside::served(std::string_view id, Clock::time_point now) {
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  at->second.failures = 0;
  if (now > at->second.until + at->second.pause) at->second.pause = std::chrono::nanoseconds(0);
}

}  // namespace kiln
