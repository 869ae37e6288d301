#include "config/jobs/kernel_keys.hpp"

#include "config/text/nearest_word.hpp"
#include "config/text/toml_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace kiln::config {
namespace {

constexpr ValueRule file_rule{ValueKind::text};
constexpr ValueRule grid_rule{ValueKind::integer, 1, std::numeric_limits<std::uint32_t>::max()};
constexpr std::size_t most_expression = 4096;

// What stands behind "#define NAME"; nullopt where no text can say it.
std::optional<std::string> define_text(const TomlNode& node) {
  switch (node.kind) {
    case TomlKind::boolean:
      return node.boolean ? "true" : "false";
    case TomlKind::integer:
      return std::to_string(node.integer);
    case TomlKind::number:
      if (!std::isfinite(node.number)) return std::nullopt;
      return print_number(node.number);
    case TomlKind::text:
      return is_define_text(node.text) ? std::optional(node.text) : std::nullopt;
    case TomlKind::moment:
    case TomlKind::array:
    case TomlKind::table:
    case TomlKind::invalid:
      break;
  }
  return std::nullopt;
}

}  // namespace

void read_constants(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  if (member.value.kind != TomlKind::table) {
    return report.problem(member.value.at, "constants: found " + describe(member.value) +
                                               ", expected a table such as { A = 2.5, TAPS = 7 }");
  }
  for (const TomlMember& constant : member.value.members) {
    if (!is_define_name(constant.key)) {
      report.problem(constant.at, "constants: found the name " + toml_text(constant.key) +
                                      ", expected letters, digits and \"_\", no digit first");
    } else if (std::optional<std::string> text = define_text(constant.value)) {
      draft.job.constants.push_back({constant.key, std::move(*text)});
    } else {
      report.problem(constant.value.at, "constants." + constant.key + ": found " + describe(constant.value) +
                                            ", expected a finite number, a boolean or a text of one line");
    }
  }
}

void read_tune(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  if (member.value.kind != TomlKind::table) {
    return report.problem(
        member.value.at, "tune: found " + describe(member.value) + ", expected a table such as { TILE = [8, 16, 32] }");
  }
  for (const TomlMember& parameter : member.value.members) {
    const TomlNode& list = parameter.value;
    const std::string who = "tune." + toml_key(parameter.key);
    if (list.kind != TomlKind::array) {
      report.problem(list.at, who + ": found " + describe(list) + ", expected an array of what to try");
      continue;
    }
    UserKernelSpec::Parameter& read = draft.job.tune.emplace_back();
    read.name = parameter.key;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (std::optional<std::string> text = define_text(list.items[i])) {
        read.texts.push_back(std::move(*text));
      } else {
        report.problem(list.items[i].at, who + "[" + std::to_string(i) + "]: found " + describe(list.items[i]) +
                                             ", expected a finite number, a boolean or a text of one line");
      }
    }
  }
}

void read_bindings(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  constexpr std::string_view expected = "{ input = FILE } or { inout = FILE }";
  const auto tables = [](const TomlNode& item) { return item.kind == TomlKind::table; };
  const TomlNode& list = member.value;
  if (list.kind != TomlKind::array || list.items.empty()) {
    return report.problem(list.at,
                          "bindings: found " + describe(list) + ", expected an array of " + std::string(expected));
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const TomlNode& item = list.items[i];
    const std::string who = "bindings[" + std::to_string(i) + "]";
    if (!tables(item)) {
      report.problem(item.at, who + ": found " + describe(item) + ", expected " + std::string(expected));
      continue;
    }
    std::size_t accesses = 0;
    for (const TomlMember& key : item.members) {
      if (key.key != "input" && key.key != "inout") {
        constexpr std::array<std::string_view, 2> known{"input", "inout"};
        report.problem(key.at, who + "." + toml_key(key.key) +
                                   ": unknown key; nearest: " + std::string(nearest_word(key.key, known)));
        ++accesses;  // most likely a misspelt access: told once is enough
        continue;
      }
      ++accesses;
      const Result<ConfigValue> file = checked(key.value, file_rule);
      if (!file) {
        report.problem(key.value.at, who + "." + key.key + ": " + file.error().message);
      } else {
        draft.job.bindings.push_back(
            {key.key == "input" ? Access::read : Access::read_write, std::get<std::string>(*file)});
      }
    }
    if (accesses != 1) {
      report.problem(item.at, who + ": found " + std::to_string(accesses) +
                                  " keys, expected exactly one: " + std::string(expected));
    }
  }
}

void read_grid(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  const TomlNode& list = member.value;
  if (list.kind != TomlKind::array || list.items.empty() || list.items.size() > draft.job.grid.size()) {
    const std::string found =
        list.kind == TomlKind::array ? "an array of " + std::to_string(list.items.size()) : describe(list);
    return report.problem(list.at, "grid: found " + found + ", expected an array of one to three workgroup counts");
  }
  for (std::size_t axis = 0; axis < list.items.size(); ++axis) {
    const TomlNode& item = list.items[axis];
    if (item.kind == TomlKind::text && !item.text.empty() && item.text.size() <= most_expression) {
      draft.job.grid_expressions[axis] = item.text;  // judged with the constants, which may stand behind it
      continue;
    }
    const Result<ConfigValue> count = checked(item, grid_rule);
    if (!count) {
      report.problem(item.at, "grid[" + std::to_string(axis) + "]: " + count.error().message);
    } else {
      draft.job.grid[axis] = static_cast<std::uint32_t>(std::get<std::int64_t>(*count));
    }
  }
}

}  // namespace kiln::config
