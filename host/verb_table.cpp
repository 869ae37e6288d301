#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common =
    "set device verify repeat json output plugin-path cache-dir log progress help version";

constexpr std::string_view without_jobs = "set json output plugin-path cache-dir log progress help version";

constexpr VerbHelp verbs[] = {
    {"run", Verb::run, Argument::config, "CONFIG", "run the jobs of a TOML file",
     "Runs every [[job]] of CONFIG through selector, generator, program cache and executor, and prints a table: "
     "device, "
     "the tier that\nanswered (built, disk, library, memory), build time, time to the first result, median run time, "
     "GFLOP/s, and whether the full\noutput was compared with an independent reference (verify = true, or "
     "--verify).\n\n"
     "A program that was built once is found again by every later run: its tier is then `disk`, and `builds` is 0.\n"
     "With --jobs N the parts of neighbouring jobs overlap: one is built or compared while another runs, and on one "
     "device one is\nuploaded and another read back. A job that reads what another one writes waits for it. Single "
     "times are then not those of a job\nthat has the machine for itself; that of all of them is `total_ms`.\n"
     "With --watch a table on standard error is redrawn four times a second while the jobs run, best with --repeat N: "
     "what each device\nand each tier of the cache does, how far the run has come and how long it will take. Where "
     "standard error is no terminal, or\n--progress says plain or none, it is an ordinary run.\n"
     "Where a device cannot serve, the report says so and another one serves; [device] fallback = \"never\" makes that "
     "an "
     "error.\n\n"
     "Exit status: 0 done · 1 a job failed · 2 usage or configuration · 3 no device could serve.",
     common, "jobs trace watch"},
    {"tune", Verb::tune, Argument::config, "CONFIG", "measure kernel variants for the jobs of a file",
     "Measures variants of each job's kernel on each device that has a choice (or on --device ID), in a child process: "
     "what hangs,\ncrashes or computes wrongly is recorded and left out. Every variant's whole output is compared with "
     "the reference before its\ntime counts; what counts is wall time, NCHW in and out. The fastest meet in rounds; "
     "the "
     "one that served before stays where\nthe difference is within the noise. The winners serve every later run. What "
     "was measured is kept at once: a run that is\nended goes on where it was.\n\n"
     "Exit status: 0 done · 1 a job failed · 2 usage or configuration · 3 no device could serve.",
     "set device json output plugin-path cache-dir log progress help version", "budget exhaustive again trace"},
    {"tune audit", Verb::tune_audit, Argument::config_or_none, "[CONFIG]", "measure a sample of the winners again",
     "Measures some of what was tuned again, each in a child process, its output compared with the reference: on every "
     "device that has\na choice, or on --device ID. A winner whose sources have changed, that computes wrongly now, or "
     "that takes more than a quarter\nlonger than when it won, beyond the noise of both, is marked stale: it goes on "
     "serving, and the next `kiln tune` measures its\nshape anew. One that holds again loses its mark.\n\n"
     "Exit status: 0 all of them hold · 1 one does not, or could not be measured · 2 usage or configuration · 3 no "
     "such device.",
     "set device json output plugin-path cache-dir log progress help version", "sample"},
    {"tune export", Verb::tune_export, Argument::subject, "FILE", "write what was measured to a file",
     "Writes every record of the tuning database to FILE, as text: for another machine with the same devices and "
     "drivers, or to keep.",
     "set json plugin-path cache-dir log help version"},
    {"tune import", Verb::tune_import, Argument::subject, "FILE", "take in what was measured elsewhere",
     "Takes in those records of FILE that are newer than what is here. Records name the device and driver that they "
     "were measured on:\non others they serve nobody. A damaged line is counted and left out.",
     "set json output plugin-path cache-dir log help version"},
    {"devices", Verb::devices, Argument::config_or_none, "[CONFIG]", "list the devices there are",
     "Lists every device of every plugin that could be loaded, usable or not, and why not. Loads the libraries of the "
     "drivers.\n--device ID lists that device alone.\n\n"
     "Exit status: 0 one is usable · 2 usage, configuration, or no such device · 3 none is usable.",
     "set device json output plugin-path cache-dir log progress help version"},
    {"plugins", Verb::plugins, Argument::config_or_none, "[CONFIG]", "list the plugins and why one was not loaded",
     "Loads the plugins that the configuration names and tells of each the file, the version, and the exact reason "
     "where it "
     "was refused.\nNo device library is loaded. A file that was never seen is first tried in a child process; the "
     "verdict is "
     "remembered until the\nfile changes.",
     without_jobs},
    {"config check", Verb::config_check, Argument::config, "CONFIG", "check a configuration file",
     "Reports every error at once, each with file:line:column, what was found, what was expected, and the nearest valid "
     "key: keys and\nvalues, unknown names, [plugin.NAME] sections by the keys that the plugin publishes, files that are "
     "missing or of another type or\nshape, results that could not be written. Reads headers of files only, and opens no "
     "device. `kiln run` makes the same check first.\n"
     "With --device ID it also compiles every job's programs for that device, stores them in the cache, and compares "
     "what they declare\nwith what the job provides. Nothing is run.\n\n"
     "Exit status: 0 valid · 2 not valid · 3 no device could serve.",
     "set device json output plugin-path cache-dir log progress help version"},
    {"config show", Verb::config_show, Argument::config_or_none, "[CONFIG]", "show every value with its origin",
     "Prints one line a key: (origin) key = value. Order of precedence: defaults < file < environment < command line.",
     without_jobs},
};

}  // namespace

std::span<const VerbHelp> job_verbs() noexcept { return verbs; }

}  // namespace kiln::host
