// Chooser: chooses one of the prospects of a job: exploration runs, their budget, the policy, builds ahead of use.
//
// decide() changes nothing, so it also serves to explain; commit() records a decision that is carried out.
// Thread-safety: none; the selector locks. Ownership: owns the policy.
#pragma once

#include "selector/exploration.hpp"
#include "selector/policy.hpp"
#include "selector/prospect.hpp"

#include <kiln/config.hpp>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace kiln::selector {

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
  // Call it when a run ends. An exploration run was charged with its expected time; this replaces it by the real one.
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
    double run_ns = 0;
    std::uint32_t runs = 0;  // not yet ended
  };

  Exploration exploration_;
  std::unique_ptr<Policy> policy_;
  std::string policy_name_;
  std::map<std::string, Ahead> ahead_;                // by device
  std::map<std::string, Charged> charged_;            // by bucket and device
  std::map<std::string, std::uint64_t> passed_over_;  // by bucket and device, of devices that changed: runs on others since
};

}  // namespace kiln::selector
