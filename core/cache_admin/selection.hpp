// From what a person typed to stored programs: a label, a key, or the first digits of a key.
//
// Thread-safety: reads files, from any thread. Ownership: values.
#pragma once

#include "cache/cache_root.hpp"

#include <kiln/status.hpp>

#include <cstdint>
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

// Whether the text is a key or the beginning of one: 4 to 64 hexadecimal digits.
bool may_be_key(std::string_view which) noexcept;

// Whether the text is the label, or its parts before some '/': "layer" is a label of "layer/direct/plain".
bool is_label_of(std::string_view which, std::string_view label) noexcept;

// Whether `which` names the program: by its label, its key, or the beginning of either.
bool is_named(std::string_view which, const SelectedProgram& program) noexcept;

// Every program that has the label, and every one whose key begins so. Empty: there is none.
std::vector<SelectedProgram> select_programs(const CacheRoot& root, std::string_view which);

// Likewise of what is suspect or quarantined.
std::vector<AsideProgram> select_aside(const CacheRoot& root, std::string_view which);

// "3 programs: 1a2b3c4d5e6f (label, folder), …": for a message.
std::string list_of(const std::vector<SelectedProgram>& programs);

// Taking away what is left of a device folder when its programs are gone, and everything in it when all shall go.
//
// Thread-safety: pure calls of the operating system; what another process writes meanwhile stays. Ownership: values.

// The folder with its manifest and its file of processes, where nothing but these is in it. Anything else keeps it.
void remove_if_empty(int root, const std::string& device_folder);

struct Cleared {
  std::uint64_t programs = 0, bytes = 0;
  Status failure;  // the first thing that could not be removed
};

// Everything in it that Kiln writes, and the folder where that leaves it empty.
Cleared clear_device_folder(int root, const std::string& device_folder);

}  // namespace kiln
