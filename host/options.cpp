#include "options.hpp"

#include "progress.hpp"
#include "verb_table.hpp"
#include "verbs/verbs.hpp"

#include <kiln/config_text.hpp>

#include <boost/program_options.hpp>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <sstream>

extern char** environ;

namespace kiln::host {
namespace {

namespace po = boost::program_options;

constexpr std::uint32_t most_jobs_at_once = 64;
constexpr std::uint32_t most_chosen = 1'000'000;  // programs or winners

// Every option there is; verbs take some of them.
po::options_description all_options() {
  po::options_description options;
  auto add = options.add_options();
  add("max-age", po::value<std::string>()->value_name("AGE"),
      "remove programs that were not used for this long: 30d, 12h, 90 min");
  add("top", po::value<std::int64_t>()->value_name("K"), "only the first K programs");
  add("max-size", po::value<std::string>()->value_name("SIZE"),
      "remove the least recently used above this size: 500MiB, 2 GiB");
  add("dry-run", po::bool_switch(), "print what would be removed, and remove nothing");
  add("remove", po::bool_switch(), "remove bad programs");
  add("all", po::bool_switch(), "also statistics, the selector's model and the results of plugin checks");
  add("prometheus", po::bool_switch(), "text format of Prometheus");
  add("budget", po::value<std::string>()->value_name("TIME"), "time for each job: 30 s (default), 5 min");
  add("exhaustive", po::bool_switch(), "every variant, without a time limit; for a convolution the 256 most promising");
  add("again", po::bool_switch(), "also measure known variants");
  add("sample", po::value<std::int64_t>()->value_name("N"), "number of winners to measure (default 8)");
  add("quick", po::bool_switch(), "fewer rounds and smaller cases: checks that everything works");
  add("stable", po::bool_switch(), "only counts, which are equal on every machine");
  add("passes", po::value<std::int64_t>()->value_name("N"),
      "run all programs N times, 1 to 9 (default 2; 1 with --quick or --stable)");
  add("show-key", po::bool_switch(), "print the public key for importers, and write no file");
  add("trust", po::value<std::string>()->value_name("KEY|FILE"),
      "the public key to trust: 64 hexadecimal digits, or a file that begins with them");
  add("until", po::value<std::string>()->value_name("DATE"), "the last day on which the key is valid: 2027-01-31");
  add("system", po::bool_switch(), "change /etc/kiln instead of the folder of this user");
  add("sign-with", po::value<std::string>()->value_name("NAME"), "the key that signs the programs");
  add("for", po::value<std::vector<std::string>>()->composing()->value_name("TARGET"),
      "a chip such as gfx1100, or a device here such as opengl:0; may be repeated");
  add("from", po::value<std::string>()->value_name("BUNDLE"), "take the programs of a bundle instead of the cache");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "override a key of the file, for example cache.policy=lru; may be repeated");
  add("device", po::value<std::string>()->value_name("ID"), "the device for every job: cpu, opengl:0, amdgpu:0");
  add("target", po::value<std::string>()->value_name("NAME"), "the instruction set: gfx1030, gfx1100, …");
  add("include", po::value<std::vector<std::string>>()->composing()->value_name("DIR"),
      "search DIR for included files, after the folder of the including file; may be repeated");
  add("verify", po::value<std::string>()->implicit_value("")->value_name("[=steps]"),
      "compare every full output with an independent reference, outside the measured time; =steps: also that of each "
      "step of a pipeline");
  add("repeat", po::value<std::int64_t>()->value_name("N"), "run each job N times (default 1)");
  add("jobs", po::value<std::int64_t>()->value_name("N"), "run N jobs at a time (default 1)");
  add("json", po::bool_switch(), "print the result as JSON");
  add("output", po::value<std::string>()->value_name("FILE"), "write the result to FILE instead of standard output");
  add("title", po::value<std::string>()->value_name("TEXT"), "heading of the page");
  add("trace", po::value<std::string>()->value_name("FILE"),
      "write every step and decision to FILE as Chrome trace events, for Perfetto");
  add("watch", po::bool_switch(),
      "on a terminal: redraw a table of devices, cache, rates and time left while the jobs run");
  add("retry", po::bool_switch(), "forget the results of earlier checks, and check every plugin again");
  add("plugin-path", po::value<std::string>()->value_name("DIR"),
      "folders searched before the installed plugins, separated by ':'");
  add("cache-dir", po::value<std::string>()->value_name("DIR"), "folder of the persistent cache");
  add("log", po::value<std::string>()->value_name("LEVEL"), "debug, info, warning (default), error, off");
  add("progress", po::value<std::string>()->value_name("HOW"), "auto (default), plain, none");
  add("help", po::bool_switch(), "print this text; after a verb, the help of the verb");
  add("version", po::bool_switch(), "print the version");
  return options;
}

// "a b" holds "a".
bool holds_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::string options_text(std::string_view title, std::string_view names) {
  po::options_description chosen(std::string(title), 110, 60);
  const po::options_description all = all_options();
  for (const auto& option : all.options()) {
    if (holds_word(names, option->long_name())) chosen.add(option);
  }
  std::ostringstream text;
  text << chosen;
  return text.str();
}

std::string environment_help() {
  return "Environment: KILN_CACHE_DIR, KILN_PLUGIN_PATH, KILN_CONFIG, KILN_LOG, KILN_KEY_FILE, NO_COLOR.\n"
         "Order: defaults < file < environment < command line.\n";
}

std::vector<VerbHelp> all_verbs() {
  std::vector<VerbHelp> all(job_verbs().begin(), job_verbs().end());
  all.insert(all.end(), selector_verbs().begin(), selector_verbs().end());
  all.insert(all.end(), cache_verbs().begin(), cache_verbs().end());
  all.insert(all.end(), offline_verbs().begin(), offline_verbs().end());
  all.insert(all.end(), bench_verbs().begin(), bench_verbs().end());
  return all;
}

std::string verb_lines(std::string_view group) {
  std::string lines;
  for (const VerbHelp& verb : all_verbs()) {
    if (!verb.name.starts_with(group)) continue;
    std::string left = "  " + std::string(verb.name) + " " + std::string(verb.argument_name);
    const std::size_t columns = columns_of(left);
    lines += left + std::string(columns < 28 ? 30 - columns : 2, ' ') + std::string(verb.summary) + "\n";
  }
  return lines;
}

std::string overall_help() {
  return "kiln: build a GPU program once, store it, and load it in every later process\n\nUsage: kiln VERB [ARGUMENTS] "
         "[OPTIONS]\n\nVerbs:\n" +
         verb_lines("") + "\n" + options_text("Options", job_verbs().front().common_options) + "\n" +
         environment_help() + "\n`kiln help VERB` describes a verb; `kiln version` shows the version.\n";
}

// Of the verbs that begin with one word: "cache".
std::string group_help(const std::string& group) {
  return "Usage: kiln " + group + " VERB [ARGUMENTS] [OPTIONS]\n\nVerbs:\n" + verb_lines(group + " ") + "\n`kiln " +
         group + " VERB --help` describes a verb.\n";
}

std::string verb_help(const VerbHelp& verb) {
  const std::string name(verb.name);
  std::string text = "kiln " + name + " — " + std::string(verb.summary) + "\n\nUsage: kiln " + name;
  if (!verb.argument_name.empty()) text += " " + std::string(verb.argument_name);
  if (verb.argument != Argument::command) text += " [OPTIONS]";  // after `--` stands another command's line
  text += "\n\n" + std::string(verb.description) + "\n\n";
  if (!verb.own_options.empty()) text += options_text("Options of this verb", verb.own_options) + "\n";
  return text + options_text("Options", verb.common_options) + "\n" + environment_help();
}

// The verb that the leading words name, and how many of them it takes.
std::optional<VerbHelp> verb_of(const std::vector<std::string>& words, std::size_t& taken) {
  std::optional<VerbHelp> named;  // by as many words as any: "tune audit" before "tune"
  for (const VerbHelp& verb : all_verbs()) {
    std::istringstream parts{std::string(verb.name)};
    std::size_t matched = 0;
    bool all = true;
    for (std::string part; all && parts >> part; ++matched) all = matched < words.size() && words[matched] == part;
    if (!all || (named && matched <= taken)) continue;
    taken = matched;
    named = verb;
  }
  return named;
}

bool is_group(const std::string& word) {
  const auto all = all_verbs();
  return std::ranges::any_of(all, [&](const VerbHelp& verb) { return verb.name.starts_with(word + " "); });
}

// Of the verbs that begin with the word, or of all where none does.
std::string verb_names(const std::string& word) {
  std::string names;
  for (const VerbHelp& verb : all_verbs()) {
    if (is_group(word) && !verb.name.starts_with(word + " ")) continue;
    names += (names.empty() ? "" : ", ") + std::string(verb.name);
  }
  return names;
}

std::optional<std::string> text_of(const po::variables_map& given, const char* name) {
  if (given.count(name) == 0) return std::nullopt;
  return given[name].as<std::string>();
}

// From 1 on.
Result<std::uint32_t> count_of(const po::variables_map& given, const std::string& name, std::uint32_t most) {
  const std::int64_t count = given[name].as<std::int64_t>();
  if (count >= 1 && count <= most) return static_cast<std::uint32_t>(count);
  return invalid_argument("--" + name + " " + std::to_string(count) + ": expected 1 to " + std::to_string(most));
}

// "; nearest: run" where one is close to what was typed.
std::string nearest_text(std::string_view typed, const std::vector<std::string>& known) {
  const std::vector<std::string_view> words(known.begin(), known.end());
  const auto nearest = config::close_word(typed, words);
  return nearest ? "; nearest: " + std::string(*nearest) : "";
}

// Of one word or of two: "cahce list" is near to "cache list", "rnu job.toml" to "run".
std::string nearest_verb(const std::vector<std::string>& words) {
  std::vector<std::string> known = {"help", "version"};
  for (const VerbHelp& verb : all_verbs()) {
    const std::string name(verb.name);
    known.push_back(name);
    if (name.find(' ') != std::string::npos) known.push_back(name.substr(0, name.find(' ')));
  }
  if (words.size() > 1) {
    std::string nearest = nearest_text(words[0] + " " + words[1], known);
    if (!nearest.empty()) return nearest;
  }
  return nearest_text(words[0], known);
}

Status no_such_verb(const std::vector<std::string>& words) {
  if (words.empty()) return invalid_argument("no verb: expected one of " + verb_names("") + "; see kiln --help");
  const std::string typed = is_group(words[0]) && words.size() > 1 ? words[0] + " " + words[1] : words[0];
  return invalid_argument("verb '" + typed + "': expected one of " + verb_names(words[0]) + nearest_verb(words) +
                          "; see kiln --help");
}

Status no_such_option(const std::string& typed) {
  std::vector<std::string> known;
  const po::options_description all = all_options();
  for (const auto& option : all.options()) known.push_back("--" + option->long_name());
  return invalid_argument("unknown option '" + typed + "'" + nearest_text(typed, known) + "; see kiln --help");
}

// The words of the command line; -h is --help wherever it does not belong to another command.
std::vector<std::string> typed_words(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (std::string& word : words) {
    if (word == "--") break;
    if (word == "-h") word = "--help";
  }
  return words;
}

// `kiln help`, `kiln help VERB…`, `kiln VERB… --help`.
Result<std::string> help_for(const std::vector<std::string>& words) {
  if (words.empty()) return overall_help();
  std::size_t taken = 0;
  if (const auto verb = verb_of(words, taken)) return verb_help(*verb);
  if (words.size() == 1 && is_group(words[0])) return group_help(words[0]);
  return no_such_verb(words);
}

// What was given and the verb does not take.
Status check_options(const VerbHelp& verb, const po::variables_map& given) {
  for (const auto& [name, value] : given) {
    if (name == "words" || value.defaulted()) continue;
    if (holds_word(verb.common_options, name) || holds_word(verb.own_options, name)) continue;
    std::string takes = verb.own_options.empty() ? "" : std::string(verb.own_options) + " ";
    takes += verb.common_options;
    return invalid_argument("kiln " + std::string(verb.name) + ": --" + name +
                            " is not supported, expected one of: " + takes);
  }
  return {};
}

Status take_argument(const VerbHelp& verb, const std::vector<std::string>& words, std::size_t taken, Options& options) {
  const std::string who = "kiln " + std::string(verb.name);
  if (verb.argument == Argument::command) {
    options.subjects.assign(words.begin() + static_cast<std::ptrdiff_t>(taken), words.end());
    if (!options.subjects.empty() && !options.subjects.front().empty()) return {};
    return invalid_argument(who + ": no command given; usage: " + who + " " + std::string(verb.argument_name));
  }
  if (verb.argument == Argument::subjects || verb.argument == Argument::file_and_subjects) {
    for (const std::string& word : std::span(words).subspan(taken)) {
      if (word.empty())
        return invalid_argument(who + ": empty argument; usage: " + who + " " + std::string(verb.argument_name));
    }
    const bool file = verb.argument == Argument::file_and_subjects && words.size() > taken;
    if (file) options.subject = words[taken];
    options.subjects.assign(words.begin() + static_cast<std::ptrdiff_t>(taken + (file ? 1 : 0)), words.end());
    return {};
  }
  const std::size_t most = verb.argument == Argument::none ? 0 : 1;
  if (words.size() > taken + most) {
    const std::string after = words[taken + most - 1];
    return invalid_argument(who + ": unexpected argument '" + words[taken + most] + "' after '" + after + "'");
  }
  const bool missing = words.size() == taken;
  const std::string usage = "; usage: " + who + " " + std::string(verb.argument_name);
  if (verb.argument == Argument::subject || verb.argument == Argument::subject_or_none) {
    if (missing && verb.argument == Argument::subject_or_none) return {};
    if (missing || words[taken].empty()) return invalid_argument(who + ": no argument given" + usage);
    options.subject = words[taken];
    return {};
  }
  if (!missing) options.sources.file = words[taken];
  if (missing && verb.argument == Argument::config && !options.sources.environment.contains("KILN_CONFIG")) {
    return invalid_argument(who + ": no configuration file given" + usage);
  }
  return {};
}

Status take_cache_options(const po::variables_map& given, CacheOptions& cache) {
  if (const auto age = text_of(given, "max-age")) {
    const auto parsed = parse_duration(*age);
    if (!parsed) return parsed.error().within("--max-age");
    cache.max_age = *parsed;
  }
  if (const auto size = text_of(given, "max-size")) {
    const auto parsed = parse_size(*size);
    if (!parsed) return parsed.error().within("--max-size");
    cache.max_size = *parsed;
  }
  if (given.count("top") != 0) {
    const auto top = count_of(given, "top", most_chosen);
    if (!top) return top.error();
    cache.top = *top;
  }
  cache.all = given["all"].as<bool>();
  cache.dry_run = given["dry-run"].as<bool>();
  cache.remove = given["remove"].as<bool>();
  cache.prometheus = given["prometheus"].as<bool>();
  cache.show_key = given["show-key"].as<bool>();
  cache.trust = text_of(given, "trust").value_or("");
  cache.system = given["system"].as<bool>();
  cache.until = text_of(given, "until").value_or("");
  cache.sign_with = text_of(given, "sign-with").value_or("");
  cache.from = text_of(given, "from").value_or("");
  if (given.count("for") != 0) cache.targets = given["for"].as<std::vector<std::string>>();
  return {};
}

Status take_tune_options(const po::variables_map& given, TuneChoices& tune) {
  if (const auto budget = text_of(given, "budget")) {
    const auto parsed = parse_duration(*budget);
    if (!parsed) return parsed.error().within("--budget");
    tune.budget = *parsed;
  }
  tune.exhaustive = given["exhaustive"].as<bool>();
  tune.again = given["again"].as<bool>();
  if (given.count("sample") != 0) {
    const auto sample = count_of(given, "sample", most_chosen);
    if (!sample) return sample.error();
    tune.sample = *sample;
  }
  return {};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  po::options_description hidden;
  hidden.add_options()("words", po::value<std::vector<std::string>>());
  po::options_description all;
  all.add(all_options()).add(hidden);
  po::positional_options_description positional;
  positional.add("words", -1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(typed_words(argc, argv))
                  .options(all)
                  .positional(positional)
                  .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                  .run(),
              given);
  } catch (const po::unknown_option& error) {
    return no_such_option(error.get_option_name());
  } catch (const po::error& error) {
    return invalid_argument(std::string(error.what()) + "; see kiln --help");
  }

  Options options;
  std::vector<std::string> words;
  if (given.count("words") != 0) words = given["words"].as<std::vector<std::string>>();
  std::size_t taken = 0;
  const auto verb = verb_of(words, taken);
  if (given["version"].as<bool>() || (words.size() == 1 && words[0] == "version")) {
    options.action = print_version;
    return options;
  }
  const bool asks_by_word = !words.empty() && words[0] == "help";
  if (given["help"].as<bool>() || asks_by_word) {
    if (asks_by_word) words.erase(words.begin());
    auto text = help_for(words);
    if (!text) return std::move(text).error();
    options.action = print_help;
    options.help_text = std::move(*text);
    return options;
  }
  if (!verb) return no_such_verb(words);
  options.verb = verb->name;
  options.action = verb->action;
  if (Status status = check_options(*verb, given); !status.ok()) return status;
  options.sources.environment = configuration_environment(environ);
  if (Status status = take_argument(*verb, words, taken, options); !status.ok()) return status;
  if (Status status = take_cache_options(given, options.cache); !status.ok()) return status;
  if (Status status = take_tune_options(given, options.tune); !status.ok()) return status;
  if (given.count("set") != 0) options.sources.set = given["set"].as<std::vector<std::string>>();
  options.sources.cache_directory = text_of(given, "cache-dir");
  options.sources.plugin_path = text_of(given, "plugin-path");
  options.sources.log_level = text_of(given, "log");
  options.device = text_of(given, "device").value_or("");
  if (given.count("device") != 0 && options.device.empty()) {
    return invalid_argument("--device '': expected auto or a device id, as listed by `kiln devices`");
  }
  options.target = text_of(given, "target").value_or("");
  if (given.count("include") != 0) options.include = given["include"].as<std::vector<std::string>>();
  options.verify = given.count("verify") != 0;
  if (options.verify) {
    const std::string how = given["verify"].as<std::string>();
    options.verify_steps = how == "steps";
    if (!how.empty() && !options.verify_steps) {
      return invalid_argument("--verify=" + how + ": expected --verify or --verify=steps");
    }
  }
  options.json = given["json"].as<bool>();
  options.bench = {given["quick"].as<bool>(), given["stable"].as<bool>(), {}};
  if (given.count("passes") != 0) {
    const auto passes = count_of(given, "passes", 9);
    if (!passes) return passes.error();
    options.bench.passes = *passes;
  }
  options.watch = given["watch"].as<bool>();
  options.retry = given["retry"].as<bool>();
  if (given.count("repeat") != 0) {
    const auto repeat = count_of(given, "repeat", 1'000'000);
    if (!repeat) return repeat.error();
    options.repeat = *repeat;
  }
  if (given.count("jobs") != 0) {
    const auto jobs = count_of(given, "jobs", most_jobs_at_once);
    if (!jobs) return jobs.error();
    options.jobs = *jobs;
  }
  if (const auto file = text_of(given, "output")) options.output = *file;
  if (const auto file = text_of(given, "trace")) options.trace = *file;
  options.title = text_of(given, "title").value_or("");
  const std::string progress = text_of(given, "progress").value_or("auto");
  if (progress == "auto")
    options.progress = Progress::automatic;
  else if (progress == "plain")
    options.progress = Progress::plain;
  else if (progress == "none")
    options.progress = Progress::none;
  else
    return invalid_argument("--progress " + progress + ": expected auto, plain or none");
  return options;
}

}  // namespace kiln::host
