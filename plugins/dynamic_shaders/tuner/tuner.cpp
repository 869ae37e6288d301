#include "dynamic_shaders/tuner/tuner.hpp"

#include <kiln/clock.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <map>

#include "dynamic_shaders/tuner/rounds.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::uint32_t more_runs = 4;  // of a candidate that is not twice as slow as the best
constexpr std::uint32_t runs_of_a_round = 3;
constexpr std::size_t heats = 3;  // rounds in which all that came near the best meet
constexpr std::size_t most_in_heats = 16;
constexpr std::size_t most_finalists = 4;
constexpr std::size_t least_rounds = 6;  // with fewer no interval of a median has 95 %
constexpr std::size_t most_rounds = 16;
constexpr std::size_t baseline_rounds = 2;  // it takes as long as all others together
constexpr std::size_t least_candidates = 8;
constexpr double near_best = 1.3;     // machines' moods last minutes, and change times by as much
constexpr double search_share = 0.7;  // of the time; the rest is for the rounds
constexpr double heats_share = 0.85;
constexpr std::chrono::nanoseconds watchdog = std::chrono::seconds(20);  // of one measurement, its build included

// Its times say how fast it is.
bool usable(const TuningRecord& record) {
  return (record.verdict == Verdict::measured || record.verdict == Verdict::winner) && !record.wall_ns.empty();
}

double median_in_ms(const std::vector<std::uint64_t>& samples_ns) {
  return static_cast<double>(interval_of(samples_ns).median) / 1e6;
}

class Search {
 public:
  Search(const TuneTask& task, VariantBench& bench, const TuneOptions& options)
      : task_(task), bench_(bench), options_(options), begun_(now_ns()), waited_before_ns_(bench.waited_ns()) {
    outcome_.space = task.candidates.size();
    outcome_.baseline = task.baseline;
    outcome_.incumbent = task.incumbent;
    const auto is_known = [&](const Candidate& candidate) {
      return std::ranges::any_of(task.known, [&](const TuningRecord& one) { return one.variant == candidate.variant; });
    };
    all_known_ = std::ranges::all_of(task.candidates, is_known);
  }

  Result<TuneOutcome> run() {
    if (options_.by_agreement) join_known();
    for (const std::string* first : {&task_.incumbent, &task_.baseline}) {
      if (!first->empty()) look_at(*first);
    }
    const std::size_t all = task_.candidates.size();
    const std::size_t most = options_.exhaustive || !task_.ranked ? all : std::max(least_candidates, all / 4);
    double predicted_best = 0;
    for (const Candidate& candidate : task_.candidates) {
      if (stopped()) break;
      if (!options_.exhaustive) {
        if (outcome_.candidates + outcome_.known >= most || spent() > search_share) break;
        if (task_.ranked && predicted_best > 0 && candidate.predicted > 2 * predicted_best) break;
      }
      if (find(candidate.variant) == nullptr) look_at(candidate.variant);
      if (candidate.variant == best_ || predicted_best == 0) predicted_best = candidate.predicted;
      tell(most);
    }
    if (stopped()) return unavailable("tuning was stopped; finished measurements are kept");
    if (Status status = judge_by_agreement(); !status.ok()) return status;
    if (best_.empty()) return nothing_measured();
    if (Status status = decide(); !status.ok()) return status;
    if (outcome_.variant.empty()) return nothing_measured();
    outcome_.rejected = failed_.lines();
    if (options_.progress) {
      const std::size_t done = outcome_.candidates + outcome_.known;
      options_.progress({done, done, outcome_.variant, outcome_.wall_ns, 0});
    }
    return outcome_;
  }

 private:
  std::uint64_t worked_ns() const { return now_ns() - begun_ - (bench_.waited_ns() - waited_before_ns_); }
  double whole_ns() const { return static_cast<double>(std::max<std::int64_t>(options_.budget.count(), 1)); }
  double spent() const { return static_cast<double>(worked_ns()) / whole_ns(); }  // of the time given
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  TuningRecord* find(std::string_view variant) {
    for (TuningRecord& record : records_) {
      if (record.variant == variant) return &record;
    }
    return nullptr;
  }

  TuningRecord new_record(const std::string& variant) const {
    TuningRecord record = task_.form;
    record.variant = variant;
    record.when = static_cast<std::uint64_t>(std::time(nullptr));
    return record;
  }

  // Measures into the record; false where that failed, and the record says why.
  bool measure(TuningRecord& record, std::uint32_t runs) {
    TracedWork measuring(task_.trace, TraceArea::tuner, "measure");
    measuring.figure("variant", record.variant);
    measuring.figure("runs", std::uint64_t{runs});
    auto samples = bench_.measure(record.variant, runs, watchdog);
    if (!samples) measuring.figure("rejected", to_string(samples.error().code));
    if (samples && !samples->wall_ns.empty()) measuring.figure("median_wall_ms", median_in_ms(samples->wall_ns));
    measuring.end();
    if (samples) {
      if (Status status = check_group(record.variant, samples->agreement); !status.ok()) return reject(record, status);
      record.verdict = Verdict::measured;
      record.source = samples->source_digest;
      record.max_rel_error = samples->max_rel_error;
      record.error_bound = samples->error_bound;
      record.wall_ns.insert(record.wall_ns.end(), samples->wall_ns.begin(), samples->wall_ns.end());
      record.device_ns.insert(record.device_ns.end(), samples->device_ns.begin(), samples->device_ns.end());
      last_contention_ = samples->contention;
      return !record.wall_ns.empty();
    }
    return reject(record, samples.error());
  }

  // A failure of the bench itself says nothing of the variant, which may do well next time: it is not kept.
  bool reject(TuningRecord& record, const Status& failure) {
    const bool its_own = tells_of_variant(failure.code);
    record.verdict = its_own ? Verdict::rejected : Verdict::invalid;
    record.why = short_reason(record.variant, failure);
    failed_.add(record.variant, failure);
    if (record.variant == task_.incumbent && !its_own) incumbent_failure_ = failure;
    return false;
  }

  // A variant stays in the group in which it was first.
  Status check_group(const std::string& variant, std::uint32_t group) {
    const auto [at, is_first] = groups_.try_emplace(variant, group);
    const bool of_trusted = trusted_ == 0 || group == trusted_;
    if (at->second == group && of_trusted) return {};
    if (is_first) return corrupt("wrong: output differs from the output of the other variants");
    return corrupt("wrong: output of a later run differs from the first run");
  }

  void look_at(const std::string& variant) {
    if (find(variant) != nullptr) return;
    if (take_known(variant)) return;
    TuningRecord record = new_record(variant);
    ++outcome_.candidates;
    if (measure(record, 1)) {
      const bool hopeless = !options_.exhaustive && best_ns_ != 0 && record.wall_ns.front() > 2 * best_ns_;
      if (!hopeless) measure(record, more_runs);
    }
    // What serves keeps its record until the end: an interrupted run must not lose the winner. A measurement of a
    // kernel without a reference counts once the variants have been compared.
    const bool is_served = task_.won && variant == task_.incumbent;
    const bool counts = record.verdict == Verdict::rejected || (!is_served && !options_.by_agreement);
    if (task_.keep && record.verdict != Verdict::invalid && counts) task_.keep({record});
    admit(std::move(record));
  }

  // Records that were kept as measured agreed with one another. Two of them run again, so that new outputs can be
  // compared with theirs; where that fails all are measured again.
  void join_known() {
    if (options_.again) return;
    std::vector<const TuningRecord*> known;
    for (const TuningRecord& record : task_.known) {
      if (usable(record) && !record.stale()) known.push_back(&record);
    }
    std::ranges::stable_sort(known, {}, [](const TuningRecord* record) { return interval_of(record->wall_ns).median; });
    for (std::size_t i = 0; i < std::min<std::size_t>(known.size(), 2); ++i) {
      const auto samples = bench_.measure(known[i]->variant, 1, watchdog);
      const std::uint32_t group = samples ? samples->agreement : 0;
      if (group == 0 || group == agrees_with_none || (i > 0 && group != known_group_)) {
        use_known_ = false;
        return;
      }
      known_group_ = group;
    }
  }

  // Without a reference: those that are not in the largest group are out, and the others' records are kept.
  Status judge_by_agreement() {
    std::vector<Vote> votes;
    for (const TuningRecord& record : records_) {
      const auto at = groups_.find(record.variant);
      if (usable(record) && at != groups_.end() && at->second != 0) votes.push_back({record.variant, at->second});
    }
    if (votes.empty()) return {};
    const auto agreement = agreement_of(votes);
    if (!agreement) return agreement.error();
    trusted_ = agreement->group;
    for (const Outvoted& outvoted : agreement->outvoted) {
      TuningRecord& record = *find(outvoted.variant);
      record.verdict = Verdict::outvoted;
      record.why = outvoted.why;
      failed_.add(outvoted.variant, outvoted.why);
    }
    best_.clear();
    best_ns_ = 0;
    std::vector<TuningRecord> kept;
    for (const TuningRecord& record : records_) {
      const bool is_served = task_.won && record.variant == task_.incumbent && usable(record);
      if (record.verdict != Verdict::invalid && record.verdict != Verdict::rejected && !is_served)
        kept.push_back(record);
      note_best(record);
    }
    if (task_.keep && !kept.empty()) task_.keep(std::move(kept));
    return {};
  }

  bool take_known(const std::string& variant) {
    if (options_.again || !use_known_) return false;
    for (const TuningRecord& record : task_.known) {
      if (record.variant != variant || record.stale()) continue;
      // One more variant may turn the vote.
      if (record.verdict == Verdict::outvoted && !all_known_) return false;
      ++outcome_.known;
      if (record.is_refused()) failed_.add(variant, record.why);
      if (usable(record) && known_group_ != 0) groups_.emplace(variant, known_group_);
      admit(record);
      return true;
    }
    return false;
  }

  void admit(TuningRecord record) {
    records_.push_back(std::move(record));
    note_best(records_.back());
  }

  void note_best(const TuningRecord& record) {
    if (!usable(record)) return;
    const std::uint64_t median = interval_of(record.wall_ns).median;
    if (best_ns_ != 0 && median >= best_ns_) return;
    if (task_.trace != nullptr) {
      const TraceFigure figures[] = {{"variant", record.variant},
                                     {"median_wall_ms", median_in_ms(record.wall_ns)},
                                     {"before_ms", static_cast<double>(best_ns_) / 1e6}};
      task_.trace->add_event({TraceArea::tuner, "best so far", now_ns(), std::nullopt, figures});
    }
    best_ns_ = median;
    best_ = record.variant;
  }

  void tell(std::size_t planned) {
    if (!options_.progress) return;
    const std::size_t done = outcome_.candidates + outcome_.known;
    const double each = done == 0 ? 1 : spent() / static_cast<double>(done);
    const double search = each * static_cast<double>(planned > done ? planned - done : 0);
    const double left = std::clamp(search_share - spent(), 0.0, search) + (1 - search_share);
    options_.progress({done, planned, best_, best_ns_, static_cast<std::uint64_t>(left * whole_ns())});
  }

  Status nothing_measured() const {
    return unavailable("no variant could be measured: " + (failed_.empty() ? "no candidates" : failed_.text()));
  }

  // The nearest to the best by what the search saw, and the incumbent.
  std::vector<Entrant> entrants() const {
    std::vector<const TuningRecord*> near;
    for (const TuningRecord& record : records_) {
      if (!usable(record)) continue;
      const auto median = static_cast<double>(interval_of(record.wall_ns).median);
      if (median <= near_best * static_cast<double>(best_ns_) || record.variant == task_.incumbent)
        near.push_back(&record);
    }
    std::stable_sort(near.begin(), near.end(), [](const TuningRecord* a, const TuningRecord* b) {
      return interval_of(a->wall_ns).median < interval_of(b->wall_ns).median;
    });
    std::vector<Entrant> field;
    for (const TuningRecord* record : near) {
      if (field.size() < most_in_heats || record->variant == task_.incumbent)
        field.push_back({new_record(record->variant), {}, {}});
    }
    return field;
  }

  // Each runs, from that one on. A stop breaks the round off.
  void run_round(std::vector<Entrant*>& meeting, std::size_t first) {
    for (std::size_t turn = 0; turn < meeting.size() && !stopped(); ++turn) {
      Entrant& entrant = *meeting[(turn + first) % meeting.size()];
      if (!entrant.runs) continue;
      TuningRecord& record = entrant.record;
      const std::size_t before = record.wall_ns.size();
      entrant.runs = measure(record, runs_of_a_round) && record.wall_ns.size() > before;
      if (!entrant.runs) continue;
      const std::uint64_t median = interval_of(std::span(record.wall_ns).subspan(before)).median;
      entrant.rounds_ns.push_back(std::max<std::uint64_t>(median, 1));
      entrant.contention.push_back(last_contention_);
    }
  }

  // Rounds of all, then of the fastest and the incumbent, in an order that rotates, as many as the time allows; answers
  // those that stayed to the end, the fastest first.
  std::vector<Entrant*> meet(std::vector<Entrant>& field, TuningRecord& baseline, bool has_baseline) {
    std::vector<Entrant*> meeting;
    for (Entrant& entrant : field) meeting.push_back(&entrant);
    for (std::size_t round = 0; round < most_rounds && !stopped(); ++round) {
      if (round >= least_rounds && spent() > 1) break;
      const double before = spent();
      const std::size_t met = meeting.size();
      run_round(meeting, round);
      const double took = spent() - before;
      if (has_baseline && !stopped() && round < baseline_rounds && (round == 0 || usable(baseline)))
        measure(baseline, 1);
      if (round + 1 <= heats) {
        const std::size_t heats_left = heats - round - 1;
        rank(meeting);
        leave(meeting, heats_left == 0 ? most_finalists : places_for(heats_left, took, met), task_.incumbent);
      }
      tell_round(meeting, took, most_rounds - round - 1);
    }
    rank(meeting);
    return meeting;
  }

  // How many can meet in the heats that are left, by what the last round took of those that met in it.
  std::size_t places_for(std::size_t heats_left, double took, std::size_t met) const {
    const double turn = took / static_cast<double>(std::max<std::size_t>(met, 1));
    const double turns = std::max(heats_share - spent(), 0.0) / std::max(turn * static_cast<double>(heats_left), 1e-9);
    return std::max(most_finalists, static_cast<std::size_t>(std::min(turns, static_cast<double>(most_in_heats))));
  }

  void tell_round(std::vector<Entrant*> meeting, double took, std::size_t rounds_left) {
    if (!options_.progress) return;
    rank(meeting);
    if (!meeting.empty()) {
      best_ = meeting.front()->record.variant;
      best_ns_ = interval_of(meeting.front()->record.wall_ns).median;
    }
    const std::size_t done = outcome_.candidates + outcome_.known;
    const double left = std::clamp(1 - spent(), 0.0, took * static_cast<double>(rounds_left));
    options_.progress({done, done, best_, best_ns_, static_cast<std::uint64_t>(left * whole_ns())});
  }

  // Those that are right to the end of the rounds, the fastest first.
  std::vector<Entrant*> finalists_of(std::vector<Entrant>& field, TuningRecord& baseline, bool has_baseline) {
    std::vector<Entrant*> finalists = meet(field, baseline, has_baseline);
    if (baseline.verdict == Verdict::rejected) {
      for (Entrant& entrant : field) {
        if (entrant.record.variant == baseline.variant) entrant.record = baseline;
      }
    }
    std::erase_if(finalists, [](const Entrant* entrant) { return entrant->record.is_refused(); });
    return finalists;
  }

  // Not ok: the winner could not be published, and is none.
  Status decide() {
    std::vector<Entrant> field = entrants();
    const TuningRecord* plain = find(task_.baseline);
    TuningRecord baseline = new_record(task_.baseline);
    const bool has_baseline = plain != nullptr && usable(*plain);
    std::vector<Entrant*> finalists = finalists_of(field, baseline, has_baseline);
    // All that were near the best failed in the rounds: those behind them meet.
    while (finalists.empty() && !field.empty() && !stopped() && incumbent_failure_.ok()) {
      keep(field, Keep::failures);
      for (const Entrant& entrant : field) *find(entrant.record.variant) = entrant.record;
      best_ns_ = 0;
      best_.clear();
      for (const TuningRecord& record : records_) note_best(record);
      field = entrants();
      finalists = finalists_of(field, baseline, has_baseline);
    }
    if (stopped()) return unavailable("tuning was stopped; finished measurements are kept");
    if (task_.won && !incumbent_failure_.ok()) {
      keep(field, Keep::failures);
      return unavailable("the stored winner " + task_.incumbent +
                         " is kept: measurement failed: " + incumbent_failure_.text());
    }
    if (finalists.empty()) {
      keep(field, Keep::all);
      return {};
    }
    const RoundsChoice choice = choice_of_rounds(finalists, task_.incumbent, task_.won);
    const Entrant* best = choice.best;
    outcome_.variant = best->record.variant;
    outcome_.decision = choice.decision;
    outcome_.contention = choice.contention;
    outcome_.wall_ns = interval_of(best->record.wall_ns).median;
    outcome_.device_ns = interval_of(best->record.device_ns).median;
    for (const Entrant* entrant : finalists) {
      if (entrant->record.variant == task_.incumbent)
        outcome_.incumbent_wall_ns = interval_of(entrant->record.wall_ns).median;
    }
    if (choice.busy) outcome_.note = note_of(choice);
    const TuningRecord& measured = !usable(baseline) && has_baseline ? *plain : baseline;
    if (usable(measured)) {
      outcome_.baseline_wall_ns = interval_of(measured.wall_ns).median;
      outcome_.baseline_device_ns = interval_of(measured.device_ns).median;
    }
    if (options_.publish) {
      if (Status status = options_.publish(outcome_.variant); !status.ok()) {
        return status.within("the winner " + outcome_.variant + " does not serve: its programs cannot be stored");
      }
    }
    tell_winner(field);
    if (choice.decision == TuneDecision::busy && task_.won) {
      keep(field, Keep::failures);  // the times of a quiet machine stay
      return {};
    }
    for (Entrant& entrant : field) {
      if (entrant.record.variant == outcome_.variant) entrant.record.verdict = Verdict::winner;
    }
    keep(field, Keep::all);
    return {};
  }

  std::string note_of(const RoundsChoice& choice) const {
    char found[128];
    std::snprintf(found, sizeof found,
                  "its threads waited %.0f %% of their time, times in the rounds spread by %.0f %%",
                  100 * choice.contention, 100 * choice.spread);
    const bool kept = choice.decision == TuneDecision::busy;
    return std::string("the machine is too busy to compare variants") +
           (kept ? ", " + outcome_.variant + " is kept" : "") + ": " + found +
           ". Tune again with --again when it is idle";
  }

  // What the rounds said of each.
  enum class Keep : std::uint8_t { invalid = 0, all, failures };
  void keep(const std::vector<Entrant>& field, Keep what) const {
    std::vector<TuningRecord> records;
    for (const Entrant& entrant : field) {
      const Verdict verdict = entrant.record.verdict;
      if (verdict == Verdict::rejected || (what == Keep::all && verdict != Verdict::invalid))
        records.push_back(entrant.record);
    }
    if (task_.keep && !records.empty()) task_.keep(std::move(records));
  }

  void tell_winner(const std::vector<Entrant>& field) const {
    if (task_.trace == nullptr) return;
    std::vector<TraceFigure> figures = {{"variant", outcome_.variant},
                                        {"incumbent", task_.incumbent},
                                        {"baseline_wall_ms", static_cast<double>(outcome_.baseline_wall_ns) / 1e6},
                                        {"measured", std::uint64_t{outcome_.candidates}},
                                        {"known", std::uint64_t{outcome_.known}},
                                        {"rejected", std::uint64_t{failed_.size()}}};
    std::deque<std::string> names;  // which stay where they are
    for (const Entrant& entrant : field) {
      const TuningRecord& record = entrant.record;
      if (record.wall_ns.empty()) continue;
      figures.push_back({names.emplace_back(record.variant + " median_wall_ms"), median_in_ms(record.wall_ns)});
    }
    task_.trace->add_event({TraceArea::tuner, "winner", now_ns(), std::nullopt, figures});
  }

  const TuneTask& task_;
  VariantBench& bench_;
  const TuneOptions& options_;
  const std::uint64_t begun_;
  const std::uint64_t waited_before_ns_;  // by the bench, for others than us
  TuneOutcome outcome_;
  std::vector<TuningRecord> records_;
  FailedVariants failed_;
  Status incumbent_failure_;                     // of the bench's own
  std::map<std::string, std::uint32_t> groups_;  // VariantSamples::agreement, of each variant's first measurement
  std::uint32_t trusted_ = 0;                    // the group that is taken as right; 0: not decided yet
  std::uint32_t known_group_ = 0;                // of the known records; 0: they were not compared
  bool use_known_ = true;
  bool all_known_ = false;
  double last_contention_ = 0;
  std::string best_;
  std::uint64_t best_ns_ = 0;
};

}  // namespace

bool tells_of_variant(StatusCode code) noexcept {
  return code == StatusCode::timeout || code == StatusCode::device_lost || code == StatusCode::corrupt ||
         code == StatusCode::invalid_argument || code == StatusCode::unsupported;
}

Result<TuneOutcome> tune(const TuneTask& task, VariantBench& bench, const TuneOptions& options) {
  return Search(task, bench, options).run();
}

}  // namespace kiln::dynamic_shaders
