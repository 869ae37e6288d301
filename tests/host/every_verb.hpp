// EveryVerb: a user's folders with every file that Kiln reads or writes, and every verb of the command with the words
// that make it read or write them. For tests that attack all of it.
//
// Thread-safety: none. Ownership: owns its folders.
#pragma once

#include "host/kiln_process.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace kiln::test {

class EveryVerb {
 public:
  struct Verb {
    std::string name;
    std::vector<std::string> words;
    bool is_slow = false;  // takes more than a second
  };

  EveryVerb();

  // cache/: the cache folder · state/: key, key of bundles, journal of results · config/: keys of shared programs ·
  // share/: a remote · data/: what a user names.
  const std::filesystem::path& live() const noexcept { return live_; }
  // Names of all regular files below live(), sorted.
  const std::vector<std::string>& files() const noexcept { return files_; }
  const std::vector<Verb>& verbs() const noexcept { return verbs_; }

  // Puts everything back as it was, and a file of somebody else beside it.
  void renew() const;
  std::filesystem::path victim() const { return folder_ / "victim"; }
  bool is_victim_untouched() const;

  // Ends by SIGKILL after two minutes: a hang is a failure.
  ProcessOptions options() const;
  Finished kiln(const std::vector<std::string>& words) const;
  // The jobs of the configuration, from data/job.toml.
  Finished run() const;
  // Whether a run that says it is done has the right results: those of its report and of its files.
  bool is_right(const Finished& run) const;

 private:
  TemporaryFolder folder_;
  std::filesystem::path live_, good_;
  std::vector<std::string> files_;
  std::vector<Verb> verbs_;
};

}  // namespace kiln::test
