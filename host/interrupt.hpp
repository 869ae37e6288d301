// Interrupt: Ctrl-C and termination as a flag that loops look at; a second signal ends the process at once.
//
// Thread-safety: the flag may be read from any thread. The handlers belong to the process: install them once, in main.
#pragma once

#include <atomic>

namespace kiln::host {

void install_interrupt_handlers();
const std::atomic<bool>& interrupted() noexcept;
// Ends the process by the signal that was received, so that a shell sees it. REQUIRES: interrupted().
[[noreturn]] void end_by_signal();

}  // namespace kiln::host
