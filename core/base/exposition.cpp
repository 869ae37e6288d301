#include "base/exposition.hpp"

#include <kiln/visible_text.hpp>

#include <charconv>

namespace kiln {
namespace {

std::string text_of(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 12).ptr;
  return {text, end};
}

std::string escaped(std::string_view value) {
  std::string text;
  for (;;) {
    const std::size_t end = value.find('\n');
    for (const char c : visible(value.substr(0, end))) {
      if (c == '\\' || c == '"') text += '\\';
      text += c;
    }
    if (end == std::string_view::npos) return text;
    text += "\\n";
    value.remove_prefix(end + 1);
  }
}

}  // namespace

void Exposition::metric(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " + std::string(type) + "\n";
}

void Exposition::sample(std::initializer_list<Label> labels, std::uint64_t value) {
  line("", {labels.begin(), labels.size()}, std::to_string(value));
}

void Exposition::sample(std::initializer_list<Label> labels, double value) {
  line("", {labels.begin(), labels.size()}, text_of(value));
}

void Exposition::histogram(std::initializer_list<Label> labels, std::span<const double> bounds,
                           std::span<const std::uint64_t> counts, double sum) {
  std::vector<Label> with_bound(labels);
  with_bound.emplace_back("le", "");
  std::uint64_t so_far = 0;
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    const std::string bound = bucket < bounds.size() ? text_of(bounds[bucket]) : "+Inf";
    with_bound.back().second = bound;
    line("_bucket", with_bound, std::to_string(so_far += counts[bucket]));
  }
  line("_sum", {labels.begin(), labels.size()}, text_of(sum));
  line("_count", {labels.begin(), labels.size()}, std::to_string(so_far));
}

void Exposition::line(std::string_view suffix, std::span<const Label> labels, const std::string& value) {
  text_ += name_ + std::string(suffix);
  char before = '{';
  for (const auto& [label, content] : labels) {
    text_ += before + std::string(label) + "=\"" + escaped(content) + "\"";
    before = ',';
  }
  text_ += (labels.empty() ? " " : "} ") + value + "\n";
}

}  // namespace kiln
