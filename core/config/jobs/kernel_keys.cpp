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

namespace {

// A tolerance from a number, which is relative to the expected element, or from a table; nullopt where it is wrong.
std::optional<Tolerance> tolerance_of(const TomlNode& node, const std::string& who, JobReport& report) {
  constexpr ValueRule part{ValueKind::number, 0, std::numeric_limits<double>::max()};
  const auto number = [&](const TomlNode& value, const std::string& name) -> std::optional<double> {
    const Result<ConfigValue> read = checked(value, part);
    if (read) return std::get<double>(*read);
    report.problem(value.at, name + ": " + read.error().message);
    return std::nullopt;
  };
  if (node.kind != TomlKind::table) {
    if (node.kind != TomlKind::integer && node.kind != TomlKind::number) {
      report.problem(node.at, who + ": found " + describe(node) +
                                  ", expected a number or { absolute = NUMBER, relative = NUMBER }");
      return std::nullopt;
    }
    const std::optional<double> relative = number(node, who);
    return relative ? std::optional(Tolerance{0, *relative}) : std::nullopt;
  }
  constexpr std::array<std::string_view, 2> known{"absolute", "relative"};
  Tolerance tolerance;
  bool good = true;
  for (const TomlMember& member : node.members) {
    const std::string name = who + "." + toml_key(member.key);
    if (std::ranges::find(known, member.key) == known.end()) {
      report.problem(member.at, name + ": unknown key; nearest: " + std::string(nearest_word(member.key, known)));
      good = false;
    } else if (const std::optional<double> value = number(member.value, name)) {
      (member.key == known[0] ? tolerance.absolute : tolerance.relative) = *value;
    } else {
      good = false;
    }
  }
  return good ? std::optional(tolerance) : std::nullopt;
}

constexpr std::uint64_t most_elements = std::uint64_t{1} << 32;
constexpr std::uint64_t most_local = 1 << 20;

std::optional<DType> dtype_named(std::string_view name) {
  constexpr std::pair<std::string_view, DType> names[] = {{"float32", DType::f32},
                                                          {"float64", DType::f64},
                                                          {"int32", DType::i32},
                                                          {"uint32", DType::u32},
                                                          {"uint8", DType::u8}};
  for (const auto& [known, dtype] : names) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

// One element of `bindings`.
class BindingReader {
 public:
  BindingReader(const TomlNode& item, std::size_t index, const FileContext& file, JobReport& report)
      : item_(item), who_("bindings[" + std::to_string(index) + "]"), report_(report) {
    binding_.place = file.place(item.at);
  }

  static constexpr std::string_view expected =
      "{ input = FILE }, { output = FILE, shape = [N] }, { inout = FILE }, { float = NUMBER }, { int = NUMBER } or "
      "{ local = BYTES }";

  std::optional<KernelBindingConfig> read() {
    if (item_.kind != TomlKind::table) {
      problem(item_.at, "", "found " + describe(item_) + ", expected " + std::string(expected));
      return std::nullopt;
    }
    for (const TomlMember& member : item_.members) read(member);
    if (report_.problems() != before_) return std::nullopt;
    check();
    return report_.problems() == before_ ? std::optional(std::move(binding_)) : std::nullopt;
  }

 private:
  static constexpr std::array<std::string_view, 12> keys{"input", "output", "inout", "binding",   "name", "shape",
                                                         "dtype", "expect", "float", "tolerance", "int",  "local"};

  void problem(TextPosition at, const std::string& key, const std::string& message) {
    report_.problem(at, who_ + (key.empty() ? "" : "." + key) + ": " + message);
  }

  bool has(std::string_view key) const {
    return std::ranges::any_of(item_.members, [&](const TomlMember& member) { return member.key == key; });
  }
  TextPosition at(std::string_view key) const {
    for (const TomlMember& member : item_.members) {
      if (member.key == key) return member.at;
    }
    return item_.at;
  }

  template <class T>
  std::optional<T> value(const TomlMember& member, const ValueRule& rule) {
    const Result<ConfigValue> read = checked(member.value, rule);
    if (read) return std::get<T>(*read);
    problem(member.value.at, member.key, read.error().message);
    return std::nullopt;
  }
  std::string text(const TomlMember& member) {
    const auto read = value<std::string>(member, file_rule);
    if (read && read->empty()) problem(member.value.at, member.key, "found an empty text");
    return read.value_or("");
  }

  void read(const TomlMember& member) {
    const std::string& key = member.key;
    if (key == "input") {
      binding_.input = text(member);
      binding_.access = Access::read;
    } else if (key == "inout") {
      binding_.input = text(member);
      binding_.access = Access::read_write;
    } else if (key == "output") {
      binding_.output = text(member);
    } else if (key == "name") {
      binding_.name = text(member);
    } else if (key == "expect") {
      binding_.expect = text(member);
    } else if (key == "tolerance") {
      binding_.tolerance = tolerance_of(member.value, who_ + ".tolerance", report_);
    } else if (key == "binding") {
      constexpr ValueRule number{ValueKind::integer, 0, 65535};
      if (const auto read = value<std::int64_t>(member, number)) binding_.number = static_cast<std::uint32_t>(*read);
    } else if (key == "dtype") {
      read_dtype(member);
    } else if (key == "shape") {
      read_shape(member);
    } else if (key == "float") {
      constexpr ValueRule number{ValueKind::number, -std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::max()};
      binding_.kind = BindingKind::value;
      binding_.access = Access::read;
      binding_.dtype = DType::f32;
      binding_.value = value<double>(member, number).value_or(0);
    } else if (key == "int") {
      constexpr ValueRule number{ValueKind::integer, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::uint32_t>::max()};
      binding_.kind = BindingKind::value;
      binding_.access = Access::read;
      binding_.integer = value<std::int64_t>(member, number).value_or(0);
      binding_.dtype = binding_.integer > std::numeric_limits<std::int32_t>::max() ? DType::u32 : DType::i32;
    } else if (key == "local") {
      constexpr ValueRule bytes{ValueKind::integer, 1, most_local};
      binding_.kind = BindingKind::local;
      binding_.access = Access::read_write;
      binding_.local_bytes = static_cast<std::uint64_t>(value<std::int64_t>(member, bytes).value_or(1));
    } else {
      problem(member.at, toml_key(key), "unknown key; nearest: " + std::string(nearest_word(key, keys)));
    }
  }

  void read_dtype(const TomlMember& member) {
    const auto read = value<std::string>(member, file_rule);
    if (!read) return;
    const std::optional<DType> dtype = dtype_named(*read);
    if (dtype) {
      binding_.dtype = *dtype;
    } else {
      problem(member.value.at, "dtype",
              "found " + toml_text(*read) + ", expected \"float32\", \"float64\", \"int32\", \"uint32\" or \"uint8\"");
    }
  }

  void read_shape(const TomlMember& member) {
    constexpr ValueRule rule{ValueKind::integer, 1, most_elements};
    const TomlNode& list = member.value;
    if (list.kind != TomlKind::array || list.items.empty() || list.items.size() > 8) {
      return problem(list.at, "shape", "found " + describe(list) + ", expected an array of one to eight sizes");
    }
    std::uint64_t elements = 1;
    for (const TomlNode& item : list.items) {
      const Result<ConfigValue> extent = checked(item, rule);
      if (!extent) return problem(item.at, "shape", extent.error().message);
      binding_.shape.push_back(std::get<std::int64_t>(*extent));
      if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(binding_.shape.back()), &elements) ||
          elements > most_elements) {
        return problem(list.at, "shape", "has more than 2^32 elements");
      }
    }
  }

  void check() {
    const bool in_place = has("inout") && !has("output");
    const int forms = has("input") + (has("inout") || has("output")) + has("float") + has("int") + has("local");
    if (forms != 1) {
      return problem(item_.at, "",
                     "found " + std::to_string(forms) +
                         " of input, output or inout, float, int and local, expected one: " + std::string(expected));
    }
    const bool result = has("inout") || has("output");
    const bool buffer = binding_.kind == BindingKind::buffer;
    const auto only = [&](std::string_view key, bool allowed, std::string_view where) {
      if (has(key) && !allowed)
        problem(at(key), std::string(key), "found where it says nothing: it goes with " + std::string(where));
    };
    only("expect", result, "output or inout");
    only("tolerance", result, "output or inout");
    only("shape", has("output") && !has("inout"), "output without inout");
    only("dtype", has("output") && !has("inout"), "output without inout");
    only("binding", buffer, "input, output or inout");
    only("name", buffer, "input, output or inout");
    if (has("binding") && has("name")) problem(at("name"), "name", "found beside binding, expected one of them");
    if (!result) return;
    if (in_place) binding_.output = binding_.input;
    if (!has("inout")) {
      binding_.access = Access::write;
      if (binding_.dtype == DType::invalid) binding_.dtype = DType::f32;
      // The file that it is compared with has a shape too.
      if (binding_.shape.empty() && !has("expect")) {
        problem(item_.at, "", "output needs shape = [N, …] or expect = FILE, which gives its size");
      }
      if (has("expect") && binding_.shape.empty() && !has("dtype")) binding_.dtype = DType::invalid;
    }
  }

  const TomlNode& item_;
  const std::string who_;
  JobReport& report_;
  const std::size_t before_ = report_.problems();
  KernelBindingConfig binding_;
};

// One member of `uniforms`, or of a table or an array of tables in it: names as GLSL spells those of structs and
// arrays.
class UniformReader {
 public:
  UniformReader(JobDraft& draft, const FileContext& file, JobReport& report)
      : draft_(draft), file_(file), report_(report) {}

  // at: of the key, or of the element of an array.
  void read(const std::string& name, const TomlNode& value, TextPosition at) {
    if (value.kind == TomlKind::table) {
      for (const TomlMember& inner : value.members) read(name + "." + inner.key, inner.value, inner.at);
      return;
    }
    const auto is_table = [](const TomlNode& item) { return item.kind == TomlKind::table; };
    if (value.kind == TomlKind::array && !value.items.empty() && std::ranges::all_of(value.items, is_table)) {
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
                             "uniforms." + name + ": " + problem_ +
                                 ", expected a number, true or false, or arrays of them of one length and type");
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

  bool add(const TomlNode& node, std::size_t depth, UniformConfig& to) {
    auto& shape = to.uniform.shape;
    if (node.kind == TomlKind::array) {
      if (node.items.empty() || depth == 3) return fail(node, "found " + describe(node));
      const bool first = shape.size() == depth && to.uniform.type == Type::invalid;
      if (first) {
        shape.push_back(static_cast<std::uint32_t>(node.items.size()));
      } else if (depth >= shape.size() || shape[depth] != node.items.size()) {
        return fail(node, "found an array of " + std::to_string(node.items.size()) + " beside others of " +
                              (depth < shape.size() ? std::to_string(shape[depth]) : "single values"));
      }
      return std::ranges::all_of(node.items, [&](const TomlNode& item) { return add(item, depth + 1, to); });
    }
    if (depth != shape.size()) return fail(node, "found " + describe(node) + " beside an array");
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
      for (const std::int64_t value : to.integers) to.numbers.push_back(static_cast<double>(value));
      to.integers.clear();
      type = Type::number;
    }
    if (type == Type::invalid) type = given;
    if ((given == Type::boolean) != (type == Type::boolean)) return fail(node, "found booleans and numbers");
    if (type == Type::number) {
      to.numbers.push_back(given == Type::integer ? static_cast<double>(node.integer) : node.number);
    } else {
      to.integers.push_back(given == Type::boolean ? (node.boolean ? 1 : 0) : node.integer);
    }
    return true;
  }

  JobDraft& draft_;
  const FileContext& file_;
  JobReport& report_;
  TextPosition wrong_;
  std::string problem_;
};

}  // namespace

void read_bindings(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  const TomlNode& list = member.value;
  if (list.kind != TomlKind::array || list.items.empty()) {
    return report.problem(list.at, "bindings: found " + describe(list) + ", expected an array of " +
                                       std::string(BindingReader::expected));
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (auto binding = BindingReader(list.items[i], i, report.file(), report).read()) {
      draft.job.bindings.push_back(std::move(*binding));
    }
  }
}

void read_uniforms(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  if (member.value.kind != TomlKind::table) {
    return report.problem(member.value.at, "uniforms: found " + describe(member.value) +
                                               ", expected a table such as { gain = 3.0, size = [640, 480] }");
  }
  UniformReader reader(draft, report.file(), report);
  for (const TomlMember& uniform : member.value.members) reader.read(uniform.key, uniform.value, uniform.at);
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

void read_tolerance(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  draft.job.tolerance = tolerance_of(member.value, "tolerance", report);
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
