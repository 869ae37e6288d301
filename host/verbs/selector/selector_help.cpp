#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common = "set json output cache-dir log help version";

constexpr VerbHelp verbs[] = {
    {"selector show", Verb::selector_show, Argument::config_or_none, "[CONFIG]", "show what the selector has learned",
     R"(Lists the measurements for each operation, device, driver and kind of shape: runs, expected time with its spread, share of data
transfer, first runs, exploration runs, and detected changes of the device. Then lists the runs that were not learned from, by
reason, and the records that were rejected. Opens no device. --device ID shows that device only.)",
     "set device json output cache-dir log help version"},
    {"selector explain", Verb::selector_explain, Argument::config, "CONFIG", "show why a device would be chosen",
     R"(Shows for each job of CONFIG which device would run it now, why, and the expected cost of each candidate: queue wait, transfer,
build, run, with the evidence and its uncertainty. Opens the devices, runs nothing, changes nothing. Needs [selector] name =
"learning".)",
     "set device repeat json output plugin-path cache-dir log progress help version"},
    {"selector reset", Verb::selector_reset, Argument::config_or_none, "[CONFIG]", "remove what was learned",
     R"(Removes the measurements of every device, or of --device ID, and the rejected records. A running process only adds what it learns
afterwards. `kiln cache clear --all` also removes recorded decisions.)",
     "set device json output cache-dir log help version"},
    {"selector replay", Verb::selector_replay, Argument::subject_or_none, "[LOG]",
     "judge other policies on recorded decisions",
     R"(LOG is a file that [selector] log = true recorded, or its folder; default is the cache folder. Prints the estimated time of a
decision under each policy, with the range of 95 % of resamples (doubly robust estimate). The estimate assumes that the policy has
the same knowledge, and that a choice does not change later ones. `first` always takes the first device, unless it is far too slow.)",
     common},
};

}  // namespace

std::span<const VerbHelp> selector_verbs() noexcept { return verbs; }

}  // namespace kiln::host
