#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common = "set json output plugin-path cache-dir log help version";

constexpr VerbHelp verbs[] = {
    {"kernel build", Verb::kernel_build, Argument::subject, "FILE", "compile a kernel ahead of time",
     R"(Compiles FILE for --target NAME with the compiler that a plugin brings; no device is needed, and none is opened. The bytes go to
--output, or to FILE's name with the target in it in the current folder. Tells of each kernel what it takes of the device.
OpenCL C (x.cl) for AMD's gfx10.3 and gfx11 comes with the plugin amdgpu_pm4; it needs clang 19.

Exit status: 0 built · 1 the compiler is missing, or refused the text (its whole log is shown) · 2 usage or configuration.)",
     common, "target include"},
    {"pm4 dump", Verb::pm4_dump, Argument::subject, "FILE", "a command stream in words",
     R"(FILE holds PM4 packets as a command processor reads them: little-endian words, nothing else. Every packet is named with its fields,
registers by their names; what is unknown is said to be, and printed as it stands. --target says whose stream it is: gfx1100
(default), gfx1030, …)",
     common, "target"},
    {"simulate", Verb::simulate, Argument::command, "[--target NAME] -- COMMAND…",
     "run a program with the simulated AMD device present",
     R"(Starts COMMAND with a software AMD graphics card beside whatever the machine has: a render node at the kernel's interface that
libdrm and Mesa's drivers accept, whose compute shaders are interpreted. --target: gfx1100 (default) or gfx1030. The node says of
itself that it is simulated, and programs of this project label its device so. COMMAND's exit status is that of this verb.

The simulator's own messages go to standard error, or to the file that KILN_SIM_LOG names.)",
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
