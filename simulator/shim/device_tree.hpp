// The tree of files that shows the simulated device to programs, and the lock that says whose tree it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "simulator/kernel/file_descriptor.hpp"
#include "simulator/kernel/target.hpp"

namespace kiln::simulator::shim {

// DeviceTree: the files that tell programs of the simulated device where the system would: its node and its PCI facts,
// in a folder of their own, with the links between them as in a real system.
//
// Thread-safety: made once; the rest never changes. Ownership: owns the folder; remove() takes it away, and where a
// process ended without it, the next one does.

constexpr unsigned node_major = 226;
constexpr unsigned node_minor = 128;
constexpr std::string_view node_path = "/dev/dri/renderD128";

// Whether a path is one that the tree stands in for. Everything else is the system's.
bool is_simulated_path(std::string_view path) noexcept;

class DeviceTree {
 public:
  // Nothing, with errno, where the folder cannot be written.
  static std::optional<DeviceTree> create(const kernel::Target& target);

  std::string in_tree(std::string_view path) const { return root_ + std::string(path); }
  // The path as the program knows it, of one in the tree; nothing for others.
  std::optional<std::string> outside(std::string_view path) const;
  void remove() const noexcept;

 private:
  DeviceTree(std::string root, kernel::UniqueFd claim) : root_(std::move(root)), claim_(std::move(claim)) {}

  std::string root_;
  kernel::UniqueFd claim_;  // what others tell a living process's tree by
};

// Who a tree of files belongs to: a process holds a lock on a file in its tree while it lives, however it ends. Trees
// whose lock is free are left over.
//
// Thread-safety: any thread. Ownership: a claim is the caller's.

// Empty, with errno, where the file cannot be made.
kernel::UniqueFd claim_tree(const std::string& root);
// Removes the left-over trees of this user in `folder`, whose names begin with `prefix`.
void remove_abandoned_trees(const std::string& folder, const std::string& prefix) noexcept;

}  // namespace kiln::simulator::shim
