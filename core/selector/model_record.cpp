#include "selector/model_record.hpp"

#include <kiln_json.hpp>

#define XXH_INLINE_ALL  // from the header alone: no library to bind at start
#include <xxhash.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

namespace kiln::selector {
namespace {

constexpr std::size_t digest_digits = 16;
constexpr std::size_t most_text = 1024;
constexpr std::size_t most_reasons = 64;
constexpr double most_log = 60;  // natural logarithm of more nanoseconds, FLOPs or bytes than there are
constexpr double most_count = 9007199254740992.0;  // 2^53

std::string digest_of(std::string_view text) {
  char digits[digest_digits + 1];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits;
}

std::string framed(const Json& record) {
  // What a driver says of itself need not be UTF-8; a stray byte shall not cost the record.
  const std::string text = json_text(record);
  return digest_of(text) + " " + text;
}

std::string shortened(std::string text) {
  constexpr std::size_t most = 80;
  if (text.size() <= most) return text;
  text.resize(most);
  text += "…";
  return text;
}

// Reads fields; the first that is amiss stays as the rejection.
class RecordReader {
 public:
  explicit RecordReader(const Json& record) : record_(record) {}

  std::string text(const char* name) {
    const Json* field = find(name);
    if (field == nullptr) return {};
    if (!field->is_string()) return refuse(name, "a text", json_text(*field)), std::string();
    auto value = field->get<std::string>();
    if (value.size() > most_text) {
      return refuse(name, "at most " + std::to_string(most_text) + " bytes", std::to_string(value.size()) + " bytes"),
             std::string();
    }
    return value;
  }
  double number(const char* name, double most) {
    const Json* field = find(name);
    return field == nullptr ? 0 : number_of(name, *field, most);
  }
  std::uint64_t count(const char* name, double most = most_count) {
    const Json* field = find(name);
    return field == nullptr ? 0 : count_of(name, *field, most);
  }
  Average average(const char* name) {
    const Json* field = find(name);
    if (field == nullptr) return {};
    if (!field->is_array() || field->size() != 3)
      return refuse(name, "count, mean, variance", json_text(*field)), Average();
    Average value;
    value.count = count_of(name, (*field)[0], most_count);
    value.mean = number_of(name, (*field)[1], most_log);
    value.variance = number_of(name, (*field)[2], most_log * most_log);
    return value;
  }

  std::optional<RejectedRecord> rejected;

 private:
  const Json* find(const char* name) {
    const auto at = record_.find(name);
    if (at != record_.end()) return &*at;
    refuse(name, "a value", "none");
    return nullptr;
  }
  double number_of(const char* name, const Json& field, double most) {
    if (field.is_number() && field.get<double>() >= 0 && field.get<double>() <= most) return field.get<double>();
    char range[48];
    std::snprintf(range, sizeof range, "a number from 0 to %g", most);
    refuse(name, range, json_text(field));
    return 0;
  }
  std::uint64_t count_of(const char* name, const Json& field, double most) {
    if (field.is_number_unsigned() && field.get<double>() <= most) return field.get<std::uint64_t>();
    char range[48];
    std::snprintf(range, sizeof range, "a count up to %g", most);
    refuse(name, range, json_text(field));
    return 0;
  }
  void refuse(const char* name, std::string expected, const std::string& found) {
    if (!rejected) rejected = RejectedRecord{0, std::string("field ") + name, std::move(expected), shortened(found)};
  }

  const Json& record_;
};

Json json_of(const Average& average) { return {average.count, average.mean, average.variance}; }

KeyedArm arm_of(RecordReader& reader) {
  ArmKey key{reader.text("operation"), reader.text("device"), reader.text("driver"), reader.text("shape")};
  Arm arm;
  arm.run.log_ns.count = reader.count("runs");
  arm.run.weight = reader.count("weight");
  arm.run.log_ns.mean = reader.number("mean", most_log);
  arm.run.log_ns.variance = reader.number("variance", most_log * most_log);
  arm.run.widening = reader.number("widening", most_log * most_log);
  arm.run.alarms = static_cast<std::uint32_t>(reader.count("alarms", std::numeric_limits<std::uint32_t>::max()));
  arm.log_transfer = reader.average("transfer");
  arm.log_first = reader.average("first");
  arm.log_flops = reader.number("log_flops", most_log);
  arm.log_bytes = reader.number("log_bytes", most_log);
  arm.looks = static_cast<std::uint32_t>(reader.count("looks", std::numeric_limits<std::uint32_t>::max()));
  arm.used = reader.count("used");
  return {std::move(key), arm};
}

}  // namespace

std::string line_of(const ArmKey& key, const Arm& arm) {
  return framed({{"operation", key.operation},
                 {"device", key.device},
                 {"driver", key.driver},
                 {"shape", key.shape},
                 {"runs", arm.run.log_ns.count},
                 {"weight", arm.run.weight},
                 {"mean", arm.run.log_ns.mean},
                 {"variance", arm.run.log_ns.variance},
                 {"widening", arm.run.widening},
                 {"alarms", arm.run.alarms},
                 {"transfer", json_of(arm.log_transfer)},
                 {"first", json_of(arm.log_first)},
                 {"log_flops", arm.log_flops},
                 {"log_bytes", arm.log_bytes},
                 {"looks", arm.looks},
                 {"used", arm.used}});
}

std::string line_of(const UnfitCounts& counts) { return framed({{"unfit", counts}}); }

std::variant<KeyedArm, UnfitCounts, RejectedRecord> record_of(std::string_view text, std::size_t line) {
  if (text.size() < digest_digits + 2 || text[digest_digits] != ' ') {
    return RejectedRecord{line, "frame", "16 hexadecimal digits, a space, a record", shortened(std::string(text))};
  }
  const std::string_view digest = text.substr(0, digest_digits);
  const std::string_view body = text.substr(digest_digits + 1);
  if (const std::string found = digest_of(body); found != digest) {
    return RejectedRecord{line, "checksum", std::string(digest), found};
  }
  const Json record = parse_json(body);
  if (!record.is_object()) return RejectedRecord{line, "json", "an object", shortened(std::string(body))};
  RecordReader reader(record);
  if (const auto unfit = record.find("unfit"); unfit != record.end()) {
    UnfitCounts counts;
    if (!unfit->is_object() || unfit->size() > most_reasons) {
      return RejectedRecord{line, "field unfit", "an object of at most 64 counts", shortened(json_text(*unfit))};
    }
    for (const auto& [reason, count] : unfit->items()) {
      if (!count.is_number_unsigned())
        return RejectedRecord{line, "field unfit", "a count", shortened(json_text(count))};
      counts[reason] = count.get<std::uint64_t>();
    }
    return counts;
  }
  KeyedArm arm = arm_of(reader);
  if (!reader.rejected) return arm;
  reader.rejected->line = line;
  return *reader.rejected;
}

}  // namespace kiln::selector

namespace kiln {

std::string RejectedRecord::text() const {
  return "line " + std::to_string(line) + ": " + validator + ": expected " + expected + ", found " + found;
}

}  // namespace kiln
