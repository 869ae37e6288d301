// JobOrder: which job of a file may begin next where several run at one time.
//
// In the order of the file; but a job waits for every one before it that writes a file which it reads or writes, and
// for every one that reads a file which it writes. So what is read is what would be read if they ran one after another.
// Thread-safety: every method from any thread. Ownership: values.
#pragma once

#include <kiln/config.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

namespace kiln::host {

// For each job the ones before it that it has to wait for, ascending.
std::vector<std::vector<std::size_t>> jobs_to_wait_for(const std::vector<JobConfig>& jobs);

class JobOrder {
 public:
  // waits_for: of each job, as above; where one runs at a time nothing need be in it. stop: true ends it once a job
  // that is under way has; it outlives the order.
  JobOrder(std::vector<std::vector<std::size_t>> waits_for, const std::atomic<bool>& stop);

  // The place of a job that has not begun and may, in `jobs`; waits for one. nullopt: all have begun, or it was
  // stopped.
  std::optional<std::size_t> begin();
  void end(std::size_t job);

 private:
  enum class State : unsigned char { waiting = 0, begun, ended };

  // nullopt: none of them may.
  std::optional<std::size_t> next_ready() const;

  const std::vector<std::vector<std::size_t>> waits_for_;
  const std::atomic<bool>& stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;
  std::size_t waiting_;
};

}  // namespace kiln::host
