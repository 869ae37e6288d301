#include "verbs/cache_verb.hpp"

#include "console.hpp"
#include "text_table.hpp"
#include "verb_table.hpp"
#include "verbs/verbs.hpp"

#include <kiln/config_reader.hpp>

#include <algorithm>

namespace kiln::host {

std::optional<int> read_cache_config(const Options& options, CacheConfig& cache) {
  ConfigReading reading = read_config(options.sources);
  if (!report_reading(reading)) return exit_usage;
  cache = std::move(reading.config.cache);
  if (!cache.directory.empty()) return std::nullopt;
  complain(no_cache_folder().message);
  return exit_usage;
}

std::string no_cache_yet(const CacheConfig& cache) {
  return "there is no cache at " + visible(cache.directory.string()) + " yet\n";
}

Json rejected_json(const RejectedCounts& rejected) {
  return {{"corrupt", rejected.corrupt}, {"tampered", rejected.tampered},
          {"foreign", rejected.foreign}, {"driver_changed", rejected.driver_changed},
          {"refused", rejected.refused}, {"quarantined", rejected.quarantined}};
}

Json shared_json(const SharedCounts& counts) {
  Json json = Json::object();
  for (const auto& [name, value] : shared_count_names()) json[name] = counts.*value;
  return json;
}

Json bad_json(const std::vector<BadEntry>& bad) {
  Json json = Json::array();
  for (const BadEntry& one : bad) {
    json.push_back({{"key", one.key.hex()},
                    {"label", text_or_null(one.label)},
                    {"folder", one.folder},
                    {"reason", one.reason},
                    {"why", one.why},
                    {"removed", one.removed}});
  }
  return json;
}

void complain_of_bad(const std::vector<BadEntry>& bad) {
  for (const BadEntry& one : bad) {
    complain(visible("program " + short_key(one.key) + " (" + one.label + "): " + one.reason + ": " + one.why));
  }
}

Json aside_json(const std::vector<AsideProgram>& aside) {
  Json json = Json::array();
  for (const AsideProgram& one : aside) {
    json.push_back({{"key", one.key.hex()},
                    {"label", text_or_null(one.label)},
                    {"folder", one.folder},
                    {"state", one.quarantined ? "quarantined" : "suspect"},
                    {"why", one.why},
                    {"since", one.since_s},
                    {"until", one.quarantined ? Json(one.until_s) : Json(nullptr)}});
  }
  return json;
}

std::string aside_text(const std::vector<AsideProgram>& aside) {
  std::string text;
  for (const AsideProgram& one : aside) {
    text += std::string(one.quarantined ? "quarantined: " : "suspect: ") + short_key(one.key) +
            (one.label.empty() ? "" : " (" + visible(one.label) + ")") + ": " + visible(words_of(one)) + "\n";
  }
  return text;
}

std::string rejected_text(const RejectedCounts& rejected) {
  std::string text;
  const Json counts = rejected_json(rejected);
  for (const auto& [reason, count] : counts.items()) {
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + json_text(count) + " " + reason;
  }
  return text;
}

std::string words_of(const CacheDevice& device) {
  if (device.device.empty()) return visible(device.folder);
  return visible(device.driver.empty() ? device.device : device.device + ", " + device.driver);
}

std::string in_short(const std::string& text, std::size_t most) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + (text.empty() || text.back() == '\n' ? 0 : 1);
  if (text.size() <= most && lines <= 1) return visible(text);
  std::string begin = text.substr(0, std::min(text.find('\n'), most));
  while (!begin.empty() && continues_a_character(begin.back())) begin.pop_back();
  if (!begin.empty() && static_cast<unsigned char>(begin.back()) >= 0xc0) begin.pop_back();
  return visible(begin) + " … (" + counted(static_cast<std::uint64_t>(lines), "line") + ", " + human_size(text.size()) +
         ")";
}

std::string short_key(const Digest& key) { return key.hex().substr(0, 12); }

// The verbs of `kiln cache` as people see them.

namespace {

constexpr std::string_view common = "set json output cache-dir log help version";
constexpr std::string_view of_many = "set json output cache-dir log progress help version";  // with a bar

constexpr VerbHelp verbs[] = {
    {"cache stats", cache_stats, Argument::none, "", "show the size and the hits of the cache",
     R"(Prints what is stored for each device and driver, and the sums over all processes that used the cache: programs found in memory
and on disk, not found, built, rejected with the reason, and saved build time. A process adds its counts when it ends. They are
lost if it is killed, or if other processes hold the file for longer than 20 ms.

--prometheus prints the same in the text format of Prometheus, for example for node_exporter's textfile collector. Loads no plugin and
no driver.

Exit status: 0 done, also if there is no cache yet · 1 a folder cannot be used · 2 usage or configuration.)",
     common, "prometheus"},
    {"cache list", cache_list, Argument::none, "", "list the stored programs",
     R"(Prints one line for each program: label, first digits of the key, size, build time, first dispatch, measured rate, number of uses,
last use. `pending` marks programs that were built with [cache] auto_save = false; `kiln cache persist` stores them. The list is
not authenticated: use `kiln cache verify`.

Exit status: 0 done, also if there is no cache yet · 1 a folder cannot be used · 2 usage or configuration.)",
     common},
    {"cache inspect", cache_inspect, Argument::subject, "LABEL|KEY", "show everything about one stored program",
     R"(LABEL|KEY is a label, the part of a label before a `/`, a key, or at least the first four digits of a key, as `kiln cache list`
prints them. Prints the path, the authenticity, the header, the statistics, and the fields of the key: source, constants,
workgroup, device, driver. Long texts are cut; --json prints them whole.

Exit status: 0 done · 1 there is no such program · 2 usage, or several programs match.)",
     common},
    {"cache release", cache_release, Argument::subject, "LABEL|KEY", "end the quarantine of a program",
     R"(A program that was being loaded when a process died is suspect: the next use loads it once in a child process. If the child crashes
(SIGSEGV, SIGABRT, SIGBUS, SIGILL) or exceeds its deadline, the program is quarantined: for a week it is built and not loaded.
`kiln cache list`, `inspect` and `verify` show both states. This verb ends them. LABEL|KEY is as for `kiln cache inspect`.

Exit status: 0 done · 1 no such program is suspect or quarantined · 2 usage or configuration.)",
     common},
    {"cache explain", cache_explain, Argument::subject, "LABEL|KEY", "explain why a program was not found",
     R"(Compares the key of a missed program with the nearest key that was stored at that time, and lists each field that differs, with
both values: a driver's version, a constant, the first line of the source that differs. If the program was stored and rejected,
prints the reason. LABEL|KEY is as for `kiln cache inspect`, among the newest 1,024 missed keys. A process records its misses when
it ends. Long values are cut; --json prints them whole.

Exit status: 0 done · 1 no such miss is recorded · 2 usage, or several misses match.)",
     common},
    {"cache verify", cache_verify, Argument::none, "", "read and authenticate every stored program",
     R"(Checks every program as a job would: lengths, checksum, signing key, signature, name, payload. Reports each bad one as corrupt,
tampered or foreign. Removes it only with --remove. A job that finds a bad program counts it, removes it and builds it again.

Exit status: 0 all are valid · 1 some are not, or some could not be checked · 2 usage or configuration.)",
     of_many, "remove"},
    {"cache prune", cache_prune, Argument::none, "", "remove old programs, or reduce the size",
     R"(Removes programs that were not used for longer than --max-age, then the least recently used ones until at most --max-size is left.
Pending programs and driver files count too. Without both options the limit is [cache] max_disk.

    kiln cache prune --max-age 30d --max-size 500MiB
    kiln cache prune --max-age 7d --dry-run

A running job misses a removed program and builds it again.

Exit status: 0 done · 1 something could not be removed · 2 usage or configuration.)",
     of_many, "max-age max-size dry-run"},
    {"cache persist", cache_persist, Argument::subjects, "[LABEL|KEY...]", "store pending programs",
     R"(With [cache] auto_save = false new programs are pending: other processes do not find them, and they are removed after 30 days. This
verb stores all of them, or those named as for `kiln cache inspect`. Each program is authenticated first. If the cache exceeds
[cache] max_disk, the least recently used programs are removed. `kiln cache list` marks pending programs.

Exit status: 0 done · 1 a program was bad or could not be stored, or there is no such program · 2 usage or configuration.)",
     of_many},
    {"cache export", cache_export, Argument::file_and_subjects, "FILE [LABEL|KEY...]",
     "write programs to a signed file",
     R"(Writes all programs, or those named as for `kiln cache inspect`, with their driver files to FILE. Signs FILE with this user's Ed25519
key, which is beside [cache] key_file and is created when it is first needed. Prints the public key, which the importer needs.
Skips bad programs and reports them. FILE is written completely or not at all.

    kiln cache export programs.kiln
    kiln cache export --show-key

Exit status: 0 done · 1 a program was skipped, or FILE could not be written · 2 usage or configuration.)",
     of_many, "show-key"},
    {"cache import", cache_import, Argument::subject, "FILE", "import programs of another machine",
     R"(Imports the programs of FILE that fit the devices of this machine. Authenticates the whole file with the key of --trust before it
writes anything or passes anything to a driver. Warning: the owner of that key can make drivers here execute any code. Signs the
programs with this user's key. Existing programs stay, so an interrupted import can be repeated. Opens the devices.

    kiln cache import programs.kiln --trust 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

Exit status: 0 done · 1 refused, or for other devices · 2 usage or configuration · 3 a required plugin is missing.)",
     "set device json output plugin-path cache-dir log progress help version", "trust"},
    {"cache key create", cache_key_create, Argument::subject, "NAME", "create a key that signs shared programs",
     R"(Creates an Ed25519 key pair in ~/.config/kiln (keys.d and trust.d), or in /etc/kiln with --system, and trusts it here. Prints the
public key. Other machines trust it with `kiln cache key trust`. A configuration chooses keys by NAME; it cannot add one.

    kiln cache key create ci-2026 --until 2026-12-31

Exit status: 0 done · 1 the folder cannot be used · 2 usage or configuration, or the name is in use.)",
     common, "until system"},
    {"cache key trust", cache_key_trust, Argument::file_and_subjects, "NAME KEY|FILE",
     "trust the programs that a key signs",
     R"(Trusts a public key of another machine under NAME. KEY is 64 hexadecimal digits; FILE begins with them. Warning: the owner of
that key can make drivers here execute any code, if a configuration names NAME as a writer or uses layers.

    kiln cache key trust ci-2026 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --until 2026-12-31

Exit status: 0 done · 1 the folder cannot be used · 2 usage or configuration, a name in use, or a revoked key.)",
     common, "until system"},
    {"cache key revoke", cache_key_revoke, Argument::subject, "NAME", "stop trusting a key",
     R"(From now on no program that this key signed is taken from a remote or a layer here. Removes the secret key, if it is here. Programs
that were taken before stay in the cache, signed with this user's own key; `kiln cache clear` removes them.

Exit status: 0 done · 1 there is no such key, or the folder cannot be used · 2 usage or configuration.)",
     common, "system"},
    {"cache key list", cache_key_list, Argument::none, "", "list the trusted keys",
     R"(Lists the keys of /etc/kiln/trust.d and ~/.config/kiln/trust.d: state, last day, whether the secret key is here, public key. Reports
files and folders that are not used, for example because others can write them.

Exit status: 0 done · 1 a file or folder is not used · 2 usage or configuration.)",
     common},
    {"cache push", cache_push, Argument::config_or_none, "[CONFIG]", "write programs to the remotes",
     R"(Writes every stored program to each [[cache.remote]] of CONFIG with mode = "read_write", signed with its sign_with key. Skips
programs that the remote has. Jobs write their programs by themselves, after the first dispatch.

Exit status: 0 done · 1 a remote failed, or a program was bad · 2 usage or configuration.)",
     "set json output plugin-path cache-dir log progress help version"},
    {"cache pull", cache_pull, Argument::config_or_none, "[CONFIG]", "store the programs of the remotes",
     R"(Stores every program that the remotes of CONFIG have for the devices of this machine. Authenticates each one with the keys that
`writers` names before it is written, and counts the others by reason. Existing programs stay, so an interrupted pull can be
repeated. Opens the devices. Jobs fetch what they need by themselves.

Exit status: 0 done · 1 a remote failed · 2 usage or configuration · 3 a required plugin is missing.)",
     "set device json output plugin-path cache-dir log progress help version"},
    {"cache remote status", cache_remote_status, Argument::config_or_none, "[CONFIG]", "check the remotes",
     R"(Sends one request to each [[cache.remote]] of CONFIG. Prints whether and how fast it answers, whether jobs send requests at the
moment, which keys are accepted, and the counts of all processes.

Exit status: 0 all answer · 1 one does not, or a key is missing · 2 usage or configuration.)",
     "set json output plugin-path cache-dir log help version"},
    {"cache layer create", cache_layer_create, Argument::file_and_subjects, "DIR [LABEL|KEY...]",
     "write programs to a read-only layer",
     R"(Writes all stored programs, or those named as for `kiln cache inspect`, to the folder DIR, signed with the key of --sign-with. A
machine that trusts the key uses them with [cache] layers = ["DIR"], also from a read-only file system. --from takes the programs of
a bundle instead, whose key --trust names.

    kiln cache layer create /usr/share/app/kiln --sign-with app

Exit status: 0 done · 1 a program was skipped, or DIR could not be written · 2 usage or configuration.)",
     of_many, "sign-with from trust"},
    {"cache bake", cache_bake, Argument::config, "CONFIG", "build programs for other machines",
     R"(Builds the programs of CONFIG's jobs for each --for TARGET and writes them to the folder DIR of --output, as a read-only layer that the
key of --sign-with signs. A machine that trusts the key uses them with [cache] layers = ["DIR"] and compiles nothing.

TARGET is a chip, such as gfx1100, for which OpenCL C kernels and convolutions are built without a card; or a device of this machine,
such as opengl:0, for machines with the same device and driver. Programs for other devices can only be built on those devices: use
`kiln cache layer create` or `kiln cache push` there. The programs are also stored in the cache of this machine.

    kiln cache bake jobs.toml --for gfx1100 --for gfx1030 --sign-with app --output /usr/share/app/kiln

Exit status: 0 done · 1 a program failed, no program fits any target, or DIR could not be written · 2 usage or configuration ·
3 a required plugin is missing.)",
     "set json output plugin-path cache-dir log progress help version", "for sign-with"},
    {"cache warm", cache_warm, Argument::config_or_none, "[CONFIG]", "load and dispatch programs before the jobs",
     R"(Loads programs and dispatches each once with no workgroups, so that drivers generate and store their machine code. With CONFIG it
takes the programs of its jobs and builds missing ones. Without jobs it takes the stored programs; --top K takes the K programs that
are expected to save the most time. Uses every device that stores programs, or --device ID. The output counts linked (loaded) and
ready (dispatched) programs separately. Ctrl-C ends it after the current program.

Exit status: 0 done · 1 a program or the device failed · 2 usage or configuration · 3 a required plugin is missing.)",
     "set device json output plugin-path cache-dir log progress help version", "top"},
    {"cache clear", cache_clear, Argument::none, "", "remove every program",
     R"(Removes programs, pending programs, unused driver folders and recorded misses from the cache folder, without asking. Statistics, the
selector's model and the results of plugin checks stay, unless --all is given. Never removes the keys for programs and bundles, or
files that Kiln did not create.

Exit status: 0 done · 1 something could not be removed · 2 usage or configuration.)",
     common, "all"},
};

}  // namespace

std::span<const VerbHelp> cache_verbs() noexcept { return verbs; }

}  // namespace kiln::host
