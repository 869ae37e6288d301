#include "dynamic_shaders/tuner/tuning_database.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace kiln::dynamic_shaders {
namespace {

constexpr std::size_t checksum_digits = 16;
constexpr std::size_t most_samples = 1000;
constexpr std::size_t fields_without_basis = 11;
constexpr std::string_view verdict_words[] = {"invalid", "measured", "winner", "rejected", "outvoted"};

std::string checksum_of(std::string_view text) { return sha256(text).hex().substr(0, checksum_digits); }

// Nothing in a field may end it.
std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string samples_text(const std::vector<std::uint64_t>& samples) {
  std::string text;
  for (const std::uint64_t sample : samples) {
    if (!text.empty()) text += ',';
    text += std::to_string(sample);
  }
  return text;
}

template <class Number>
bool read_number(std::string_view text, Number& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_samples(std::string_view text, std::vector<std::uint64_t>& to) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    if (to.size() == most_samples || !read_number(one, to.emplace_back())) return false;
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return true;
}

std::string double_text(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : std::string("0");
}

}  // namespace

std::string device_digest(const DeviceInfo& device) {
  KeyEncoder encoder;
  for (const auto& [name, value] : device.device_identity) encoder.field("device." + name, value);
  for (const auto& [name, value] : device.driver_identity) encoder.field("driver." + name, value);
  encoder.field("lanes", device.simd_lanes);  // another vector width is another machine
  return encoder.digest().hex().substr(0, 32);
}

std::string record_spec(const KernelSpec& spec) {
  const auto* kernel = std::get_if<UserKernelSpec>(&spec);
  if (kernel == nullptr || kernel->parameters.empty()) return canonical_text(spec);
  UserKernelSpec open = *kernel;
  for (auto& parameter : open.parameters) parameter.texts.resize(std::min<std::size_t>(parameter.texts.size(), 1));
  return canonical_text(open);
}

std::string to_line(const TuningRecord& record) {
  std::string line;
  const auto field = [&line](std::string_view text) {
    line += text;
    line += '\t';
  };
  field(plain(record.device));
  field(plain(record.spec));
  field(plain(record.variant));
  field(verdict_words[static_cast<std::size_t>(record.verdict)]);
  field(std::to_string(record.when));
  field(plain(record.source));
  field(double_text(record.max_rel_error));
  field(double_text(record.error_bound));
  field(samples_text(record.wall_ns));
  field(samples_text(record.device_ns));
  field(plain(record.why));
  if (!record.basis.empty()) field(plain(record.basis));
  return line + checksum_of(line) + "\n";
}

std::optional<TuningRecord> record_of(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  const std::size_t last = line.rfind('\t');
  if (last == std::string_view::npos || line.substr(last + 1) != checksum_of(line.substr(0, last + 1)))
    return std::nullopt;
  line = line.substr(0, last + 1);
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const std::size_t end = line.find('\t');
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  if (fields.size() != fields_without_basis && fields.size() != fields_without_basis + 1) return std::nullopt;
  TuningRecord record;
  record.device = fields[0];
  record.spec = fields[1];
  record.variant = fields[2];
  for (std::size_t i = 1; i < std::size(verdict_words); ++i) {
    if (fields[3] == verdict_words[i]) record.verdict = static_cast<Verdict>(i);
  }
  record.source = fields[5];
  record.why = fields[10];
  if (fields.size() > fields_without_basis) record.basis = fields[fields_without_basis];
  const bool whole = record.verdict != Verdict::invalid && read_number(fields[4], record.when) &&
                     read_number(fields[6], record.max_rel_error) && read_number(fields[7], record.error_bound) &&
                     read_samples(fields[8], record.wall_ns) && read_samples(fields[9], record.device_ns);
  if (!whole) return std::nullopt;
  return record;
}

}  // namespace kiln::dynamic_shaders
