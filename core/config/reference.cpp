#include <kiln/config_reader.hpp>

#include "config/jobs/job_keys.hpp"
#include "config/key_table.hpp"
#include "config/remotes.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace kiln {
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

std::string forms_text(std::uint8_t forms) {
  std::string text;
  for (const config::JobOperation& operation : config::job_operations()) {
    if (config::has_form(forms, operation.form)) text += (text.empty() ? "" : ", ") + std::string(operation.name);
  }
  if (config::has_form(forms, JobForm::table)) text += (text.empty() ? "" : ", ") + std::string("table");
  return text;
}

void write_job_key(std::string& out, const JobKeyEntry& key) {
  const auto optional = static_cast<std::uint8_t>(key.used_by & ~key.required_by);
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
