#include "dynamic_shaders/tuner/tuner.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <ctime>

#include "dynamic_shaders/tuner/samples.hpp"

namespace kiln::dynamic_shaders {
namespace {

constexpr std::uint32_t more_runs = 4;  // of a candidate that is not twice as slow as the best
constexpr std::uint32_t runs_of_a_round = 3;
constexpr std::size_t rounds = 5;
constexpr std::size_t baseline_rounds = 2;  // it takes as long as all others together
constexpr std::size_t most_finalists = 4;
constexpr std::size_t least_candidates = 8;
constexpr double near_best = 1.15;
constexpr double search_share = 0.7;                                     // of the time; the rest is for the rounds
constexpr std::chrono::nanoseconds watchdog = std::chrono::seconds(20);  // of one measurement, its build included

class Search {
 public:
  Search(const TuneTask& task, VariantBench& bench, const TuneOptions& options)
      : task_(task), bench_(bench), options_(options), begun_(now_ns()) {
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
    decide();
    if (outcome_.variant.empty()) return unavailable("no variant could be measured again: " + std::string(best_));
    return outcome_;
  }

 private:
  double spent() const {
    return static_cast<double>(now_ns() - begun_) /
           static_cast<double>(std::max<std::int64_t>(options_.budget.count(), 1));
  }
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
    auto samples = bench_.measure(record.variant, runs, watchdog);
    if (samples) {
      record.verdict = Verdict::measured;
      record.source = samples->source_digest;
      record.max_rel_error = samples->max_rel_error;
      record.error_bound = samples->error_bound;
      record.wall_ns.insert(record.wall_ns.end(), samples->wall_ns.begin(), samples->wall_ns.end());
      record.device_ns.insert(record.device_ns.end(), samples->device_ns.begin(), samples->device_ns.end());
      return !record.wall_ns.empty();
    }
    record.verdict = Verdict::rejected;
    record.why = samples.error().text();
    outcome_.rejected.push_back(record.variant + ": " + record.why);
    failed_elsewhere_ = !tells_of_variant(samples.error().code);
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
    // What failed for another reason may do well next time.
    if (task_.keep && !(record.verdict == Verdict::rejected && failed_elsewhere_)) task_.keep(record);
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
    if (last.verdict == Verdict::rejected || last.wall_ns.empty()) return;
    const std::uint64_t median = interval_of(last.wall_ns).median;
    if (best_ns_ != 0 && median >= best_ns_) return;
    best_ns_ = median;
    best_ = last.variant;
  }

  void tell(std::size_t planned) {
    if (!options_.progress) return;
    const std::size_t done = outcome_.candidates + outcome_.known;
    const std::uint64_t so_far = now_ns() - begun_;
    const auto whole = static_cast<std::uint64_t>(options_.budget.count());
    const std::uint64_t by_count = done == 0 ? whole : so_far / done * (planned > done ? planned - done : 0);
    options_.progress({done, planned, best_, best_ns_, std::min(by_count, whole > so_far ? whole - so_far : 0)});
  }

  Status nothing_measured() const {
    std::string reasons;
    for (const std::string& why : outcome_.rejected) reasons += (reasons.empty() ? "" : "; ") + why;
    return unavailable("no variant could be measured: " + (reasons.empty() ? "there is none" : reasons));
  }

  std::vector<std::string> finalists() {
    std::vector<std::pair<std::uint64_t, std::string>> near;
    for (const TuningRecord& record : records_) {
      if (record.verdict == Verdict::rejected || record.wall_ns.empty()) continue;
      const std::uint64_t median = interval_of(record.wall_ns).median;
      if (static_cast<double>(median) <= near_best * static_cast<double>(best_ns_))
        near.emplace_back(median, record.variant);
    }
    std::sort(near.begin(), near.end());
    if (near.size() > most_finalists) near.resize(most_finalists);
    std::vector<std::string> names;
    for (auto& [median, name] : near) names.push_back(std::move(name));
    const TuningRecord* incumbent = find(task_.incumbent);
    const bool runs = incumbent != nullptr && incumbent->verdict != Verdict::rejected;
    if (runs && std::find(names.begin(), names.end(), task_.incumbent) == names.end()) names.push_back(task_.incumbent);
    return names;
  }

  void decide() {
    std::vector<TuningRecord> last;
    for (const std::string& name : finalists()) last.push_back(new_record(name));
    const TuningRecord* plain = find(task_.baseline);
    TuningRecord baseline = new_record(task_.baseline);
    const bool has_baseline = plain != nullptr && plain->verdict != Verdict::rejected;
    for (std::size_t round = 0; round < rounds && !stopped(); ++round) {
      for (std::size_t turn = 0; turn < last.size(); ++turn) {
        TuningRecord& record = last[(turn + round) % last.size()];
        if (record.verdict != Verdict::rejected) measure(record, runs_of_a_round);
      }
      if (has_baseline && round < baseline_rounds && baseline.verdict != Verdict::rejected) measure(baseline, 1);
    }
    const TuningRecord* best = nullptr;
    const TuningRecord* incumbent = nullptr;
    for (const TuningRecord& record : last) {
      if (record.verdict == Verdict::rejected || record.wall_ns.empty()) continue;
      if (record.variant == task_.incumbent) incumbent = &record;
      if (best == nullptr || interval_of(record.wall_ns).median < interval_of(best->wall_ns).median) best = &record;
    }
    if (best == nullptr) return;
    if (incumbent != nullptr && interval_of(incumbent->wall_ns).overlaps(interval_of(best->wall_ns))) best = incumbent;
    outcome_.variant = best->variant;
    outcome_.wall_ns = interval_of(best->wall_ns).median;
    outcome_.device_ns = interval_of(best->device_ns).median;
    const TuningRecord& measured = baseline.wall_ns.empty() && has_baseline ? *plain : baseline;
    if (!measured.wall_ns.empty()) {
      outcome_.baseline_wall_ns = interval_of(measured.wall_ns).median;
      outcome_.baseline_device_ns = interval_of(measured.device_ns).median;
    }
    if (!task_.keep) return;
    for (TuningRecord& record : last) {
      if (record.variant == outcome_.variant) record.verdict = Verdict::winner;
      task_.keep(record);
    }
  }

  const TuneTask& task_;
  VariantBench& bench_;
  const TuneOptions& options_;
  const std::uint64_t begun_;
  TuneOutcome outcome_;
  std::vector<TuningRecord> records_;
  std::string best_;
  std::uint64_t best_ns_ = 0;
  bool failed_elsewhere_ = false;  // the last failed measurement says nothing of its variant
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
