#include "verbs/run/job_order.hpp"

#include "base/os/atomic_file.hpp"

#include <algorithm>
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

FilesOfJob files_of(const JobConfig& job) {
  FilesOfJob files;
  for (const std::string* source : {&job.input, &job.weights, &job.bias, &job.source, &job.expect}) {
    if (!source->empty()) files.read.insert(name_of_file(job.base / *source));
  }
  if (!job.output.empty()) files.written.insert(name_of_file(job.output));
  for (const KernelBindingConfig& binding : job.bindings) {
    for (const std::string* source : {&binding.input, &binding.expect}) {
      if (!source->empty()) files.read.insert(name_of_file(job.base / *source));
    }
    if (!binding.output.empty()) files.written.insert(name_of_file(job.base / binding.output));
  }
  return files;
}

}  // namespace

std::vector<std::vector<std::size_t>> jobs_to_wait_for(const std::vector<JobConfig>& jobs) {
  std::map<fs::path, std::size_t> last_writer;
  std::map<fs::path, std::vector<std::size_t>> readers;  // since it was written last
  std::vector<std::vector<std::size_t>> waits_for;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const FilesOfJob files = files_of(jobs[i]);
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

JobOrder::JobOrder(std::vector<std::vector<std::size_t>> waits_for, const std::atomic<bool>& stop)
    : waits_for_(std::move(waits_for)), stop_(stop), states_(waits_for_.size()), waiting_(waits_for_.size()) {}

std::optional<std::size_t> JobOrder::begin() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stop_ || waiting_ == 0) return std::nullopt;
    if (const auto job = next_ready()) {
      states_[*job] = State::begun;
      --waiting_;
      if (waiting_ == 0) changed_.notify_all();
      return job;
    }
    changed_.wait(lock);  // some job is under way: the first that has not begun waits for those before it alone
  }
}

void JobOrder::end(std::size_t job) {
  {
    const std::lock_guard lock(mutex_);
    states_[job] = State::ended;
  }
  changed_.notify_all();
}

std::optional<std::size_t> JobOrder::next_ready() const {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] != State::waiting) continue;
    const auto ended = [&](std::size_t before) { return states_[before] == State::ended; };
    if (std::ranges::all_of(waits_for_[i], ended)) return i;
  }
  return std::nullopt;
}

}  // namespace kiln::host
