// Chooser: from the prospects of a job to the one that serves it: looks, budget, policy, building ahead.
//
// decide() changes nothing, so that it can also explain; commit() accounts for a decision that is carried out.
// Thread-safety: none; the selector locks. Ownership: owns the policy.
#pragma once

#include "selector/exploration.hpp"
#include "selector/policy/policy.hpp"
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
  double charged_ns = 0;  // to the budget for exploring
  bool explores = false;  // it is not the one expected to be the cheapest
  std::optional<std::size_t> build_ahead;
  std::optional<std::size_t> wanted_look;  // that waits for its program
  std::vector<Option> options;             // of a policy's decision
  std::vector<std::size_t> candidate_of;   // option → candidate
  std::size_t cheapest = 0;                // option
};

class Chooser {
 public:
  static Result<Chooser> create(const SelectorConfig& config);

  // random: nullptr takes what is expected to be cheapest where the policy would draw. REQUIRES: a prospect.
  Decision decide(const ShapeBucket& bucket, std::span<const Prospect> prospects, const JobTerms& terms,
                  std::mt19937_64* random) const;
  void commit(const ShapeBucket& bucket, std::span<const Prospect> prospects, const Decision& decision);
  // A run that has ended. One that explored was charged by what it was expected to take: now by what it took.
  void spend(const ShapeBucket& bucket, const DeviceInfo& device, double job_ns);

  // How likely each option was to be chosen, by drawing again; the budget's word included.
  std::vector<double> propensities(const Decision& decision, std::uint32_t repeat, std::mt19937_64& random) const;

  std::string because(std::span<const Prospect> prospects, const Decision& decision) const;
  const Exploration& exploration() const noexcept { return exploration_; }

 private:
  Chooser(const SelectorConfig& config, std::unique_ptr<Policy> policy)
      : exploration_(config.exploration), policy_(std::move(policy)), policy_name_(config.policy) {}

  std::optional<Exploration::Look> look(const ShapeBucket& bucket, std::span<const Prospect> prospects) const;
  std::size_t drawn(const Decision& decision, std::uint32_t repeat, std::mt19937_64* random) const;
  void serve_while_building(const ShapeBucket& bucket, std::span<const Prospect> prospects, Decision& decision) const;

  // A look that waits for a program which is built beside other jobs.
  struct Ahead {
    std::string shape;
    std::uint32_t jobs = 0;  // that others served meanwhile
  };

  struct Charged {
    double run_ns = 0;
    std::uint32_t runs = 0;  // that have not ended
  };

  Exploration exploration_;
  std::unique_ptr<Policy> policy_;
  std::string policy_name_;
  std::map<std::string, Ahead> ahead_;                // by device
  std::map<std::string, Charged> charged_;            // by bucket and device
  std::map<std::string, std::uint64_t> passed_over_;  // likewise, of those that have changed: runs that others served
};

}  // namespace kiln::selector
