// ModelLock: one process at a time reads, merges and writes the selector's model. Let go of by a process that dies.
//
// Thread-safety: none. Ownership: owns the descriptor; the lock goes with it.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/status.hpp>

#include <filesystem>

namespace kiln::selector {

// Makes the folder where it is missing. unavailable: another process kept it for seconds. io: no file could be made.
Result<UniqueFd> lock_model(const std::filesystem::path& folder);

}  // namespace kiln::selector
