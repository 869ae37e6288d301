// PerformanceModel: what has been measured, by (operation, device, driver, shape bucket), and what it lets expect.
//
// Thread-safety: none; the selector locks. Ownership: values. Bounded: beyond the limit the arm unused for longest
// goes. Devices are known by id and driver; what they are called or what kind they are of is never looked at.
#pragma once

#include "selector/model/average.hpp"
#include "selector/model/shape_bucket.hpp"

#include <kiln/device.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace kiln::selector {

struct ArmKey {
  std::string operation;
  std::string device;  // id
  std::string driver;
  std::string shape;  // of the bucket; empty: what it costs to build or load a program, of whatever shape

  auto operator<=>(const ArmKey&) const = default;
};

struct Arm {
  Average log_ns;           // of the runs' times, natural logarithm
  double log_flops = 0;     // mean of the runs', so that a time can be scaled to a spec of the same bucket; 0: unknown
  std::uint32_t looks = 0;  // times that the device was chosen for want of knowledge
  std::uint64_t used = 0;   // when it was last of use, in steps of the model
};

enum class Evidence : std::uint8_t {
  invalid = 0,
  own,     // runs of this bucket
  near,    // runs of the same family, within an octave
  larger,  // of the same family with more work: small shapes run no better, so hardly less than this
  guess,   // of less work, or of another family: it may well be faster
  roof,    // no runs: what the device could do at best
  nothing,
};

struct Estimate {
  Evidence evidence = Evidence::nothing;
  double log_ns = 0;         // undefined for nothing
  double log_deviation = 0;  // of log_ns
  std::uint64_t runs = 0;    // of this bucket

  bool known() const noexcept { return evidence != Evidence::nothing; }
};

class PerformanceModel {
 public:
  static constexpr std::size_t most_arms = 4096;

  explicit PerformanceModel(double alpha) : alpha_(alpha) {}

  Estimate estimate(const ShapeBucket& bucket, const DeviceInfo& device) const;
  double build_ns(const ShapeBucket& bucket, const DeviceInfo& device) const;  // 0: not known
  std::uint32_t looks(const ShapeBucket& bucket, const DeviceInfo& device) const;

  void count_look(const ShapeBucket& bucket, const DeviceInfo& device);
  void learn_run(const ShapeBucket& bucket, const DeviceInfo& device, double ns);
  void learn_build(const ShapeBucket& bucket, const DeviceInfo& device, double ns);
  // The device has been opened, so its driver is known now: looks counted under what was known before become its own.
  void settle_driver(const ShapeBucket& bucket, const DeviceInfo& device);

  const std::map<ArmKey, Arm>& arms() const noexcept { return arms_; }
  void restore(ArmKey key, Arm arm);

 private:
  ArmKey key_of(const ShapeBucket& bucket, const DeviceInfo& device, std::string shape) const;
  const Arm* find(const ArmKey& key) const;
  Arm& touch(const ArmKey& key);
  Estimate from_neighbours(const ArmKey& key, const ShapeBucket& bucket) const;

  double alpha_;
  std::map<ArmKey, Arm> arms_;
  std::uint64_t step_ = 0;
};

}  // namespace kiln::selector
