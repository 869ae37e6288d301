// Program selection: finds stored programs by label, key or key prefix, and removes the files of a device folder.
//
// Thread-safety: reads and removes files; functions from any thread. Ownership: values.
#pragma once

#include "cache/cache_root.hpp"

#include <kiln/status.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct SelectedProgram {
  Area area = Area::invalid;
  std::string folder;
  StoredEntry entry;
  CachedProgram description;
};

// Returns whether the text can be a key or a key prefix: 4 to 64 hexadecimal digits.
bool may_be_key(std::string_view which) noexcept;

// Returns whether the text is the label or leading components of it: "layer" matches "layer/direct/plain".
bool is_label_of(std::string_view which, std::string_view label) noexcept;

// Returns whether `which` is the label, the key, or a prefix of either.
bool is_named(std::string_view which, const SelectedProgram& program) noexcept;

// Returns the programs with this label or key prefix.
std::vector<SelectedProgram> select_programs(const CacheRoot& root, std::string_view which);

// Returns the stored programs that match any of `which`, or all. not_found: one matches none, or nothing is stored.
Result<std::vector<SelectedProgram>> select_stored(const CacheRoot& root, std::span<const std::string> which,
                                                   const CacheConfig& cache);

// The same for suspect and quarantined programs.
std::vector<AsideProgram> select_aside(const CacheRoot& root, std::string_view which);

// "3 programs: 1a2b3c4d5e6f (label, folder), …", for messages.
std::string list_of(const std::vector<SelectedProgram>& programs);

// Removes the folder with its manifest and process table. Does nothing if it has other files.
void remove_if_empty(int root, const std::string& device_folder);

struct Cleared {
  std::uint64_t programs = 0, bytes = 0;
  Status failure;  // the first error
};

// Removes all files that Kiln wrote, and the folder if it is then empty. Files that other processes write meanwhile
// remain.
Cleared clear_device_folder(int root, const std::string& device_folder);

}  // namespace kiln
