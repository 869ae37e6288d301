// Policy: which of several candidates with estimates shall run, once there is nothing left to look at.
//
// Thread-safety: none; the selector locks. Ownership: owned by the selector. Deterministic for a seed.
#pragma once

#include <kiln/config.hpp>
#include <kiln/status.hpp>

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string_view>

namespace kiln::selector {

struct Option {
  double fixed_ns = 0;       // queue and build: known
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

  // An index into `options`. REQUIRES: there is one.
  virtual std::size_t choose(std::span<const Option> options, std::mt19937_64& random) = 0;
};

std::size_t cheapest(std::span<const Option> options) noexcept;

std::unique_ptr<Policy> make_ema();
std::unique_ptr<Policy> make_epsilon(double exploration);
std::unique_ptr<Policy> make_ucb();
std::unique_ptr<Policy> make_thompson();

// invalid_argument: there is no policy of that name; with those that there are.
Result<std::unique_ptr<Policy>> make_policy(const SelectorConfig& config);

}  // namespace kiln::selector
