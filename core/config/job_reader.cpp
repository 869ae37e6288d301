#include "config/job_reader.hpp"

#include "config/job_keys.hpp"
#include "config/reader.hpp"

#include <kiln/config_text.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/regular_file.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::config {
namespace {

const TomlMember* find_member(const TomlNode& table, std::string_view key) {
  const auto found = std::find_if(table.members.begin(), table.members.end(),
                                  [&](const TomlMember& member) { return member.key == key; });
  return found == table.members.end() ? nullptr : &*found;
}

const JobOperation* operation_of_form(JobForm form) {
  const auto found = std::ranges::find(job_operations(), form, &JobOperation::form);
  return found == job_operations().end() ? nullptr : &*found;
}

// invalid where neither `table` nor a known `op` says it: only what no form could have is reported then.
JobForm form_of_op(const TomlNode& job) {
  const TomlMember* op = find_member(job, "op");
  if (op == nullptr || op->value.kind != TomlKind::text) return JobForm::invalid;
  const auto found = std::ranges::find(job_operations(), op->value.text, &JobOperation::name);
  return found == job_operations().end() ? JobForm::invalid : found->form;
}

JobForm form_of(const TomlNode& job) {
  return find_member(job, "table") != nullptr ? JobForm::table : form_of_op(job);
}

std::string form_text(JobForm form) {
  if (form == JobForm::table) return "a job with a table";
  const JobOperation* operation = operation_of_form(form);
  return operation == nullptr ? "a job" : "a job with op = \"" + std::string(operation->name) + "\"";
}

void read_member(JobDraft& draft, const TomlMember& member, JobForm form, JobReport& report) {
  const JobKeyEntry* key = find_job_key(member.key);
  if (key == nullptr) {
    return report.problem(member.at,
                          toml_key(member.key) + ": unknown key; nearest: " + nearest_job_key(member.key, form));
  }
  if (form != JobForm::invalid && !has_form(key->used_by, form)) {
    return report.problem(member.at, member.key + ": not a key of " + form_text(form) +
                                         "; nearest: " + nearest_job_key(member.key, form));
  }
  if (key->read != nullptr) return key->read(draft, *key, member, report);
  const Result<ConfigValue> value = checked(member.value, key->rule);
  const Status status = value ? key->set(draft, *value) : value.error();
  if (!status.ok()) report.problem(member.value.at, member.key + ": " + status.message);
}

void report_missing(const TomlNode& job, JobForm form, JobReport& report) {
  if (form == JobForm::invalid) {
    if (find_member(job, "name") == nullptr) report.problem(job.at, "missing key name");
    if (find_member(job, "op") == nullptr) {
      std::string known;
      for (const JobOperation& each : job_operations()) known += (known.empty() ? "" : ", ") + std::string(each.name);
      const std::string or_table = report.in_pipeline() ? "" : " or table (a .csv file of jobs)";
      report.problem(job.at, "missing key op (one of " + known + ")" + or_table);
    }
    return;
  }
  std::string missing;
  std::size_t count = 0;
  for (const JobKeyEntry& key : job_key_table()) {
    if (!has_form(key.required_by, form) || find_member(job, key.name) != nullptr) continue;
    missing += (count++ == 0 ? "" : ", ") + std::string(key.name);
  }
  if (count != 0) {
    report.problem(job.at, (count == 1 ? "missing key " : "missing keys ") + missing + ": " + form_text(form) +
                               " needs " + (count == 1 ? "it" : "them"));
  }
}

// Where the name was used before, if it was.
std::optional<ConfigPlace> register_name(Draft& draft, const std::string& name, const ConfigPlace& place) {
  const auto [first, fresh] = draft.job_names.try_emplace(name, place);
  return fresh ? std::nullopt : std::optional(first->second);
}

std::string used_twice(const std::string& name, const ConfigPlace& first) {
  return "the name " + toml_text(name) + " is used twice, first at " + first.file + ":" + std::to_string(first.line) +
         ":" + std::to_string(first.column);
}

// In one table, the row is at fault; between a table and other jobs, the job that names the table is.
void register_row(Draft& draft, const std::string& name, const ConfigPlace& row, const JobDraft& job,
                  JobReport& report) {
  const std::optional<ConfigPlace> first = register_name(draft, name, row);
  if (!first) return;
  if (first->file == row.file && first->line != row.line) return draft.problem(row, used_twice(name, *first));
  report.problem(job.table_at, "table: " + used_twice(name, *first) + ". Give this job another name");
}

// The file of one row's result: the row's name before the extension, with what could lead out of the folder replaced.
std::string output_of_row(const std::filesystem::path& output, const std::string& row) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  std::string name = output.stem().string();
  name += '-';
  for (const char c : row) name += plain(c) ? c : '_';
  name += output.extension().string();
  return (output.parent_path() / name).string();
}

// Two results in one file: the second would replace the first.
std::optional<std::string> output_used_before(Draft& draft, const std::string& output, const ConfigPlace& place) {
  if (output.empty()) return std::nullopt;
  const std::string file = std::filesystem::path(output).lexically_normal().string();
  const auto [first, fresh] = draft.job_outputs.try_emplace(file, place);
  if (fresh) return std::nullopt;
  std::string problem = "output: the file " + toml_text(output);
  problem += " is written twice, first by the job at " + first->second.file;
  problem += ":" + std::to_string(first->second.line) + ":" + std::to_string(first->second.column);
  return problem;
}

// The job's `expect` is that of its only result; with several, each binding has its own.
void check_expect(const TomlNode& node, JobConfig& job, JobReport& report) {
  const TomlMember* expect = find_member(node, "expect");
  if (expect == nullptr) return;
  const auto is_result = [](const KernelBindingConfig& binding) {
    return binding.kind != BindingKind::local && binding.access != Access::read;
  };
  const auto results = std::ranges::count_if(job.bindings, is_result);
  if (results != 1) {
    return report.problem(expect->value.at,
                          "expect: found " + std::to_string(results) +
                              " results (output or inout), expected exactly one. With several results, set expect in "
                              "each of them");
  }
  KernelBindingConfig& result = *std::ranges::find_if(job.bindings, is_result);
  if (!result.expect.empty()) {
    return report.problem(expect->value.at, "expect: found in the job and in its result, expected only one of them");
  }
  result.expect = job.expect;
}

// Images, samplers and the grid behind the bindings, whose places in the list count; and sizes that are expressions.
void finish_bindings(const TomlNode& node, JobConfig& job, JobReport& report) {
  const auto by_place = [](const KernelBindingConfig& binding) {
    return binding.kind != BindingKind::image && binding.kind != BindingKind::sampler &&
           binding.kind != BindingKind::sampler_state && binding.kind != BindingKind::grid;
  };
  std::stable_partition(job.bindings.begin(), job.bindings.end(), by_place);
  if (job.bindings.empty()) {
    return report.problem(node.at,
                          "missing key bindings, images or samplers: a job with op = \"kernel\" needs at least one");
  }
  for (KernelBindingConfig& binding : job.bindings) {
    std::vector<std::int64_t>& extents = binding.size.empty() ? binding.shape : binding.size;
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const std::string& expression = binding.shape_expressions[i];
      if (!expression.empty()) {
        const std::string key = binding.label + (binding.size.empty() ? ".shape[" : ".size[") + std::to_string(i) + "]";
        const auto value = value_of(expression, job.constants);
        const bool good = value && *value >= 1;
        const ConfigPlace place = job.place_of(key);
        const TextPosition at{place.line, place.column};
        if (!good) {
          const std::string why =
              value ? "is " + std::to_string(*value) + ", expected at least 1" : value.error().message;
          report.problem(at, key + " = " + toml_text(expression) + ": " + why);
          return;
        }
        extents[i] = *value;
      }
      if (__builtin_mul_overflow(elements, extents[i], &elements) || elements > std::int64_t{1} << 32) {
        return report.problem(node.at, binding.label + ": has more than 2^32 elements");
      }
    }
  }
}

void expand_table(Draft& draft, const JobDraft& job, const FileContext& file, JobReport& report) {
  const std::filesystem::path path = file.base / job.table;
  const Result<std::string> text = read_whole_file(path, most_text_bytes);
  if (!text) return report.problem(job.table_at, "table: " + text.error().message);
  JobTable table = parse_job_table(*text, path.string());
  for (ConfigProblem& problem : table.problems) draft.problems.push_back(std::move(problem));
  for (JobTableRow& row : table.rows) {
    JobConfig expanded = job.job;
    expanded.name = job.job.name.empty() ? row.name : job.job.name + "/" + row.name;
    expanded.op = "conv2d";
    expanded.place = row.place;
    row.spec.bias = job.conv.bias;
    row.spec.activation = job.conv.activation;
    row.spec.accuracy = job.conv.accuracy;
    register_row(draft, expanded.name, row.place, job, report);
    if (!job.job.output.empty()) expanded.output = output_of_row(job.job.output, row.name);
    if (const auto problem = output_used_before(draft, expanded.output, row.place)) draft.problem(row.place, *problem);
    if (const Status status = validate(KernelSpec(row.spec)); !status.ok()) {
      draft.problem(row.place, "job " + toml_text(expanded.name) + ": " + status.message);
      continue;
    }
    expanded.spec = row.spec;
    draft.config.jobs.push_back(std::move(expanded));
  }
}

// Where the value stands that a message of check_parameters() or validate() begins with: "grid[1] = …", "parameter A:
// …", "conv2d: groups = 3: …", "conv2d: kernel height 5 …". The job, where it begins with no key.
TextPosition position_of(const TomlNode& job, std::string_view message) {
  for (const JobOperation& operation : job_operations()) {
    const std::string prefix = std::string(operation.name) + ": ";
    if (operation.spec != nullptr && message.starts_with(prefix)) message.remove_prefix(prefix.size());
  }
  constexpr std::pair<std::string_view, std::string_view> other_names[] = {
      {"kernel height", "r"}, {"kernel width", "s"}, {"the parameters", "tune"}};
  for (const auto& [name, key] : other_names) {
    const TomlMember* member = message.starts_with(name) ? find_member(job, key) : nullptr;
    if (member != nullptr) return member->value.at;
  }
  constexpr std::string_view parameter = "parameter ";
  const TomlNode* table = &job;
  if (message.starts_with(parameter)) {
    message.remove_prefix(parameter.size());
    if (message.starts_with('\'')) message.remove_prefix(1);
    if (const TomlMember* tune = find_member(job, "tune")) table = &tune->value;
  }
  const std::string_view name = message.substr(0, message.find_first_of(" [:'("));
  const TomlMember* member = find_member(*table, name);
  if (member == nullptr) return table->at;
  const std::string_view rest = message.substr(name.size());
  if (rest.starts_with(" [")) return job.at;  // "input [1, 8, …]": a tensor's shape, which follows from several keys
  const std::size_t element = rest.starts_with('[') && rest.size() > 1 ? static_cast<std::size_t>(rest[1] - '0') : 0;
  const bool has_element = rest.starts_with('[') && element < member->value.items.size();
  return has_element ? member->value.items[element].at : member->value.at;
}

using Places = std::map<std::string, ConfigPlace, std::less<>>;

// The places of a value and of all that is in it.
void add_places(const TomlNode& node, const std::string& key, const FileContext& file, Places& places) {
  places.emplace(key, file.place(node.at));
  for (const TomlMember& member : node.members) add_places(member.value, key + "." + member.key, file, places);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    add_places(node.items[i], key + "[" + std::to_string(i) + "]", file, places);
  }
}

Places places_of(const TomlNode& job, const FileContext& file) {
  Places places;
  for (const TomlMember& member : job.members) add_places(member.value, member.key, file, places);
  return places;
}

// What check_parameters() and validate() can judge without the job's files.
void check_operation(const TomlNode& node, JobForm form, JobDraft& job, JobReport& report) {
  Status status;
  if (form == JobForm::kernel) {
    UserKernelSpec open;
    open.constants = job.job.constants;
    open.parameters = job.job.tune;
    open.grid_expressions = job.job.grid_expressions;
    status = check_parameters(open);
  } else {
    job.job.spec = operation_of_form(form)->spec(job);
    status = validate(job.job.spec);
  }
  if (!status.ok()) report.problem(position_of(node, status.message), status.message);
}

JobDraft draft_of(const TomlNode& node, const FileContext& file) {
  JobDraft job;
  job.job.base = file.base;
  job.job.place = file.place(node.at);
  job.job.places = std::make_shared<const Places>(places_of(node, file));
  return job;
}

std::string label_of(std::string_view what, const TomlNode& node, std::size_t index) {
  const TomlMember* name = find_member(node, "name");
  const bool named = name != nullptr && name->value.kind == TomlKind::text && !name->value.text.empty();
  return std::string(what) + " " + (named ? toml_text(name->value.text) : std::to_string(index + 1));
}

void read_job(Draft& draft, const TomlNode& node, std::size_t index, const FileContext& file) {
  const TomlMember* name = find_member(node, "name");
  const bool named = name != nullptr && name->value.kind == TomlKind::text && !name->value.text.empty();
  const JobForm form = form_of(node);
  JobReport report(draft, file, label_of("job", node, index));
  JobDraft job = draft_of(node, file);
  for (const TomlMember& member : node.members) read_member(job, member, form, report);
  report_missing(node, form, report);
  if (form == JobForm::table && !job.job.op.empty() && job.job.op != "conv2d") {
    report.problem(find_member(node, "op")->value.at,
                   "op: found " + toml_text(job.job.op) + ", expected \"conv2d\" in a job with a table");
  }
  if (named && form != JobForm::table) {
    const std::optional<ConfigPlace> first = register_name(draft, name->value.text, file.place(name->value.at));
    if (first) report.problem(name->value.at, used_twice(name->value.text, *first));
  }
  if (report.problems() == 0 && form == JobForm::kernel) finish_bindings(node, job.job, report);
  if (report.problems() == 0) check_expect(node, job.job, report);
  if (report.problems() != 0) return;
  if (form == JobForm::table) return expand_table(draft, job, file, report);
  if (const auto problem = output_used_before(draft, job.job.output, job.job.place)) {
    return report.problem(find_member(node, "output")->value.at, *problem);
  }
  check_operation(node, form, job, report);
  if (report.problems() == 0) draft.config.jobs.push_back(std::move(job.job));
}

// Keys of a job that say nothing in a step: the pipeline has them, or its tensors.
constexpr std::string_view keys_of_whole[] = {"verify", "device", "keep_failed", "expect", "alpha"};
constexpr std::string_view pipeline_keys[] = {"name",   "tensors",   "step",        "device",
                                              "verify", "tolerance", "keep_failed", "alpha"};

bool is_one_of(std::string_view key, std::span<const std::string_view> keys) {
  return std::ranges::find(keys, key) != keys.end();
}

void read_repeat(PipelineStepConfig& step, const TomlMember& member, JobReport& report) {
  constexpr ValueRule rounds{ValueKind::integer, 1, 1'000'000};
  const Result<ConfigValue> value = checked(member.value, rounds);
  if (!value) return report.problem(member.value.at, "repeat: " + value.error().message);
  step.repeat = static_cast<std::uint32_t>(std::get<std::int64_t>(*value));
}

// ["a", "b"], or several such pairs.
void read_swap(PipelineStepConfig& step, const TomlMember& member, JobReport& report) {
  const auto is_pair = [](const TomlNode& node) {
    return node.kind == TomlKind::array && node.items.size() == 2 &&
           std::ranges::all_of(node.items, [](const TomlNode& item) { return item.kind == TomlKind::text; });
  };
  const TomlNode& node = member.value;
  const bool several = node.kind == TomlKind::array && !node.items.empty() && std::ranges::all_of(node.items, is_pair);
  if (!is_pair(node) && !several) {
    return report.problem(
        node.at, "swap: found " + describe(node) + ", expected the names of two tensors, or an array of such pairs");
  }
  const std::span<const TomlNode> pairs = several ? std::span<const TomlNode>(node.items) : std::span(&node, 1);
  for (const TomlNode& pair : pairs) step.swap.emplace_back(pair.items[0].text, pair.items[1].text);
}

using Steps = std::vector<PipelineStepConfig>;

class PipelineReader {
 public:
  PipelineReader(Draft& draft, const FileContext& file) : draft_(draft), file_(file) {}

  // label: of the list's owner. false: a problem was added.
  bool read(const TomlMember& list, const std::string& label, Steps& to, std::size_t depth = 1) {
    constexpr std::size_t most_nesting = 8;
    JobReport report(draft_, file_, label);
    const bool tables =
        list.value.kind == TomlKind::array && !list.value.items.empty() &&
        std::ranges::all_of(list.value.items, [](const TomlNode& node) { return node.kind == TomlKind::table; });
    if (!tables || depth > most_nesting) {
      report.problem(
          list.at, tables ? "step: nested more than " + std::to_string(most_nesting) + " levels deep"
                          : "step: found " + describe(list.value) + ", expected an array of tables, one for each step");
      return false;
    }
    bool good = true;
    for (std::size_t i = 0; i < list.value.items.size(); ++i) {
      good = read_step(list.value.items[i], label_of(label + ", step", list.value.items[i], i), to, depth) && good;
    }
    return good;
  }

 private:
  bool read_step(const TomlNode& node, const std::string& label, Steps& to, std::size_t depth) {
    JobReport report(draft_, file_, label, JobReport::Within::pipeline);
    PipelineStepConfig step;
    JobDraft job = draft_of(node, file_);
    const TomlMember* inner = find_member(node, "step");
    const JobForm form = inner != nullptr ? JobForm::invalid : form_of_op(node);
    bool good = true;
    for (const TomlMember& member : node.members) {
      if (member.key == "repeat") {
        read_repeat(step, member, report);
      } else if (member.key == "swap") {
        read_swap(step, member, report);
      } else if (member.key == "step") {
        good = read(member, label, step.steps, depth + 1) && good;
      } else if (inner != nullptr && member.key != "name") {
        report.problem(member.at, toml_key(member.key) +
                                      ": not a key of a step that contains steps, expected name, repeat, swap or step");
      } else if (member.key == "table") {
        report.problem(member.at, "table: not a key of a step, because each row of a table is a job");
      } else if (is_one_of(member.key, keys_of_whole)) {
        report.problem(member.at, member.key + ": found in a step, expected in the pipeline or in one of its tensors");
      } else {
        read_member(job, member, form, report);
      }
    }
    if (inner != nullptr) {
      if (find_member(node, "name") == nullptr) report.problem(node.at, "missing key name");
    } else {
      report_missing(node, form, report);
      if (form != JobForm::invalid && form != JobForm::kernel && find_member(node, "output") == nullptr) {
        report.problem(node.at, "missing key output: the name of the tensor that the step writes");
      }
      if (report.problems() == 0 && form == JobForm::kernel) finish_bindings(node, job.job, report);
      if (report.problems() == 0) check_operation(node, form, job, report);
    }
    if (!good || report.problems() != 0) return false;
    step.job = std::move(job.job);
    to.push_back(std::move(step));
    return true;
  }

  Draft& draft_;
  const FileContext& file_;
};

void read_pipeline(Draft& draft, const TomlNode& node, std::size_t index, const FileContext& file) {
  const std::string label = label_of("pipeline", node, index);
  JobReport report(draft, file, label, JobReport::Within::pipeline);
  PipelineConfig pipeline;
  JobDraft job = draft_of(node, file);
  job.job.op = "pipeline";
  bool good = true;
  for (const TomlMember& member : node.members) {
    if (!is_one_of(member.key, pipeline_keys)) {
      report.problem(member.at, toml_key(member.key) +
                                    ": unknown key; nearest: " + std::string(nearest_word(member.key, pipeline_keys)));
    } else if (member.key == "tensors") {
      read_tensors(job, member, report);
    } else if (member.key == "step") {
      good = PipelineReader(draft, file).read(member, label, pipeline.steps);
    } else {
      read_member(job, member, JobForm::kernel, report);
    }
  }
  for (const std::string_view key : {"name", "step"}) {
    if (find_member(node, key) == nullptr) report.problem(node.at, "missing key " + std::string(key));
  }
  if (!good || report.problems() != 0) return;
  const ConfigPlace place = file.place(find_member(node, "name")->value.at);
  if (const std::optional<ConfigPlace> first = register_name(draft, job.job.name, place)) {
    return report.problem(node.at, used_twice(job.job.name, *first));
  }
  if (!job.job.bindings.empty()) finish_bindings(node, job.job, report);
  if (report.problems() != 0) return;
  pipeline.job = std::move(job.job);
  draft.config.pipelines.push_back(std::move(pipeline));
}

}  // namespace

namespace {

// Calls `read` with each table of a list such as [[job]].
template <class Read>
void read_list(Draft& draft, const TomlMember& member, const FileContext& file, Read read) {
  const std::string& key = member.key;
  const TomlNode& list = member.value;
  if (list.kind != TomlKind::array) {
    const std::string found = list.kind == TomlKind::table ? "the section [" + key + "]" : describe(list);
    return draft.problem(file.place(member.at),
                         key + ": found " + found + ", expected [[" + key + "]] once for each " + key);
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const TomlNode& item = list.items[i];
    if (item.kind == TomlKind::table) {
      read(draft, item, i, file);
    } else {
      draft.problem(file.place(item.at),
                    key + " " + std::to_string(i + 1) + ": found " + describe(item) + ", expected [[" + key + "]]");
    }
  }
}

}  // namespace

void read_jobs(Draft& draft, const TomlMember& jobs, const FileContext& file) {
  read_list(draft, jobs, file, read_job);
}

void read_pipelines(Draft& draft, const TomlMember& pipelines, const FileContext& file) {
  read_list(draft, pipelines, file, read_pipeline);
}

}  // namespace kiln::config
