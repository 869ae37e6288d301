// ResultCommits: gives the results of finished jobs their names, in groups: one sync for the jobs of a group.
//
// A thread commits what was added while it committed the group before, so jobs go on meanwhile. Thread-safety: add()
// and flush() from any thread; `done` is called from the thread that commits, one call at a time. Ownership: owns the
// files until they are committed.
//
//   ResultCommits commits(journal, interrupted(), [&](std::size_t job, const Status& status) { … });
//   commits.add(3, std::move(files));   // job 3 is done when `done` says so
//   commits.flush();
#pragma once

#include <kiln/result_files.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::host {

class ResultCommits {
 public:
  using Done = std::function<void(std::size_t job, const Status& status)>;

  // journal: of commit_files(). stop: ends the wait for another process that commits; its jobs are cancelled.
  ResultCommits(std::filesystem::path journal, const std::atomic<bool>& stop, Done done);
  ~ResultCommits();  // flushes
  ResultCommits(const ResultCommits&) = delete;
  ResultCommits& operator=(const ResultCommits&) = delete;

  // Waits while too many files are open.
  void add(std::size_t job, std::vector<AtomicFile> files);
  // No more jobs come: nothing waits for them any longer.
  void hurry();
  // Waits until all that was added has been committed.
  void flush();

 private:
  struct Pending {
    std::vector<std::size_t> jobs;
    std::vector<std::vector<AtomicFile>> units;
  };

  void follow();
  void commit(Pending pending);

  const std::filesystem::path journal_;
  const std::atomic<bool>& stop_;
  const Done done_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Pending pending_;
  std::size_t open_files_ = 0;  // pending or being committed
  std::size_t flushing_ = 0;    // threads that wait
  bool hurried_ = false;
  bool over_ = false;
  std::thread thread_;  // from the first add() on; none where the system gives no thread
};

}  // namespace kiln::host
