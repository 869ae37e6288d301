// Policy: chooses among candidates with estimates, if no exploration run is due.
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

}  // namespace kiln::selector
