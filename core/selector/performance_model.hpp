// PerformanceModel: what has been measured, by (operation, device, driver, shape bucket), and what it lets expect.
//
// Steady runs, first runs, transfers, builds and loads are separate. Beyond the limit the least recently used arm is
// removed. Devices are identified by id and by the identities of device and driver; names and kinds are not used.
// Thread-safety: none; the selector locks. Ownership: values.
#pragma once

#include "selector/statistics.hpp"

#include <kiln/device.hpp>
#include <kiln/device_selector.hpp>
#include <kiln/kernel.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::selector {

// Returns the family in a bucket's shape.
std::string_view family_in(std::string_view shape) noexcept;

// Shapes of the arms that hold the cost of getting a program, for all shapes.
inline constexpr std::string_view build_shape = "(build)";  // by the compiler
inline constexpr std::string_view load_shape = "(load)";    // from disk, or created by a library

struct ArmKey {
  std::string operation;
  std::string device;  // id
  std::string driver;  // name, and a digest of the identities in program keys
  std::string shape;   // of the bucket, or one of the above

  auto operator<=>(const ArmKey&) const = default;
};

struct Arm {
  RunAverage run;        // from the submission to the output in host memory, without the wait in the queue
  Average log_transfer;  // part of it: moving data
  Average log_first;     // first runs in a process
  double log_flops = 0;  // means over the runs, to scale a time to another spec of the bucket; 0: unknown
  double log_bytes = 0;
  std::uint32_t looks = 0;  // exploration runs
  std::uint64_t used = 0;   // last use in microseconds since 1970, increasing
};

enum class Evidence : std::uint8_t {
  invalid = 0,
  own,         // steady runs of this bucket
  first,       // only first runs of this bucket; later ones are hardly slower
  regression,  // runs of other shapes
  compared,    // runs of this bucket on another device, scaled by the ratio on other shapes
  roof,        // no runs; time at the device's roof
  nothing,
};

struct Estimate {
  Evidence evidence = Evidence::nothing;
  double log_ns = 0;          // undefined for Evidence::nothing
  double log_deviation = 0;   // of log_ns
  std::uint64_t runs = 0;     // of this bucket; with first runs if there are no others
  std::size_t shapes = 0;     // of a regression or a comparison
  double transfer_ns = 0;     // part of the time
  double first_extra_ns = 0;  // additional time of a first run
  bool drifted = false;       // the device changed before and may change again

  bool known() const noexcept { return evidence != Evidence::nothing; }
  // Whether it is based on runs. A roof is not.
  bool measured() const noexcept { return known() && evidence != Evidence::roof; }
};

class PerformanceModel {
 public:
  static constexpr std::size_t most_arms = 4096;

  explicit PerformanceModel(double alpha) : alpha_(alpha) {}

  Estimate estimate(const ShapeBucket& bucket, const DeviceInfo& device) const;
  // Estimates `device` from `known`, the estimate of `other` from its own runs of the bucket.
  Estimate compared(const ShapeBucket& bucket, const DeviceInfo& device, const DeviceInfo& other,
                    const Estimate& known) const;
  // Cost of getting a program; 0: unknown. The program of a bucket that ran on the device is assumed to be on disk.
  double build_ns(const ShapeBucket& bucket, const DeviceInfo& device) const;
  std::uint32_t looks(const ShapeBucket& bucket, const DeviceInfo& device) const;

  void count_look(const ShapeBucket& bucket, const DeviceInfo& device);
  Drift learn_run(const ShapeBucket& bucket, const DeviceInfo& device, double ns, double transfer_ns);
  void learn_first(const ShapeBucket& bucket, const DeviceInfo& device, double ns);
  void learn_build(const ShapeBucket& bucket, const DeviceInfo& device, std::string_view shape, double ns);
  // Call it after the device was opened and its driver is known: moves the exploration runs counted before to it.
  void settle_driver(const ShapeBucket& bucket, const DeviceInfo& device);

  const std::map<ArmKey, Arm>& arms() const noexcept { return arms_; }
  // Replaces the arms, after a merge with other processes.
  void replace(std::map<ArmKey, Arm> arms);

 private:
  ArmKey key_of(const ShapeBucket& bucket, const DeviceInfo& device, std::string_view shape) const;
  const Arm* find(const ArmKey& key) const;
  Arm& touch(const ArmKey& key);
  Estimate from_other_shapes(const ArmKey& key, const ShapeBucket& bucket) const;

  double alpha_;
  std::map<ArmKey, Arm> arms_;
  std::uint64_t step_ = 0;
};

// "Mesa 22.3.6 #1f2e3d4c"; the name alone if the identity is not known yet.
std::string fingerprint(const DeviceInfo& device);

// Removes the least recently used arms beyond `most_arms`.
void bound(std::map<ArmKey, Arm>& arms);

// Prospect: the expected cost of one candidate, with its evidence.
//
// Thread-safety: a value. Ownership: borrows its device for the call.

struct Prospect {
  const DeviceInfo* device = nullptr;
  Estimate run;
  double queue_ns = 0;
  double build_ns = 0;  // with the additional time of a first run; 0: program not cold, or unknown
  double uses = 1;      // expected runs of this bucket per build: as many as there were before
  std::uint32_t repeat = 1;
  bool cold = false;
  std::uint32_t looks = 0;

  // Share of a run in the one-time waits.
  double fixed_ns() const noexcept { return queue_ns / repeat + build_ns / uses; }
  double run_ns() const noexcept;   // transfer and run; infinite: unknown
  double cost_ns() const noexcept;  // fixed and run
  // Time of this job alone, without sharing costs with later jobs. Infinite: no estimate from runs.
  double now_ns() const noexcept;
  bool needs_compiler() const noexcept { return cold && device->serializes; }
  // Whether it is predicted to be so slow that it is measured once at most.
  bool hopeless(double best_ns) const noexcept { return cost_ns() > 10 * best_ns; }
  // "cpu: 0.48 ms expected (12 runs)"
  std::string text() const;
  CandidateCost figures() const;
};

// jobs: runs of the bucket in this process, with this job.
std::vector<Prospect> prospects_of(const PerformanceModel& model, const ShapeBucket& bucket,
                                   std::span<const Candidate> candidates, const JobTerms& terms, std::uint64_t jobs);

// Returns the least cost among estimates from runs; infinite: none.
double best_cost_ns(std::span<const Prospect> prospects) noexcept;

// The chosen candidate first, the others in their order.
std::string text_of(std::span<const Prospect> prospects, std::size_t chosen);

std::string duration_text(double ns);            // "0.48 ms", "2.1 s"
std::string evidence_text(const Estimate& run);  // "12 runs"

}  // namespace kiln::selector
