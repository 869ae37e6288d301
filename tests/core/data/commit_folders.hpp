// Files that are committed together in tests: two folders of data, one of state, and commits of named texts.
//
// Thread-safety: none. Ownership: a Folders owns its folder.
#pragma once

#include "core/data/scratch_folder.hpp"

#include <kiln/result_files.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kiln::test {

namespace fs = std::filesystem;
using Contents = std::map<std::string, std::string>;  // by path; absent: no file
using Unit = std::vector<std::pair<fs::path, std::string>>;

// Two folders of data, and one of state.
struct Folders {
  Folders() {
    fs::create_directory(root / "a b");
    fs::create_directory(root / "other");
  }
  fs::path one(const std::string& name) const { return root / "a b" / name; }
  fs::path two(const std::string& name) const { return root / "other" / name; }
  fs::path state() const { return root / "state"; }
  std::vector<fs::path> data() const { return {root / "a b", root / "other"}; }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> all;
    for (const fs::path& folder : data()) {
      for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path());
    }
    return all;
  }
  // What is there, all of it: a file that a killed process left too.
  Contents contents() const {
    Contents all;
    for (const fs::path& file : entries()) all[file.string()] = contents_of(file);
    return all;
  }
  SettledCommits settle() const { return settle_commits(state(), data()); }

  const ScratchFolder root;
};

inline void set(const Unit& files) {
  for (const auto& [path, text] : files) write_contents(path, text);
}

inline Contents as_contents(const Unit& files) { return {files.begin(), files.end()}; }

inline std::vector<AtomicFile> prepared(const Unit& unit) {
  std::vector<AtomicFile> files;
  for (const auto& [path, text] : unit) {
    auto file = AtomicFile::create(path);
    if (!file || !file->write(bytes_of(text)).ok()) return {};
    files.push_back(std::move(*file));
  }
  return files;
}

inline std::vector<Status> commit(const fs::path& journal, const std::vector<Unit>& units) {
  std::vector<std::vector<AtomicFile>> all;
  for (const Unit& unit : units) {
    all.push_back(prepared(unit));
    if (all.back().size() != unit.size()) return {internal_error("not prepared")};
  }
  return commit_files(journal, all);
}

}  // namespace kiln::test
