#include "config/show.hpp"

#include <kiln/config_reader.hpp>
#include <kiln/config_text.hpp>

#include <kiln_json.hpp>

#include "config/job_keys.hpp"
#include "config/key_table.hpp"
#include "config/sections.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace kiln {
namespace {

using config::KeyEntry;
using config::toml_text;

struct ShownValue {
  std::string key;
  ConfigValue value;  // sizes and durations as texts in their units
  ConfigOrigin origin;
};

std::string_view kind_text(OriginKind kind) {
  switch (kind) {
    case OriginKind::file:
      return "file";
    case OriginKind::environment:
      return "environment";
    case OriginKind::command_line:
      return "command_line";
    case OriginKind::built_in:
    case OriginKind::invalid:
      break;
  }
  return "default";
}

std::string origin_text(const ConfigOrigin& origin) {
  return origin.detail.empty() ? std::string(kind_text(origin.kind)) : origin.detail;
}

ConfigValue in_units(const Config& config, const KeyEntry& key) {
  ConfigValue value = key.get(config);
  const bool quantity = key.rule.kind == config::ValueKind::size || key.rule.kind == config::ValueKind::duration;
  if (!quantity) return value;
  const std::string text = config::print(value, key.rule);  // quoted
  return text.substr(1, text.size() - 2);
}

void add_plugin_values(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys,
                       std::vector<ShownValue>& values) {
  std::set<std::string> plugins;
  for (const auto& entry : keys) plugins.insert(entry.first);
  for (const auto& entry : config.plugin) plugins.insert(entry.first);
  for (const std::string& plugin : plugins) {
    // What was written stands as it was written; what the plugin published and nobody wrote has its default.
    std::map<std::string, ShownValue> shown;
    if (const auto published = keys.find(plugin); published != keys.end()) {
      for (const ConfigKey& key : published->second) shown[key.name] = {"", key.fallback, ConfigOrigin{}};
    }
    if (const auto section = config.plugin.find(plugin); section != config.plugin.end()) {
      for (const auto& [name, setting] : section->second) shown[name] = {"", setting.value, setting.origin};
    }
    for (auto& [name, value] : shown) {
      value.key = "plugin." + config::toml_key(plugin) + "." + config::toml_key(name);
      values.push_back(std::move(value));
    }
  }
}

void add_remote_values(const Config& config, std::vector<ShownValue>& values) {
  for (std::size_t i = 0; i < config.cache.remotes.size(); ++i) {
    const RemoteConfig& remote = config.cache.remotes[i];
    const ConfigPlace& place = remote.place;
    const ConfigOrigin origin{
        OriginKind::file, place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column), place};
    const auto add = [&](const char* name, ConfigValue value) {
      values.push_back({"cache.remote[" + std::to_string(i) + "]." + name, std::move(value), origin});
    };
    add("url", remote.url);
    add("mode", std::string(remote.writes ? "read_write" : "read"));
    add("writers", remote.writers);
    if (remote.writes) add("sign_with", remote.sign_with);
    if (!remote.credentials.empty()) add("credentials", remote.credentials);
    add("layout", remote.layout);
  }
}

std::vector<ShownValue> shown_values(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys) {
  std::vector<ShownValue> values;
  for (const KeyEntry& key : config::key_table()) {
    const auto origin = config.origins.find(std::string(key.name));
    values.push_back({std::string(key.name), in_units(config, key),
                      origin == config.origins.end() ? ConfigOrigin{} : origin->second});
  }
  add_remote_values(config, values);
  add_plugin_values(config, keys, values);
  return values;
}

std::string place_text(const ConfigPlace& place) {
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string grid_text(const std::array<std::uint32_t, 3>& grid) {
  return std::to_string(grid[0]) + "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]);
}

std::string tolerance_text(const Tolerance& tolerance) {
  return "absolute " + config::print_number(tolerance.absolute) + ", relative " +
         config::print_number(tolerance.relative);
}

std::vector<std::pair<std::string, ConfigValue>> binding_values(const KernelBindingConfig& binding) {
  std::vector<std::pair<std::string, ConfigValue>> values;
  switch (binding.kind) {
    case BindingKind::value:
      if (!binding.numbers.empty()) values.emplace_back("float", binding.numbers[0]);
      if (!binding.integers.empty()) values.emplace_back("int", binding.integers[0]);
      if (binding.dtype != DType::f32 && binding.dtype != DType::i32 && binding.dtype != DType::u32) {
        values.emplace_back("dtype", std::string(numpy_name(binding.dtype)));
      }
      return values;
    case BindingKind::local:
      return {{"local", static_cast<std::int64_t>(binding.local_bytes)}};
    case BindingKind::sampler_state:
      return {{"filter", std::string(to_string(binding.filter))}, {"wrap", std::string(to_string(binding.wrap))}};
    case BindingKind::buffer:
    case BindingKind::image:
    case BindingKind::sampler:
    case BindingKind::grid:
    case BindingKind::invalid:
      break;
  }
  std::string numbers;
  for (const double number : binding.numbers) numbers += (numbers.empty() ? "" : ", ") + config::print_number(number);
  for (const std::int64_t number : binding.integers) numbers += (numbers.empty() ? "" : ", ") + std::to_string(number);
  if (!numbers.empty()) values.emplace_back("values", numbers);
  if (!binding.input.empty()) values.emplace_back(binding.access == Access::read ? "input" : "inout", binding.input);
  if (!binding.output.empty() && binding.output != binding.input) values.emplace_back("output", binding.output);
  if (!binding.shape.empty()) values.emplace_back("shape", to_string(binding.shape));
  if (!binding.size.empty()) values.emplace_back("size", to_string(binding.size));
  if (binding.kind == BindingKind::grid) {
    values.emplace_back("first", static_cast<std::int64_t>(binding.first));
    return values;
  }
  if (binding.dtype != DType::invalid) values.emplace_back("dtype", std::string(numpy_name(binding.dtype)));
  if (binding.format != ImageFormat::declared)
    values.emplace_back("format", std::string(facts_of(binding.format).name));
  if (binding.kind == BindingKind::sampler) {
    values.emplace_back("filter", std::string(to_string(binding.filter)));
    values.emplace_back("wrap", std::string(to_string(binding.wrap)));
  }
  if (binding.number) values.emplace_back("binding", static_cast<std::int64_t>(*binding.number));
  if (!binding.name.empty() && binding.kind == BindingKind::buffer) values.emplace_back("name", binding.name);
  if (!binding.expect.empty()) values.emplace_back("expect", binding.expect);
  if (binding.tolerance) values.emplace_back("tolerance", tolerance_text(*binding.tolerance));
  return values;
}

// What a job says beside its shape, as name and value in the order of the documentation.
std::vector<std::pair<std::string, ConfigValue>> job_values(const JobConfig& job) {
  std::vector<std::pair<std::string, ConfigValue>> values;
  const auto add = [&values](const char* name, const std::string& value) {
    if (!value.empty()) values.emplace_back(name, value);
  };
  add("input", job.input), add("addend", job.addend), add("weights", job.weights), add("bias", job.bias);
  add("output", job.output), add("source", job.source), add("text", job.text);
  for (const Define& constant : job.constants) values.emplace_back("constants." + constant.name, constant.text);
  for (const UserKernelSpec::Parameter& parameter : job.tune) {
    std::string texts;
    for (const std::string& text : parameter.texts) texts += (texts.empty() ? "" : ", ") + text;
    values.emplace_back("tune." + parameter.name, texts);
  }
  for (const KernelBindingConfig& binding : job.bindings) {
    for (const auto& [name, value] : binding_values(binding)) values.emplace_back(binding.label + "." + name, value);
  }
  for (const UniformConfig& uniform : job.uniforms) {
    std::string text;
    for (const double number : uniform.numbers) text += (text.empty() ? "" : ", ") + config::print_number(number);
    for (const std::int64_t number : uniform.integers) text += (text.empty() ? "" : ", ") + std::to_string(number);
    values.emplace_back("uniforms." + uniform.uniform.name, text);
  }
  for (const std::string& folder : job.include) values.emplace_back("include", folder);
  if (job.workgroup[0] != 0) values.emplace_back("workgroup", grid_text(job.workgroup));
  if (job.tolerance) values.emplace_back("tolerance", tolerance_text(*job.tolerance));
  if (job.keep_failed) values.emplace_back("keep_failed", true);
  if (job.alpha != Alpha::keep) values.emplace_back("alpha", std::string(to_string(job.alpha)));
  add("device", job.device);
  values.emplace_back("verify", job.verify);
  return values;
}

// What is computed, on one line.
std::string computation(const JobConfig& job) {
  if (job.op == "kernel") {
    if (std::ranges::count(job.bindings, BindingKind::grid, &KernelBindingConfig::kind) != 0) return "kernel grid=read";
    std::string text = "kernel grid=";
    for (std::size_t axis = 0; axis < job.grid.size(); ++axis) {
      const std::string& expression = job.grid_expressions[axis];
      text += axis == 0 ? "" : "x";
      text += expression.empty() ? std::to_string(job.grid[axis]) : "(" + expression + ")";
    }
    return text;
  }
  return canonical_text(job.spec);
}

}  // namespace

std::string show_config(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys) {
  std::string out;
  for (const ShownValue& shown : shown_values(config, keys)) {
    out += "(" + origin_text(shown.origin) + ") " + shown.key + " = " + config::print(shown.value) + "\n";
  }
  for (const JobConfig& job : config.jobs) {
    out += "(" + place_text(job.place) + ") job " + toml_text(job.name) + " = " + computation(job);
    for (const auto& [name, value] : job_values(job)) out += " " + name + "=" + config::print(value);
    out += "\n";
  }
  return out;
}

std::string show_config_json(const Config& config, const std::map<std::string, std::vector<ConfigKey>>& keys) {
  const auto to_json = [](const ConfigValue& value) {
    return std::visit([](const auto& held) { return Json(held); }, value);
  };
  Json values = Json::array();
  for (const ShownValue& shown : shown_values(config, keys)) {
    values.push_back({{"key", shown.key},
                      {"value", to_json(shown.value)},
                      {"origin", kind_text(shown.origin.kind)},
                      {"detail", shown.origin.detail.empty() ? Json(nullptr) : Json(shown.origin.detail)}});
  }
  Json jobs = Json::array();
  for (const JobConfig& job : config.jobs) {
    Json entry{{"name", job.name}, {"op", job.op}, {"computation", computation(job)}};
    for (const auto& [name, value] : job_values(job)) entry[name] = to_json(value);
    entry["place"] = place_text(job.place);
    jobs.push_back(std::move(entry));
  }
  const Json whole{{"schema", 1}, {"values", std::move(values)}, {"jobs", std::move(jobs)}};
  // Paths from the environment may be anything: what is no UTF-8 is replaced, not refused.
  return json_text(whole, 2) + "\n";
}

namespace {

using config::JobForm;
using config::JobKeyEntry;
using config::KeyEntry;

constexpr std::size_t most_columns = 100;

// The words of the text as comment lines that begin with `indent`.
void comment(std::string& out, std::string_view text, std::string_view indent = "# ") {
  std::string line(indent);
  bool fresh = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!fresh && line.size() + 1 + word.size() > most_columns) {
      out += line + "\n";
      line = indent;
      fresh = true;
    }
    line += (fresh ? "" : " ") + std::string(word);
    fresh = false;
  }
  out += line + "\n";
}

// Words, ranges and units; empty where the default shows all there is to know.
std::string accepted(const config::ValueRule& rule) {
  const bool says_more = !rule.allowed.empty() || std::isfinite(rule.least) || std::isfinite(rule.most);
  if (!says_more) return "";
  std::string text = config::expected_text(rule);
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

void write_section(std::string& out, const config::SectionEntry& section) {
  out += "\n";
  comment(out, section.help);
  out += "[" + std::string(section.name) + "]\n";
  for (const KeyEntry& key : config::key_table()) {
    if (config::section_of(key) != section.name) continue;
    out += "\n";
    comment(out, key.help);
    if (const std::string words = accepted(key.rule); !words.empty()) comment(out, words);
    // Written out, such a value would hide what the environment says, or be refused in a file.
    const bool hidden = !key.default_text.empty();
    out += (hidden ? "# " : "") + std::string(config::name_in_section(key)) + " = " + config::default_of(key) + "\n";
  }
}

std::string forms_text(config::JobForms forms) {
  const auto is_layer = [](const config::JobOperation& operation) { return operation.spec != nullptr; };
  const auto has = [&](const config::JobOperation& operation) { return config::has_form(forms, operation.form); };
  const bool every_layer = std::ranges::all_of(
      config::job_operations(), [&](const auto& operation) { return !is_layer(operation) || has(operation); });
  std::string text = every_layer ? "every layer" : "";
  for (const config::JobOperation& operation : config::job_operations()) {
    if (!has(operation) || (every_layer && is_layer(operation))) continue;
    text += (text.empty() ? "" : ", ") + std::string(operation.name);
  }
  if (config::has_form(forms, JobForm::table)) text += (text.empty() ? "" : ", ") + std::string("table");
  return text;
}

void write_job_key(std::string& out, const JobKeyEntry& key) {
  const config::JobForms optional = key.used_by & ~key.required_by;
  std::string text;
  if (key.required_by != 0) text += "Needed by " + forms_text(key.required_by) + ".";
  if (optional != 0) text += (text.empty() ? "" : " ") + std::string("May stand in ") + forms_text(optional) + ".";
  if (!key.default_text.empty()) text += " Default: " + std::string(key.default_text) + ".";
  if (key.rule.kind != config::ValueKind::invalid && !key.rule.allowed.empty()) text += " " + accepted(key.rule);
  out += "#\n# " + std::string(key.name) + "\n";
  comment(out, key.help, "#     ");
  comment(out, text, "#     ");
}

}  // namespace

std::string default_config_text() {
  std::string out;
  comment(out,
          "All configuration keys of Kiln with their meaning and default. A key or section that is missing has the "
          "value shown here. Environment variables (KILN_CACHE_DIR, KILN_PLUGIN_PATH, KILN_KEY_FILE, KILN_LOG) "
          "override this file, and the command line (--set key=value) overrides both.");
  for (const config::SectionEntry& section : config::section_table()) write_section(out, section);
  out += "\n";
  comment(out,
          "[[cache.remote]] is storage that machines share; a file may have any number of them. Every program is "
          "signed. See docs/sharing-a-cache.md. The keys, with an example:");
  for (const config::RemoteKeyEntry& key : config::remote_key_table()) {
    out += "#\n# " + std::string(key.name) + " = " + std::string(key.example) + "\n";
    comment(out, key.help, "#     ");
  }
  out += "\n";
  comment(out,
          "[plugin.NAME] sections contain the keys of a plugin; `kiln config show` lists them. An unknown key is an "
          "error.");
  out += "\n";
  comment(out,
          "[[job]] starts a job; a file may have any number of jobs. op names the operation, or the job names a "
          "table of conv2d jobs. Tensors are NCHW, fp32; weights are [k, c/groups, r, s]. Input file names are "
          "relative to the folder of this file. The keys:");
  for (const JobKeyEntry& key : config::job_key_table()) write_job_key(out, key);
  out += "\n";
  comment(out,
          "[[pipeline]] starts a pipeline: operations that run on one device as one submission. It has name, device, "
          "verify, tolerance, keep_failed and alpha as a job does, and tensors and step. See docs/pipelines.md. The "
          "keys of its own:");
  constexpr std::pair<std::string_view, std::string_view> of_pipelines[] = {
      {"tensors",
       "A table of names: { input = FILE } is read, { output = FILE } is written, { inout = FILE } is both, { shape = "
       "[N, …], dtype = \"float32\" } stays on the device. The keys are those of an element of bindings. A tensor that "
       "only steps use need not be declared."},
      {"step",
       "[[pipeline.step]]: a name, an op and its keys as in a job. input, output, inout and the bindings name tensors "
       "of "
       "the pipeline. A step with steps of its own ([[pipeline.step.step]]) has no op."},
      {"repeat", "Of a step: number of rounds. Default: 1."},
      {"swap",
       "Of a step: [\"a\", \"b\"], or an array of such pairs. After each round the two tensors exchange their names."}};
  for (const auto& [name, help] : of_pipelines) {
    out += "#\n# " + std::string(name) + "\n";
    comment(out, help, "#     ");
  }
  return out;
}

}  // namespace kiln

namespace kiln::config {

ConfigSources sources_of(const Config& config) {
  ConfigSources sources;
  sources.environment.clear();
  Config usual;
  usual.cache.directory.clear();  // what these are by default depends on the environment
  usual.cache.key_file.clear();
  for (const KeyEntry& key : key_table()) {
    const ConfigValue value = key.get(config);
    if (value == key.get(usual)) continue;
    sources.set.push_back(std::string(key.name) + "=" + print(value, key.rule));
  }
  for (const auto& [plugin, section] : config.plugin) {
    for (const auto& [name, setting] : section) {
      sources.set.push_back("plugin." + plugin + "." + name + "=" + print(setting.value));
    }
  }
  return sources;
}

}  // namespace kiln::config
