// commit_files: commits several new files together, so that a crash leaves all or none of them.
//
// A unit is a set of files that change together, such as the results of one job. Several units share one sync. A
// journal lists the files before the first one appears; settle_commits() completes or reverts what a dead process left.
// docs/result-journal.md describes the format.
// Thread-safety: any thread; one process at a time uses a journal, others wait. Ownership: the caller owns all objects.
//
//   std::vector<std::vector<AtomicFile>> units(1);
//   units[0].push_back(std::move(a));
//   units[0].push_back(std::move(b));
//   Status status = commit_files(user_state_folder(), units).front();
#pragma once

#include "base/os/atomic_file.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// Returns one Status per unit; a failed unit changes nothing. journal: folder of the journal, created with mode 0700.
// If it is empty or not usable, the journal is in the folder of the first file that needs one. REQUIRES: all final
// paths differ.
std::vector<Status> commit_files(const std::filesystem::path& journal, std::span<std::vector<AtomicFile>> units);

struct SettledCommits {
  std::vector<std::string> notes;     // what was completed or reverted
  std::vector<std::string> problems;  // what a person must check
};

// Completes or reverts the commits of dead processes, from the journals in `journal` and in the data folders. Only
// files that match the journal exactly (inode, size, time, owner) are renamed or removed. Waits while a living process
// commits.
SettledCommits settle_commits(const std::filesystem::path& journal,
                              std::span<const std::filesystem::path> data_folders);

}  // namespace kiln
