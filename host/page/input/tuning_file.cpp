#include "page/input/tuning_file.hpp"

#include "report/human.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace kiln::host::page {
namespace {

constexpr std::string_view form = "kiln-tuning ";
constexpr std::string_view known_form = "1";
constexpr std::size_t fields_of_a_record = 11;
constexpr std::size_t checksum_digits = 16;

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

std::vector<std::string_view> parts(std::string_view text, char between) {
  std::vector<std::string_view> all;
  while (true) {
    const std::size_t end = text.find(between);
    all.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return all;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<TuningRecord> record_of_line(std::string_view line) {
  const std::size_t last = line.rfind('\t');
  if (last == std::string_view::npos) return std::nullopt;
  const std::string checksum = sha256(line.substr(0, last + 1)).hex().substr(0, checksum_digits);
  if (line.substr(last + 1) != checksum) return std::nullopt;
  const auto fields = parts(line.substr(0, last), '\t');
  if (fields.size() != fields_of_a_record) return std::nullopt;
  TuningRecord record;
  record.device = fields[0];
  record.spec = fields[1];
  record.variant = fields[2];
  record.verdict = fields[3];
  const auto when = whole_number<std::int64_t>(fields[4]);
  if (!when || (record.verdict != "measured" && record.verdict != "winner" && record.verdict != "rejected")) {
    return std::nullopt;
  }
  record.when = *when;
  for (const std::string_view sample : parts(fields[8], ',')) {
    if (fields[8].empty()) break;
    const auto ns = whole_number<std::uint64_t>(sample);
    if (!ns) return std::nullopt;
    record.wall_ms.push_back(static_cast<double>(*ns) / 1e6);
  }
  std::ranges::sort(record.wall_ms);
  record.why = fields[10];
  return record;
}

// "conv2d n=1 c=64": the numbers by their names.
std::map<std::string_view, double> numbers_of(std::string_view spec) {
  std::map<std::string_view, double> numbers;
  for (const std::string_view word : parts(spec, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    if (const auto number = whole_number<std::int64_t>(word.substr(equals + 1))) {
      numbers[word.substr(0, equals)] = static_cast<double>(*number);
    }
  }
  return numbers;
}

double output_extent(double in, double kernel, double pad, double dilation, double stride) {
  if (stride <= 0) return 0;
  return static_cast<double>(static_cast<std::int64_t>((in + 2 * pad - dilation * (kernel - 1) - 1) / stride)) + 1;
}

std::string whole(double number) { return std::to_string(static_cast<std::int64_t>(number)); }

}  // namespace

double TuningRecord::median() const noexcept {
  const std::size_t middle = wall_ms.size() / 2;
  return wall_ms.size() % 2 == 1 ? wall_ms[middle] : (wall_ms[middle - 1] + wall_ms[middle]) / 2;
}

bool is_tuning_text(std::string_view text) noexcept { return text.starts_with(form); }

Result<TuningFile> read_tuning(std::string_view text) {
  const std::string_view version = first_line(text).substr(form.size());
  if (version != known_form) {
    return unsupported("tuning database: form '" + std::string(version) + "', expected '" + std::string(known_form) +
                       "'");
  }
  TuningFile file;
  auto lines = parts(text, '\n');
  lines.erase(lines.begin());
  for (const std::string_view line : lines) {
    if (line.empty()) continue;
    if (auto record = record_of_line(line)) {
      file.records.push_back(std::move(*record));
    } else {
      ++file.damaged;
    }
  }
  if (file.records.empty() && file.damaged != 0) {
    return corrupt("tuning database: " + counted(file.damaged, "line") + ", expected one whole record at least");
  }
  return file;
}

std::string shape_words(std::string_view spec) {
  auto n = numbers_of(spec);
  if (spec.starts_with("gemm ")) return whole(n["m"]) + "×" + whole(n["n"]) + "×" + whole(n["k"]);
  if (!spec.starts_with("conv2d ")) return std::string(spec.substr(0, 40));
  std::string words = whole(n["r"]) + "×" + whole(n["s"]);
  if (n["stride_y"] != 1) words += " /" + whole(n["stride_y"]);
  words += ", " + whole(n["c"]) + "→" + whole(n["k"]);
  if (n["groups"] > 1) words += " in " + whole(n["groups"]);
  words += ", " + whole(n["h"]);
  words += n["h"] == n["w"] ? "²" : "×" + whole(n["w"]);
  if (n["n"] != 1) words += ", batch " + whole(n["n"]);
  if (n["bias"] != 0) words += ", bias";
  if (spec.find(" activation=relu") != std::string_view::npos) words += ", relu";
  if (spec.find(" accuracy=winograd") != std::string_view::npos) words += ", Winograd allowed";
  return words;
}

double flops_of(std::string_view spec) {
  auto n = numbers_of(spec);
  if (spec.starts_with("gemm ")) return 2 * n["m"] * n["n"] * n["k"];
  if (!spec.starts_with("conv2d ") || n["groups"] <= 0) return 0;
  const double out_h = output_extent(n["h"], n["r"], n["pad_y"], n["dilation_y"], n["stride_y"]);
  const double out_w = output_extent(n["w"], n["s"], n["pad_x"], n["dilation_x"], n["stride_x"]);
  return 2 * n["n"] * n["k"] * out_h * out_w * (n["c"] / n["groups"]) * n["r"] * n["s"];
}

}  // namespace kiln::host::page
