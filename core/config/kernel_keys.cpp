#include "config/job_keys.hpp"

#include <kiln/config_text.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace kiln::config {
namespace {

constexpr ValueRule grid_rule{ValueKind::integer, 1, std::numeric_limits<std::uint32_t>::max()};

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
                                      ", expected letters, digits and \"_\", not beginning with a digit");
    } else if (std::optional<std::string> text = define_text(constant.value)) {
      draft.job.constants.push_back({constant.key, std::move(*text)});
    } else {
      report.problem(constant.value.at, "constants." + constant.key + ": found " + describe(constant.value) +
                                            ", expected a finite number, a boolean or a text of one line without "
                                            "backslashes");
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
      report.problem(list.at, who + ": found " + describe(list) + ", expected an array of values to try");
      continue;
    }
    UserKernelSpec::Parameter& read = draft.job.tune.emplace_back();
    read.name = parameter.key;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (std::optional<std::string> text = define_text(list.items[i])) {
        read.texts.push_back(std::move(*text));
      } else {
        report.problem(list.items[i].at, who + "[" + std::to_string(i) + "]: found " + describe(list.items[i]) +
                                             ", expected a finite number, a boolean or a text of one line without "
                                             "backslashes");
      }
    }
  }
}

namespace {

// An array of tables, or an array of such arrays.
bool holds_tables(const TomlNode& node) {
  return node.kind == TomlKind::array && !node.items.empty() && std::ranges::all_of(node.items, [](const auto& item) {
           return item.kind == TomlKind::table || holds_tables(item);
         });
}

// One member of `uniforms` or `blocks`, or of a table or an array of tables in it: names as GLSL spells those of
// structs and arrays.
class UniformReader {
 public:
  // key: "uniforms" or "blocks".
  UniformReader(JobDraft& draft, std::string_view key, JobReport& report)
      : draft_(draft), key_(key), file_(report.file()), report_(report) {}

  // at: of the key, or of the element of an array.
  void read(const std::string& name, const TomlNode& value, TextPosition at) {
    if (value.kind == TomlKind::table) {
      if (value.members.empty()) {
        return report_.problem(value.at,
                               std::string(key_) + "." + name + ": found an empty table, expected at least one member");
      }
      for (const TomlMember& inner : value.members) read(name + "." + inner.key, inner.value, inner.at);
      return;
    }
    if (holds_tables(value)) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        read(name + "[" + std::to_string(i) + "]", value.items[i], value.items[i].at);
      }
      return;
    }
    UniformConfig uniform;
    uniform.uniform.name = name;
    uniform.place = file_.place(at);
    if (!add(value, 0, uniform)) {
      return report_.problem(wrong_.line != 0 ? wrong_ : value.at,
                             std::string(key_) + "." + name + ": " + problem_ +
                                 ", expected a number, true or false, or an array of values of one type, with inner "
                                 "arrays of one length");
    }
    draft_.job.uniforms.push_back(std::move(uniform));
  }

 private:
  using Type = UserKernelSpec::Uniform::Type;

  bool fail(const TomlNode& node, std::string problem) {
    wrong_ = node.at;
    problem_ = std::move(problem);
    return false;
  }

  bool fail_beside_fraction(const TomlNode& node, std::int64_t integer) {
    return fail(node,
                "found " + std::to_string(integer) + ", which float64 cannot represent, together with a fraction");
  }

  bool add(const TomlNode& node, std::size_t depth, UniformConfig& to) {
    auto& shape = to.uniform.shape;
    if (node.kind == TomlKind::array) {
      if (node.items.empty()) return fail(node, "found " + describe(node));
      const bool first = shape.size() == depth && to.uniform.type == Type::invalid;
      if (first) {
        shape.push_back(static_cast<std::uint32_t>(node.items.size()));
      } else if (depth >= shape.size() || shape[depth] != node.items.size()) {
        return fail(node,
                    "found an array of length " + std::to_string(node.items.size()) + " together with " +
                        (depth < shape.size() ? "arrays of length " + std::to_string(shape[depth]) : "single values"));
      }
      return std::ranges::all_of(node.items, [&](const TomlNode& item) { return add(item, depth + 1, to); });
    }
    if (depth != shape.size()) return fail(node, "found " + describe(node) + " together with an array");
    return add_value(node, to);
  }

  // Whole numbers among numbers are numbers: [1, 0.5].
  bool add_value(const TomlNode& node, UniformConfig& to) {
    Type& type = to.uniform.type;
    const Type given = node.kind == TomlKind::boolean   ? Type::boolean
                       : node.kind == TomlKind::integer ? Type::integer
                       : node.kind == TomlKind::number  ? Type::number
                                                        : Type::invalid;
    if (given == Type::invalid) return fail(node, "found " + describe(node));
    if (given == Type::number && type == Type::integer) {
      for (const std::int64_t value : to.integers) {
        if (!has_integer(DType::f64, value)) return fail_beside_fraction(node, value);
        to.numbers.push_back(static_cast<double>(value));
      }
      to.integers.clear();
      type = Type::number;
    }
    if (type == Type::invalid) type = given;
    if ((given == Type::boolean) != (type == Type::boolean)) return fail(node, "found both booleans and numbers");
    if (type == Type::number) {
      if (given == Type::integer && !has_integer(DType::f64, node.integer)) {
        return fail_beside_fraction(node, node.integer);
      }
      to.numbers.push_back(given == Type::integer ? static_cast<double>(node.integer) : node.number);
    } else {
      to.integers.push_back(given == Type::boolean ? (node.boolean ? 1 : 0) : node.integer);
    }
    return true;
  }

  JobDraft& draft_;
  std::string_view key_;
  const FileContext& file_;
  JobReport& report_;
  TextPosition wrong_;
  std::string problem_;
};

}  // namespace

void read_uniforms(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  if (member.value.kind != TomlKind::table) {
    return report.problem(member.value.at, "uniforms: found " + describe(member.value) +
                                               ", expected a table such as { gain = 3.0, size = [640, 480] }");
  }
  UniformReader reader(draft, "uniforms", report);
  for (const TomlMember& uniform : member.value.members) reader.read(uniform.key, uniform.value, uniform.at);
}

void read_blocks(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  if (member.value.kind != TomlKind::table) {
    return report.problem(member.value.at, "blocks: found " + describe(member.value) +
                                               ", expected a table such as { Params = { scale = 2.0, count = 64 } }");
  }
  UniformReader reader(draft, "blocks", report);
  for (const TomlMember& block : member.value.members) {
    if (block.value.kind == TomlKind::table || holds_tables(block.value)) {
      reader.read(block.key, block.value, block.at);
    } else {
      report.problem(block.value.at, "blocks." + block.key + ": found " + describe(block.value) +
                                         ", expected a table of the members of the block, or an array of such tables");
    }
  }
}

void read_include(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  const TomlNode& list = member.value;
  const auto is_folder = [](const TomlNode& item) { return item.kind == TomlKind::text && !item.text.empty(); };
  if (list.kind != TomlKind::array || !std::ranges::all_of(list.items, is_folder)) {
    return report.problem(list.at, "include: found " + describe(list) + ", expected an array of folders");
  }
  for (const TomlNode& item : list.items) draft.job.include.push_back(item.text);
}

void read_workgroup(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  constexpr ValueRule lanes{ValueKind::integer, 1, 65535};
  const TomlNode& list = member.value;
  if (list.kind != TomlKind::array || list.items.empty() || list.items.size() > draft.job.workgroup.size()) {
    return report.problem(list.at, "workgroup: found " + describe(list) + ", expected an array of one to three sizes");
  }
  draft.job.workgroup = {1, 1, 1};
  for (std::size_t axis = 0; axis < list.items.size(); ++axis) {
    const Result<ConfigValue> size = checked(list.items[axis], lanes);
    if (!size) {
      report.problem(list.items[axis].at, "workgroup[" + std::to_string(axis) + "]: " + size.error().message);
    } else {
      draft.job.workgroup[axis] = static_cast<std::uint32_t>(std::get<std::int64_t>(*size));
    }
  }
}

void read_grid(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  const TomlNode& list = member.value;
  if (list.kind == TomlKind::table) return read_indirect_grid(draft, member, report);
  if (list.kind != TomlKind::array || list.items.empty() || list.items.size() > draft.job.grid.size()) {
    const std::string found =
        list.kind == TomlKind::array ? "an array of length " + std::to_string(list.items.size()) : describe(list);
    return report.problem(list.at, "grid: found " + found +
                                       ", expected an array of one to three workgroup counts, or "
                                       "{ input = TENSOR } with a tensor of such counts");
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
