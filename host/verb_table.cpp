#include "verb_table.hpp"

#include "verbs/verbs.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common =
    "set device verify repeat json output plugin-path cache-dir log progress help version";

constexpr std::string_view without_jobs = "set json output plugin-path cache-dir log progress help version";

constexpr VerbHelp verbs[] = {
    {"run", run, Argument::config, "CONFIG", "run the jobs of a TOML file",
     R"(Runs every [[job]] of CONFIG and prints a table: device, tier (built, disk, memory, library), build time, time to the first
result, median run time, GFLOP/s, and whether the full output was compared with a reference (verify = true, or --verify).

Each [[pipeline]] of CONFIG runs after the jobs. Its row is followed by one for each step, with the device time of all its rounds.
--verify=steps also compares each step.

A program is built once. Later runs load it: the tier is then `disk`, and `builds` is 0.

--jobs N runs N jobs at a time: builds, uploads, runs and comparisons of different jobs overlap. A job waits for an earlier one
that writes a file which it reads. The times of single jobs then include the others; `total_ms` is the time of all.

--watch redraws a table on standard error while the jobs run: devices, cache tiers, progress. Use it with --repeat N. It has no
effect if standard error is not a terminal, or with --progress plain or none.

If a device cannot run a job, the report says why and another device runs it. [device] fallback = "never" makes it an error.

Exit status: 0 done · 1 a job failed · 2 usage or configuration · 3 no device can run a job.)",
     common, "jobs trace watch"},
    {"tune", tune, Argument::config, "CONFIG", "measure kernel variants for the jobs of a file",
     R"(Measures variants of each job's kernel on every device that has variants (or on --device ID), in a child process. A variant that
hangs, crashes or computes a wrong result is recorded and not used. The wall time counts, with NCHW input and output. The fastest
variants are compared in rounds. The previous variant stays if the difference is within the noise. Later runs use the winners.
Every record is stored at once: a run that was interrupted continues where it stopped.

Exit status: 0 done · 1 a job failed · 2 usage or configuration · 3 no device can run a job.)",
     "set device json output plugin-path cache-dir log progress help version", "budget exhaustive again trace"},
    {"tune audit", tune_audit, Argument::config_or_none, "[CONFIG]", "measure a sample of the winners again",
     R"(Measures some stored winners again, each in a child process, and compares their output with the reference. A winner is marked stale
if its sources changed, if its result is wrong, or if it takes more than a quarter longer than before, beyond the noise. A stale
winner stays in use, and the next `kiln tune` measures its shape again. A winner that passes loses the mark.

Exit status: 0 all winners pass · 1 a winner fails, or could not be measured · 2 usage or configuration · 3 no such device.)",
     "set device json output plugin-path cache-dir log progress help version", "sample"},
    {"tune export", tune_export, Argument::subject, "FILE", "write the tuning database to a file",
     R"(Writes every record of the tuning database to FILE, as text, for a backup or for another machine with the same devices and drivers.)",
     "set json plugin-path cache-dir log help version"},
    {"tune import", tune_import, Argument::subject, "FILE", "import records of another machine",
     R"(Imports the records of FILE that are newer than the local ones. A record names its device and driver and is used only on those. A
damaged line is counted and skipped.)",
     "set json output plugin-path cache-dir log help version"},
    {"tune push", tune_push, Argument::config, "CONFIG", "write tuned winners to the remotes",
     R"(Signs the winners of each device and writes them to every [[cache.remote]] with mode = "read_write". Winners of other machines that
the remote has stay in it. See docs/sharing-a-cache.md.

Exit status: 0 done · 1 a remote failed · 2 usage or configuration · 3 no such device.)",
     "set device json output plugin-path cache-dir log help version"},
    {"tune pull", tune_pull, Argument::config, "CONFIG", "use the tuned winners of other machines",
     R"(For each device, reads winners that a trusted key signed, if their shape has no winner here. A sample is measured first, each
beside the variant that is used here. If all of the sample are right and not slower, all winners are used; otherwise only those
that are. The others wait for the next `kiln tune pull` or `kiln tune`.

Exit status: 0 done · 1 a remote or a measurement failed · 2 usage or configuration · 3 no such device.)",
     "set device json output plugin-path cache-dir log progress help version", "sample"},
    {"devices", devices, Argument::config_or_none, "[CONFIG]", "list the devices",
     R"(Lists every device of every loaded plugin, and why a device is not usable. Loads the libraries of the drivers. --device ID lists
that device only.

Exit status: 0 one is usable · 2 usage, configuration, or no such device · 3 none is usable.)",
     "set device json output plugin-path cache-dir log progress help version"},
    {"plugins", plugins, Argument::config_or_none, "[CONFIG]", "list the plugins, and why one was not loaded",
     R"(Loads the configured plugins and lists for each the file, the version, and the reason if it was refused. A new file is first loaded
in a child process, and the result is stored until the file changes. --retry checks every file again: for a plugin that crashed or
did not answer for a reason that is gone. No driver library is loaded.)",
     without_jobs, "retry"},
    {"config check", config_check, Argument::config, "CONFIG", "check a configuration file",
     R"(Reports every error at once, with file:line:column, what was found, what was expected, and the nearest valid key. Checks keys and
values, [plugin.NAME] sections, missing input files, their types and shapes, and outputs that cannot be written. Reads only the
headers of files and opens no device. `kiln run` does this check first.

With --device ID it also compiles the programs of every job for that device, stores them, and compares what they declare with
what the job provides. It runs nothing.

Exit status: 0 valid · 2 not valid · 3 no device can run a job.)",
     "set device json output plugin-path cache-dir log progress help version"},
    {"config show", config_show, Argument::config_or_none, "[CONFIG]", "show every value and where it was set",
     R"(Prints one line for each key: (origin) key = value. Order of precedence: defaults < file < environment < command line.)",
     without_jobs},
};

}  // namespace

std::span<const VerbHelp> job_verbs() noexcept { return verbs; }

}  // namespace kiln::host
