#include "progress/metrics_reading.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace kiln::host {
namespace {

// A label's value from behind its opening quote; takes the closing one too. nullopt: there is none.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      text.remove_prefix(at + 1);
      return value;
    }
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      value += text[at] == 'n' ? '\n' : text[at];
    } else {
      value += text[at];
    }
  }
  return std::nullopt;
}

}  // namespace

MetricsReading::MetricsReading(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t name_ends = line.find_first_of("{ ");
    if (name_ends == std::string_view::npos) continue;
    const std::string name(line.substr(0, name_ends));
    line.remove_prefix(name_ends);
    Sample sample;
    bool whole = true;
    if (line.front() == '{') {
      line.remove_prefix(1);
      while (whole && !line.empty() && line.front() != '}') {
        const std::size_t equals = line.find("=\"");
        whole = equals != std::string_view::npos;
        if (!whole) break;
        const std::string label(line.substr(0, equals));
        line.remove_prefix(equals + 2);
        auto value = take_quoted(line);
        whole = value.has_value();
        if (value) sample.labels[label] = std::move(*value);
        if (!line.empty() && line.front() == ',') line.remove_prefix(1);
      }
      if (whole && !line.empty()) line.remove_prefix(1);
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const auto end = std::from_chars(line.data(), line.data() + line.size(), sample.value);
    if (whole && end.ec == std::errc() && end.ptr == line.data() + line.size()) {
      samples_[name].push_back(std::move(sample));
    }
  }
}

double MetricsReading::sum(std::string_view name, const std::vector<Label>& with) const {
  const auto found = samples_.find(name);
  if (found == samples_.end()) return 0;
  double sum = 0;
  for (const Sample& sample : found->second) {
    const bool all = std::ranges::all_of(with, [&](const Label& label) {
      const auto at = sample.labels.find(label.first);
      return at != sample.labels.end() && at->second == label.second;
    });
    if (all) sum += sample.value;
  }
  return sum;
}

std::vector<std::string> MetricsReading::values_of(std::string_view name, std::string_view label) const {
  std::vector<std::string> values;
  const auto found = samples_.find(name);
  if (found == samples_.end()) return values;
  for (const Sample& sample : found->second) {
    const auto at = sample.labels.find(label);
    if (at == sample.labels.end() || std::ranges::find(values, at->second) != values.end()) continue;
    values.push_back(at->second);
  }
  return values;
}

}  // namespace kiln::host
