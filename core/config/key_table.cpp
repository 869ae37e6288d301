#include "config/key_table.hpp"

#include "base/policy_names.hpp"

#include <array>
#include <utility>

namespace kiln::config {
namespace {

using Texts = std::vector<std::string>;

template <class T>
T as(const ConfigValue& value) {
  if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
    return std::chrono::nanoseconds(std::get<std::int64_t>(value));
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return static_cast<T>(std::get<std::int64_t>(value));
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return std::filesystem::path(std::get<std::string>(value));
  } else {
    return std::get<T>(value);
  }
}

template <class T>
ConfigValue value_of(const T& member) {
  if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
    return ConfigValue(static_cast<std::int64_t>(member.count()));
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    return ConfigValue(static_cast<std::int64_t>(member));
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return ConfigValue(member.string());
  } else {
    return ConfigValue(member);
  }
}

// The setter and the getter of config.*section.*member.
template <auto section, auto member>
void set(Config& config, const ConfigValue& value) {
  auto& target = config.*section.*member;
  target = as<std::remove_reference_t<decltype(target)>>(value);
}
template <auto section, auto member>
ConfigValue get(const Config& config) {
  return value_of(config.*section.*member);
}

void set_fallback(Config& config, const ConfigValue& value) {
  config.device.fallback = as<std::string>(value) == "never" ? Fallback::never : Fallback::report;
}
ConfigValue get_fallback(const Config& config) {
  return std::string(config.device.fallback == Fallback::never ? "never" : "report");
}

constexpr std::array levels{LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error, LogLevel::off};

void set_log_level(Config& config, const ConfigValue& value) {
  for (const LogLevel level : levels) {
    if (to_string(level) == as<std::string>(value)) config.log_level = level;
  }
}
ConfigValue get_log_level(const Config& config) { return std::string(to_string(config.log_level)); }

std::vector<std::filesystem::path> paths_of(const ConfigValue& value) {
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : as<Texts>(value)) folders.emplace_back(folder);
  return folders;
}
ConfigValue texts_of(const std::vector<std::filesystem::path>& paths) {
  Texts folders;
  for (const std::filesystem::path& folder : paths) folders.push_back(folder.string());
  return folders;
}

void set_layers(Config& config, const ConfigValue& value) { config.cache.layers = paths_of(value); }
ConfigValue get_layers(const Config& config) { return texts_of(config.cache.layers); }

void set_plugin_path(Config& config, const ConfigValue& value) { config.plugins.path = paths_of(value); }
ConfigValue get_plugin_path(const Config& config) { return texts_of(config.plugins.path); }

constexpr std::string_view fallback_words[] = {"report", "never"};
constexpr std::string_view build_places[] = {"child", "process"};
constexpr std::string_view compressions[] = {"zstd", "none"};
constexpr std::string_view warm_words[] = {"none", "all", "top", "labels"};
constexpr std::string_view selector_policies[] = {"ema", "epsilon", "ucb", "thompson"};
constexpr std::string_view level_words[] = {"debug", "info", "warning", "error", "off"};

constexpr double most_bytes = 1125899906842624.0;           // 1024 TiB
constexpr double most_wait = 365.0 * 86'400'000'000'000.0;  // a year in nanoseconds

constexpr ValueRule texts{ValueKind::text_list};
constexpr ValueRule path{ValueKind::path};
constexpr ValueRule path_or_none = [] {
  ValueRule rule = path;
  rule.may_be_empty = true;
  return rule;
}();
constexpr ValueRule paths{ValueKind::path_list};
constexpr ValueRule size{ValueKind::size, 0, most_bytes};
constexpr ValueRule integer(double least, double most) { return {ValueKind::integer, least, most}; }
constexpr ValueRule number(double least, double most) { return {ValueKind::number, least, most}; }

constexpr ValueRule eviction_policy = [] {
  ValueRule rule = word_of(eviction_policy_names);
  rule.removed = removed_policy_names;
  rule.successor = "cost";
  return rule;
}();

constexpr SectionEntry sections[] = {
    {"plugins", "Which plugins are loaded."},
    {"device", "Where jobs run."},
    {"cache", "The persistent cache of built programs."},
    {"executor", "How jobs are submitted."},
    {"selector", "How a device is chosen for a job that names none."},
    {"generator", "The generator of kernel sources."},
    {"metrics", "Metrics for monitoring systems."},
    {"log", "Messages on standard error."},
};

constexpr auto plugins = &Config::plugins;
constexpr auto device = &Config::device;
constexpr auto cache = &Config::cache;
constexpr auto executor = &Config::executor;
constexpr auto selector = &Config::selector;
constexpr auto generator = &Config::generator;
constexpr auto metrics = &Config::metrics;

constexpr KeyEntry keys[] = {
    {"plugins.load", texts,
     "Plugins to load, by name, in this order. A plugin that cannot be loaded is reported and skipped.",
     set<plugins, &PluginsConfig::load>, get<plugins, &PluginsConfig::load>},
    {"plugins.required", texts, "Plugins that must be loaded: a missing one is an error.",
     set<plugins, &PluginsConfig::required>, get<plugins, &PluginsConfig::required>},
    {"plugins.path", paths,
     "Folders that are searched for plugins before the installed one, in this order. Set by --plugin-path or "
     "KILN_PLUGIN_PATH, never in a file, because a file must not decide which code is loaded.",
     set_plugin_path, get_plugin_path, KeyPlace::outside_file, "[]"},

    {"device.prefer", text_value,
     "The device for jobs that name none: \"auto\" (the selector chooses) or an id such as \"cpu\" or \"opengl:0\".",
     set<device, &DeviceConfig::prefer>, get<device, &DeviceConfig::prefer>},
    {"device.fallback", word_of(fallback_words),
     "What happens if a device is unavailable or lost: \"report\" uses another device and reports it; \"never\" makes "
     "it an error.",
     set_fallback, get_fallback},

    {"cache.name", text_value, "Registered name of the cache implementation.", set<cache, &CacheConfig::name>,
     get<cache, &CacheConfig::name>},
    {"cache.directory", path,
     "Folder of all stored files except the key: programs, the selector's model, the tuning database, plugin verdicts. "
     "Default: $XDG_CACHE_HOME/kiln, else ~/.cache/kiln. A relative path in a file is relative to the file's folder.",
     set<cache, &CacheConfig::directory>, get<cache, &CacheConfig::directory>, KeyPlace::anywhere, "\"~/.cache/kiln\""},
    {"cache.max_programs", integer(0, 1'000'000), "Maximum number of programs in memory; 0 stores none in memory.",
     set<cache, &CacheConfig::max_programs>, get<cache, &CacheConfig::max_programs>},
    {"cache.max_memory", size, "Maximum size of the programs in memory, by their own estimate.",
     set<cache, &CacheConfig::max_memory>, get<cache, &CacheConfig::max_memory>},
    {"cache.max_disk", size, "Maximum size of the stored programs on disk.", set<cache, &CacheConfig::max_disk>,
     get<cache, &CacheConfig::max_disk>},
    {"cache.policy", eviction_policy,
     "Which program leaves memory first when room is needed. cost: the one that is expected to save the least time "
     "for its room. lru: the least recently used. sieve: the oldest that was not used lately. See "
     "docs/cache-policies.md.",
     set<cache, &CacheConfig::policy>, get<cache, &CacheConfig::policy>},
    {"cache.auto_save", boolean_value,
     "Whether a built program is stored at once. With false it is pending until `kiln cache persist` stores it; later "
     "processes do not find it.",
     set<cache, &CacheConfig::auto_save>, get<cache, &CacheConfig::auto_save>},
    {"cache.compression", word_of(compressions), "Compression of programs on disk.", set<cache, &CacheConfig::compression>,
     get<cache, &CacheConfig::compression>},
    {"cache.read_only", boolean_value, "With true nothing is written to the folder.", set<cache, &CacheConfig::read_only>,
     get<cache, &CacheConfig::read_only>},
    {"cache.build_in", word_of(build_places),
     "Where new programs are built. child: in a child process, so that a compiler that crashes, hangs or exhausts "
     "memory fails only its own job. process: in this process.",
     set<cache, &CacheConfig::build_in>, get<cache, &CacheConfig::build_in>},
    {"cache.build_timeout", ValueRule{ValueKind::duration, 1, most_wait}, "Time limit for one build in a child.",
     set<cache, &CacheConfig::build_timeout>, get<cache, &CacheConfig::build_timeout>},
    {"cache.build_memory", size, "Memory limit for a child; a build that needs more fails.",
     set<cache, &CacheConfig::build_memory>, get<cache, &CacheConfig::build_memory>},
    {"cache.warm", word_of(warm_words),
     "Which stored programs are loaded and dispatched once in the background after the start: none, all, the "
     "`warm_top` programs that are expected to save the most time, or those of `warm_labels`. Jobs have priority, and "
     "warming pauses under memory pressure.",
     set<cache, &CacheConfig::warm>, get<cache, &CacheConfig::warm>},
    {"cache.warm_top", integer(1, 1'000'000), "Number of programs for warm = \"top\".",
     set<cache, &CacheConfig::warm_top>, get<cache, &CacheConfig::warm_top>},
    {"cache.warm_labels", texts,
     "Labels for warm = \"labels\", or their parts before a `/`, as `kiln cache list` prints them.",
     set<cache, &CacheConfig::warm_labels>, get<cache, &CacheConfig::warm_labels>},
    {"cache.layers", paths,
     "Read-only folders with signed programs, such as those of a container image or a package. They are searched after "
     "`directory` and before any [[cache.remote]]. See docs/sharing-a-cache.md.",
     set_layers, get_layers},
    {"cache.layer_writers", texts,
     "Names of the trusted keys that may sign programs in `layers`. Empty: every trusted key. `kiln cache key list` "
     "prints the names. A file cannot add a key.",
     set<cache, &CacheConfig::layer_writers>, get<cache, &CacheConfig::layer_writers>},
    {"cache.key_file", path,
     "File of the secret key that authenticates stored programs. It is created when it is first needed. Default: "
     "$XDG_STATE_HOME/kiln/key, else ~/.local/state/kiln/key.",
     set<cache, &CacheConfig::key_file>, get<cache, &CacheConfig::key_file>, KeyPlace::anywhere,
     "\"~/.local/state/kiln/key\""},

    {"executor.name", text_value, "Registered name of the executor implementation.", set<executor, &ExecutorConfig::name>,
     get<executor, &ExecutorConfig::name>},
    {"executor.in_flight", integer(1, 16), "Maximum number of submitted and unfinished jobs of a device.",
     set<executor, &ExecutorConfig::in_flight>, get<executor, &ExecutorConfig::in_flight>},
    {"executor.adaptive_depth", boolean_value,
     "Whether only as many of the in_flight slots are used as keep the slowest stage busy.",
     set<executor, &ExecutorConfig::adaptive_depth>, get<executor, &ExecutorConfig::adaptive_depth>},
    {"executor.timeout", ValueRule{ValueKind::duration, 1, most_wait},
     "Time limit for one run of a job. Units: ns, us, ms, s, min, h, d.", set<executor, &ExecutorConfig::timeout>,
     get<executor, &ExecutorConfig::timeout>},

    {"selector.name", text_value, "Registered name of the selector implementation: \"learning\" or \"fixed\".",
     set<selector, &SelectorConfig::name>, get<selector, &SelectorConfig::name>},
    {"selector.policy", word_of(selector_policies),
     "How the learning selector balances exploration and the least expected cost.",
     set<selector, &SelectorConfig::policy>, get<selector, &SelectorConfig::policy>},
    {"selector.ema_alpha", number(0.001, 1), "Weight of the newest measurement in a moving average.",
     set<selector, &SelectorConfig::ema_alpha>, get<selector, &SelectorConfig::ema_alpha>},
    {"selector.exploration", number(0, 1), "Share of time that exploration runs may take.",
     set<selector, &SelectorConfig::exploration>, get<selector, &SelectorConfig::exploration>},
    {"selector.serve_while_building", boolean_value,
     "Whether another device may run a job while the program for the best device is built. It does not apply to a job "
     "that names its device.",
     set<selector, &SelectorConfig::serve_while_building>, get<selector, &SelectorConfig::serve_while_building>},
    {"selector.log", boolean_value,
     "Whether decisions and their outcomes are recorded in the cache folder, for `kiln selector replay`.",
     set<selector, &SelectorConfig::log>, get<selector, &SelectorConfig::log>},
    {"selector.max_log", size, "Maximum size of the recorded decisions; the oldest are removed.",
     set<selector, &SelectorConfig::max_log>, get<selector, &SelectorConfig::max_log>},

    {"generator.name", text_value,
     "Registered name of the kernel generator. For a language that it does not write, the generator of the device's "
     "plugin is used, else any other.",
     set<generator, &GeneratorConfig::name>, get<generator, &GeneratorConfig::name>},
    {"generator.background", boolean_value,
     "Whether the shapes of earlier jobs are tuned in a child process while no job runs, for at most the share "
     "selector.exploration of the time. For long-running programs: `kiln run` ends with its jobs. See docs/tuning.md.",
     set<generator, &GeneratorConfig::background>, get<generator, &GeneratorConfig::background>},
    {"generator.serve_while_building", boolean_value,
     "Whether a job whose programs are not stored runs on generic programs, if the cache has them, while its own "
     "programs are built in the background. For long-running programs. See docs/kernel-families.md.",
     set<generator, &GeneratorConfig::serve_while_building>, get<generator, &GeneratorConfig::serve_while_building>},

    {"metrics.file", path_or_none,
     "File for the metrics of a runtime, in Prometheus' text format; for node_exporter's textfile collector its name "
     "ends in \".prom\". It is replaced as a whole when a job ends and when the runtime ends. Empty: none.",
     set<metrics, &MetricsConfig::file>, get<metrics, &MetricsConfig::file>},
    {"metrics.interval", ValueRule{ValueKind::duration, 0, most_wait},
     "Minimum time between two writes of the metrics file.", set<metrics, &MetricsConfig::interval>,
     get<metrics, &MetricsConfig::interval>},

    {"log.level", word_of(level_words), "The least severe messages that are shown. Also set by --log or KILN_LOG.",
     set_log_level, get_log_level},
};

}  // namespace

std::span<const KeyEntry> key_table() noexcept { return keys; }
std::span<const SectionEntry> section_table() noexcept { return sections; }

std::string_view section_of(const KeyEntry& key) noexcept { return key.name.substr(0, key.name.find('.')); }
std::string_view name_in_section(const KeyEntry& key) noexcept { return key.name.substr(key.name.find('.') + 1); }

const KeyEntry* find_key(std::string_view dotted) noexcept {
  for (const KeyEntry& key : keys) {
    if (key.name == dotted) return &key;
  }
  return nullptr;
}

std::string default_of(const KeyEntry& key) {
  if (!key.default_text.empty()) return std::string(key.default_text);
  return print(key.get(Config{}), key.rule);
}

}  // namespace kiln::config
