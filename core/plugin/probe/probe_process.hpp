// Tries a plugin in kiln-probe, a process of its own, so that a plugin that crashes or hangs takes nothing with it.
//
// Thread-safety: any thread, and the calling process may have threads: posix_spawn, never fork without exec. Ownership:
// the child and whatever it started in its process group are gone when this returns. The child dies with its parent.
#pragma once

#include <kiln/status.hpp>

#include "plugin/probe/probe_verdict.hpp"

#include <chrono>
#include <filesystem>

namespace kiln {

// Exit statuses of kiln-probe beside 0. The line decides; these speak where there is none.
inline constexpr int probe_exit_usage = 2;
inline constexpr int probe_exit_failed = 3;
inline constexpr int probe_exit_channel_lost = 4;  // the plugin closed descriptors that are not its own

// unavailable: the probe itself could not be started or watched, so nothing is known of the plugin.
Result<ProbeVerdict> probe_plugin(const std::filesystem::path& probe, const std::filesystem::path& plugin,
                                  std::chrono::nanoseconds timeout);

}  // namespace kiln
