// Who a tree of files belongs to: a process holds a lock on a file in its tree while it lives, however it ends. Trees
// whose lock is free are left over.
//
// Thread-safety: any thread. Ownership: a claim is the caller's.
#pragma once

#include <string>

#include "simulator/kernel/base/unique_fd.hpp"

namespace kiln::simulator::shim {

// Empty, with errno, where the file cannot be made.
kernel::UniqueFd claim_tree(const std::string& root);
// Removes the left-over trees of this user in `folder`, whose names begin with `prefix`.
void remove_abandoned_trees(const std::string& folder, const std::string& prefix) noexcept;

}  // namespace kiln::simulator::shim
