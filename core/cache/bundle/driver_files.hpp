// The files of a driver's own cache: taken out for a bundle, and placed from one.
//
// Thread-safety: calls of the operating system; a driver may be adding files meanwhile. Ownership: values. Folders are
// entered by descriptor and never by a link; files that are links, another user's or too large are passed over.
#pragma once

#include "cache/bundle/bundle_format.hpp"

#include <kiln/status.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace kiln {

// Tells of each file in the cache `name`, in the order of their paths: its path, as a bundle holds it, and its bytes.
void read_driver_files(int root, const std::string& name,
                       const std::function<void(const std::string& path, std::span<const std::byte> bytes)>& tell);

struct PlacedDriverFiles {
  std::uint64_t placed = 0, already = 0, bytes = 0;
  std::string why_not;  // why none was placed; empty otherwise
};

// Places a bundle's files of the cache `name`, which is made where it is missing, each whole or not at all. A file that
// is there stays: what a driver keeps as a file an entry, as Mesa does by default, is merged so. Where it keeps
// everything in a few files, they are placed only where it has none.
Result<PlacedDriverFiles> place_driver_files(int root, const std::string& name,
                                             std::span<const BundledDriverFile> files);

}  // namespace kiln
