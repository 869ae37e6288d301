// Operation: a change of a folder as a file system sees it, and what a power cut may leave of it.
//
// Made from a log of system calls, whose paths are found in the image that the calls before them left. Thread-safety:
// values. Ownership: values.
#pragma once

#include "core/cache/powercut/folder_image.hpp"
#include "core/cache/powercut/write_log.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kiln::test {

struct Operation {
  Change change = Change::invalid;
  Node node = 0;  // what is made, written, cut, flushed, named
  Node folder = 0, to_folder = 0;
  std::string name, to_name;
  std::uint64_t at = 0;  // written: where; cut: the size
  std::string bytes;
  std::string subject;   // the name that the file has or will have, without its folder: what people know it by
  std::size_t safe = 0;  // from this operation on nothing of it can be lost, since it was flushed; 0: never
};

enum class Fate : std::uint8_t {
  kept = 0,
  lost,
  // of moved
  both_names,  // the new one is there, the old one is not yet gone
  no_name,     // the old one is gone, the new one is not yet there
  // of written
  size_only,   // the file has its new size, and holds zeros where it was shorter
  head_short,  // only what lies before the middle, to the end of a sector
  head_only,   // the same with the new size
  tail_only,   // only what lies after it
};

// All that may become of it, kept first.
std::span<const Fate> fates_of(Change change) noexcept;
std::string_view to_string(Fate fate) noexcept;
// "moved .12-ab.tmp to 3f….bin"
std::string text_of(const Operation& operation);

void apply(FolderImage& image, const Operation& operation, Fate fate);

// Throws where a path leads nowhere: then the log is not whole.
std::vector<Operation> operations_of(const FolderImage& before, std::span<const WriteCall> calls);

}  // namespace kiln::test
