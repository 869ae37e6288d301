// What the limits of the process leave: a thread, or the reason why there is none, and memory for a foreign library.
//
// A limit on processes (RLIMIT_NPROC, pids.max) or on memory (RLIMIT_AS, RLIMIT_DATA) is ordinary on machines that are
// shared. std::thread throws under the first; libraries that generate code end the process under the second.
//   auto thread = start_thread([this] { serve(); });
//   if (!thread) return std::move(thread).error().within("the queue");
// Thread-safety: any thread. Ownership: the caller joins the thread. Errors: unavailable.
#pragma once

#include <kiln/status.hpp>

#include <cstdint>
#include <thread>
#include <utility>

namespace kiln {

// Nobody constructs a std::thread with work directly.
template <class Work>
Result<std::thread> start_thread(Work&& work) noexcept {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (...) {
    return caught("no thread");
  }
}

// Before a library is called that cannot bear to be refused memory. unavailable: the limits of the process do not leave
// so many bytes at this moment. Without such limits it costs two system calls and says nothing of the machine.
Status check_memory_left(std::uint64_t bytes);

}  // namespace kiln
