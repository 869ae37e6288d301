// Process limits: starts threads and checks memory under resource limits, with errors instead of exceptions or crashes.
//
// Limits on processes (RLIMIT_NPROC, pids.max) or memory (RLIMIT_AS, RLIMIT_DATA) are common on shared machines.
// std::thread throws under the first; libraries that generate code abort under the second.
// Thread-safety: any thread. Ownership: the caller joins the thread. Errors: unavailable.
//
//   auto thread = kiln::start_thread([] { serve(); });
//   if (!thread) return thread.error().within("the queue");
//   thread->join();
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <thread>
#include <utility>

namespace [[gnu::visibility("default")]] kiln {

// Use this instead of constructing a std::thread with work.
template <class Work>
Result<std::thread> start_thread(Work&& work) noexcept {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (...) {
    return caught("no thread");
  }
}

// Call before a library that aborts when memory runs out. unavailable: the limits of the process leave fewer bytes.
// Does not check the memory of the machine.
Status check_memory_left(std::uint64_t bytes);
// Call before a library that waits for threads that it does not get. unavailable: the limits of the process (ulimit -u,
// pids.max of its control group) leave fewer threads. Starts them and lets them end.
Status check_threads_left(unsigned count);
// Returns how many threads a driver starts that computes on the host: one for each core, at most 16, and six to
// compile, to write its files and to submit.
unsigned threads_of_host_driver() noexcept;

}  // namespace kiln
