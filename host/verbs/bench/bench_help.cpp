#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common = "set json output cache-dir progress help version";

constexpr VerbHelp verbs[] = {
    {"bench", Verb::bench, Argument::subjects, "[AREA…]", "measure Kiln beside what would be used instead",
     R"(Runs the benchmark programs of the areas named, or of all: cache, start, conv, executor, selector, tuner, pm4. Each measures Kiln
and its peers on the same work in one run, in turns, and compares every output outside the clock. Shown are medians with their
quartiles, the ratio (above 1: Kiln is better), and whether a target was met. All areas take about a quarter of an hour on two cores;
with --quick, a few minutes, for looking at whether everything works. With --stable only counts are taken: builds, allocations, system
calls, which are the same on every machine. The whole list is run through twice, since a machine's moods outlast the rounds of one
program; spreads hold both passes. What `kiln tune` has kept in the cache's folder serves the convolutions.

Times want a machine that does nothing else: whether it was quiet is looked at before, said, and kept with the figures. --output keeps
them as JSON, for `kiln bench compare`, `kiln bench table` and `kiln report`. The programs are found in lib/kiln/bench beside the
command, or in the folder that KILN_BENCH_PATH names.

Exit status: 0 done · 1 a program failed, or an output was wrong · 2 usage.)",
     common, "quick stable passes"},
    {"bench compare", Verb::bench_compare, Argument::file_and_subjects, "BEFORE AFTER", "tell regressions from noise",
     R"(Compares two files of `kiln bench`. Figures with the same peer in both are compared by their ratio, which leaves the machine out;
others by their own value, where both files are of one processor model. A figure has changed where the quartiles of both do not
overlap and the medians differ by more than a tenth. With --stable only counts are compared, exactly, and every difference counts,
also a figure that is new or missing.

Exit status: 0 no regression · 1 one at least · 2 usage, or a file that cannot be read.)",
     "json output help version", "stable"},
    {"bench table", Verb::bench_table, Argument::file_and_subjects, "FILE [ID…]", "figures as a table in Markdown",
     R"(Writes the figures of a file of `kiln bench` as a table for documents: those named, ID or ID@GROUP (its blanks
may be written as _), in that order, or all.)",
     "output help version"},
};

}  // namespace

std::span<const VerbHelp> bench_verbs() noexcept { return verbs; }

}  // namespace kiln::host
