// VerdictStore: the probe's verdicts, remembered in one small file so that a known-good start pays for no probe.
//
// A verdict is valid for a path, device, inode, size and mtime, and for the host that it was found with. The file is
// JSON:
//   {"schema": 1, "verdicts": [{"path", "host", "device", "inode", "size", "mtime_ns", "verdict", "code", "message",
//                                "attempts", "again_at"}]}
// A file that is damaged, too big, of another schema, owned by somebody else or writable by others counts as empty and
// is written anew; where that fails the log says so once, and every plugin is probed each time. Thread-safety: none;
// one store a load. Processes that save at the same time: the last one wins, nothing is half-written.
#pragma once

#include "plugin/plugin_file.hpp"
#include "plugin/probe_process.hpp"

#include <kiln/log.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

class VerdictStore {
 public:
  // An empty `file` remembers nothing. `host`: see host_identity().
  VerdictStore(std::filesystem::path file, std::string host, Log log);

  std::optional<ProbeVerdict> find(const std::filesystem::path& plugin, const PluginFileIdentity& identity) const;
  // Forgets a verdict that is not lasting(). Of one that `hung` it counts the attempts, and answers the verdict with
  // them and with the time of the next.
  ProbeVerdict put(const std::filesystem::path& plugin, const PluginFileIdentity& identity, ProbeVerdict verdict);
  // Writes the file where something changed.
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
  std::vector<Entry> entries_;  // oldest first
  bool changed_ = false;
};

// The libkiln_core.so that runs: a plugin that crashed with one may be good with the next.
std::string host_identity();

}  // namespace kiln
