// Process limits: starts threads and checks memory under resource limits, with errors instead of exceptions or crashes.
// The heaps of a process.
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

// Configures the C library to reserve large heaps (address space, not memory). Otherwise the heaps of driver threads
// grow page by page, which slows down loading. Each thread has its own heap, because the threads of a software driver
// allocate for every workgroup. Call it in main() before any thread exists; not in a library.
void prefer_roomy_heaps() noexcept;
// Asks the kernel for huge pages in the heap of the calling thread; without them a quarter of a warm start's time goes
// into pages. For a thread that a driver works on, before it does: a thread without a heap gets one. Does nothing
// without prefer_roomy_heaps().
void prefer_huge_pages() noexcept;

}  // namespace kiln
