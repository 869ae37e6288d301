// Taking away what is left of a device folder when its programs are gone, and everything in it when all shall go.
//
// Thread-safety: pure calls of the operating system; what another process writes meanwhile stays. Ownership: values.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <string>

namespace kiln {

// The folder with its manifest and its file of processes, where nothing but these is in it. Anything else keeps it.
void remove_if_empty(int root, const std::string& device_folder);

struct Cleared {
  std::uint64_t programs = 0, bytes = 0;
  Status failure;  // the first thing that could not be removed
};

// Everything in it that Kiln writes, and the folder where that leaves it empty.
Cleared clear_device_folder(int root, const std::string& device_folder);

}  // namespace kiln
