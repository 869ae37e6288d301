// Trying a plugin in a process of its own, and the verdicts that are kept.
//
// probe_plugin: tests a plugin in a kiln-probe process, so that a crash or hang does not affect this process.
//
// Thread-safety: any thread, also in processes with threads (posix_spawn). Ownership: the child and its process group
// have ended when this returns. The child ends with its parent.
#pragma once

#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/plugin_file.hpp"

namespace kiln {

// ProbeVerdict: the result of a test in kiln-probe, and the line in which the probe reports it.
//
// The line on the probe's standard output is "kiln-probe 1 ok" or "kiln-probe 1 failed CODE MESSAGE"; CODE is the name
// of a StatusCode. Without a line the loader reports a crash or a hang. Thread-safety: values.
enum class VerdictKind : std::uint8_t { invalid = 0, ok, failed, crashed, hung };

std::string_view to_string(VerdictKind kind) noexcept;
std::optional<VerdictKind> verdict_kind_of(std::string_view name) noexcept;
std::optional<StatusCode> status_code_of(std::string_view name) noexcept;

struct ProbeVerdict {
  VerdictKind kind = VerdictKind::invalid;
  Status status;  // ok if kind is ok
  // If hung: consecutive timeouts, and the time of the next attempt in seconds since 1970.
  std::uint32_t attempts = 0;
  std::int64_t again_at_s = 0;

  // Whether it remains valid while the file is unchanged. Failures with causes outside the file (a missing library, a
  // busy machine) do not.
  bool lasting() const noexcept;
};

// Returns the time before the next attempt after so many consecutive timeouts. The first is repeated at the next start,
// because a frozen or loaded machine looks like a plugin that hangs.
std::chrono::seconds pause_after(std::uint32_t attempts) noexcept;
// Returns the factor for the timeout of the attempt after so many.
std::uint32_t patience_after(std::uint32_t attempts) noexcept;

std::string to_line(const Status& outcome);
std::optional<ProbeVerdict> verdict_of_line(std::string_view line);

// Exit statuses of kiln-probe besides 0. They are used only if there is no line.
inline constexpr int probe_exit_usage = 2;
inline constexpr int probe_exit_failed = 3;
inline constexpr int probe_exit_channel_lost = 4;  // the plugin closed foreign descriptors

// unavailable: the probe could not be started or observed; nothing is known about the plugin.
Result<ProbeVerdict> probe_plugin(const std::filesystem::path& probe, const std::filesystem::path& plugin,
                                  std::chrono::nanoseconds timeout);

// VerdictStore: the probe's verdicts, remembered in one small file so that a known-good start pays for no probe.
//
// A verdict is valid for a path, device, inode, size and mtime, and for the host that it was found with. The file is
// JSON:
//   {"schema": 1, "verdicts": [{"path", "host", "device", "inode", "size", "mtime_ns", "verdict", "code", "message",
//                                "attempts", "again_at"}]}
// A file that is damaged, too big, of another schema, owned by somebody else or writable by others counts as empty and
// is written anew; where that fails the log says so once, and every plugin is probed each time. Thread-safety: none;
// one store a load. Processes that save at the same time: the last one wins, nothing is half-written.

enum class VerdictFile : std::uint8_t { invalid = 0, read_only, read_and_written };

class VerdictStore {
 public:
  // An empty `file` remembers nothing. `host`: see host_identity().
  VerdictStore(std::filesystem::path file, std::string host, Log log,
               VerdictFile use = VerdictFile::read_and_written);

  std::optional<ProbeVerdict> find(const std::filesystem::path& plugin, const PluginFileIdentity& identity) const;
  // Forgets a verdict that is not lasting(). Of one that `hung` it counts the attempts, and answers the verdict with
  // them and with the time of the next.
  ProbeVerdict put(const std::filesystem::path& plugin, const PluginFileIdentity& identity, ProbeVerdict verdict);
  // Writes the file where something changed and it may be written.
  void save();

 private:
  struct Entry {
    std::string path, host;
    PluginFileIdentity identity;
    ProbeVerdict verdict;
  };

  static std::optional<std::vector<Entry>> parse(const std::string& text);
  std::string text() const;

  std::filesystem::path file_;
  std::string host_;
  Log log_;
  VerdictFile use_;
  std::vector<Entry> entries_;  // oldest first
  bool changed_ = false;
};

// The libkiln_core.so that runs: a plugin that crashed with one may be good with the next.
std::string host_identity();

}  // namespace kiln
