// The jobs of `kiln run` beside each other: which may begin, and when their results get their names.
//
// JobOrder: which job of a file may begin next, and when it may run.
//
// A job waits for every one before it that writes a file which it reads or writes, and for every one that reads a file
// which it writes. So what is read is what would be read if they ran one after another. In the order of the file, jobs
// run one after another; a job that is not alone may begin, which reads its files and loads its programs, while others
// run.
// Thread-safety: every method from any thread. Ownership: values.
#pragma once

#include <kiln/config.hpp>
#include <kiln/result_files.hpp>
#include <kiln/status.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace kiln::host {

// For each job the ones before it that it has to wait for, ascending.
std::vector<std::vector<std::size_t>> jobs_to_wait_for(const std::vector<JobConfig>& jobs);

class JobOrder {
 public:
  struct Terms {
    std::vector<std::vector<std::size_t>> waits_for;  // of each job, as above
    // Of each job: nothing of another job is done from its begin to the end of its run. Empty: jobs run as soon as
    // they may begin, several at a time.
    std::vector<bool> alone;
  };

  // stop: true ends it once a job that is under way has; it outlives the order. store: stores the results of jobs that
  // have run; called where the next job waits for them.
  JobOrder(Terms terms, const std::atomic<bool>& stop, std::function<void()> store);

  // The place of a job that has not begun and may, in `jobs`; waits for one. nullopt: all have begun, or it was
  // stopped. announce: called with it, for one job after another.
  std::optional<std::size_t> begin(const std::function<void(std::size_t)>& announce);
  // Waits until the job may run. false: it was stopped.
  bool wait_to_run(std::size_t job);
  void ran(std::size_t job);
  void end(std::size_t job);  // its results are stored, or it has failed

 private:
  enum class State : unsigned char { waiting = 0, begun, ran, ended };

  bool in_order() const noexcept { return !terms_.alone.empty(); }
  // nullopt: none of them may.
  std::optional<std::size_t> next_ready() const;
  bool may_begin(std::size_t job) const;
  bool waits_for_results() const;         // of jobs that have run
  bool have_run(std::size_t jobs) const;  // the first so many
  void change(std::size_t job, State state);
  void note_change();

  const Terms terms_;
  const std::atomic<bool>& stop_;
  const std::function<void()> store_;
  std::mutex mutex_;
  std::condition_variable may_begin_;
  std::condition_variable may_run_;  // a job has run, or has ended without
  std::vector<State> states_;
  std::size_t waiting_;
  std::uint64_t changes_ = 0;  // of states_ and of waiting_ to 0
};

// ResultCommits: gives the results of finished jobs their names, in groups: one sync for the jobs of a group.
//
// A thread commits what was added while it committed the group before, so jobs go on meanwhile. Thread-safety: add()
// and flush() from any thread; `done` is called from the thread that commits, one call at a time. Ownership: owns the
// files until they are committed.
//
//   ResultCommits commits(journal, interrupted(), [&](std::size_t job, const Status& status) { … });
//   commits.add(3, std::move(files));   // job 3 is done when `done` says so
//   commits.flush();

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
