// run_program: another program as a child of its own process group, under a deadline.
//
// Thread-safety: main thread only. Ownership: the child and its group are gone when it answers.
#pragma once

#include <kiln/clock.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kiln::host {

// Waits until it has ended, and calls `every_second` meanwhile. What it says goes to `log`, both of its streams.
// unavailable: cannot be started. internal: ended by a signal or with another status than 0; timeout: was ended at the
// deadline: both with the last words of the log. cancelled: `stop` was set, and the child was ended.
Status run_program(const std::vector<std::string>& words, const std::filesystem::path& log, Deadline deadline,
                   const std::atomic<bool>& stop, const std::function<void()>& every_second);

}  // namespace kiln::host
