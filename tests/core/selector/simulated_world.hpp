// SimulatedWorld: devices and shapes with known true times, noise, and a selector that is fed with them: no clock, no
// device, every figure a function of the seed.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <kiln/device_selector.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kiln::test {

enum class Times {
  invalid = 0,
  affine,       // start + FLOPs ÷ rate + bytes ÷ bandwidth, each device its own, and how a shape suits a device
  independent,  // of FLOPs, bytes and of each other: a base a shape from 0.1 to 10 ms, and how it suits each device
};

struct SimulatedWorld {
  std::vector<DeviceInfo> devices;
  std::vector<KernelSpec> specs;
  std::vector<std::vector<double>> truth_ms;  // [spec][device]

  std::size_t best(std::size_t spec) const;
  double best_ms(std::size_t spec) const { return truth_ms[spec][best(spec)]; }
};

// Shapes of `count` different buckets; at most 64.
std::vector<KernelSpec> different_buckets(std::size_t count);
SimulatedWorld simulated_world(Times times, std::size_t devices, std::size_t buckets, std::uint64_t seed);

struct VisitFigures {
  std::size_t asked = 0;       // choices after the first `learning` visits of their bucket
  std::size_t right = 0;       // of them, the true time within 10 % of the best: one standard deviation of the noise
  std::size_t fastest = 0;     // of them, the one with the least true time
  double total_ms = 0;         // true times of what was chosen
  double oracle_ms = 0;        // of what was best
  double spent_ms = 0;         // what the runs took, noise included
  double explored_ms = 0;      // of that, on exploring beyond the looks that every bucket starts with
  std::size_t most_looks = 0;  // at one device for one bucket, of those that a bucket starts with

  double regret() const { return total_ms / oracle_ms - 1; }
  double explored() const { return explored_ms / spent_ms; }
};

// Visits every bucket so often, in a random order, with log-normal noise of that standard deviation.
VisitFigures visit(DeviceSelector& selector, const SimulatedWorld& world, std::size_t visits, std::size_t learning,
                   double noise, std::uint64_t seed);

struct UnseenFigures {
  double median_error = 0;  // of the expected time, relative to the true one
  double slower = 0;        // true times of what would be chosen, beyond those of what is best
};

// Runs three of four shapes a few times on every device, and judges the fourth, which was never run.
UnseenFigures judge_unseen(const SimulatedWorld& world, double noise, std::uint64_t seed);

}  // namespace kiln::test
