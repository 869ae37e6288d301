// Process limits: starts threads and checks memory under resource limits, with errors instead of exceptions or crashes.
// Also configures the heaps of a process.
//
// Limits on processes (RLIMIT_NPROC, pids.max) or memory (RLIMIT_AS, RLIMIT_DATA) are common on shared machines.
// std::thread throws an exception at a limit on processes. Libraries that generate code abort at a limit on memory.
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

// Call this before you use a library that aborts when memory runs out. Does not check the memory of the machine.
// unavailable: the limits of the process leave fewer than `bytes` bytes.
Status check_memory_left(std::uint64_t bytes);
// Call this before you use a library that would wait forever for threads that cannot start. The function starts `count`
// threads and ends them. unavailable: the limits of the process (ulimit -u, pids.max of its control group) leave fewer
// threads.
Status check_threads_left(unsigned count);
// Returns the number of threads of a driver that computes on the host: one per core, at most 16, and six to compile, to
// write files and to submit.
unsigned threads_of_host_driver() noexcept;

// Configures the C library to reserve large heaps (address space, not memory). Otherwise the heaps of driver threads
// grow page by page, which slows down loading. Each thread has its own heap, because the threads of a software driver
// allocate for every workgroup. Call it in main() before any thread exists; not in a library.
void prefer_roomy_heaps() noexcept;
// Requests huge pages for the heap of the calling thread, and creates the heap if it is missing. Without huge pages, page
// faults need a quarter of the time of a warm start. Call it on a thread before a driver works on this thread. Does nothing
// without prefer_roomy_heaps(), and nothing more after the system took more than 1 ms for one huge page: then small pages are
// faster.
void prefer_huge_pages() noexcept;

}  // namespace kiln
