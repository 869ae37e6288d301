// parallel_for: independent tasks on a few threads that live for the call.
//
// Thread-safety: any thread may call. Ownership: `task` is borrowed for the call and must bear concurrent calls.
// Which thread runs a task is left open, so a task's result must depend on its index alone.
#pragma once

#include <cstdint>
#include <functional>

namespace kiln::reference {

// Multiply-adds: below, starting a thread costs more than it saves.
inline constexpr double worth_a_thread = 1e6;

// Runs task(0) … task(count - 1) and returns when all are done. threads 0: as many as the machine has cores; where the
// system refuses a thread, the others do its work. The first exception of a task is thrown again here, once no task
// runs.
void parallel_for(std::int64_t count, unsigned threads, const std::function<void(std::int64_t)>& task);

}  // namespace kiln::reference
