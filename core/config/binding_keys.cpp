// The keys of a job that provide tensors: bindings, images, samplers; and tolerance, which they share.
#include "config/job_keys.hpp"

#include <kiln/config_text.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <span>

namespace kiln::config {
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

constexpr ValueRule text_rule{ValueKind::text};
constexpr std::uint64_t most_elements = std::uint64_t{1} << 32;
constexpr std::uint64_t most_local = 1 << 20;
constexpr std::size_t most_dimensions = 8;

std::string dtype_words() {
  return "\"float16\", \"float32\", \"float64\", \"int8\" to \"int64\", \"uint8\" to \"uint64\" or \"bool\"";
}

// What a table of tensors provides, and the keys of its elements.
struct BindingForm {
  BindingKind kind;
  std::span<const std::string_view> keys;
  std::string_view expected;
  bool may_be_none = false;  // a tensor of a pipeline that is neither read from a file nor written to one
};

constexpr std::string_view buffer_keys[] = {"input",  "output",    "inout",  "binding", "name", "shape", "dtype",
                                            "expect", "tolerance", "values", "float",   "int",  "local"};
constexpr std::string_view image_keys[] = {"input",  "output", "inout",  "size",
                                           "format", "dtype",  "expect", "tolerance"};
constexpr std::string_view tensor_keys[] = {"input", "output", "inout", "shape", "dtype", "expect", "tolerance"};
constexpr std::string_view sampler_keys[] = {"input", "size", "format", "dtype", "filter", "wrap"};

constexpr BindingForm buffers{
    BindingKind::buffer, buffer_keys,
    "{ input = FILE }, { output = FILE, shape = [N] }, { inout = FILE }, { values = [X, …] }, "
    "{ float = NUMBER }, { int = NUMBER } or { local = BYTES }"};
constexpr BindingForm images{
    BindingKind::image, image_keys,
    "{ input = FILE }, { output = FILE, size = [W, H], format = \"rgba8\" } or { inout = FILE }"};
constexpr BindingForm samplers{BindingKind::sampler, sampler_keys,
                               "{ input = FILE, filter = \"linear\", wrap = \"clamp\" }, or the same without input "
                               "for a separate sampler"};

constexpr BindingForm tensors{BindingKind::buffer, tensor_keys,
                              "{ input = FILE }, { output = FILE }, { inout = FILE } or { shape = [N] }", true};

constexpr std::string_view grid_keys[] = {"input", "values", "first"};
constexpr BindingForm grids{BindingKind::grid, grid_keys, "{ input = TENSOR } or { input = TENSOR, first = ELEMENT }"};

// One element of `bindings`, or one member of `images` or `samplers`.
class BindingReader {
 public:
  BindingReader(const TomlNode& item, const BindingForm& form, std::string label, JobReport& report)
      : item_(item), form_(form), report_(report) {
    binding_.label = std::move(label);
    binding_.kind = form.kind;
    binding_.place = report.file().place(item.at);
  }

  std::optional<KernelBindingConfig> read() {
    if (item_.kind != TomlKind::table) {
      problem(item_.at, "", "found " + describe(item_) + ", expected " + std::string(form_.expected));
      return std::nullopt;
    }
    for (const TomlMember& member : item_.members) {
      if (std::ranges::find(form_.keys, member.key) == form_.keys.end()) {
        problem(member.at, toml_key(member.key),
                "unknown key; nearest: " + std::string(nearest_word(member.key, form_.keys)));
      } else {
        read(member);
      }
    }
    if (report_.problems() != before_) return std::nullopt;
    check();
    return report_.problems() == before_ ? std::optional(std::move(binding_)) : std::nullopt;
  }

 private:
  void problem(TextPosition at, const std::string& key, const std::string& message) {
    report_.problem(at, binding_.label + (key.empty() ? "" : "." + key) + ": " + message);
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
    const auto read = value<std::string>(member, text_rule);
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
      binding_.tolerance = tolerance_of(member.value, binding_.label + ".tolerance", report_);
    } else if (key == "binding") {
      constexpr ValueRule number{ValueKind::integer, 0, 65535};
      if (const auto read = value<std::int64_t>(member, number)) binding_.number = static_cast<std::uint32_t>(*read);
    } else if (key == "dtype") {
      read_dtype(member);
    } else if (key == "shape" || key == "size") {
      read_extents(member);
    } else if (key == "format") {
      const std::string name = text(member);
      const std::optional<ImageFormat> format = image_format_named(name);
      binding_.format = format.value_or(ImageFormat::declared);
      if (!format) problem(member.value.at, key, "found " + toml_text(name) + ", expected a format such as \"rgba8\"");
    } else if (key == "filter") {
      read_word(member, {TextureFilter::nearest, TextureFilter::linear}, binding_.filter);
    } else if (key == "wrap") {
      read_word(member, {TextureWrap::clamp, TextureWrap::repeat, TextureWrap::mirror, TextureWrap::border},
                binding_.wrap);
    } else if (key == "first") {
      constexpr ValueRule element{ValueKind::integer, 0, most_elements};
      binding_.first = static_cast<std::uint64_t>(value<std::int64_t>(member, element).value_or(0));
    } else if (key == "local") {
      constexpr ValueRule bytes{ValueKind::integer, 1, most_local};
      binding_.kind = BindingKind::local;
      binding_.access = Access::read_write;
      binding_.local_bytes = static_cast<std::uint64_t>(value<std::int64_t>(member, bytes).value_or(1));
    } else {
      read_values(member);
    }
  }

  template <class Enum>
  void read_word(const TomlMember& member, std::initializer_list<Enum> words, Enum& to) {
    const std::string found = text(member);
    std::string known;
    for (const Enum word : words) {
      known += (known.empty() ? "" : ", ") + std::string(to_string(word));
      if (found == to_string(word)) {
        to = word;
        return;
      }
    }
    problem(member.value.at, member.key, "found " + toml_text(found) + ", expected one of " + known);
  }

  // "values", "float" and "int".
  void read_values(const TomlMember& member) {
    const bool list = member.key == "values" && member.value.kind == TomlKind::array;
    const std::span<const TomlNode> items =
        list ? std::span<const TomlNode>(member.value.items) : std::span<const TomlNode>(&member.value, 1);
    bool fraction = member.key == "float";
    for (const TomlNode& item : items) fraction = fraction || item.kind == TomlKind::number;
    for (const TomlNode& item : items) {
      const bool number = item.kind == TomlKind::integer || (item.kind == TomlKind::number && member.key != "int");
      if (!number) {
        problem(item.at, member.key,
                "found " + describe(item) + ", expected " + (member.key == "int" ? "an integer" : "a number"));
      } else if (fraction && item.kind == TomlKind::integer) {
        binding_.numbers.push_back(static_cast<double>(item.integer));
        integers_among_fractions_.push_back(item.integer);
      } else if (fraction) {
        binding_.numbers.push_back(item.number);
      } else {
        binding_.integers.push_back(item.integer);
      }
    }
    if (list && items.empty()) problem(member.value.at, member.key, "found an empty array, expected numbers");
    binding_.access = Access::read;
    if (member.key != "values") binding_.kind = BindingKind::value;
  }

  void read_dtype(const TomlMember& member) {
    const auto read = value<std::string>(member, text_rule);
    if (!read) return;
    binding_.dtype = dtype_named(*read);
    if (binding_.dtype == DType::invalid) {
      problem(member.value.at, "dtype", "found " + toml_text(*read) + ", expected " + dtype_words());
    }
  }

  // Sizes, or expressions of constants that are computed once all constants are known.
  void read_extents(const TomlMember& member) {
    constexpr ValueRule rule{ValueKind::integer, 1, most_elements};
    const bool size = member.key == "size";
    const std::size_t most = size ? 3 : most_dimensions;
    const TomlNode& list = member.value;
    if (list.kind != TomlKind::array || list.items.empty() || list.items.size() > most) {
      return problem(
          list.at, member.key,
          "found " + describe(list) + ", expected an array of one to " + (size ? "three" : "eight") + " sizes");
    }
    std::vector<std::int64_t>& to = size ? binding_.size : binding_.shape;
    std::uint64_t elements = 1;
    for (const TomlNode& item : list.items) {
      if (item.kind == TomlKind::text && !item.text.empty() && item.text.size() <= most_expression) {
        binding_.shape_expressions[to.size()] = item.text;
        to.push_back(1);
        continue;
      }
      const Result<ConfigValue> extent = checked(item, rule);
      if (!extent) return problem(item.at, member.key, extent.error().message);
      to.push_back(std::get<std::int64_t>(*extent));
      if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(to.back()), &elements) ||
          elements > most_elements) {
        return problem(list.at, member.key, "has more than 2^32 elements");
      }
    }
  }

  // Which keys of the form say what the element holds: "input, output (or inout) and values".
  std::string contents_words() const {
    std::vector<std::string> words;
    for (const std::string_view key : {"input", "output", "values", "float", "int", "local"}) {
      if (std::ranges::find(form_.keys, key) == form_.keys.end()) continue;
      words.push_back(std::string(key) + (key == "output" ? " (or inout)" : ""));
    }
    std::string text = words.front();
    for (std::size_t i = 1; i < words.size(); ++i) text += (i + 1 == words.size() ? " and " : ", ") + words[i];
    return text;
  }

  void check() {
    if (form_.kind == BindingKind::sampler && !has("input")) {  // of a program that declares its textures apart
      binding_.kind = BindingKind::sampler_state;
      binding_.access = Access::read;
      for (const std::string_view key : {"size", "format", "dtype"}) {
        if (has(key)) problem(at(key), std::string(key), "allowed only with input");
      }
      return;
    }
    const bool in_place = has("inout") && !has("output");
    const int forms =
        has("input") + (has("inout") || has("output")) + has("values") + has("float") + has("int") + has("local");
    if (forms != 1 && !(forms == 0 && form_.may_be_none)) {
      return problem(item_.at, "",
                     "found " + std::to_string(forms) + " of the keys " + contents_words() + ", expected one: " +
                         std::string(form_.expected));
    }
    const bool result = has("inout") || has("output");
    const bool buffer = binding_.kind == BindingKind::buffer;
    const auto only = [&](std::string_view key, bool allowed, std::string_view where) {
      if (has(key) && !allowed) problem(at(key), std::string(key), "allowed only with " + std::string(where));
    };
    only("expect", result, "output or inout");
    only("tolerance", result, "output or inout");
    // A tensor of an application has a form too.
    const bool form_elsewhere = report_.in_pipeline() || binding_.output.starts_with("memory:");
    only("shape", !in_place && buffer, "input, output or values, or inout together with output");
    only("size", !has("inout"), "input or output");
    only("dtype", !in_place && !has("local"), "input, output, values, float or int, or inout together with output");
    only("binding", buffer, "input, output, inout or values");
    only("name", buffer, "input, output, inout or values");
    if (has("binding") && has("name")) {
      problem(at("name"), "name", "found together with binding, expected only one of them");
    }
    if (in_place) binding_.output = binding_.input;
    if (result && !has("inout")) binding_.access = Access::write;
    if (form_.kind == BindingKind::grid) binding_.dtype = DType::u32;
    // The file that it is compared with has a shape and a type too.
    if (form_.kind == BindingKind::image) {
      if (has("output") && !has("inout") && binding_.size.empty() && !has("expect") && !form_elsewhere) {
        problem(item_.at, "", "output needs size = [W, H], or expect = FILE to use the size of the file");
      }
    } else if (result && !has("inout")) {
      const bool has_form = !binding_.shape.empty() || !(has("expect") || form_elsewhere);
      if (binding_.dtype == DType::invalid && has_form) binding_.dtype = DType::f32;
      if (binding_.shape.empty() && !has("expect") && !form_elsewhere) {
        problem(item_.at, "", "output needs shape = [N, …], or expect = FILE to use the shape of the file");
      }
    }
    check_values();
  }

  // Numbers with a fraction are rounded to the type, integers are not.
  void check_integers_among_fractions() {
    const bool narrow = binding_.dtype == DType::f16 || binding_.dtype == DType::f32;
    const DType dtype = binding_.dtype == DType::invalid ? DType::f32 : narrow ? binding_.dtype : DType::f64;
    for (const std::int64_t integer : integers_among_fractions_) {
      if (has_integer(dtype, integer)) continue;
      const std::string key = has("float") ? "float" : "values";
      problem(at(key), key,
              "found " + std::to_string(integer) + ", which " + std::string(numpy_name(dtype)) +
                  " cannot represent. Write the number with a fraction to round it");
      return;
    }
  }

  // Integers without a type of their own are int32, or uint32 beyond it; a type has all of them.
  void check_values() {
    check_integers_among_fractions();
    const std::vector<std::int64_t>& integers = binding_.integers;
    if (binding_.dtype != DType::invalid) return;
    if (!binding_.numbers.empty()) binding_.dtype = DType::f32;
    if (integers.empty()) return;
    const auto [least, most] = std::ranges::minmax(integers);
    if (least >= std::numeric_limits<std::int32_t>::min() && most <= std::numeric_limits<std::int32_t>::max()) {
      binding_.dtype = DType::i32;
    } else if (least >= 0 && most <= std::numeric_limits<std::uint32_t>::max()) {
      binding_.dtype = DType::u32;
    } else {
      const std::string key = has("int") ? "int" : "values";
      problem(at(key), key,
              "found " + std::to_string(least < 0 ? least : most) +
                  ", expected an integer from -2147483648 to 4294967295. Set dtype = \"int64\" for other integers");
    }
  }

  const TomlNode& item_;
  const BindingForm& form_;
  JobReport& report_;
  const std::size_t before_ = report_.problems();
  KernelBindingConfig binding_;
  std::vector<std::int64_t> integers_among_fractions_;
};

// One texture, or an array of them: each element has a name of its own, "layers[1]".
void read_texture(JobDraft& draft, const BindingForm& form, const TomlMember& member, const TomlNode& node,
                  const std::string& name, JobReport& report) {
  if (node.kind == TomlKind::array) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      read_texture(draft, form, member, node.items[i], name + "[" + std::to_string(i) + "]", report);
    }
    return;
  }
  auto binding = BindingReader(node, form, member.key + "." + name, report).read();
  if (!binding) return;
  binding->name = name;
  draft.job.bindings.push_back(std::move(*binding));
}

// `images` and `samplers`: a table of names.
void read_textures(JobDraft& draft, const BindingForm& form, const TomlMember& member, JobReport& report) {
  if (member.value.kind != TomlKind::table) {
    return report.problem(member.value.at, member.key + ": found " + describe(member.value) +
                                               ", expected a table such as { photo = " + std::string(form.expected) +
                                               " }");
  }
  for (const TomlMember& texture : member.value.members) {
    read_texture(draft, form, member, texture.value, texture.key, report);
  }
}

}  // namespace

bool has_integer(DType dtype, std::int64_t integer) {
  const int precision = dtype == DType::f16 ? 11 : dtype == DType::f32 ? 24 : 53;
  const auto bits = static_cast<std::uint64_t>(integer);
  const std::uint64_t magnitude = integer < 0 ? ~bits + 1 : bits;
  return magnitude == 0 || static_cast<int>(std::bit_width(magnitude)) - std::countr_zero(magnitude) <= precision;
}

void read_bindings(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  const TomlNode& list = member.value;
  if (list.kind != TomlKind::array || list.items.empty()) {
    return report.problem(
        list.at, "bindings: found " + describe(list) + ", expected an array of " + std::string(buffers.expected));
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (auto binding = BindingReader(list.items[i], buffers, "bindings[" + std::to_string(i) + "]", report).read()) {
      draft.job.bindings.push_back(std::move(*binding));
    }
  }
}

void read_tensors(JobDraft& draft, const TomlMember& member, JobReport& report) {
  if (member.value.kind != TomlKind::table) {
    return report.problem(member.value.at, "tensors: found " + describe(member.value) +
                                               ", expected a table of names such as { x = { input = FILE } }");
  }
  for (const TomlMember& tensor : member.value.members) {
    auto binding = BindingReader(tensor.value, tensors, "tensors." + tensor.key, report).read();
    if (!binding) continue;
    binding->name = tensor.key;
    draft.job.bindings.push_back(std::move(*binding));
  }
}

void read_images(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  read_textures(draft, images, member, report);
}

void read_samplers(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  read_textures(draft, samplers, member, report);
}

void read_indirect_grid(JobDraft& draft, const TomlMember& member, JobReport& report) {
  auto binding = BindingReader(member.value, grids, "grid", report).read();
  if (binding) draft.job.bindings.push_back(std::move(*binding));
}

void read_tolerance(JobDraft& draft, const JobKeyEntry&, const TomlMember& member, JobReport& report) {
  draft.job.tolerance = tolerance_of(member.value, "tolerance", report);
}

}  // namespace kiln::config
