#include "selector/decision_log.hpp"

#include <kiln/regular_file.hpp>
#include <kiln_json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <stdexcept>
#include <system_error>

namespace kiln::selector {
namespace {

constexpr std::size_t most_pending = 1024;  // also of threads that have ended

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
  if (::fstat(fd_.get(), &at) != 0) return failure(file_, "attributes cannot be read");
  if (!S_ISREG(at.st_mode)) return io_error("file " + file_.string() + ": not a regular file");
  // What is appended would be appended to the file's other name too.
  if (at.st_nlink > 1) {
    return io_error("file " + file_.string() + ": has " + std::to_string(at.st_nlink) + " hard links, expected 1");
  }
  return {};
}

// Another process may have moved the file on already: then the one under its name is the one to go on with.
Status DecisionLog::rotate_where_full() {
  struct stat mine {};
  struct stat named {};
  if (::fstat(fd_.get(), &mine) != 0) return failure(file_, "attributes cannot be read");
  const bool moved = ::stat(file_.c_str(), &named) != 0 || named.st_ino != mine.st_ino;
  if (!moved && static_cast<std::uint64_t>(mine.st_size) < most_bytes_ / 2) return {};
  if (!moved && ::rename(file_.c_str(), (file_.parent_path() / older_decision_log_file).c_str()) != 0) {
    return failure(file_, "cannot be renamed");
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
  const Prospect& chosen = prospects[decision.candidate];
  if (pending_.size() >= most_pending) pending_.clear();
  pending_[std::this_thread::get_id()] = {id, name, chosen.device->id, chosen.repeat};
  write(json_text({{"decision", id},
                   {"bucket", name},
                   {"ground", to_string(decision.ground)},
                   {"chosen", decision.candidate},
                   {"repeat", chosen.repeat},
                   {"candidates", std::move(candidates)},
                   {"options", decision.candidate_of},
                   {"propensities", propensities}}));
}

void DecisionLog::ended(const ShapeBucket& bucket, const DeviceInfo& device, double ns, Unfit unfit) {
  const auto at = pending_.find(std::this_thread::get_id());
  if (at == pending_.end() || at->second.device != device.id) return;  // its device was named: nothing was decided
  if (at->second.bucket != bucket.operation + " " + bucket.shape) return;
  const std::string id = at->second.id;
  if (--at->second.runs == 0 || unfit == Unfit::faulted || unfit == Unfit::timed_out) pending_.erase(at);
  write(json_text({{"outcome", id}, {"ns", ns}, {"unfit", to_string(unfit)}}));
}

namespace {

constexpr std::uint64_t most_log_bytes = 64 << 20;  // of one file: several times [selector] log_size
constexpr std::size_t most_line = 1 << 20;
constexpr std::size_t most_rejected = 100;  // told one by one

// Throws what the JSON library throws, or std::runtime_error, where a field is missing or out of range.
RecordedDecision decision_of(const Json& record) {
  RecordedDecision decision;
  decision.bucket = record.at("bucket").get<std::string>();
  decision.ground = record.at("ground").get<std::string>();
  const Json& candidates = record.at("candidates");
  const auto chosen = record.at("chosen").get<std::size_t>();
  const auto options = record.at("options").get<std::vector<std::size_t>>();
  const auto propensities = record.at("propensities").get<std::vector<double>>();
  if (chosen >= candidates.size()) {
    throw std::runtime_error("chosen " + std::to_string(chosen) + " of " + std::to_string(candidates.size()));
  }
  if (propensities.size() != options.size()) {
    throw std::runtime_error(std::to_string(propensities.size()) + " propensities for " +
                             std::to_string(options.size()) + " options");
  }
  decision.chosen_device = candidates[chosen].at("device").get<std::string>();
  decision.chosen = options.size();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Json& candidate = candidates.at(options[i]);
    RecordedOption option;
    option.device = candidate.at("device").get<std::string>();
    option.option = {candidate.at("fixed_ns").get<double>(), candidate.at("log_ns").get<double>(),
                     candidate.at("deviation").get<double>(), candidate.at("runs").get<std::uint64_t>()};
    option.propensity = propensities[i];
    if (!(option.propensity >= 0 && option.propensity <= 1.001)) {
      throw std::runtime_error("propensity " + std::to_string(option.propensity));
    }
    if (options[i] == chosen) decision.chosen = i;
    decision.options.push_back(std::move(option));
  }
  if (!options.empty() && decision.chosen == options.size()) {
    throw std::runtime_error("the chosen device is not a candidate");
  }
  return decision;
}

class LogReader {
 public:
  explicit LogReader(RecordedLog& log) : log_(log) {}

  void read(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.size() > most_line) {
        reject(number, "size", std::to_string(most_line) + " bytes at most", std::to_string(line.size()));
        continue;
      }
      const Json record = parse_json(line);
      if (!record.is_object()) {
        reject(number, "json", "an object", std::string(line.substr(0, 60)));
        continue;
      }
      try {
        take(record);
      } catch (const std::exception& error) {
        reject(number, "field", "a decision or an outcome", error.what());
      }
    }
  }

 private:
  void take(const Json& record) {
    if (record.contains("outcome")) {
      const auto at = index_.find(record.at("outcome").get<std::string>());
      if (at == index_.end()) return;  // its decision has left the log
      if (record.at("unfit").get<std::string>() != to_string(Unfit::fit)) return;
      log_.decisions[at->second].fit_ns.push_back(record.at("ns").get<double>());
      return;
    }
    RecordedDecision decision = decision_of(record);
    index_[record.at("decision").get<std::string>()] = log_.decisions.size();
    log_.decisions.push_back(std::move(decision));
  }
  void reject(std::size_t line, std::string validator, std::string expected, std::string found) {
    if (log_.rejected.size() >= most_rejected) return;
    log_.rejected.push_back({line, std::move(validator), std::move(expected), std::move(found)});
  }

  RecordedLog& log_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace

Result<RecordedLog> read_decisions(const std::filesystem::path& log) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(log, ignored);
  RecordedLog recorded;
  LogReader reader(recorded);
  bool any = false;
  for (const char* name : {older_decision_log_file, decision_log_file}) {
    if (!folder && name != decision_log_file) continue;
    const std::filesystem::path file = folder ? log / name : log;
    const Result<std::string> text = read_whole_file(file, most_log_bytes);
    if (!text && text.error().code == StatusCode::not_found) continue;
    if (!text) return text.error();
    any = true;
    reader.read(*text);
  }
  if (any) return recorded;
  return not_found(log.string() + ": no decision log exists. Set [selector] log = true to record one");
}

}  // namespace kiln::selector
