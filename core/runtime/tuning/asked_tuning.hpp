// AskedTuning: that a process tunes because somebody asked it to, as other processes on its cache folder see it: a lock
// on a file there. Two that measure would disturb one another, so a second one waits, and tuning in the background
// does nothing meanwhile.
//
// Thread-safety: pure calls of the operating system. Ownership: the turn is its holder's, and ends with its process.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <filesystem>

namespace kiln {

// Waits for its turn, and says so once. cancelled: `stop` (which may be null) became true before. An empty descriptor:
// there is no folder that can be written, so that no other process is thought of.
Result<UniqueFd> take_asked_turn(const std::filesystem::path& folder, const std::atomic<bool>* stop, const Log& log);

// Whether a process has such a turn now, this one included.
bool is_asked_turn_taken(const std::filesystem::path& folder) noexcept;

}  // namespace kiln
