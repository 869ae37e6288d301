#include "options.hpp"

#include <boost/program_options.hpp>

#include <cstdlib>
#include <sstream>

extern char** environ;

namespace kiln::host {
namespace {

namespace po = boost::program_options;

struct VerbHelp {
  std::string_view name;  // as typed
  Verb verb;
  std::string_view arguments;
  std::string_view summary;
  std::string_view description;
};

constexpr VerbHelp verbs[] = {
    {"run", Verb::run, "CONFIG", "run the jobs of a TOML file",
     "Runs every [[job]] of CONFIG through selector, generator, program cache and executor, and prints a table: "
     "device, "
     "the tier that\nanswered (built, disk, library, memory), build time, time to the first result, median run time, "
     "GFLOP/s, and whether the full\noutput was compared with an independent reference (verify = true, or "
     "--verify).\n\n"
     "A program that was built once is found again by every later run: its tier is then `disk`, and `builds` is 0.\n"
     "Where a device cannot serve, the report says so and another one serves; [device] fallback = \"never\" makes that "
     "an "
     "error.\n\n"
     "Exit status: 0 done · 1 a job failed · 2 usage or configuration · 3 no device could serve."},
    {"devices", Verb::devices, "[CONFIG]", "list the devices there are",
     "Lists every device of every plugin that could be loaded, usable or not, and why not. Loads the libraries of the "
     "drivers."},
    {"plugins", Verb::plugins, "[CONFIG]", "list the plugins and why one was not loaded",
     "Loads the plugins that the configuration names and tells of each the file, the version, and the exact reason "
     "where it "
     "was refused.\nNo device library is loaded. A file that was never seen is first tried in a child process; the "
     "verdict is "
     "remembered until the\nfile changes."},
    {"config check", Verb::config_check, "CONFIG", "check a configuration file",
     "Tells every error at once, each with file:line:column, what was found, what was expected, and the nearest valid "
     "key.\n"
     "Sections [plugin.NAME] are checked against the keys that the plugin publishes.\n\nExit status: 0 valid · 2 not."},
    {"config show", Verb::config_show, "[CONFIG]", "show every value with its origin",
     "Prints one line a key: (origin) key = value. Order of precedence: defaults < file < environment < command line."},
};

po::options_description common_options() {
  po::options_description options("Options", 110, 60);
  auto add = options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "set a key over the file, as cache.policy=lru; may be repeated");
  add("device", po::value<std::string>()->value_name("ID"), "the device for every job: cpu, opengl:0, amdgpu:0");
  add("verify", po::bool_switch(), "compare every full output with an independent reference, outside the clock");
  add("repeat", po::value<std::int64_t>()->value_name("N"), "run each job N times (default 1)");
  add("json", po::bool_switch(), "machine-readable result");
  add("output", po::value<std::string>()->value_name("FILE"), "write the result to FILE instead of standard output");
  add("plugin-path", po::value<std::string>()->value_name("DIR"),
      "where plugins are looked for; several separated by ':'");
  add("cache-dir", po::value<std::string>()->value_name("DIR"), "the persistent cache's folder");
  add("log", po::value<std::string>()->value_name("LEVEL"), "debug, info, warning (default), error, off");
  add("progress", po::value<std::string>()->value_name("HOW"), "auto (default), plain, none");
  add("help", po::bool_switch(), "this text; after a verb, that verb's");
  add("version", po::bool_switch(), "the version");
  return options;
}

std::string environment_help() {
  return "Environment: KILN_CACHE_DIR, KILN_PLUGIN_PATH, KILN_CONFIG, KILN_LOG, KILN_KEY_FILE, NO_COLOR.\n"
         "Order: defaults < file < environment < command line.\n";
}

std::string overall_help() {
  std::ostringstream text;
  text << "kiln: build a GPU program once, keep it, run it for ever\n\nUsage: kiln VERB [ARGUMENTS] "
          "[OPTIONS]\n\nVerbs:\n";
  for (const VerbHelp& verb : verbs) {
    std::string left = "  " + std::string(verb.name) + " " + std::string(verb.arguments);
    left.resize(std::max<std::size_t>(left.size() + 2, 26), ' ');
    text << left << verb.summary << "\n";
  }
  text << "\n" << common_options() << "\n" << environment_help() << "\n`kiln VERB --help` tells more of a verb.\n";
  return text.str();
}

std::string verb_help(const VerbHelp& verb) {
  std::ostringstream text;
  text << "kiln " << verb.name << " — " << verb.summary << "\n\nUsage: kiln " << verb.name << " " << verb.arguments
       << " [OPTIONS]\n\n"
       << verb.description << "\n\n"
       << common_options() << "\n"
       << environment_help();
  return text.str();
}

// The verb that the leading words name, and how many of them it takes; null where none does.
const VerbHelp* verb_of(const std::vector<std::string>& words, std::size_t& taken) {
  for (const VerbHelp& verb : verbs) {
    std::istringstream parts{std::string(verb.name)};
    std::size_t matched = 0;
    bool all = true;
    for (std::string part; all && parts >> part; ++matched) all = matched < words.size() && words[matched] == part;
    if (all) {
      taken = matched;
      return &verb;
    }
  }
  return nullptr;
}

std::string verb_names() {
  std::string names;
  for (const VerbHelp& verb : verbs) names += (names.empty() ? "" : ", ") + std::string(verb.name);
  return names;
}

std::optional<std::string> text_of(const po::variables_map& given, const char* name) {
  if (given.count(name) == 0) return std::nullopt;
  return given[name].as<std::string>();
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  po::options_description hidden;
  hidden.add_options()("words", po::value<std::vector<std::string>>());
  po::options_description all;
  all.add(common_options()).add(hidden);
  po::positional_options_description positional;
  positional.add("words", -1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(argc, argv)
                  .options(all)
                  .positional(positional)
                  .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                  .run(),
              given);
  } catch (const po::error& error) {
    return invalid_argument(std::string(error.what()) + "; see kiln --help");
  }

  Options options;
  std::vector<std::string> words;
  if (given.count("words") != 0) words = given["words"].as<std::vector<std::string>>();
  std::size_t taken = 0;
  const VerbHelp* verb = verb_of(words, taken);
  if (given["version"].as<bool>()) {
    options.verb = Verb::version;
    return options;
  }
  if (given["help"].as<bool>() || (words.size() == 1 && words[0] == "help")) {
    options.verb = Verb::help;
    options.help_text = verb != nullptr ? verb_help(*verb) : overall_help();
    return options;
  }
  if (words.empty()) return invalid_argument("no verb: expected one of " + verb_names() + "; see kiln --help");
  if (verb == nullptr) {
    return invalid_argument("verb '" + words[0] + (words[0] == "config" && words.size() > 1 ? " " + words[1] : "") +
                            "': expected one of " + verb_names() + "; see kiln --help");
  }
  options.verb = verb->verb;
  if (words.size() > taken + 1) {
    return invalid_argument("kiln " + std::string(verb->name) + ": unexpected argument '" + words[taken + 1] +
                            "' after '" + words[taken] + "'");
  }
  options.sources.environment = configuration_environment(environ);
  if (words.size() == taken + 1) options.sources.file = words[taken];
  const bool needs_file = verb->verb == Verb::run || verb->verb == Verb::config_check;
  if (needs_file && !options.sources.file && !options.sources.environment.contains("KILN_CONFIG")) {
    return invalid_argument("kiln " + std::string(verb->name) + ": no configuration file given; usage: kiln " +
                            std::string(verb->name) + " " + std::string(verb->arguments));
  }
  if (given.count("set") != 0) options.sources.set = given["set"].as<std::vector<std::string>>();
  options.sources.cache_directory = text_of(given, "cache-dir");
  options.sources.plugin_path = text_of(given, "plugin-path");
  options.sources.log_level = text_of(given, "log");
  options.device = text_of(given, "device").value_or("");
  options.verify = given["verify"].as<bool>();
  options.json = given["json"].as<bool>();
  if (given.count("repeat") != 0) {
    const std::int64_t repeat = given["repeat"].as<std::int64_t>();
    if (repeat < 1 || repeat > 1'000'000) {
      return invalid_argument("--repeat " + std::to_string(repeat) + ": expected 1 to 1000000");
    }
    options.repeat = static_cast<std::uint32_t>(repeat);
  }
  if (const auto file = text_of(given, "output")) options.output = *file;
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
