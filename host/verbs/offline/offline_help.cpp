#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common = "set json output plugin-path cache-dir log help version";

constexpr VerbHelp verbs[] = {
    {"kernel build", Verb::kernel_build, Argument::subject, "FILE", "compile a kernel ahead of time",
     R"(Compiles FILE for --target NAME with the compiler of a plugin. Needs no device. Writes the code to --output, or to a file in the
current folder with the name of FILE and the target. Prints the resources of each kernel. The plugin amdgpu_pm4 compiles OpenCL C
(x.cl) for AMD's gfx10.3 and gfx11 and needs clang 19.

Exit status: 0 built · 1 the compiler is missing or failed (its whole log is shown) · 2 usage or configuration.)",
     common, "target include"},
    {"pm4 dump", Verb::pm4_dump, Argument::subject, "FILE", "print a PM4 command stream as text",
     R"(FILE contains PM4 packets as little-endian 32-bit words. Prints every packet with its fields, and registers by name. Unknown packets
are marked and printed as numbers. --target is the target of the stream: gfx1100 (default), gfx1030, …)",
     common, "target"},
    {"simulate", Verb::simulate, Argument::command, "[--target NAME] -- COMMAND…",
     "run a program with the simulated AMD device present",
     R"(Runs COMMAND with a simulated AMD graphics card: a render node that libdrm and Mesa's drivers accept, whose compute shaders are
interpreted. --target: gfx1100 (default) or gfx1030. Kiln labels the device `simulated`. The exit status is that of COMMAND.

The simulator writes its messages to standard error, or to the file of KILN_SIM_LOG.)",
     "help version", "target"},
    {"report", Verb::report, Argument::subjects, "FILE…", "one page of charts and tables from what Kiln wrote",
     R"(Makes one HTML file that fetches nothing from any mix of: what `kiln run --json` printed, a bench file, a tuning database (kiln tune
export), a cache (its folder, or what `kiln cache stats --json` printed), a trace (kiln run --trace). Kinds are told apart by what
stands in them. Shown are, as far as the files tell: Kiln beside its peers, where the time of a start went tier by tier, where programs
were found and what that saved, devices compared job by job, the roofline, every variant that was tuned, and the lanes of the
executor; each chart with its figures as a table.

    kiln run my.toml --json --output run.json
    kiln report run.json ~/.cache/kiln --output page.html

Exit status: 0 written · 1 it could not be written · 2 usage, or a file that is not as expected.)",
     "output help version", "title"},
};

}  // namespace

std::span<const VerbHelp> offline_verbs() noexcept { return verbs; }

}  // namespace kiln::host
