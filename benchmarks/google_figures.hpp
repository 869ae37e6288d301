// GoogleFigures: collects what Google Benchmark runs, beside its usual table, a sample a repetition. With
// --benchmark_enable_random_interleaving the repetitions of all benchmarks are in turns.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace kiln::bench {

class GoogleFigures final : public benchmark::ConsoleReporter {
 public:
  using ConsoleReporter::ConsoleReporter;

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      failed_ = failed_ || run.error_occurred;
      if (run.error_occurred) continue;
      const std::string name = run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args) +
                               "@" + std::to_string(run.threads);
      for (const auto& [counter, value] : run.counters) counters_[name + "#" + counter].push_back(value.value);
    }
  }

  bool failed() const { return failed_; }
  // Of "function/args@threads", its counter; nullptr where it did not run.
  const std::vector<double>* samples(const std::string& benchmark, const std::string& counter) const {
    const auto at = counters_.find(benchmark + "#" + counter);
    return at == counters_.end() ? nullptr : &at->second;
  }

 private:
  std::map<std::string, std::vector<double>> counters_;
  bool failed_ = false;
};

}  // namespace kiln::bench
