// Policy: chooses among candidates with estimates, if no exploration run is due.
//
// Thread-safety: none; the selector locks. Ownership: owned by the selector. Deterministic for a seed.
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "selector/performance_model.hpp"

namespace kiln::selector {

struct Option {
  double fixed_ns = 0;       // queue and build
  double log_ns = 0;         // of the run, natural logarithm
  double log_deviation = 0;  // of log_ns
  std::uint64_t runs = 0;

  double expected_ns() const noexcept;
};

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy();

  // Returns an index into `options`. REQUIRES: not empty.
  virtual std::size_t choose(std::span<const Option> options, std::mt19937_64& random) = 0;
};

std::size_t cheapest(std::span<const Option> options) noexcept;

std::unique_ptr<Policy> make_ema();
std::unique_ptr<Policy> make_epsilon(double exploration);
std::unique_ptr<Policy> make_ucb();
std::unique_ptr<Policy> make_thompson();

// invalid_argument: unknown name; the error lists the policies.
Result<std::unique_ptr<Policy>> make_policy(const SelectorConfig& config);

// Exploration: decides when to run a job on a candidate to measure it, although another is expected to be faster.
//
// Each candidate of a new bucket has an allowance of three exploration runs. A run is made if its expected saving over
// later runs is more than its cost (expected improvement of a log-normal belief). A clearly slower candidate is
// therefore measured once, and one that is predicted to be clearly slower never. Further runs are paid from a budget, a
// share of the time spent in jobs: runs beyond the allowance; the single run of a candidate that is predicted to be ten
// times slower; and repeated runs on a device that became slow and may have recovered.
// Thread-safety: none; the selector locks. Ownership: values.

class Exploration {
 public:
  static constexpr std::uint32_t most_looks = 3;
  static constexpr double horizon = 100;         // later runs that are assumed to benefit
  static constexpr std::uint64_t patience = 50;  // runs elsewhere before a device that changed is measured again

  // share: of the time spent in jobs, for runs beyond the allowance.
  explicit Exploration(double share) : share_(share) {}

  struct Look {
    std::size_t candidate;
    double charged_ns;  // to the budget; 0: within the allowance
  };
  // Returns the candidate to measure; nullopt: none is worth it.
  std::optional<Look> next(std::span<const Prospect> prospects) const;
  // The same for devices that changed before. passed_over: by candidate, runs on other devices since its last run.
  std::optional<Look> again(std::span<const Prospect> prospects, std::span<const std::uint64_t> passed_over) const;
  // Whether the budget is enough for a job of that length.
  bool affords(double ns) const { return explored_ns_ + ns <= share_ * worked_ns_; }

  void charge(double ns) { explored_ns_ += ns; }
  void spend(double job_ns) { worked_ns_ += job_ns; }
  double explored_ns() const noexcept { return explored_ns_; }
  double worked_ns() const noexcept { return worked_ns_; }
  double share() const noexcept { return share_; }

 private:
  std::optional<Look> look_at(std::span<const Prospect> prospects, std::size_t candidate, double best_ns,
                              double best_deviation) const;

  double share_;
  double worked_ns_ = 0;
  double explored_ns_ = 0;
};

// Chooser: chooses one of the prospects of a job: exploration runs, their budget, the policy, builds ahead of use.
//
// decide() changes nothing, so it also serves to explain; commit() records a decision that is carried out.
// Thread-safety: none; the selector locks. Ownership: owns the policy.

enum class Ground : std::uint8_t { invalid = 0, only_one, look, policy, deadline, no_estimate };

std::string_view to_string(Ground ground) noexcept;

struct Decision {
  std::size_t candidate = 0;
  Ground ground = Ground::invalid;
  double charged_ns = 0;  // to the exploration budget
  bool explores = false;  // not the candidate with the least expected cost
  std::optional<std::size_t> build_ahead;
  std::optional<std::size_t> wanted_look;  // an exploration run that waits for its program
  std::vector<Option> options;             // if the policy decided
  std::vector<std::size_t> candidate_of;   // option → candidate
  std::size_t cheapest = 0;                // option
};

class Chooser {
 public:
  static Result<Chooser> create(const SelectorConfig& config);

  // random: null: takes the least expected cost where the policy would draw. REQUIRES: at least one prospect.
  Decision decide(const ShapeBucket& bucket, std::span<const Prospect> prospects, const JobTerms& terms,
                  std::mt19937_64* random) const;
  void commit(const ShapeBucket& bucket, std::span<const Prospect> prospects, const Decision& decision);
  // Call it when a run ends, on the thread of its commit(). An exploration run was charged with its expected time; this
  // replaces it by the real one.
  void spend(const ShapeBucket& bucket, const DeviceInfo& device, double job_ns);

  // Returns the probability of each option, estimated by repeated draws, with the effect of the budget.
  std::vector<double> propensities(const Decision& decision, std::uint32_t repeat, std::mt19937_64& random) const;

  std::string because(std::span<const Prospect> prospects, const Decision& decision) const;
  const Exploration& exploration() const noexcept { return exploration_; }

 private:
  Chooser(const SelectorConfig& config, std::unique_ptr<Policy> policy)
      : exploration_(config.exploration), policy_(std::move(policy)), policy_name_(config.policy) {}

  std::optional<Exploration::Look> look(const ShapeBucket& bucket, std::span<const Prospect> prospects) const;
  std::size_t drawn(const Decision& decision, std::uint32_t repeat, std::mt19937_64* random) const;
  void serve_while_building(const ShapeBucket& bucket, std::span<const Prospect> prospects, Decision& decision) const;

  // An exploration run that waits for a program, which is built while other devices run the jobs.
  struct Ahead {
    std::string shape;
    std::uint32_t jobs = 0;  // run elsewhere meanwhile
  };

  struct Charged {
    std::string name;  // of bucket and device
    double run_ns = 0;
    std::uint32_t runs = 0;  // not yet ended
  };

  Exploration exploration_;
  std::unique_ptr<Policy> policy_;
  std::string policy_name_;
  std::map<std::string, Ahead> ahead_;          // by device
  std::map<std::thread::id, Charged> charged_;  // by the thread that runs the job
  std::map<std::string, std::uint64_t>
      passed_over_;  // by bucket and device, of devices that changed: runs on others since
};

}  // namespace kiln::selector
