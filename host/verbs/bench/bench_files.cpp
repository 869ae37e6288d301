// `kiln bench compare` and `kiln bench table`: what is done with files of `kiln bench`.
#include "exit_status.hpp"
#include "report/human.hpp"
#include "report/text_table.hpp"
#include "verbs/bench/bench_compare.hpp"
#include "verbs/bench/bench_text.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <cstdio>

namespace kiln::host {
namespace {

constexpr double margin = 0.1;

std::string_view word_of(Change change) {
  switch (change) {
    case Change::same:
      return "same";
    case Change::better:
      return "better";
    case Change::worse:
      return "worse";
    case Change::missing:
      return "missing";
    case Change::added:
      return "added";
    case Change::incomparable:
      return "incomparable";
    case Change::invalid:
      break;
  }
  return "?";
}

std::string factor_text(const FigureChange& change) {
  if (change.change != Change::better && change.change != Change::worse) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", change.factor);
  return text;
}

std::string compare_text(const std::vector<FigureChange>& changes, std::size_t regressions) {
  TextTable table({{"", Align::left},
                   {"figure", Align::left},
                   {"compared", Align::left},
                   {"before", Align::left},
                   {"after", Align::left},
                   {"times better", Align::right}});
  std::size_t same = 0;
  for (const FigureChange& change : changes) {
    if (change.change == Change::same) {
      ++same;
      continue;
    }
    table.add({std::string(word_of(change.change)), visible(change.figure), visible(change.of), visible(change.before),
               visible(change.after), factor_text(change)});
  }
  const std::string counts = counted(changes.size(), "figure") + ": " + std::to_string(same) + " the same, " +
                             counted(regressions, "regression") + "\n";
  return same == changes.size() ? counts : table.text() + counts;
}

Json compare_json(const std::vector<FigureChange>& changes, Compared what, std::size_t regressions) {
  Json json{{"schema", 1}, {"regressions", regressions}, {"figures", Json::array()}};
  for (const FigureChange& change : changes) {
    json["figures"].push_back({{"figure", change.figure},
                               {"change", word_of(change.change)},
                               {"regression", is_regression(change, what)},
                               {"of", change.of},
                               {"before", change.before},
                               {"after", change.after},
                               {"factor", change.factor}});
  }
  return json;
}

}  // namespace

int bench_compare(const Options& options) {
  if (options.subjects.size() != 1) {
    return complain_of(invalid_argument(
        "kiln bench compare: " + std::to_string(options.subjects.size() + (options.subject.empty() ? 0 : 1)) +
        " files named, expected 2; usage: kiln bench compare BEFORE AFTER"));
  }
  const auto before = read_bench_file(options.subject), after = read_bench_file(options.subjects.front());
  for (const auto* file : {&before, &after}) {
    if (!*file) {
      complain_of(file->error());
      return exit_usage;
    }
  }
  const Compared what = options.bench.stable ? Compared::counts : Compared::everything;
  const std::vector<FigureChange> changes = compare_bench(*before, *after, what, margin);
  std::size_t regressions = 0;
  for (const FigureChange& change : changes) regressions += is_regression(change, what) ? 1 : 0;
  if (changes.empty()) return complain_of(invalid_argument("kiln bench compare: neither file has a figure to compare"));
  const int status = regressions == 0 ? exit_done : exit_job_failed;
  return options.json ? finish_json(compare_json(changes, what, regressions), options, status)
                      : finish(compare_text(changes, regressions), options, status);
}

int bench_table(const Options& options) {
  if (options.subject.empty()) {
    return complain_of(invalid_argument("kiln bench table: no file named; usage: kiln bench table FILE [ID…]"));
  }
  const auto file = read_bench_file(options.subject);
  if (!file) {
    complain_of(file.error());
    return exit_usage;
  }
  const auto table = bench_markdown(*file, options.subjects);
  if (!table) return complain_of(table.error().within(options.subject));
  return finish(*table, options);
}

}  // namespace kiln::host
