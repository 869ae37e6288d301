#include "selector/model/model_store.hpp"

#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

namespace kiln::selector {
namespace {

using nlohmann::json;

constexpr int schema = 1;
constexpr off_t most_bytes = 16 << 20;  // several times what the greatest model takes
constexpr std::size_t most_text = 1024;
constexpr double most_log = 60;  // natural logarithm of more nanoseconds, or FLOPs, than there are

// nullopt: there is no such file.
std::optional<Result<std::string>> contents_of(const std::filesystem::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  const auto failure = [&](const char* what) {
    return io_error(std::string(what) + ": " + std::generic_category().message(errno));
  };
  if (!fd) return failure("cannot be opened");
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return failure("cannot be looked at");
  if (!S_ISREG(found.st_mode)) return corrupt("is not a regular file");
  if (found.st_size > most_bytes) {
    return corrupt(std::to_string(found.st_size) + " bytes, expected at most " + std::to_string(most_bytes));
  }
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t read = 0;
  while (read < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + read, text.size() - read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("cannot be read");
    if (got == 0) break;
    read += static_cast<std::size_t>(got);
  }
  text.resize(read);
  return text;
}

// These throw std::runtime_error, or what the JSON library throws, for a field that is missing or out of range.
std::string text_in(const json& record, const char* name) {
  auto text = record.at(name).get<std::string>();
  if (text.size() <= most_text) return text;
  throw std::runtime_error(std::string(name) + ": " + std::to_string(text.size()) + " bytes, expected at most " +
                           std::to_string(most_text));
}

double number_in(const json& record, const char* name, double least, double most) {
  const double number = record.at(name).get<double>();
  if (number >= least && number <= most) return number;
  throw std::runtime_error(std::string(name) + ": " + std::to_string(number) + ", expected " + std::to_string(least) +
                           " to " + std::to_string(most));
}

std::uint64_t count_in(const json& record, const char* name, std::uint64_t most) {
  const json& field = record.at(name);
  if (field.is_number_unsigned() && field.get<std::uint64_t>() <= most) return field.get<std::uint64_t>();
  throw std::runtime_error(std::string(name) + ": " + field.dump() + ", expected a count up to " +
                           std::to_string(most));
}

std::pair<ArmKey, Arm> arm_of(const json& record) {
  ArmKey key{text_in(record, "operation"), text_in(record, "device"), text_in(record, "driver"),
             text_in(record, "shape")};
  Arm arm;
  arm.log_ns.mean = number_in(record, "mean", 0, most_log);
  arm.log_ns.variance = number_in(record, "variance", 0, most_log * most_log);
  arm.log_ns.count = count_in(record, "count", std::uint64_t{1} << 53);
  arm.log_flops = number_in(record, "log_flops", 0, most_log);
  arm.looks = static_cast<std::uint32_t>(count_in(record, "looks", std::numeric_limits<std::uint32_t>::max()));
  arm.used = count_in(record, "used", std::uint64_t{1} << 53);
  return {std::move(key), arm};
}

json json_of(const ArmKey& key, const Arm& arm) {
  return {{"operation", key.operation}, {"device", key.device},
          {"driver", key.driver},       {"shape", key.shape},
          {"mean", arm.log_ns.mean},    {"variance", arm.log_ns.variance},
          {"count", arm.log_ns.count},  {"log_flops", arm.log_flops},
          {"looks", arm.looks},         {"used", arm.used}};
}

Status write_file(const std::filesystem::path& file, const std::string& text) {
  auto made = AtomicFile::create(file, 0600);
  if (!made && made.error().code == StatusCode::not_found) {
    std::error_code ignored;  // the second attempt says what is wrong
    std::filesystem::create_directories(file.parent_path().parent_path(), ignored);
    ::mkdir(file.parent_path().c_str(), 0700);
    made = AtomicFile::create(file, 0600);
  }
  if (!made) return made.error();
  if (Status status = made->write(std::as_bytes(std::span(text.data(), text.size()))); !status.ok()) return status;
  return made->commit();
}

}  // namespace

ModelStore::ModelStore(const std::filesystem::path& folder, Log log)
    : file_(folder.empty() ? folder : folder / "selector.json"), log_(log) {}

void ModelStore::load(PerformanceModel& into) {
  if (file_.empty()) return;
  const auto ignored = [&](const std::string& why) {
    log_.write(LogLevel::warning, "selector", "file " + file_.string() + ": ignored: " + why);
  };
  const auto read = contents_of(file_);
  if (!read) return;
  if (!*read) return ignored(read->error().message);
  const json document = json::parse(read->value(), nullptr, false);
  if (document.is_discarded() || !document.is_object()) return ignored("it is not a JSON object");
  const json found = document.value("schema", json());
  if (found != schema) return ignored("schema " + found.dump() + ", expected " + std::to_string(schema));
  const json arms = document.value("arms", json());
  if (!arms.is_array()) return ignored("it has no list of arms");

  std::size_t left_out = 0;
  std::string first;
  for (const json& record : arms) {
    try {
      auto [key, arm] = arm_of(record);
      into.restore(std::move(key), arm);
    } catch (const std::exception& error) {
      if (left_out++ == 0) first = error.what();
    }
  }
  if (left_out != 0) {
    log_.write(LogLevel::warning, "selector",
               "file " + file_.string() + ": " + std::to_string(left_out) + " of " + std::to_string(arms.size()) +
                   " records ignored, the first because of " + first);
  }
}

void ModelStore::save(const std::map<ArmKey, Arm>& arms) {
  if (file_.empty()) return;
  json list = json::array();
  for (const auto& [key, arm] : arms) list.push_back(json_of(key, arm));
  // What a driver says of itself need not be UTF-8; a stray byte shall not cost the model.
  const std::string text =
      json{{"schema", schema}, {"arms", std::move(list)}}.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (Status status = write_file(file_, text); !status.ok()) give_up(status);
}

void ModelStore::give_up(const Status& status) {
  log_.write(LogLevel::info, "selector", "what is learned stays in memory: " + status.message);
  file_.clear();
}

}  // namespace kiln::selector
