// commit_files(): several new files take their names together, also where the process dies between two of them.
//
// A unit is what changes together, for example the results of one job. Units are committed in groups: one sync for all
// of them. A journal names the files before the first of them appears; settle_commits() finishes or undoes what a dead
// process left. docs/result-journal.md has the format. Thread-safety: from any thread; one journal serves one process
// at a time, others wait. Ownership: the caller's.
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

// One Status for each unit; a unit that fails changes nothing. journal: the folder of the journal, made (0700) where it
// is missing. Where it is empty or cannot be used, the journal lies in the folder of the first file that needs one.
// REQUIRES: no two files have the same final path.
std::vector<Status> commit_files(const std::filesystem::path& journal, std::span<std::vector<AtomicFile>> units);

struct SettledCommits {
  std::vector<std::string> notes;     // what was finished or undone
  std::vector<std::string> problems;  // what a person must look at
};

// Finishes or undoes what dead processes left, by the journal in its folder and those in the folders of data. Only
// files that a journal describes exactly (inode, size, time, owner) are renamed or removed. Waits for a living process
// that commits.
SettledCommits settle_commits(const std::filesystem::path& journal,
                              std::span<const std::filesystem::path> data_folders);

}  // namespace kiln
