// Interrupt: Ctrl-C and termination as a flag that loops look at; a second signal ends the process at once.
//
// What does not end within `longest_end` of the signal - a compiler or a driver that does not return - is not waited
// for: the process ends by the signal. Files are committed as a whole or not at all, so none is left half-written.
// Thread-safety: the flag may be read from any thread. The handlers belong to the process: install them once, in main.
#pragma once

#include <atomic>
#include <chrono>

namespace kiln::host {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::milliseconds longest_end{20'000};  // a sanitizer slows down what ends by itself
#else
inline constexpr std::chrono::milliseconds longest_end{700};
#endif

void install_interrupt_handlers();
const std::atomic<bool>& interrupted() noexcept;
// From here on the caller bounds the time itself: a report that is being written is not cut off.
void lift_interrupt_limit() noexcept;
// Ends the process by the signal that was received, so that a shell sees it. REQUIRES: interrupted().
[[noreturn]] void end_by_signal();

}  // namespace kiln::host
