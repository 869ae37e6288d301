#include "verb_table.hpp"

namespace kiln::host {
namespace {

constexpr std::string_view common = "set json output cache-dir log help version";

constexpr VerbHelp verbs[] = {
    {"selector show", Verb::selector_show, Argument::config_or_none, "[CONFIG]", "what the selector has learned",
     R"(Lists what has been measured: per operation, device, driver and kind of shape the runs, the expected time and its spread, the
part of it that moves data, first runs, looks, and how often the device was noticed to have changed. Below it stand the runs that
were not learned from, by reason, and the records that were refused, by validator. No device is opened.
--device ID shows that device alone.)",
     "set device json output cache-dir log help version"},
    {"selector explain", Verb::selector_explain, Argument::config, "CONFIG", "the numbers behind a choice, in words",
     R"(For each job of CONFIG: which device would serve it now, why, and what each candidate is expected to cost: queue wait, transfer,
build where its program is cold, run; on what evidence, and how sure. Opens the devices, runs nothing, and changes nothing.
Without [selector] name = "learning" there are no figures.)",
     "set device repeat json output plugin-path cache-dir log progress help version"},
    {"selector reset", Verb::selector_reset, Argument::config_or_none, "[CONFIG]", "forget what was learned",
     R"(Removes what was learned of every device, or with --device ID of that one, and the records that were refused. A process that is
learning meanwhile brings back what it learns afterwards, and nothing else. `kiln cache clear --all` removes recorded decisions too.)",
     "set device json output cache-dir log help version"},
    {"selector replay", Verb::selector_replay, Argument::subject_or_none, "[LOG]",
     "judge other policies on recorded decisions",
     R"(LOG is a file that [selector] log = true recorded, or the folder that holds it; without LOG, that of the cache folder. Tells what a
decision would have taken under each policy, with the range that holds 95 % of resamples: the doubly robust estimate, which
assumes that the other policy knew at each decision what the recording one knew, and that a choice changes nothing for later ones.
`first` always takes the first device that is not hopeless.)",
     common},
};

}  // namespace

std::span<const VerbHelp> selector_verbs() noexcept { return verbs; }

}  // namespace kiln::host
