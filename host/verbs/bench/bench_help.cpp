#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common = "set json output cache-dir progress help version";

constexpr VerbHelp verbs[] = {
    {"bench", Verb::bench, Argument::subjects, "[AREA…]", "measure Kiln and its peers",
     R"(Runs the benchmark programs of the named areas, or of all: cache, start, conv, executor, selector, tuner, pm4. Each program measures
Kiln and its peers on the same work in one run, in alternating rounds, and compares every output outside the measured time. Prints
medians with quartiles, the ratio (above 1: Kiln is better), and whether a target was met. All areas take about a quarter of an hour
on two cores. --stable measures only counts (builds, allocations, system calls), which are equal on every machine. All programs run
twice, because the noise of a machine lasts longer than the rounds of one program. `conv` uses the winners of `kiln tune` in the
cache folder.

Run it on an otherwise idle machine: the noise before the start is measured and stored. --output writes JSON for `kiln bench compare`,
`kiln bench table` and `kiln report`. The programs are in lib/kiln/bench beside the command, or in KILN_BENCH_PATH.

Exit status: 0 done · 1 a program failed, or an output was wrong · 2 usage.)",
     common, "quick stable passes"},
    {"bench compare", Verb::bench_compare, Argument::file_and_subjects, "BEFORE AFTER",
     "find regressions between two measurements",
     R"(Compares two files of `kiln bench`. A figure with the same peer in both is compared by its ratio, others by their value if both files
are from the same processor model. A figure changed if the quartiles do not overlap and the medians differ by more than 10 %.
--stable compares only counts, which must be equal; a new or missing figure is a difference.

Exit status: 0 no regression · 1 at least one · 2 usage, or a file that cannot be read.)",
     "json output help version", "stable"},
    {"bench table", Verb::bench_table, Argument::file_and_subjects, "FILE [ID…]", "print figures as a Markdown table",
     R"(Prints the figures of a file of `kiln bench` as a Markdown table: all, or those named, in that order. A name is ID or ID@GROUP; write
blanks in it as _.)",
     "output help version"},
};

}  // namespace

std::span<const VerbHelp> bench_verbs() noexcept { return verbs; }

}  // namespace kiln::host
