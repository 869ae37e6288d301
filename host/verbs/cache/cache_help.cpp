// The verbs of `kiln cache` as people see them.
#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common = "set json output cache-dir log help version";
constexpr std::string_view of_many = "set json output cache-dir log progress help version";  // with a bar

constexpr VerbHelp verbs[] = {
    {"cache stats", Verb::cache_stats, Argument::none, "", "what the cache holds, and what it was good for",
     R"(Prints what is stored for each device and driver, and what all processes that used the cache counted together: programs found in
memory and on disk, not found, built, rejected and why, and the build time that was saved. A process adds its counts when it
ends; one that was killed, or found others at it for longer than 20 ms, does not.

With --prometheus, the same as text for a Prometheus scraper or its textfile collector. Neither a plugin nor a driver is loaded.

Exit status: 0 done, also where there is no cache yet · 1 the folder cannot be used · 2 usage or configuration.)",
     common, "prometheus"},
    {"cache list", Verb::cache_list, Argument::none, "", "the programs that are stored",
     R"(Prints a line a program: its label, the first digits of its key, its size, what building it and its first dispatch took, its
measured rate, how often and when it was used last. Programs marked `pending` were built with [cache] auto_save = false and
wait for `kiln cache persist`. What is listed is not trusted: `kiln cache verify` tells whether it is sound.

Exit status: 0 done, also where there is no cache yet · 1 the folder cannot be used · 2 usage or configuration.)",
     common},
    {"cache inspect", Verb::cache_inspect, Argument::subject, "LABEL|KEY", "everything about one stored program",
     R"(LABEL|KEY is a program's label or the beginning of it before a `/`, its key, or at least the first four digits of its key, as
`kiln cache list` prints them. Prints where it lies, whether it is authentic, what its header says, what it did, and the fields of its key: source, constants,
workgroup, device, driver. Long texts are cut; --json has them whole.

Exit status: 0 done · 1 there is no such program · 2 usage, or what was named stands for several.)",
     common},
    {"cache release", Verb::cache_release, Argument::subject, "LABEL|KEY", "end a program's quarantine",
     R"(A program that was being loaded when a process died is suspect: the next use loads it once in a child process. Where the child dies
of it (SIGSEGV, SIGABRT, SIGBUS, SIGILL) or does not end in time it is quarantined: for a week it is built anew and not loaded.
`kiln cache list`, `inspect` and `verify` show both with the reason and the time. This verb ends either state; the next use loads
the stored program again. LABEL|KEY is as for `kiln cache inspect`.

Exit status: 0 done · 1 no such program is suspect or quarantined · 2 usage or configuration.)",
     common},
    {"cache explain", Verb::cache_explain, Argument::subject, "LABEL|KEY", "why a program was not found",
     R"(Compares the key of a program that was not found with the nearest one that was stored by then, and names each field in which
they differ, with both values: a driver's version, a constant, the line of the source. LABEL|KEY is as for `kiln cache inspect`,
of the newest 1,024 keys that were missed; a process adds its own when it ends. Where the program was there and was rejected,
that is the reason. Long values are cut; --json has them whole, of a source the first line that differs.

Exit status: 0 done · 1 no such miss is remembered · 2 usage, or what was named stands for several.)",
     common},
    {"cache verify", Verb::cache_verify, Argument::none, "", "read and authenticate every stored program",
     R"(Reads every program as a job would: lengths, checksum, the key that signed it, its signature, its name, its payload. Tells of
each that is not sound what is wrong: corrupt, tampered, or foreign. Removes nothing unless --remove is given; a job that meets
a bad one counts it, removes it and builds the program anew by itself.

Exit status: 0 all are sound · 1 some are not, or nothing could be checked · 2 usage or configuration.)",
     of_many, "remove"},
    {"cache prune", Verb::cache_prune, Argument::none, "", "remove what is old or too much",
     R"(Removes what was not used for longer than --max-age, then what was used least recently until at most --max-size is left.
Programs and pending ones are counted, with their driver files. Without either option the bound is [cache] max_disk.

    kiln cache prune --max-age 30d --max-size 500MiB
    kiln cache prune --max-age 7d --dry-run

A job that runs meanwhile misses what went and builds it again; nothing else happens to it.

Exit status: 0 done · 1 something could not be removed · 2 usage or configuration.)",
     of_many, "max-age max-size dry-run"},
    {"cache persist", Verb::cache_persist, Argument::subjects, "[LABEL|KEY...]",
     "store what auto_save = false set aside",
     R"(With [cache] auto_save = false what a job builds is set aside, where no later job finds it, for 30 days at most. This verb
stores all of it, or what is named as for `kiln cache inspect`: each program is authenticated again and moves at one moment.
Where that makes too much of it, the least recently used go, as ever. `kiln cache list` marks what waits as `pending`.

Exit status: 0 done · 1 something was not sound or could not be stored, or nothing has that name · 2 usage or configuration.)",
     of_many},
    {"cache export", Verb::cache_export, Argument::file_and_subjects, "FILE [LABEL|KEY...]",
     "one signed file for other machines",
     R"(Writes the programs that are named as for `kiln cache inspect`, or all, with their driver files into FILE, signed with this
user's Ed25519 key, which lies beside [cache] key_file and is made when it is first needed. Prints the public key: who imports
names it. What is not sound is left out and told. FILE appears whole or not at all.

    kiln cache export programs.kiln
    kiln cache export --show-key

Exit status: 0 done · 1 something was left out, or it could not be written · 2 usage or configuration.)",
     of_many, "show-key"},
    {"cache import", Verb::cache_import, Argument::subject, "FILE", "take in what another machine exported",
     R"(Takes the programs for the devices of this machine out of FILE. Nothing is written, and no driver is given a byte, before the
whole file is authenticated by the key that --trust names: that key's owner can make drivers here run what he likes. Programs
are signed anew with this user's key. What is here already stays, so an import that was cut off may be repeated. Opens the
devices.

    kiln cache import programs.kiln --trust 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

Exit status: 0 done · 1 refused, or for other devices · 2 usage or configuration · 3 a required plugin is missing.)",
     "set device json output plugin-path cache-dir log progress help version", "trust"},
    {"cache warm", Verb::cache_warm, Argument::config_or_none, "[CONFIG]",
     "link and dispatch programs ahead of the jobs",
     R"(Takes programs into memory and dispatches each once, over nothing, so that the drivers generate and keep their machine code:
those of the jobs of CONFIG, which are built where they are missing; without jobs, what lies on disk, --top K of it, those first
that are expected to spare a run most (loading and first dispatch, in the runs that used them, the sooner the more). Linked and
ready are told apart: a driver may generate code only at the first dispatch. On every device that keeps programs, or on the one
that --device names. Ctrl-C ends it between two programs; what is done is kept.

Exit status: 0 done · 1 a program failed, or the device · 2 usage or configuration · 3 a required plugin is missing.)",
     "set device json output plugin-path cache-dir log progress help version", "top"},
    {"cache clear", Verb::cache_clear, Argument::none, "", "remove every program",
     R"(Removes, without asking, what Kiln stored below the cache folder: programs, pending ones, folders of drivers that no process
uses, and what was noted of missed keys. Statistics, what the selector learned and the verdicts on plugins stay; with --all they
go too. The keys that sign programs and bundles lie elsewhere and always stay, and so does every file that Kiln did not make.

Exit status: 0 done · 1 something could not be removed · 2 usage or configuration.)",
     common, "all"},
};

}  // namespace

std::span<const VerbHelp> cache_verbs() noexcept { return verbs; }

}  // namespace kiln::host
