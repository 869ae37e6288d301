// ProbeVerdict: what became of a plugin in kiln-probe, and the one line in which the probe tells it.
//
// The line, on the probe's standard output: "kiln-probe 1 ok" or "kiln-probe 1 failed CODE MESSAGE", CODE being a
// StatusCode's name. A probe that crashes or hangs says nothing: the loader sees that by itself. Thread-safety: values.
#pragma once

#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

enum class VerdictKind : std::uint8_t { invalid = 0, ok, failed, crashed, hung };

std::string_view to_string(VerdictKind kind) noexcept;
std::optional<VerdictKind> verdict_kind_of(std::string_view name) noexcept;
std::optional<StatusCode> status_code_of(std::string_view name) noexcept;

struct ProbeVerdict {
  VerdictKind kind = VerdictKind::invalid;
  Status status;  // ok where kind is ok
  // Of `hung`: how often in a row it was not done in time, and when it is tried again, in seconds since 1970.
  std::uint32_t attempts = 0;
  std::int64_t again_at_s = 0;

  // Whether it stays true while the file stays the same. A failure that the world around the file may cure (a library
  // that is missing, a machine that is busy) does not.
  bool lasting() const noexcept;
};

// How long a plugin that was not done in time `attempts` times in a row is left alone: a machine that was frozen or
// loaded looks like a plugin that hangs. At first it is tried again at the next start.
std::chrono::seconds pause_after(std::uint32_t attempts) noexcept;
// How much longer than at first the attempt after so many may take.
std::uint32_t patience_after(std::uint32_t attempts) noexcept;

std::string to_line(const Status& outcome);
std::optional<ProbeVerdict> verdict_of_line(std::string_view line);

}  // namespace kiln
