#include "verbs/run/result_commits.hpp"

#include <kiln/process_limits.hpp>
#include <kiln/result_files.hpp>
#include <kiln/stop_scope.hpp>

#include <chrono>
#include <utility>

namespace kiln::host {
namespace {

constexpr std::chrono::milliseconds window{20};  // so long a group waits for more jobs, while others run
constexpr std::size_t most_open_files = 128;

}  // namespace

ResultCommits::ResultCommits(std::filesystem::path journal, const std::atomic<bool>& stop, Done done)
    : journal_(std::move(journal)), stop_(stop), done_(std::move(done)) {}

ResultCommits::~ResultCommits() {
  flush();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ResultCommits::add(std::size_t job, std::vector<AtomicFile> files) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    auto thread = start_thread([this] { follow(); });
    if (!thread) {  // then each job is a group
      Pending alone;
      alone.jobs.push_back(job);
      alone.units.push_back(std::move(files));
      commit(std::move(alone));
      return;
    }
    thread_ = std::move(*thread);
  }
  changed_.wait(lock, [&] { return open_files_ == 0 || open_files_ + files.size() <= most_open_files; });
  open_files_ += files.size();
  pending_.jobs.push_back(job);
  pending_.units.push_back(std::move(files));
  changed_.notify_all();
}

void ResultCommits::hurry() {
  {
    const std::lock_guard lock(mutex_);
    hurried_ = true;
  }
  changed_.notify_all();
}

void ResultCommits::flush() {
  std::unique_lock lock(mutex_);
  ++flushing_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return open_files_ == 0; });
  --flushing_;
}

void ResultCommits::follow() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return over_ || !pending_.jobs.empty(); });
    if (pending_.jobs.empty()) return;
    const auto is_due = [&] { return over_ || hurried_ || flushing_ != 0 || open_files_ >= most_open_files / 2; };
    changed_.wait_for(lock, window, is_due);
    Pending group = std::exchange(pending_, {});
    std::size_t files = 0;
    for (const auto& unit : group.units) files += unit.size();
    lock.unlock();
    commit(std::move(group));
    lock.lock();
    open_files_ -= files;
    changed_.notify_all();
  }
}

void ResultCommits::commit(Pending group) {
  const StopScope scope(&stop_);
  std::size_t told = 0;
  try {
    const std::vector<Status> statuses = commit_files(journal_, group.units);
    for (; told < statuses.size(); ++told) done_(group.jobs[told], statuses[told]);
  } catch (...) {
    const Status failure = caught();
    for (; told < group.jobs.size(); ++told) done_(group.jobs[told], failure);
  }
}

}  // namespace kiln::host
