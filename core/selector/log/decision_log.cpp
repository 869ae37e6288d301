#include "selector/log/decision_log.hpp"

#include "base/json.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>

namespace kiln::selector {
namespace {

constexpr std::size_t most_pending = 1024;  // of one bucket and device: jobs whose end was never told

Status failure(const std::filesystem::path& file, const char* what) {
  return io_error("file " + file.string() + ": " + what + ": " + std::generic_category().message(errno));
}

std::string random_name() {
  std::random_device source;
  char text[20];
  std::snprintf(text, sizeof text, "%08x%08x", source(), source());
  return text;
}

}  // namespace

DecisionLog::DecisionLog(const std::filesystem::path& folder, std::uint64_t most_bytes, Log log)
    : file_(folder.empty() ? folder : folder / decision_log_file), most_bytes_(most_bytes), log_(log) {
  if (enabled()) process_ = random_name();
}

Status DecisionLog::open() {
  if (fd_) return {};
  fd_ = UniqueFd(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd_ && errno == ENOENT) {
    std::error_code ignored;
    std::filesystem::create_directories(file_.parent_path().parent_path(), ignored);
    ::mkdir(file_.parent_path().c_str(), 0700);
    fd_ = UniqueFd(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  }
  if (!fd_) return failure(file_, "cannot be opened");
  struct stat at {};
  if (::fstat(fd_.get(), &at) != 0) return failure(file_, "cannot be looked at");
  if (!S_ISREG(at.st_mode)) return io_error("file " + file_.string() + ": not a regular file");
  // What is appended would be appended to the file's other name too.
  if (at.st_nlink > 1) {
    return io_error("file " + file_.string() + ": has " + std::to_string(at.st_nlink) + " names, expected 1");
  }
  return {};
}

// Another process may have moved the file on already: then the one under its name is the one to go on with.
Status DecisionLog::rotate_where_full() {
  struct stat mine {};
  struct stat named {};
  if (::fstat(fd_.get(), &mine) != 0) return failure(file_, "cannot be looked at");
  const bool moved = ::stat(file_.c_str(), &named) != 0 || named.st_ino != mine.st_ino;
  if (!moved && static_cast<std::uint64_t>(mine.st_size) < most_bytes_ / 2) return {};
  if (!moved && ::rename(file_.c_str(), (file_.parent_path() / older_decision_log_file).c_str()) != 0) {
    return failure(file_, "cannot be moved on");
  }
  fd_ = UniqueFd();
  return open();
}

void DecisionLog::write(std::string line) {
  line += '\n';
  Status status = open();
  if (status.ok()) status = rotate_where_full();
  if (status.ok() && ::write(fd_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    status = failure(file_, "cannot be written");
  }
  if (status.ok()) return;
  log_.write(LogLevel::warning, "selector", "decisions are no longer recorded: " + status.message);
  file_.clear();
}

void DecisionLog::decided(const ShapeBucket& bucket, std::span<const Prospect> prospects, const Decision& decision,
                          const std::vector<double>& propensities) {
  Json candidates = Json::array();
  for (const Prospect& prospect : prospects) {
    Json one{{"device", prospect.device->id}};
    if (prospect.run.known()) {
      one["fixed_ns"] = prospect.fixed_ns();
      one["log_ns"] = prospect.run.log_ns;
      one["deviation"] = prospect.run.log_deviation;
      one["runs"] = prospect.run.runs;
    }
    candidates.push_back(std::move(one));
  }
  const std::string id = process_ + "-" + std::to_string(next_++);
  const std::string name = bucket.operation + " " + bucket.shape;
  auto& waiting = pending_[{name, prospects[decision.candidate].device->id}];
  if (waiting.size() >= most_pending) waiting.pop_front();
  waiting.push_back({id, prospects[decision.candidate].repeat});
  write(json_text({{"decision", id},
                   {"bucket", name},
                   {"ground", to_string(decision.ground)},
                   {"chosen", decision.candidate},
                   {"repeat", prospects[decision.candidate].repeat},
                   {"candidates", std::move(candidates)},
                   {"options", decision.candidate_of},
                   {"propensities", propensities}}));
}

void DecisionLog::ended(const ShapeBucket& bucket, const DeviceInfo& device, double ns, Unfit unfit) {
  const auto waiting = pending_.find({bucket.operation + " " + bucket.shape, device.id});
  if (waiting == pending_.end()) return;  // its device was named: nothing was decided
  Pending& oldest = waiting->second.front();
  const std::string id = oldest.id;
  if (--oldest.runs == 0 || unfit == Unfit::faulted || unfit == Unfit::timed_out) waiting->second.pop_front();
  if (waiting->second.empty()) pending_.erase(waiting);
  write(json_text({{"outcome", id}, {"ns", ns}, {"unfit", to_string(unfit)}}));
}

}  // namespace kiln::selector
