#include "dynamic_shaders/tuner/tuner.hpp"

#include <kiln/clock.hpp>
#include <kiln/traced_work.hpp>

#include <algorithm>
#include <ctime>
#include <deque>

#include "dynamic_shaders/tuner/rounds.hpp"
#include "dynamic_shaders/tuner/samples.hpp"

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
  }

  Result<TuneOutcome> run() {
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
    if (stopped()) return unavailable("tuning was stopped; what was measured is kept");
    if (best_.empty()) return nothing_measured();
    if (Status status = decide(); !status.ok()) return status;
    if (outcome_.variant.empty()) return unavailable("no variant could be measured again: " + std::string(best_));
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
      record.verdict = Verdict::measured;
      record.source = samples->source_digest;
      record.max_rel_error = samples->max_rel_error;
      record.error_bound = samples->error_bound;
      record.wall_ns.insert(record.wall_ns.end(), samples->wall_ns.begin(), samples->wall_ns.end());
      record.device_ns.insert(record.device_ns.end(), samples->device_ns.begin(), samples->device_ns.end());
      return !record.wall_ns.empty();
    }
    // What failed for another reason than its own may do well next time, and is not kept.
    record.verdict = tells_of_variant(samples.error().code) ? Verdict::rejected : Verdict::invalid;
    record.why = samples.error().text();
    outcome_.rejected.push_back(record.variant + ": " + record.why);
    return false;
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
    if (task_.keep && record.verdict != Verdict::invalid) task_.keep({record});
    admit(std::move(record));
  }

  bool take_known(const std::string& variant) {
    if (options_.again) return false;
    for (const TuningRecord& record : task_.known) {
      if (record.variant != variant || record.stale()) continue;
      ++outcome_.known;
      if (record.verdict == Verdict::rejected) outcome_.rejected.push_back(record.variant + ": " + record.why);
      admit(record);
      return true;
    }
    return false;
  }

  void admit(TuningRecord record) {
    records_.push_back(std::move(record));
    const TuningRecord& last = records_.back();
    if (!usable(last)) return;
    const std::uint64_t median = interval_of(last.wall_ns).median;
    if (best_ns_ != 0 && median >= best_ns_) return;
    if (task_.trace != nullptr) {
      const TraceFigure figures[] = {{"variant", last.variant},
                                     {"median_wall_ms", median_in_ms(last.wall_ns)},
                                     {"before_ms", static_cast<double>(best_ns_) / 1e6}};
      task_.trace->add_event({TraceArea::tuner, "best so far", now_ns(), std::nullopt, figures});
    }
    best_ns_ = median;
    best_ = last.variant;
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
    std::string reasons;
    for (const std::string& why : outcome_.rejected) reasons += (reasons.empty() ? "" : "; ") + why;
    return unavailable("no variant could be measured: " + (reasons.empty() ? "there is none" : reasons));
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
        field.push_back({new_record(record->variant), {}});
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
    }
  }

  // Rounds of all, then of the fastest and the incumbent, in an order that rotates, as many as the time allows; answers
  // those that stayed to the end, the fastest first.
  std::vector<const Entrant*> meet(std::vector<Entrant>& field, TuningRecord& baseline, bool has_baseline) {
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
      tell_round(took, most_rounds - round - 1);
    }
    rank(meeting);
    return {meeting.begin(), meeting.end()};
  }

  // How many can meet in the heats that are left, by what the last round took of those that met in it.
  std::size_t places_for(std::size_t heats_left, double took, std::size_t met) const {
    const double turn = took / static_cast<double>(std::max<std::size_t>(met, 1));
    const double turns = std::max(heats_share - spent(), 0.0) / std::max(turn * static_cast<double>(heats_left), 1e-9);
    return std::max(most_finalists, static_cast<std::size_t>(std::min(turns, static_cast<double>(most_in_heats))));
  }

  void tell_round(double took, std::size_t rounds_left) {
    if (!options_.progress) return;
    const std::size_t done = outcome_.candidates + outcome_.known;
    const double left = std::clamp(1 - spent(), 0.0, took * static_cast<double>(rounds_left));
    options_.progress({done, done, best_, best_ns_, static_cast<std::uint64_t>(left * whole_ns())});
  }

  // Not ok: the winner could not be published, and is none.
  Status decide() {
    std::vector<Entrant> field = entrants();
    const TuningRecord* plain = find(task_.baseline);
    TuningRecord baseline = new_record(task_.baseline);
    const bool has_baseline = plain != nullptr && usable(*plain);
    const std::vector<const Entrant*> finalists = meet(field, baseline, has_baseline);
    if (stopped()) return unavailable("tuning was stopped; what was measured is kept");
    if (finalists.empty()) {
      keep(field);
      return {};
    }
    const Entrant* best = finalists.front();
    for (const Entrant* entrant : finalists) {
      const bool incumbent = entrant->record.variant == task_.incumbent;
      if (incumbent && !slower(entrant->rounds_ns, best->rounds_ns)) best = entrant;
    }
    outcome_.variant = best->record.variant;
    outcome_.wall_ns = interval_of(best->record.wall_ns).median;
    outcome_.device_ns = interval_of(best->record.device_ns).median;
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
    for (Entrant& entrant : field) {
      if (entrant.record.variant == outcome_.variant) entrant.record.verdict = Verdict::winner;
    }
    keep(field);
    return {};
  }

  // What the rounds said of each, the failures too.
  void keep(const std::vector<Entrant>& field) const {
    std::vector<TuningRecord> records;
    for (const Entrant& entrant : field) {
      if (entrant.record.verdict != Verdict::invalid) records.push_back(entrant.record);
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
                                        {"rejected", std::uint64_t{outcome_.rejected.size()}}};
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
