#include "verbs/job_order.hpp"

#include <kiln/data.hpp>
#include <kiln/process_limits.hpp>
#include <kiln/result_files.hpp>
#include <kiln/stop_scope.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace kiln::host {
namespace {

namespace fs = std::filesystem;

struct FilesOfJob {
  std::set<fs::path> read, written;
};

FilesOfJob files_of(const JobConfig& job, FileNames& names) {
  FilesOfJob files;
  for (const std::string* source : {&job.input, &job.addend, &job.weights, &job.bias, &job.source, &job.expect}) {
    if (!source->empty() && data::is_file(*source)) files.read.insert(names.of(job.base / *source));
  }
  if (!job.output.empty()) files.written.insert(names.of(job.output));
  for (const KernelBindingConfig& binding : job.bindings) {
    for (const std::string* source : {&binding.input, &binding.expect}) {
      if (!source->empty() && data::is_file(*source)) files.read.insert(names.of(job.base / *source));
    }
    if (!binding.output.empty()) files.written.insert(names.of(job.base / binding.output));
  }
  return files;
}

}  // namespace

std::vector<std::vector<std::size_t>> jobs_to_wait_for(const std::vector<JobConfig>& jobs) {
  FileNames names;
  std::map<fs::path, std::size_t> last_writer;
  std::map<fs::path, std::vector<std::size_t>> readers;  // since it was written last
  std::vector<std::vector<std::size_t>> waits_for;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const FilesOfJob files = files_of(jobs[i], names);
    std::set<std::size_t> before;
    const auto wait_for_writer = [&](const fs::path& file) {
      if (const auto writer = last_writer.find(file); writer != last_writer.end()) before.insert(writer->second);
    };
    for (const fs::path& file : files.read) {
      wait_for_writer(file);
      readers[file].push_back(i);
    }
    for (const fs::path& file : files.written) {
      wait_for_writer(file);
      before.insert(readers[file].begin(), readers[file].end());
      readers[file].clear();
      last_writer[file] = i;
    }
    before.erase(i);  // it reads what it writes
    waits_for.emplace_back(before.begin(), before.end());
  }
  return waits_for;
}

JobOrder::JobOrder(Terms terms, const std::atomic<bool>& stop, std::function<void()> store)
    : terms_(std::move(terms)),
      stop_(stop),
      store_(std::move(store)),
      states_(terms_.waits_for.size()),
      waiting_(terms_.waits_for.size()) {}

std::optional<std::size_t> JobOrder::begin(const std::function<void(std::size_t)>& announce) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stop_ || waiting_ == 0) return std::nullopt;
    const std::uint64_t seen = changes_;
    if (const auto job = next_ready()) {
      states_[*job] = State::begun;
      --waiting_;
      if (waiting_ == 0) note_change();
      announce(*job);
      return job;
    }
    if (waits_for_results()) {
      lock.unlock();
      store_();
      lock.lock();
    }
    // Some job is under way: the first that has not begun waits for those before it alone. Others may have changed
    // while the results were stored.
    may_begin_.wait(lock, [&] { return changes_ != seen; });
  }
}

bool JobOrder::wait_to_run(std::size_t job) {
  if (!in_order()) return true;
  std::unique_lock lock(mutex_);
  may_run_.wait(lock, [&] { return stop_ || have_run(job); });
  return !stop_;
}

void JobOrder::ran(std::size_t job) { change(job, State::ran); }
void JobOrder::end(std::size_t job) { change(job, State::ended); }

// A second ran() counts as a change too: by then the job's results wait to be stored.
void JobOrder::change(std::size_t job, State state) {
  const std::lock_guard lock(mutex_);
  const bool had_run = states_[job] >= State::ran;
  states_[job] = std::max(states_[job], state);
  note_change();
  if (!had_run || stop_) may_run_.notify_all();  // with stop_, some job before may never begin
}

void JobOrder::note_change() {
  ++changes_;
  may_begin_.notify_all();
}

std::optional<std::size_t> JobOrder::next_ready() const {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] != State::waiting) continue;
    if (may_begin(i)) return i;
    if (in_order()) return std::nullopt;
  }
  return std::nullopt;
}

bool JobOrder::may_begin(std::size_t job) const {
  const auto ended = [&](std::size_t before) { return states_[before] == State::ended; };
  if (!std::ranges::all_of(terms_.waits_for[job], ended)) return false;
  if (!in_order()) return true;
  if (terms_.alone[job]) return have_run(job);
  for (std::size_t before = 0; before < job; ++before) {
    if (terms_.alone[before] && states_[before] < State::ran) return false;
  }
  return true;
}

bool JobOrder::waits_for_results() const {
  const auto next = std::ranges::find(states_, State::waiting);
  if (next == states_.end()) return false;
  const auto& before = terms_.waits_for[static_cast<std::size_t>(next - states_.begin())];
  return std::ranges::any_of(before, [&](std::size_t job) { return states_[job] == State::ran; });
}

bool JobOrder::have_run(std::size_t jobs) const {
  return std::ranges::all_of(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(jobs),
                             [](State state) { return state >= State::ran; });
}

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
