// `kiln bench`: the benchmark programs of some areas or of all, one after another, into one file.
#include "commit.hpp"
#include "console.hpp"
#include "interrupt.hpp"
#include "text_table.hpp"
#include "verb_table.hpp"
#include "verbs/bench_compare.hpp"
#include "verbs/bench_file.hpp"
#include "verbs/bench_programs.hpp"
#include "verbs/verbs.hpp"

#include <kiln/version.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <sstream>

namespace kiln::host {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

struct BenchRun {
  const BenchProgram* program = nullptr;
  std::string words;
  seconds usual{0};
  unsigned before = 0;  // runs of the same that were made before this one
};

// Where the programs are: KILN_BENCH_PATH, installed beside this command, or beside it in the build.
std::vector<fs::path> program_folders() {
  if (const char* set = std::getenv("KILN_BENCH_PATH"); set != nullptr && *set != '\0') return {fs::path(set)};
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  return {own.parent_path() / "lib" / "kiln" / "bench", own};
}

Result<fs::path> find_program(std::string_view name) {
  std::string searched;
  for (const fs::path& folder : program_folders()) {
    const fs::path file = folder / name;
    if (access(file.c_str(), X_OK) == 0 && !fs::is_directory(file)) return file;
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  return not_found("benchmark program " + std::string(name) + ": not found in " +
                   (searched.empty() ? "any folder" : searched) +
                   ". Install package kiln-bench, or build Kiln with KILN_BENCHMARKS=ON");
}

Status check_areas(const std::vector<std::string>& asked) {
  std::string known;
  for (const BenchArea& area : bench_areas()) known += (known.empty() ? "" : ", ") + std::string(area.name);
  for (const std::string& name : asked) {
    if (std::ranges::find(bench_areas(), name, &BenchArea::name) == bench_areas().end()) {
      return invalid_argument("kiln bench: area '" + name + "': expected one of " + known);
    }
  }
  return {};
}

bool is_asked(const Options& options, std::string_view area) {
  return options.subjects.empty() || std::ranges::find(options.subjects, area) != options.subjects.end();
}

BenchRun run_of(const BenchProgram& program, const Options& options) {
  constexpr seconds brief{5};
  if (options.bench.stable) return {&program, std::string(*program.stable_words), brief};
  if (options.bench.quick) return {&program, std::string(program.quick_words), program.quick};
  return {&program, std::string(program.words), program.usual};
}

std::vector<BenchRun> runs_of(const Options& options) {
  const bool brief = options.bench.quick || options.bench.stable;
  const unsigned passes = options.bench.passes.value_or(brief ? 1 : 2);
  const unsigned most_turns = brief ? 1 : std::ranges::max(bench_programs(), {}, &BenchProgram::turns).turns;
  std::vector<BenchRun> runs;
  std::map<const BenchProgram*, unsigned> made;
  for (unsigned round = 0; round < passes * most_turns; ++round) {
    for (const BenchProgram& program : bench_programs()) {
      if (round % most_turns >= program.turns || !is_asked(options, program.area)) continue;
      if (options.bench.stable && !program.stable_words) continue;
      runs.push_back(run_of(program, options));
      runs.back().before = made[&program]++;
    }
  }
  return runs;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return std::round(static_cast<double>(to_ns - from_ns) / 1e8) / 10;
}

std::string not_quiet_text(const BenchMachine& machine) {
  return "this machine is not quiet (load " + short_number(machine.load_before) + ", noise " +
         short_number(machine.noise_percent) + " %): measured times are not reliable";
}

// For the programs' figures and what they say; gone at the end.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create() {
    std::string name = (fs::temp_directory_path() / "kiln-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return io_error("folder " + name + ": cannot be created");
    return ScratchFolder(name);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  fs::path operator/(const char* name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

// The line that says what runs and how long all of it will take yet.
class BenchProgress {
 public:
  BenchProgress(Progress progress, std::vector<BenchRun> runs) : line_(progress), runs_(std::move(runs)) {}

  void begin(std::size_t run) {
    run_ = run;
    begun_ = Clock::now();
    line_.show(text());
  }
  void redraw() {
    if (line_.is_redrawn()) line_.show(text());
  }

 private:
  std::string text() const {
    seconds left{0};
    for (std::size_t i = run_; i < runs_.size(); ++i) left += runs_[i].usual;
    const auto passed = std::chrono::duration_cast<seconds>(Clock::now() - begun_);
    left -= std::min(passed, runs_[run_].usual);
    const auto total = left.count();
    const std::string time = total >= 60 ? std::to_string((total + 30) / 60) + " min" : std::to_string(total) + " s";
    return "bench " + std::to_string(run_ + 1) + " of " + std::to_string(runs_.size()) + ": " +
           std::string(runs_[run_].program->area) + ", " + std::string(runs_[run_].program->program) + "; about " +
           time + " left";
  }

  ProgressLine line_;
  std::vector<BenchRun> runs_;
  std::size_t run_ = 0;
  Clock::time_point begun_ = Clock::now();
};

Result<ProgramFigures> measure(const BenchRun& run, const fs::path& cache, const ScratchFolder& scratch,
                               BenchProgress& progress) {
  const auto program = find_program(run.program->program);
  if (!program) return program.error();
  std::vector<std::string> words;
  if (run.program->needs == BenchNeeds::simulated_card) {
    std::error_code error;
    words = {fs::read_symlink("/proc/self/exe", error).string(), "simulate", "--"};
  }
  const fs::path figures = scratch / "figures.json";
  std::error_code ignored;
  fs::remove(figures, ignored);
  words.push_back(program->string());
  words.push_back("--figures");
  words.push_back(figures.string());
  if (run.program->needs == BenchNeeds::tuning_database && !cache.empty()) {
    words.push_back("--cache-dir");
    words.push_back(cache.string());
  }
  std::istringstream rest{run.words};
  for (std::string word; rest >> word;) words.push_back(word);
  const seconds limit = std::max(seconds(60), 8 * run.usual);
  const Status ran =
      run_program(words, scratch / "log", Deadline::after(limit), interrupted(), [&] { progress.redraw(); });
  if (!ran.ok()) return ran.within(run.program->program);
  auto read = read_program_figures(figures);
  if (!read) return read.error().within(run.program->program);
  return read;
}

MeasuredArea& area_of(BenchFile& file, std::string_view name) {
  const auto measured = std::ranges::find(file.areas, name, &MeasuredArea::name);
  if (measured != file.areas.end()) return *measured;
  const auto& known = *std::ranges::find(bench_areas(), name, &BenchArea::name);
  return file.areas.emplace_back(MeasuredArea{std::string(known.name), std::string(known.title), 0, std::nullopt, {}});
}

void leave_out(MeasuredArea& area, const std::string& why) {
  if (area.skipped && area.skipped->find(why) != std::string::npos) return;  // of the pass before
  area.skipped = area.skipped ? *area.skipped + "; " + why : why;
}

// What one run told. Answers false where it failed, or an output was wrong.
bool take(MeasuredArea& area, const BenchRun& run, Result<ProgramFigures> told, BenchMachine& machine,
          bool counts_only) {
  if (!told) {
    complain(visible(told.error().message));
    leave_out(area, told.error().message);
    return false;
  }
  if (told->skipped) leave_out(area, std::string(run.program->program) + ": " + *told->skipped);
  for (const auto& [of, what] : told->versions) machine.versions[of] = what;
  bool right = true;
  for (BenchFigure& figure : told->figures) {
    if (counts_only && !figure.stable) continue;
    const auto known = std::ranges::find(area.figures, figure.identity(), &BenchFigure::identity);
    if (known != area.figures.end() && run.before == 0) {
      complain(visible(std::string(run.program->program) + ": figure '" + figure.identity() + "' appears twice"));
      right = false;
      continue;
    }
    if (figure.verified == false) {
      complain(visible("figure '" + figure.identity() + "': an output was wrong"));
      right = false;
    }
    if (known == area.figures.end()) {
      area.figures.push_back(std::move(figure));
    } else {
      merge_passes(*known, figure);
    }
  }
  return right;
}

// Runs everything that was asked for; answers whether all of it was right. cancelled: it was interrupted.
Result<bool> measure_all(const Options& options, const fs::path& cache, BenchFile& file) {
  const auto scratch = ScratchFolder::create();
  if (!scratch) return scratch.error();
  // Programs make their folders there, so that nothing is left of one that is ended. There is no second thread now.
  setenv("TMPDIR", scratch->path().c_str(), 1);
  const std::vector<BenchRun> runs = runs_of(options);
  BenchProgress progress(options.progress, runs);
  bool right = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::uint64_t begun = now_ns();
    progress.begin(i);
    MeasuredArea& area = area_of(file, runs[i].program->area);
    auto told = measure(runs[i], cache, *scratch, progress);
    if (interrupted()) return cancelled("kiln bench: interrupted");
    right = take(area, runs[i], std::move(told), file.machine, options.bench.stable) && right;
    area.seconds = std::round(10 * (area.seconds + seconds_between(begun, now_ns()))) / 10;
  }
  return right;
}

}  // namespace

int bench(const Options& options) {
  if (const Status known = check_areas(options.subjects); !known.ok()) return complain_of(known);
  const ConfigReading reading = read_config(options.sources);
  if (!report_reading(reading)) return exit_usage;
  std::error_code error;
  fs::path cache = reading.config.cache.directory;  // absolute, or empty
  if (!fs::is_directory(cache, error)) {
    if (options.sources.cache_directory) {
      return complain_of(invalid_argument("kiln bench: --cache-dir " + cache.string() + ": not a folder"));
    }
    cache.clear();
  }
  if (const Status output = check_output(options); !output.ok()) {
    complain(visible(output.message));
    return exit_usage;
  }
  install_interrupt_handlers();
  BenchFile file;
  file.kiln = version;
  if (!built_commit.empty()) file.commit = built_commit;
  file.started = utc_now();
  const std::uint64_t begun = now_ns();
  file.machine = describe_machine();
  if (!file.machine.quiet && !options.bench.stable) complain(not_quiet_text(file.machine));
  const auto right = measure_all(options, cache, file);
  if (interrupted()) end_by_signal();
  if (!right) return complain_of(right.error());
  file.seconds = seconds_between(begun, now_ns());
  const int status = *right ? exit_done : exit_job_failed;
  if (!options.json && !options.output) return finish(bench_text(file), options, status);
  if (!write_result(bench_file_text(file), options)) return exit_job_failed;
  if (options.json) return status;
  Options terminal = options;  // the file has the figures, and the terminal the table
  terminal.output.reset();
  return finish(bench_text(file), terminal, status);
}

namespace {

constexpr std::string_view bench_options = "set json output cache-dir progress help version";

constexpr VerbHelp bench_rows[] = {
    {"bench", bench, Argument::subjects, "[AREA…]", "measure Kiln and its peers",
     R"(Runs the benchmark programs of the named areas, or of all: cache, start, conv, executor, selector, tuner, pm4. Each program measures
Kiln and its peers on the same work in one run, in alternating rounds, and compares every output outside the measured time. Prints
medians with quartiles, the ratio (above 1: Kiln is better), and whether a target was met. All areas take about a quarter of an hour
on two cores. --stable measures only counts (builds, allocations, system calls), which are equal on every machine. All programs run
twice, because the noise of a machine lasts longer than the rounds of one program. `conv` uses the winners of `kiln tune` in the
cache folder.

Run it on an otherwise idle machine: the noise before the start is measured and stored. --output writes JSON for `kiln bench compare`,
`kiln bench table` and `kiln report`. The programs are in lib/kiln/bench beside the command, or in KILN_BENCH_PATH.

Exit status: 0 done · 1 a program failed, or an output was wrong · 2 usage.)",
     bench_options, "quick stable passes"},
    {"bench compare", bench_compare, Argument::file_and_subjects, "BEFORE AFTER",
     "find regressions between two measurements",
     R"(Compares two files of `kiln bench`. A figure with the same peer in both is compared by its ratio, others by their value if both files
are from the same processor model. A figure changed if the quartiles do not overlap and the medians differ by more than 10 %. It is
worse if its output became wrong.
--stable compares only counts, which must be equal; a new or missing figure is a difference.

Exit status: 0 no regression · 1 at least one · 2 usage, or a file that cannot be read.)",
     "json output help version", "stable"},
    {"bench table", bench_table, Argument::file_and_subjects, "FILE [ID…]", "print figures as a Markdown table",
     R"(Prints the figures of a file of `kiln bench` as a Markdown table: all, or those named, in that order. A name is ID or ID@GROUP; write
blanks in it as _.)",
     "output help version"},
};

}  // namespace

std::span<const VerbHelp> bench_verbs() noexcept { return bench_rows; }

// `kiln bench compare` and `kiln bench table`: what is done with files of `kiln bench`.
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
  if (!change.factor || (change.change != Change::better && change.change != Change::worse)) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", *change.factor);
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
                               {"factor", change.factor ? Json(*change.factor) : Json(nullptr)}});
  }
  return json;
}

}  // namespace

int bench_compare(const Options& options) {
  if (options.subjects.size() != 1) {
    return complain_of(invalid_argument("kiln bench compare: number of files is " +
                                        std::to_string(options.subjects.size() + (options.subject.empty() ? 0 : 1)) +
                                        ", expected 2; usage: kiln bench compare BEFORE AFTER"));
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
    return complain_of(invalid_argument("kiln bench table: no file given; usage: kiln bench table FILE [ID…]"));
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
